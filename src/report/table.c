/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints rows as an aligned table or as CSV. */
#include "report/table.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/shown.h"

#include <stdlib.h>
#include <sys/ioctl.h>

enum {
    ROWS_MEASURED =
        1000,      /* they decide how wide columns are; all others are written as they come */
    NARROWEST = 6, /* a text is not cut below this */
    LONGEST = 60,  /* nor is it longer where there is no terminal: it would make all lines so */
    COLUMNS_MOST = 10000,
    GAP = 2,
    CELL_MAX = 1 << 17,
    OUT_MAX = 1 << 24,
};

struct table {
    struct table_settings settings;
    struct arena arena;
    struct str *cells; /* of the rows that are kept */
    size_t n_cells, room;
    size_t *widths; /* NULL until rows have been measured; 0: it is left out */
    struct buf cell, out;
    int failed; /* errno */
};

struct table *table_new(const struct table_settings *settings)
{
    struct table *table = heap_alloc(sizeof(*table));

    table->settings = *settings;
    buf_init(&table->cell, CELL_MAX);
    buf_init(&table->out, OUT_MAX);
    return table;
}

static void write_out(struct table *table)
{
    if (table->out.over && !table->failed)
        table->failed = EFBIG;
    if (!table->failed && fwrite(table->out.p, 1, table->out.n, table->settings.to) != table->out.n)
        table->failed = errno ? errno : EIO;
    buf_reset(&table->out);
}

static bool is_formula(struct str text)
{
    return text.n && memchr("=+-@\t\r\n", text.p[0], 7);
}

static void put_csv_text(struct table *table, struct str text)
{
    struct buf *cell = &table->cell;
    bool is_quoted = false;

    buf_reset(cell);
    if (is_formula(text))
        buf_byte(cell, '\'');
    while (text.n) {
        bool is_space = memchr("\t\r\n", text.p[0], 3);
        struct str character = is_space ? str_head(text, 1) : shown_take(&text);

        if (is_space)
            text = str_skip(text, 1);
        is_quoted |= is_space || memchr("\",", character.p[0], 2);
        if (character.p[0] == '"')
            buf_byte(cell, '"');
        buf_put(cell, character);
    }
    if (is_quoted)
        buf_byte(&table->out, '"');
    buf_put(&table->out, buf_str(cell));
    if (is_quoted)
        buf_byte(&table->out, '"');
}

static void put_csv_head(struct table *table)
{
    for (size_t i = 0; i < table->settings.n_columns; i++) {
        buf_text(&table->out, i ? "," : "");
        buf_text(&table->out, table->settings.columns[i].title);
    }
    buf_text(&table->out, "\r\n");
}

static void put_csv_cell(struct table *table, struct str text)
{
    size_t column = table->n_cells % table->settings.n_columns;

    if (table->n_cells == 0)
        put_csv_head(table);
    if (column)
        buf_byte(&table->out, ',');
    if (table->settings.columns[column].is_number)
        buf_put(&table->out, text);
    else
        put_csv_text(table, text);
    table->n_cells++;
    if (column + 1 < table->settings.n_columns)
        return;
    buf_text(&table->out, "\r\n");
    write_out(table);
}

static size_t sum_of(const size_t *widths, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (widths[i])
            sum += (sum ? GAP : 0) + widths[i];
    return sum;
}

static bool can_be_cut(const struct table *table, size_t i)
{
    const struct table_column *column = &table->settings.columns[i];

    return !column->is_number && !column->is_whole;
}

/* The least that all columns take. */
static size_t least(const struct table *table)
{
    size_t n = table->settings.n_columns, sum = 0;

    for (size_t i = 0; i < n; i++) {
        size_t width = table->widths[i];

        if (width)
            sum +=
                (sum ? GAP : 0) + (can_be_cut(table, i) && width > NARROWEST ? NARROWEST : width);
    }
    return sum;
}

/* Those that can be spared go, one after the other, until the rest has room. */
static void leave_out(struct table *table)
{
    size_t n = table->settings.n_columns;

    while (table->settings.width && least(table) > table->settings.width) {
        size_t first = n;

        for (size_t i = 0; i < n; i++)
            if (table->widths[i] && table->settings.columns[i].spare &&
                (first == n ||
                 table->settings.columns[i].spare > table->settings.columns[first].spare))
                first = i;
        if (first == n)
            return;
        table->widths[first] = 0;
    }
}

/* Takes from the widest text until all fits, or no text has more to give. */
static void fit(struct table *table)
{
    size_t n = table->settings.n_columns;

    while (table->settings.width && sum_of(table->widths, n) > table->settings.width) {
        size_t widest = n;

        for (size_t i = 0; i < n; i++)
            if (can_be_cut(table, i) && table->widths[i] > NARROWEST &&
                (widest == n || table->widths[i] > table->widths[widest]))
                widest = i;
        if (widest == n)
            return;
        table->widths[widest]--;
    }
}

static void measure(struct table *table)
{
    size_t n = table->settings.n_columns;

    table->widths = heap_array(n, sizeof(*table->widths));
    for (size_t i = 0; i < n; i++)
        table->widths[i] = shown_width(str_of(table->settings.columns[i].title));
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t width = shown_width(table->cells[i]);

        if (width > LONGEST && !table->settings.width && can_be_cut(table, i % n))
            width = LONGEST;
        if (width > table->widths[i % n])
            table->widths[i % n] = width;
    }
    leave_out(table);
    fit(table);
}

static void put_spaces(struct buf *out, size_t n)
{
    while (n--)
        buf_byte(out, ' ');
}

/* A line is built whole and then cut at the terminal's edge: numbers alone may be too wide. */
static void put_line(struct table *table, const struct str *cells)
{
    size_t n = table->settings.n_columns, n_shown = 0;
    struct buf *line = &table->cell;

    buf_reset(line);
    for (size_t i = 0; i < n; i++) {
        bool is_number = table->settings.columns[i].is_number;
        size_t width = shown_width(cells[i]), room = table->widths[i];
        size_t most = !can_be_cut(table, i) ? SIZE_MAX : table->settings.width ? room : LONGEST;

        if (!room)
            continue;
        put_spaces(line, n_shown++ ? GAP : 0);
        if (is_number && width < room)
            put_spaces(line, room - width);
        width = shown_put_cut(line, cells[i], most);
        if (!is_number && width < room && i + 1 < n)
            put_spaces(line, room - width);
    }
    while (line->n && line->p[line->n - 1] == ' ')
        line->n--;
    shown_put_cut(&table->out, buf_str(line),
                  table->settings.width ? table->settings.width : SIZE_MAX);
    buf_byte(&table->out, '\n');
    write_out(table);
}

static void put_titles(struct table *table)
{
    size_t n = table->settings.n_columns;
    struct str *titles = ARENA_ARRAY(&table->arena, struct str, n);

    for (size_t i = 0; i < n; i++)
        titles[i] = str_of(table->settings.columns[i].title);
    put_line(table, titles);
}

static void put_rule(struct table *table)
{
    size_t width = sum_of(table->widths, table->settings.n_columns);

    if (table->settings.width && width > table->settings.width)
        width = table->settings.width;
    while (width--)
        buf_byte(&table->out, '-');
    buf_byte(&table->out, '\n');
}

static void flush(struct table *table, size_t n_kept)
{
    size_t n = table->settings.n_columns;

    if (!table->widths) {
        measure(table);
        put_titles(table);
    }
    for (size_t at = 0; at + n_kept * n + n <= table->n_cells; at += n)
        put_line(table, &table->cells[at]);
    if (!n_kept) {
        table->n_cells = 0;
        arena_clear(&table->arena);
    }
}

static void keep_cell(struct table *table, struct str text)
{
    buf_reset(&table->cell);
    shown_put(&table->cell, text);
    table->cells = heap_grow(table->cells, table->n_cells, &table->room, sizeof(*table->cells));
    table->cells[table->n_cells++] = arena_str(&table->arena, buf_str(&table->cell));
}

void table_cell(struct table *table, struct str text)
{
    size_t n = table->settings.n_columns;

    if (table->settings.format == TABLE_CSV) {
        put_csv_cell(table, text);
        return;
    }
    /* The last row stays until it is known whether it has the sums. */
    if (table->n_cells == ROWS_MEASURED * n)
        flush(table, 0);
    keep_cell(table, text);
}

static void end_text(struct table *table, bool has_sums)
{
    size_t n = table->settings.n_columns;

    if (!has_sums || table->n_cells < n) {
        flush(table, 0);
        return;
    }
    flush(table, 1);
    put_rule(table);
    put_line(table, &table->cells[table->n_cells - n]);
}

struct table *table_free(struct table *table)
{
    arena_clear(&table->arena);
    free(table->cells);
    free(table->widths);
    buf_free(&table->cell);
    buf_free(&table->out);
    free(table);
    return NULL;
}

int table_end(struct table *table, bool has_sums, struct err *err)
{
    int failed;

    if (table->settings.format == TABLE_TEXT)
        end_text(table, has_sums);
    else if (table->n_cells == 0)
        put_csv_head(table);
    write_out(table);
    if (fflush(table->settings.to) != 0 && !table->failed)
        table->failed = errno;
    failed = table->failed;
    table_free(table);
    return failed ? err_set(err, failed, "cannot write: %s", err_words(failed)) : 0;
}

size_t table_terminal_width(FILE *to)
{
    struct winsize size;
    int fd = fileno(to);
    const char *columns = getenv("COLUMNS");
    uint64_t told;

    if (fd < 0 || !isatty(fd))
        return columns && num_get_u64(str_of(columns), &told) && told <= COLUMNS_MOST ? told : 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}
