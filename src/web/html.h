/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of pages. Text is escaped in here, never by the caller; addresses are made in here, part
 * by part. The classes are those of src/web/static/sonde.css. */
#ifndef SONDE_WEB_HTML_H
#define SONDE_WEB_HTML_H

#include "base/buf.h"

/* Any bytes: control characters and what is not UTF-8 are shown as "?". For text and for quoted
 * attributes. */
void html_text(struct buf *to, struct str text);
void html_textz(struct buf *to, const char *text);

/* As much as fits in so many columns; of what was cut, all is its title. */
void html_cut(struct buf *to, struct str text, size_t columns);

/* A link, whose address is put together from a path, parts of it and arguments, percent-encoded:
 *     struct html_address link = html_begin_link(to, "/node/");
 *     html_part(&link, name);
 *     html_argument(&link, "cluster", cluster);   left out if it is empty
 *     html_end_link(&link, name);
 * A path may have arguments of its own: "/jobs?state=PENDING". */
struct html_address {
    struct buf *to;
    bool has_query;
};
struct html_address html_begin_link(struct buf *to, const char *path);
void html_part(struct html_address *address, struct str part);
void html_argument(struct html_address *address, const char *name, struct str value);
void html_fragment(struct html_address *address, const char *id); /* after the last argument */
void html_end_link(struct html_address *address, struct str words);
void html_end_number(struct html_address *address, double number); /* with its value, as below */

/* <a href="/user/alice?cluster=c">alice</a>; nothing for an empty name. */
void html_link(struct buf *to, const char *path, struct str name, struct str cluster);

/* A bar with its words beside it, as <meter> and text; the class is that of a severity, or NULL.
 * Without a ratio (NAN) the words alone. */
void html_meter(struct buf *to, double ratio, const char *class, struct str words);

/* A bar of several parts under its title and total, with its legend as a list: "allocated 32".
 * Parts that are NAN or 0 are left out, and so is a total that is unknown. An href is what the
 * number is made of: an address of this site, encoded; or NULL. */
struct html_part_of {
    const char *word, *class;
    double value;
    const char *href;
};
struct html_bar {
    const char *title;
    double total;
    const char *href;
    void (*put)(struct buf *to, double value);
};
void html_bar(struct buf *to, const struct html_bar *bar, const struct html_part_of *part,
              size_t n);

/* A table whose columns can be sorted by links, with a caption for those who do not see it. The
 * argument is sort=WORD, and sort=-WORD for the highest first. One none of whose columns has a word
 * shows all its rows: the script sorts it. The first column names its row. */
struct html_column {
    const char *title;
    const char *sort; /* its word in ?sort=; NULL: it cannot be sorted */
    bool is_number;
};
struct html_table {
    struct buf *to;
    const struct html_column *column;
    size_t n_columns;
    const char *cell; /* the element to be ended; or NULL */
};
void html_begin_table(struct html_table *table, struct buf *to, const char *caption,
                      const struct html_column *column, size_t n_columns, struct str sorted,
                      bool is_descending, struct str address); /* of the page, without sort: query
                                                                * included, encoded */
/* What ?sort= says: the word, and whether the highest come first. */
struct str html_sort_word(struct str argument, bool *ret_is_descending);
void html_begin_row(struct html_table *table);
void html_begin_cell(struct html_table *table, size_t column); /* ends the one before */
void html_end_row(struct html_table *table);
void html_end_table(struct html_table *table);

/* A time as <time datetime="…">, in the server's zone without JavaScript and in the reader's with
 * it; a span of seconds, a number, bytes, or as `put` tells it, each with its value for the script
 * that sorts; "–" for what is unknown: 0, NAN. */
void html_time(struct buf *to, int64_t moment);
void html_span(struct buf *to, double seconds);
void html_number(struct buf *to, double number);
void html_bytes(struct buf *to, double bytes);
void html_value(struct buf *to, double value, void (*put)(struct buf *to, double value));

/* What is said where there is nothing to show. */
void html_empty(struct buf *to, const char *sentence);

/* An image of the server's making, its words for who does not see it, and where its data is for the
 * script: <figure><img src=… data-series=…>. Both addresses are of this site, encoded. On a narrow
 * screen it is another, with narrow=1 in its address, for its text must still be readable. What
 * still goes on is renewed while somebody looks. */
enum { HTML_CHART_WIDTH = 680, HTML_CHART_NARROW = 380, HTML_CHART_HEIGHT = 240 }; /* pixels */
struct html_chart {
    struct str src, series, words;
    bool goes_on;
};
void html_chart(struct buf *to, const struct html_chart *chart);

#endif
