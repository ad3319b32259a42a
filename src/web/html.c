/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTML as https://html.spec.whatwg.org/ has it; what may stand in an address: RFC 3986. */
#include "web/html.h"

#include "base/moment.h"
#include "base/shown.h"
#include "report/words.h"

#include <math.h>

#define UNKNOWN "–"

/* How much of it can stand as it is: most names are nothing else. */
static size_t plain_bytes(struct str text)
{
    size_t n = 0;

    while (n < text.n && text.p[n] >= ' ' && text.p[n] <= '~' && !strchr("&<>\"'", text.p[n]))
        n++;
    return n;
}

void html_text(struct buf *to, struct str text)
{
    while (text.n) {
        size_t n = plain_bytes(text);

        buf_put(to, str_head(text, n));
        text = str_skip(text, n);
        if (text.n)
            buf_html(to, shown_take(&text));
    }
}

void html_textz(struct buf *to, const char *text)
{
    html_text(to, str_of(text));
}

void html_cut(struct buf *to, struct str text, size_t columns)
{
    struct buf cut;

    if (shown_width(text) <= columns) {
        html_text(to, text);
        return;
    }
    buf_init(&cut, 16 * columns + 16);
    shown_put_cut(&cut, text, columns);
    buf_text(to, "<span title=\"");
    html_text(to, text);
    buf_text(to, "\">");
    html_text(to, buf_str(&cut));
    buf_text(to, "</span>");
    buf_free(&cut);
}

struct html_address html_begin_link(struct buf *to, const char *path)
{
    buf_text(to, "<a href=\"");
    html_textz(to, path);
    return (struct html_address){ to, strchr(path, '?') != NULL };
}

void html_part(struct html_address *address, struct str part)
{
    buf_url(address->to, part);
}

void html_argument(struct html_address *address, const char *name, struct str value)
{
    if (!value.n)
        return;
    buf_text(address->to, address->has_query ? "&amp;" : "?");
    buf_url(address->to, str_of(name));
    buf_byte(address->to, '=');
    buf_url(address->to, value);
    address->has_query = true;
}

void html_fragment(struct html_address *address, const char *id)
{
    buf_byte(address->to, '#');
    buf_url(address->to, str_of(id));
}

void html_end_link(struct html_address *address, struct str words)
{
    buf_text(address->to, "\">");
    html_text(address->to, words);
    buf_text(address->to, "</a>");
}

void html_link(struct buf *to, const char *path, struct str name, struct str cluster)
{
    struct html_address address;

    if (!name.n)
        return;
    address = html_begin_link(to, path);
    html_part(&address, name);
    html_argument(&address, "cluster", cluster);
    html_end_link(&address, name);
}

static double clamp(double ratio)
{
    return ratio < 0 ? 0 : ratio > 1 ? 1 : ratio;
}

static void put_class(struct buf *to, const char *class)
{
    if (!class)
        return;
    buf_text(to, " class=\"");
    html_textz(to, class);
    buf_byte(to, '"');
}

/* The words say the same: a screen reader need not say it twice. */
void html_meter(struct buf *to, double ratio, const char *class, struct str words)
{
    buf_text(to, "<span class=\"meter\">");
    if (isfinite(ratio)) {
        buf_text(to, "<meter aria-hidden=\"true\"");
        put_class(to, class);
        buf_printf(to, " value=\"%.3f\"></meter> ", clamp(ratio));
    }
    html_text(to, words);
    buf_text(to, "</span>");
}

static void put_bar_part(struct buf *to, const struct html_part_of *part, double of)
{
    buf_text(to, "<i");
    put_class(to, part->class);
    buf_printf(to, " style=\"width:%.2f%%\"></i>", clamp(part->value / of) * 100);
}

/* An address of another site, or a script in place of one, is none. */
static bool is_of_this_site(const char *address)
{
    return address && (address[0] == '?' || (address[0] == '/' && address[1] != '/'));
}

/* The word and its number, as a link if there is where to. */
static void put_linked(struct buf *to, const char *href, const char *word, double value,
                       void (*put)(struct buf *to, double value))
{
    bool is_link = is_of_this_site(href);

    if (is_link) {
        buf_text(to, "<a href=\"");
        html_textz(to, href);
        buf_text(to, "\">");
    }
    html_textz(to, word);
    if (isfinite(value)) {
        buf_text(to, " <b>");
        put(to, value);
        buf_text(to, "</b>");
    }
    buf_text(to, is_link ? "</a>" : "");
}

static void put_bar_words(struct buf *to, const struct html_part_of *part,
                          void (*put)(struct buf *to, double value))
{
    buf_text(to, "<li><i");
    put_class(to, part->class);
    buf_text(to, "></i>");
    put_linked(to, part->href, part->word, part->value, put);
    buf_text(to, "</li>");
}

static bool is_shown(const struct html_part_of *part)
{
    return isfinite(part->value) && part->value > 0;
}

void html_bar(struct buf *to, const struct html_bar *bar, const struct html_part_of *part, size_t n)
{
    double sum = 0, of;

    for (size_t i = 0; i < n; i++)
        sum += is_shown(&part[i]) ? part[i].value : 0;
    of = bar->total > sum ? bar->total : sum; /* parts that exceed their total still fit */
    buf_text(to, "<div class=\"bar\"><p>");
    put_linked(to, bar->href, bar->title, bar->total, bar->put);
    buf_text(to, "</p><div class=\"parts\" aria-hidden=\"true\">");
    for (size_t i = 0; i < n; i++)
        if (is_shown(&part[i]))
            put_bar_part(to, &part[i], of);
    buf_text(to, sum > 0 ? "</div><ul class=\"legend\">" : "</div>");
    for (size_t i = 0; i < n; i++)
        if (is_shown(&part[i]))
            put_bar_words(to, &part[i], bar->put);
    buf_text(to, sum > 0 ? "</ul></div>\n" : "</div>\n");
}

struct str html_sort_word(struct str argument, bool *ret_is_descending)
{
    *ret_is_descending = str_starts(argument, STR("-"));
    return str_skip(argument, *ret_is_descending ? 1 : 0);
}

/* A second look at a column is from its other end; the first at numbers from the highest. */
static void put_sort_link(struct buf *to, const struct html_column *column, bool is_sorted,
                          bool is_descending, struct str address)
{
    bool wants_descending = is_sorted ? !is_descending : column->is_number;

    buf_text(to, "<a href=\"");
    html_text(to, address);
    buf_text(to, str_find(address, '?') < address.n ? "&amp;sort=" : "?sort=");
    buf_text(to, wants_descending ? "-" : "");
    buf_url(to, str_of(column->sort));
    buf_text(to, "\">");
    html_textz(to, column->title);
    buf_text(to, "</a>");
}

static void put_heading(struct buf *to, const struct html_column *column, struct str sorted,
                        bool is_descending, struct str address)
{
    bool is_sorted = column->sort && str_eq(sorted, str_of(column->sort));

    buf_text(to, "<th scope=\"col\"");
    put_class(to, column->is_number ? "number" : NULL);
    if (is_sorted)
        buf_printf(to, " aria-sort=\"%s\"", is_descending ? "descending" : "ascending");
    buf_byte(to, '>');
    if (column->sort)
        put_sort_link(to, column, is_sorted, is_descending, address);
    else
        html_textz(to, column->title);
    buf_text(to, "</th>");
}

static bool is_whole(const struct html_column *column, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (column[i].sort)
            return false;
    return true;
}

void html_begin_table(struct html_table *table, struct buf *to, const char *caption,
                      const struct html_column *column, size_t n_columns, struct str sorted,
                      bool is_descending, struct str address)
{
    *table = (struct html_table){ to, column, n_columns, NULL };
    /* The box scrolls, and can then be reached by the keyboard. */
    buf_text(to, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
    html_textz(to, caption);
    buf_text(to, is_whole(column, n_columns) ? "\"><table data-whole>" : "\"><table>");
    buf_text(to, "<caption>");
    html_textz(to, caption);
    buf_text(to, "</caption>\n<thead><tr>");
    for (size_t i = 0; i < n_columns; i++)
        put_heading(to, &column[i], sorted, is_descending, address);
    buf_text(to, "</tr></thead>\n<tbody>\n");
}

void html_begin_row(struct html_table *table)
{
    buf_text(table->to, "<tr>");
}

static void end_cell(struct html_table *table)
{
    if (table->cell)
        buf_text(table->to, table->cell);
    table->cell = NULL;
}

void html_begin_cell(struct html_table *table, size_t column)
{
    bool is_number = column < table->n_columns && table->column[column].is_number;

    end_cell(table);
    buf_text(table->to, column == 0 ? "<th scope=\"row\"" : "<td");
    put_class(table->to, is_number ? "number" : NULL);
    buf_byte(table->to, '>');
    table->cell = column == 0 ? "</th>" : "</td>";
}

void html_end_row(struct html_table *table)
{
    end_cell(table);
    buf_text(table->to, "</tr>\n");
}

void html_end_table(struct html_table *table)
{
    buf_text(table->to, "</tbody></table></div>\n");
}

void html_time(struct buf *to, int64_t moment)
{
    if (!moment) {
        buf_text(to, UNKNOWN);
        return;
    }
    buf_text(to, "<time datetime=\"");
    moment_put_zoned(to, moment);
    buf_text(to, "\">");
    words_time(to, moment);
    buf_text(to, "</time>");
}

void html_value(struct buf *to, double value, void (*put)(struct buf *to, double value))
{
    if (!isfinite(value)) {
        buf_text(to, UNKNOWN);
        return;
    }
    buf_text(to, "<span data-value=\"");
    buf_double(to, value);
    buf_text(to, "\">");
    put(to, value);
    buf_text(to, "</span>");
}

void html_span(struct buf *to, double seconds)
{
    html_value(to, seconds, words_duration);
}

void html_number(struct buf *to, double number)
{
    html_value(to, number, words_number);
}

void html_end_number(struct html_address *address, double number)
{
    buf_text(address->to, "\">");
    html_number(address->to, number);
    buf_text(address->to, "</a>");
}

void html_bytes(struct buf *to, double bytes)
{
    html_value(to, bytes, words_bytes);
}

void html_empty(struct buf *to, const char *sentence)
{
    buf_text(to, "<p class=\"empty\">");
    html_textz(to, sentence);
    buf_text(to, "</p>\n");
}

/* As sonde.css has it for narrow screens. */
static void put_narrow_source(struct buf *to, struct str src)
{
    buf_text(to, "<source media=\"(max-width: 40rem)\" srcset=\"");
    html_text(to, src);
    buf_text(to, str_find(src, '?') < src.n ? "&amp;narrow=1\">" : "?narrow=1\">");
}

void html_chart(struct buf *to, const struct html_chart *chart)
{
    buf_printf(to, "<figure class=\"chart\"%s><picture>", chart->goes_on ? " data-goes-on" : "");
    put_narrow_source(to, chart->src);
    buf_text(to, "<img src=\"");
    html_text(to, chart->src);
    if (chart->series.n) {
        buf_text(to, "\" data-series=\"");
        html_text(to, chart->series);
    }
    buf_printf(to, "\" width=\"%d\" height=\"%d\" loading=\"lazy\" alt=\"", HTML_CHART_WIDTH,
               HTML_CHART_HEIGHT);
    html_text(to, chart->words);
    buf_text(to, "\"></picture></figure>\n");
}
