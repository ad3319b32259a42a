/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lays out a section of a report in a PDF. */
#include "report/sheet_section.h"

#include <math.h>

enum { WORDS_MAX = 4096 };

static const double full_width = sheet_right - sheet_left;
static const double narrow_width = (full_width - sheet_column_gap) / 2;

/* Facts in two columns: returns the height of those from `begin` to `end`; draws them if y is a
 * number. */
static double lay_facts(struct sheet *sheet, const struct outline_section *section, size_t begin,
                        size_t end, double x, double y)
{
    const double label_width = 100;
    double height = 0;

    for (size_t i = begin; i < end; i++) {
        struct sheet_text label = {
            .x = x,
            .y = y + height,
            .width = label_width,
            .font = FONT_SMALL,
            .rgb = SHEET_FAINT,
            .text = str_of(section->fact[i].label),
        };
        struct sheet_text value = label;
        double label_height, value_height;

        value.x += label_width;
        value.width = narrow_width - label_width;
        value.rgb = SHEET_INK;
        value.most_lines = 6;
        value.text = section->fact[i].value;
        if (section->fact[i].is_link)
            value.link = value.text;
        label_height = isnan(y) ? sheet_measure(sheet, &label) : sheet_put(sheet, &label);
        value_height = isnan(y) ? sheet_measure(sheet, &value) : sheet_put(sheet, &value);
        height += fmax(label_height, value_height) + 2;
    }
    return height;
}

/* Where the second column begins, so that both are about as high. */
static size_t halve(struct sheet *sheet, const struct outline_section *section)
{
    double whole = lay_facts(sheet, section, 0, section->n_facts, 0, NAN), first = 0;
    size_t i = 0;

    while (i < section->n_facts && first < whole / 2)
        first += lay_facts(sheet, section, i, i + 1, 0, NAN), i++;
    return i;
}

static void put_facts(struct sheet *sheet, const struct outline_section *section, size_t half,
                      double height)
{
    sheet_need(sheet, height);
    lay_facts(sheet, section, 0, half, sheet_left, sheet->y);
    lay_facts(sheet, section, half, section->n_facts, sheet_left + narrow_width + sheet_column_gap,
              sheet->y);
    sheet->y += height;
}

/* A table that fits the sheet: what is too wide is taken from the widest column. */
enum { COLUMNS_MAX = 16 };

struct columns {
    double width[COLUMNS_MAX], sum; /* with the gaps between them */
    size_t n;
};

static const double column_gap = 9, row_height = 12;

static void measure_columns(struct sheet *sheet, const struct outline_table *table,
                            struct columns *columns)
{
    columns->sum = -column_gap;
    columns->n = table->n_columns < COLUMNS_MAX ? table->n_columns : COLUMNS_MAX;
    for (size_t i = 0; i < columns->n; i++) {
        double widest = sheet_natural_width(sheet, FONT_SMALL_BOLD, str_of(table->title[i]));

        for (size_t row = 0; row < table->n_rows; row++)
            widest = fmax(widest, sheet_natural_width(sheet, FONT_SMALL,
                                                      table->cell[row * table->n_columns + i]));
        columns->width[i] = widest + 1;
        columns->sum += columns->width[i] + column_gap;
    }
    while (columns->sum > full_width) {
        size_t widest = 0;

        for (size_t i = 1; i < columns->n; i++)
            if (columns->width[i] > columns->width[widest])
                widest = i;
        columns->width[widest] -= 1;
        columns->sum -= 1;
    }
}

static void put_row(struct sheet *sheet, const struct outline_table *table,
                    const struct columns *columns, enum sheet_font font, const struct str *cell)
{
    double x = sheet_left;

    for (size_t i = 0; i < columns->n; i++) {
        sheet_put(sheet,
                  &(struct sheet_text){ .x = x,
                                        .y = sheet->y,
                                        .width = columns->width[i],
                                        .font = font,
                                        .anchor = i && !table->is_text ? ANCHOR_END : ANCHOR_START,
                                        .rgb = SHEET_INK,
                                        .most_lines = 1,
                                        .text = cell[i] });
        x += columns->width[i] + column_gap;
    }
    sheet->y += row_height;
}

static void put_titles(struct sheet *sheet, const struct outline_table *table,
                       const struct columns *columns)
{
    struct str titles[COLUMNS_MAX];

    for (size_t i = 0; i < columns->n; i++)
        titles[i] = str_of(table->title[i]);
    put_row(sheet, table, columns, FONT_SMALL_BOLD, titles);
    sheet_box(sheet, sheet_left, sheet->y - 1, columns->sum, 0.5, SHEET_RULE);
    sheet->y += 1;
}

static void put_table(struct sheet *sheet, const struct outline_table *table)
{
    struct columns columns;
    struct buf words;

    measure_columns(sheet, table, &columns);
    sheet->y += 4;
    sheet_need(sheet, 3 * row_height);
    put_titles(sheet, table, &columns);
    for (size_t row = 0; row < table->n_rows; row++) {
        size_t page = sheet->page;

        sheet_need(sheet, row_height);
        if (sheet->page != page)
            put_titles(sheet, table, &columns);
        put_row(sheet, table, &columns, FONT_SMALL, &table->cell[row * table->n_columns]);
    }
    buf_init(&words, WORDS_MAX);
    outline_put_notes(&words, table);
    sheet_paragraph(sheet, FONT_SMALL, SHEET_FAINT, 2, buf_str(&words));
    buf_free(&words);
}

void sheet_section(struct sheet *sheet, const struct outline_section *section)
{
    size_t half = halve(sheet, section);
    double height = fmax(lay_facts(sheet, section, 0, half, 0, NAN),
                         lay_facts(sheet, section, half, section->n_facts, 0, NAN));

    sheet_heading(sheet, section->title, section->n_facts ? height : 4 * row_height);
    if (section->n_facts)
        put_facts(sheet, section, half, height);
    if (section->table.n_rows)
        put_table(sheet, &section->table);
}
