/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wraps and colors text for a terminal or a mail. */
#include "report/page.h"

#include "base/shown.h"
#include "report/words.h"

#include <ctype.h>
#include <math.h>

enum {
    NARROWEST = 40,
    WIDEST = 100, /* longer lines are hard to read */
    USUAL_WIDTH = 80,
    INDENT = 2,
    GAP = 2,
    SEVERITY_COLUMNS = 10,
    METER_TITLE_COLUMNS = 10,
    METER_BAR_MIN = 10,
    METER_BAR_MAX = 30,
    PERCENT_COLUMNS = 6,
    TEXT_MAX = 1 << 16,
    FIRST_COLUMN_MIN = 8,
    NOTES_MAX = 1024,
};

void page_begin(struct page *page, struct buf *to, const struct text_look *look)
{
    size_t width = look->width ? look->width : USUAL_WIDTH;

    *page = (struct page){ .to = to, .look = *look };
    page->look.width = width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
}

void page_end(struct page *page)
{
    arena_clear(&page->arena);
}

/* As this page can show it. */
static struct str shown_of(struct page *page, struct str text)
{
    struct buf shown;
    struct str copy;

    buf_init(&shown, TEXT_MAX);
    while (text.n && !shown.over) {
        struct str character = shown_take(&text);

        if (character.n == 1 || page->look.has_unicode)
            buf_put(&shown, character);
        else
            buf_text(&shown, str_eq(character, STR("…")) ? "..." : "?");
    }
    copy = arena_str(&page->arena, buf_str(&shown));
    buf_free(&shown);
    return copy;
}

static void put_spaces(struct page *page, size_t n)
{
    while (n--)
        buf_byte(page->to, ' ');
}

static void put_style(struct page *page, const char *code)
{
    if (page->look.has_colour)
        buf_printf(page->to, "\033[%sm", code);
}

/* "1" is bold, "0" the end of it. */
static const char *const severity_styles[] = {
    [SEVERITY_OFF] = "32",
    [SEVERITY_NOTE] = "36",
    [SEVERITY_WARNING] = "33",
    [SEVERITY_CRITICAL] = "31",
};

/* How many bytes of a text fit in so many columns; one character at least. */
static size_t fit_characters(struct str text, size_t columns)
{
    struct str rest = text;
    size_t n = 0, width = 0;

    while (rest.n) {
        width += shown_width(shown_take(&rest));
        if (n && width > columns)
            break;
        n = text.n - rest.n;
    }
    return n;
}

/* Whether a line may end before this place: a number stays with its unit. */
static bool can_break(struct str text, size_t at)
{
    return text.p[at - 1] == ' ' && !(at > 1 && isdigit((unsigned char)text.p[at - 2]));
}

/* Takes the words that fit on one line; a word that fits on none is broken. */
static struct str take_line(struct str *rest, size_t columns)
{
    size_t whole = fit_characters(*rest, columns), end = whole;
    struct str line;

    if (whole < rest->n) {
        end = rest->p[whole] == ' ' ? whole + 1 : whole;
        while (end && !can_break(*rest, end))
            end--;
        end = end ? end : whole;
    }
    line = str_trim(str_head(*rest, end));
    *rest = str_skip(*rest, end);
    while (rest->n && rest->p[0] == ' ')
        *rest = str_skip(*rest, 1);
    return line;
}

/* From the column where the line stands, further lines indented to it. */
static void put_wrapped(struct page *page, size_t column, struct str shown)
{
    size_t columns = page->look.width > column + 10 ? page->look.width - column : 10;

    buf_put(page->to, take_line(&shown, columns));
    buf_byte(page->to, '\n');
    while (shown.n) {
        put_spaces(page, column);
        buf_put(page->to, take_line(&shown, columns));
        buf_byte(page->to, '\n');
    }
}

static void put_cell(struct page *page, struct str shown, size_t width, bool is_number)
{
    size_t columns = shown_width(shown);

    if (is_number && columns < width)
        put_spaces(page, width - columns);
    if (columns > width && !page->look.has_unicode) {
        buf_put(page->to, str_head(shown, fit_characters(shown, width)));
        return;
    }
    columns = shown_put_cut(page->to, shown, width);
    if (!is_number && columns < width)
        put_spaces(page, width - columns);
}

void page_heading(struct page *page, struct str title)
{
    struct str shown = shown_of(page, title);
    size_t width = shown_width(shown);

    buf_text(page->to, page->to->n ? "\n" : "");
    put_style(page, "1");
    put_cell(page, shown, width < page->look.width ? width : page->look.width, false);
    put_style(page, "0");
    buf_byte(page->to, '\n');
}

void page_paragraph(struct page *page, size_t indent, struct str text)
{
    put_spaces(page, indent);
    put_wrapped(page, indent, shown_of(page, text));
}

void page_fact(struct page *page, struct str label, size_t label_width, struct str text)
{
    struct str shown = shown_of(page, label);
    size_t width = shown_width(shown);

    put_spaces(page, INDENT);
    buf_put(page->to, shown);
    put_spaces(page, (label_width > width ? label_width - width : 0) + GAP);
    put_wrapped(page, INDENT + (label_width > width ? label_width : width) + GAP,
                shown_of(page, text));
}

void page_finding(struct page *page, enum severity severity, struct str sentence, struct str link)
{
    const char *word = severity_words[severity];

    put_spaces(page, INDENT);
    put_style(page, severity_styles[severity]);
    for (const char *p = word; *p; p++)
        buf_byte(page->to, (char)toupper((unsigned char)*p));
    put_style(page, "0");
    put_spaces(page, SEVERITY_COLUMNS - strlen(word));
    put_wrapped(page, INDENT + SEVERITY_COLUMNS, shown_of(page, sentence));
    if (link.n)
        page_paragraph(page, INDENT + SEVERITY_COLUMNS, link);
}

static void put_bar(struct page *page, double ratio, size_t columns)
{
    double part = ratio < 0 ? 0 : ratio > 1 ? 1 : ratio;
    size_t filled = (size_t)lround(part * (double)columns);

    /* something is not nothing, unless it is told as such beside the bar */
    if (filled == 0 && ratio > 0 && !words_are_no_percent(ratio))
        filled = 1;
    for (size_t i = 0; i < columns; i++)
        if (page->look.has_unicode)
            buf_text(page->to, i < filled ? "█" : "░");
        else
            buf_byte(page->to, i < filled ? '|' : ' ');
}

static size_t bar_columns(const struct page *page)
{
    size_t width = page->look.width;

    return width < 60 + METER_BAR_MIN   ? METER_BAR_MIN
           : width > 60 + METER_BAR_MAX ? METER_BAR_MAX
                                        : width - 60;
}

void page_meter(struct page *page, const struct outline_meter *meter)
{
    size_t bar = bar_columns(page), title = shown_width(str_of(meter->title));
    size_t column = INDENT + METER_TITLE_COLUMNS + GAP + 1 + bar + 1 + PERCENT_COLUMNS + GAP;
    struct str words = shown_of(page, meter->words);
    struct buf percent;

    put_spaces(page, INDENT);
    buf_text(page->to, meter->title);
    put_spaces(page, METER_TITLE_COLUMNS + GAP - title);
    buf_byte(page->to, '[');
    put_style(page, severity_styles[meter->severity]);
    put_bar(page, meter->ratio, bar);
    put_style(page, "0");
    buf_byte(page->to, ']');
    buf_init(&percent, 64);
    words_percent(&percent, meter->ratio);
    put_spaces(page, percent.n < PERCENT_COLUMNS ? PERCENT_COLUMNS - percent.n : 1);
    buf_put(page->to, buf_str(&percent));
    buf_free(&percent);
    if (!words.n) {
        buf_byte(page->to, '\n');
    } else if (column + shown_width(words) <= page->look.width) {
        put_spaces(page, GAP);
        put_wrapped(page, column, words);
    } else {
        buf_byte(page->to, '\n');
        put_spaces(page, INDENT + METER_TITLE_COLUMNS + GAP);
        put_wrapped(page, INDENT + METER_TITLE_COLUMNS + GAP, words);
    }
}

static size_t sum_widths(const size_t *width, size_t n)
{
    size_t sum = INDENT;

    for (size_t i = 0; i < n; i++)
        sum += (i ? GAP : 0) + width[i];
    return sum;
}

static size_t *measure_columns(struct page *page, const struct outline_table *table,
                               const struct str *cell)
{
    size_t n = table->n_columns, *width = ARENA_ARRAY(&page->arena, size_t, n);

    for (size_t i = 0; i < n; i++)
        width[i] = shown_width(str_of(table->title[i]));
    for (size_t i = 0; i < table->n_rows * n; i++) {
        size_t columns = shown_width(cell[i]);

        if (columns > width[i % n])
            width[i % n] = columns;
    }
    return width;
}

/* How many columns of the table fit; what is then still too wide is cut from the first. */
static size_t fit_columns(const struct page *page, size_t *width, size_t n)
{
    size_t first = width[0], sum;

    width[0] = first < FIRST_COLUMN_MIN ? first : FIRST_COLUMN_MIN;
    while (n > 1 && sum_widths(width, n) > page->look.width)
        n--;
    sum = sum_widths(width, n);
    width[0] += page->look.width - sum;
    if (width[0] > first)
        width[0] = first;
    return n;
}

static void put_row(struct page *page, const struct str *cell, const size_t *width, size_t n,
                    bool is_text)
{
    put_spaces(page, INDENT);
    for (size_t i = 0; i < n; i++) {
        put_spaces(page, i ? GAP : 0);
        put_cell(page, cell[i], width[i], i > 0 && !is_text);
    }
    while (page->to->n && page->to->p[page->to->n - 1] == ' ')
        page->to->n--;
    buf_end(page->to);
    buf_byte(page->to, '\n');
}

static void put_notes(struct page *page, const struct outline_table *table)
{
    struct buf words;

    buf_init(&words, NOTES_MAX);
    outline_put_notes(&words, table);
    if (words.n)
        page_paragraph(page, INDENT, buf_str(&words));
    buf_free(&words);
}

void page_table(struct page *page, const struct outline_table *table)
{
    size_t n_cells = table->n_rows * table->n_columns, n;
    struct str *cell = ARENA_ARRAY(&page->arena, struct str, n_cells + table->n_columns);
    size_t *width;

    for (size_t i = 0; i < n_cells; i++)
        cell[i] = shown_of(page, table->cell[i]);
    for (size_t i = 0; i < table->n_columns; i++)
        cell[n_cells + i] = str_of(table->title[i]);
    width = measure_columns(page, table, cell);
    n = fit_columns(page, width, table->n_columns);
    put_row(page, &cell[n_cells], width, n, table->is_text);
    for (size_t i = 0; i < table->n_rows; i++)
        put_row(page, &cell[i * table->n_columns], width, n, table->is_text);
    put_notes(page, table);
}
