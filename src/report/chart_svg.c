/* SPDX-License-Identifier: GPL-2.0-or-later */
/* W3C, "Scalable Vector Graphics (SVG) 1.1", and 8.3 of it for what stands in the d of a path.
 * Colours are presentation attributes, which any rule of a style sheet replaces, so that a chart
 * can be read alone and follow the page that it stands in. */
#include "report/chart.h"

#include "base/shown.h"

#include <math.h>

/* XML has no way to write some characters: they are "?", as all that cannot be shown. */
static void put_text(struct buf *to, struct str text)
{
    while (text.n) {
        struct str character = shown_take(&text);
        bool is_none =
            str_eq(character, STR("\xef\xbf\xbe")) || str_eq(character, STR("\xef\xbf\xbf"));

        buf_html(to, is_none ? STR("?") : character);
    }
}

static long tenths(double coordinate)
{
    return isfinite(coordinate) ? lround(fmax(-1e6, fmin(1e6, coordinate)) * 10) : 0;
}

/* "12", "12.3", "-.4": as short as it can be. */
static void put_tenths(struct buf *to, long value)
{
    unsigned long size = (unsigned long)labs(value);

    if (value < 0)
        buf_byte(to, '-');
    if (size >= 10 || size == 0)
        buf_u64(to, size / 10);
    if (size % 10) {
        buf_byte(to, '.');
        buf_u64(to, size % 10);
    }
}

static void put_attribute(struct buf *to, const char *name, double value)
{
    buf_printf(to, " %s=\"", name);
    put_tenths(to, tenths(value));
    buf_byte(to, '"');
}

static void put_number(struct buf *to, long value)
{
    if (value >= 0)
        buf_byte(to, ' ');
    put_tenths(to, value);
}

/* Where a path has come to, in tenths: steps are told from there, so that rounding does not add up.
 */
struct pen {
    struct buf *to;
    long x, y;
    char command; /* that was written last: it need not be repeated */
};

static void put_command(struct pen *pen, char command)
{
    if (pen->command != command)
        buf_byte(pen->to, command);
    pen->command = command;
}

static void pen_move(struct pen *pen, const struct point *to)
{
    pen->x = tenths(to->x);
    pen->y = tenths(to->y);
    pen->command = 'M';
    buf_byte(pen->to, 'M');
    put_tenths(pen->to, pen->x);
    put_number(pen->to, pen->y);
}

static void pen_line(struct pen *pen, const struct point *to)
{
    long x = tenths(to->x), y = tenths(to->y);
    bool repeats = pen->command == 'l';

    put_command(pen, 'l');
    if (repeats)
        put_number(pen->to, x - pen->x);
    else
        put_tenths(pen->to, x - pen->x);
    put_number(pen->to, y - pen->y);
    pen->x = x;
    pen->y = y;
}

static void put_points(struct buf *to, const struct mark *mark)
{
    struct pen pen = { .to = to };
    bool is_down = false;

    for (size_t i = 0; i < mark->n_points; i++) {
        const struct point *point = &mark->point[i];
        bool is_last = i + 1 == mark->n_points || isnan(mark->point[i + 1].y);

        if (isnan(point->y)) {
            is_down = false;
            continue;
        }
        if (is_down)
            pen_line(&pen, point);
        else
            pen_move(&pen, point);
        if (!is_down && is_last)
            buf_text(to, "h0"); /* a line of no length with round ends is a dot */
        is_down = true;
    }
}

static void put_class(struct buf *to, const char *kind, const struct mark *mark)
{
    const char *name = ink_look(mark->ink)->name;

    if (mark->ink >= INK_FIRST)
        buf_printf(to, " class=\"sonde-%s-%s\"", kind, name);
    else
        buf_printf(to, " class=\"sonde-%s\"", name);
}

/* `what` is fill or stroke. */
static void put_colour(struct buf *to, const char *what, const struct mark *mark)
{
    const struct ink_look *look = ink_look(mark->ink);

    if (look->is_text_colour)
        buf_printf(to, " %s=\"currentColor\"", what);
    else
        buf_printf(to, " %s=\"#%06x\"", what, (unsigned)look->rgb);
    if (look->opacity < 1) {
        buf_printf(to, " %s-opacity=\"", what);
        buf_double(to, look->opacity);
        buf_byte(to, '"');
    }
}

static void put_dash(struct buf *to, enum dash dash)
{
    const double *length = dash_lengths[dash];

    if (!length[0])
        return;
    buf_text(to, " stroke-dasharray=\"");
    for (size_t i = 0; length[i] > 0; i++) {
        buf_text(to, i ? " " : "");
        put_tenths(to, tenths(length[i]));
    }
    buf_byte(to, '"');
}

/* Ends an element, with what a pointer over it is told. */
static void put_end(struct buf *to, const char *element, const struct mark *mark)
{
    if (!mark->text.n) {
        buf_text(to, "/>");
        return;
    }
    buf_text(to, "><title>");
    put_text(to, mark->text);
    buf_printf(to, "</title></%s>", element);
}

static void put_line(struct buf *to, const struct mark *mark)
{
    buf_text(to, "<path");
    put_class(to, "line", mark);
    buf_text(to, " fill=\"none\"");
    put_colour(to, "stroke", mark);
    put_attribute(to, "stroke-width", mark->width);
    put_dash(to, mark->dash);
    if (mark->dash == DASH_NONE)
        buf_text(to, " stroke-linecap=\"round\"");
    buf_text(to, " stroke-linejoin=\"round\" d=\"");
    put_points(to, mark);
    buf_byte(to, '"');
    put_end(to, "path", mark);
}

static void put_area(struct buf *to, const struct mark *mark)
{
    buf_text(to, "<path");
    put_class(to, "fill", mark);
    put_colour(to, "fill", mark);
    buf_text(to, " d=\"");
    put_points(to, mark);
    buf_text(to, "z\"");
    put_end(to, "path", mark);
}

static void put_rectangle(struct buf *to, const struct mark *mark)
{
    buf_text(to, "<rect");
    put_class(to, "fill", mark);
    put_colour(to, "fill", mark);
    put_attribute(to, "x", mark->at.x);
    put_attribute(to, "y", mark->at.y);
    put_attribute(to, "width", mark->size.x);
    put_attribute(to, "height", mark->size.y);
    put_end(to, "rect", mark);
}

static struct point on_circle(const struct mark *mark, double turns)
{
    double angle = 2 * M_PI * turns;

    return (struct point){ mark->at.x + mark->size.x * sin(angle),
                           mark->at.y - mark->size.x * cos(angle) };
}

static void put_circle(struct buf *to, const struct mark *mark)
{
    buf_text(to, "<circle");
    put_class(to, "fill", mark);
    put_colour(to, "fill", mark);
    put_attribute(to, "cx", mark->at.x);
    put_attribute(to, "cy", mark->at.y);
    put_attribute(to, "r", mark->size.x);
    put_end(to, "circle", mark);
}

static void put_wedge(struct buf *to, const struct mark *mark)
{
    struct point from = on_circle(mark, mark->from), end = on_circle(mark, mark->to);
    struct pen pen = { .to = to };

    /* an arc back to where it began is none */
    if (mark->to - mark->from > 0.9999) {
        put_circle(to, mark);
        return;
    }
    buf_text(to, "<path");
    put_class(to, "fill", mark);
    put_colour(to, "fill", mark);
    buf_text(to, " d=\"");
    pen_move(&pen, &mark->at);
    pen_line(&pen, &from);
    buf_byte(to, 'A');
    put_tenths(to, tenths(mark->size.x));
    put_number(to, tenths(mark->size.x));
    buf_printf(to, " 0 %d 1", mark->to - mark->from > 0.5);
    put_number(to, tenths(end.x));
    put_number(to, tenths(end.y));
    buf_text(to, "z\"");
    put_end(to, "path", mark);
}

static void put_words(struct buf *to, const struct mark *mark)
{
    static const char *const anchors[] = { NULL, "middle", "end" };

    buf_text(to, "<text");
    put_class(to, "fill", mark);
    put_attribute(to, "x", mark->at.x);
    put_attribute(to, "y", mark->at.y);
    put_attribute(to, "font-size", mark->font_size);
    if (anchors[mark->anchor])
        buf_printf(to, " text-anchor=\"%s\"", anchors[mark->anchor]);
    if (mark->is_bold)
        buf_text(to, " font-weight=\"bold\"");
    put_colour(to, "fill", mark);
    buf_byte(to, '>');
    put_text(to, mark->text);
    buf_text(to, "</text>");
}

static void put_head(struct buf *to, const struct chart *chart, struct str prefix)
{
    buf_text(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sonde-chart\" viewBox=\"0 0");
    put_number(to, tenths(chart->width));
    put_number(to, tenths(chart->height));
    buf_byte(to, '"');
    put_attribute(to, "width", chart->width);
    put_attribute(to, "height", chart->height);
    buf_text(to, " font-family=\"sans-serif\" role=\"img\" aria-labelledby=\"");
    put_text(to, prefix);
    buf_text(to, "title ");
    put_text(to, prefix);
    buf_text(to, "summary\"><title id=\"");
    put_text(to, prefix);
    buf_text(to, "title\">");
    put_text(to, chart->title);
    buf_text(to, "</title><desc id=\"");
    put_text(to, prefix);
    buf_text(to, "summary\">");
    put_text(to, chart->summary);
    buf_text(to, "</desc>\n");
}

/* A print of a dark page is on white paper. */
void chart_dark_rules(struct buf *to)
{
    buf_text(to, "@media screen and (prefers-color-scheme:dark){");
    for (int ink = INK_BAND; ink < INK_FIRST + INK_SERIES; ink++) {
        const struct ink_look *look = ink_look(ink);
        unsigned rgb = look->dark_rgb;

        if (ink < INK_FIRST)
            buf_printf(to, ".sonde-%s{fill:#%06x}", look->name, rgb);
        else
            buf_printf(to, ".sonde-line-%s{stroke:#%06x}.sonde-fill-%s{fill:#%06x}", look->name,
                       rgb, look->name, rgb);
    }
    buf_text(to, "}");
}

static void put_style(struct buf *to)
{
    const struct ink_look *text = ink_look(INK_TEXT);

    buf_printf(to,
               "<style>svg{color:#%06x}"
               "@media screen and (prefers-color-scheme:dark){svg{color:#%06x}}",
               (unsigned)text->rgb, (unsigned)text->dark_rgb);
    chart_dark_rules(to);
    buf_text(to, "</style>\n");
}

static void put_marks(struct buf *to, const struct chart *chart)
{
    static void (*const writers[])(struct buf * to, const struct mark *mark) = {
        [MARK_LINE] = put_line,   [MARK_AREA] = put_area,  [MARK_RECTANGLE] = put_rectangle,
        [MARK_WEDGE] = put_wedge, [MARK_TEXT] = put_words,
    };

    for (size_t i = 0; i < chart->n_marks; i++) {
        writers[chart->mark[i].kind](to, &chart->mark[i]);
        buf_byte(to, '\n');
    }
    buf_text(to, "</svg>\n");
}

void chart_svg(struct buf *to, const struct chart *chart, const char *prefix)
{
    put_head(to, chart, str_of(prefix));
    put_marks(to, chart);
}

void chart_svg_image(struct buf *to, const struct chart *chart)
{
    put_head(to, chart, STR(""));
    put_style(to);
    put_marks(to, chart);
}
