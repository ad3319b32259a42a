/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lays out text and charts on A4 pages of a PDF. */
#include "report/sheet.h"

#include <math.h>

static const double footer_y = 803;
static const double section_gap = 12;

static const struct {
    const char *family;
    double size;
    bool is_bold;
} fonts[] = {
    [FONT_TITLE] = { draw_family, 16, true },
    [FONT_HEADING] = { draw_family, 11, true },
    [FONT_TEXT] = { draw_family, 9, false },
    [FONT_SMALL] = { draw_family, 7.5, false },
    [FONT_SMALL_BOLD] = { draw_family, 7.5, true },
    [FONT_FIXED] = { draw_fixed_family, 8.5, false },
};

static void set_colour(struct sheet *sheet, uint32_t rgb)
{
    cairo_set_source_rgb(sheet->cairo, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0,
                         (rgb & 255) / 255.0);
}

static void set(struct sheet *sheet, const struct sheet_text *text)
{
    static const PangoAlignment alignments[] = {
        [ANCHOR_START] = PANGO_ALIGN_LEFT,
        [ANCHOR_MIDDLE] = PANGO_ALIGN_CENTER,
        [ANCHOR_END] = PANGO_ALIGN_RIGHT,
    };
    PangoLayout *layout = sheet->layout;

    draw_set_font(layout, fonts[text->font].family, fonts[text->font].size,
                  fonts[text->font].is_bold);
    draw_set_text(layout, text->text);
    pango_layout_set_width(layout, (int)(fmax(1, text->width) * PANGO_SCALE));
    /* names have no spaces to break at */
    pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
    pango_layout_set_alignment(layout, alignments[text->anchor]);
    pango_layout_set_ellipsize(layout,
                               text->most_lines ? PANGO_ELLIPSIZE_END : PANGO_ELLIPSIZE_NONE);
    pango_layout_set_height(layout, text->most_lines ? -text->most_lines : -1);
}

static double height_of(struct sheet *sheet)
{
    PangoRectangle size;

    pango_layout_get_extents(sheet->layout, NULL, &size);
    return (double)size.height / PANGO_SCALE;
}

double sheet_measure(struct sheet *sheet, const struct sheet_text *text)
{
    set(sheet, text);
    return height_of(sheet);
}

double sheet_natural_width(struct sheet *sheet, enum sheet_font font, struct str text)
{
    PangoRectangle size;

    set(sheet, &(struct sheet_text){ .font = font, .text = text });
    pango_layout_set_width(sheet->layout, -1);
    pango_layout_get_extents(sheet->layout, NULL, &size);
    return (double)size.width / PANGO_SCALE;
}

/* The attributes of a link are a list: what could end its text is left to those who write URLs
 * without it. */
static bool is_plain_url(struct str link)
{
    for (size_t i = 0; i < link.n; i++)
        if (link.p[i] <= ' ' || link.p[i] > '~' || link.p[i] == '\'' || link.p[i] == '\\')
            return false;
    return str_starts(link, STR("https://")) || str_starts(link, STR("http://"));
}

static bool begin_link(struct sheet *sheet, struct str link)
{
    struct buf attributes;

    if (!link.n || link.n > DRAW_TEXT_MAX || !is_plain_url(link))
        return false;
    buf_init(&attributes, DRAW_TEXT_MAX + 16);
    buf_text(&attributes, "uri='");
    buf_put(&attributes, link);
    buf_byte(&attributes, '\'');
    cairo_tag_begin(sheet->cairo, CAIRO_TAG_LINK, attributes.p);
    buf_free(&attributes);
    return true;
}

double sheet_put(struct sheet *sheet, const struct sheet_text *text)
{
    bool is_link;

    set(sheet, text);
    if (!sheet->is_drawn || !text->text.n)
        return height_of(sheet);
    set_colour(sheet, text->rgb);
    is_link = begin_link(sheet, text->link);
    cairo_move_to(sheet->cairo, text->x, text->y);
    pango_cairo_show_layout(sheet->cairo, sheet->layout);
    if (is_link)
        cairo_tag_end(sheet->cairo, CAIRO_TAG_LINK);
    return height_of(sheet);
}

void sheet_box(struct sheet *sheet, double x, double y, double width, double height, uint32_t rgb)
{
    if (!sheet->is_drawn)
        return;
    set_colour(sheet, rgb);
    cairo_rectangle(sheet->cairo, x, y, width, height);
    cairo_fill(sheet->cairo);
}

void sheet_chart(struct sheet *sheet, double x, double y, const struct chart *chart)
{
    if (!sheet->is_drawn)
        return;
    cairo_save(sheet->cairo);
    cairo_translate(sheet->cairo, x, y);
    pango_layout_set_ellipsize(sheet->layout, PANGO_ELLIPSIZE_NONE);
    draw_chart(sheet->cairo, sheet->layout, chart);
    cairo_restore(sheet->cairo);
}

void sheet_begin(struct sheet *sheet, bool is_drawn)
{
    sheet->is_drawn = is_drawn;
    sheet->page = 1;
    sheet->y = sheet_top;
}

static void put_footer(struct sheet *sheet)
{
    const double number_width = 60;
    struct buf number;

    sheet_box(sheet, sheet_left, footer_y - 5, sheet_right - sheet_left, 0.5, SHEET_RULE);
    sheet_put(sheet, &(struct sheet_text){
                         .x = sheet_left,
                         .y = footer_y,
                         .width = sheet_right - sheet_left - number_width,
                         .font = FONT_SMALL,
                         .rgb = SHEET_FAINT,
                         .most_lines = 1,
                         .text = sheet->footer,
                     });
    buf_init(&number, 64);
    buf_printf(&number, "%zu / %zu", sheet->page, sheet->n_pages);
    sheet_put(sheet, &(struct sheet_text){
                         .x = sheet_right - number_width,
                         .y = footer_y,
                         .width = number_width,
                         .font = FONT_SMALL,
                         .anchor = ANCHOR_END,
                         .rgb = SHEET_FAINT,
                         .text = buf_str(&number),
                     });
    buf_free(&number);
}

void sheet_end(struct sheet *sheet)
{
    put_footer(sheet);
    if (sheet->is_drawn)
        cairo_show_page(sheet->cairo);
    else
        sheet->n_pages = sheet->page;
}

void sheet_need(struct sheet *sheet, double height)
{
    if (sheet->y + height <= sheet_bottom || sheet->y == sheet_top)
        return;
    sheet_end(sheet);
    sheet->page++;
    sheet->y = sheet_top;
}

void sheet_paragraph(struct sheet *sheet, enum sheet_font font, uint32_t rgb, int most_lines,
                     struct str text)
{
    struct sheet_text paragraph = {
        .x = sheet_left,
        .width = sheet_right - sheet_left,
        .font = font,
        .rgb = rgb,
        .most_lines = most_lines,
        .text = text,
    };

    if (!text.n)
        return;
    sheet_need(sheet, sheet_measure(sheet, &paragraph));
    paragraph.y = sheet->y;
    sheet->y += sheet_put(sheet, &paragraph) + sheet_line_gap;
}

void sheet_heading(struct sheet *sheet, const char *title, double following)
{
    const double height = 16;

    if (sheet->y > sheet_top)
        sheet->y += section_gap;
    sheet_need(sheet, height + following);
    sheet_put(sheet, &(struct sheet_text){ .x = sheet_left,
                                           .y = sheet->y,
                                           .width = sheet_right - sheet_left,
                                           .font = FONT_HEADING,
                                           .rgb = SHEET_INK,
                                           .text = str_of(title) });
    sheet->y += height;
}
