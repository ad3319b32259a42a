/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second writer of charts, beside chart_svg.c. */
#include "report/draw.h"
#include "report/paper.h"

#include "base/shown.h"

#include <fcntl.h>
#include <math.h>

#ifdef __has_feature /* clang's way to say it */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

/* fontconfig has offsets where others have pointers: what it keeps from one picture to the next
 * looks lost. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

enum { MOST_PIXELS = 10000 }; /* on a side */

/* The first is where fontconfig is; what it has no letters for is taken from any other font. */
const char draw_family[] = "DejaVu Sans, sans-serif";
const char draw_fixed_family[] = "DejaVu Sans Mono, monospace";

/* fontconfig tells standard error that it has no directory to write its cache to, as is the case
 * for a service without a home; nobody needs to know. */
static PangoFont *load_font_quietly(PangoContext *context, const PangoFontDescription *description)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), kept = fcntl(2, F_DUPFD_CLOEXEC, 3);
    bool is_quiet = null >= 0 && kept >= 0 && dup2(null, 2) >= 0;
    PangoFont *font = pango_context_load_font(context, description);

    if (is_quiet)
        dup2(kept, 2);
    if (null >= 0)
        close(null);
    if (kept >= 0)
        close(kept);
    return font;
}

static bool has_font(PangoLayout *layout)
{
    PangoFontDescription *description = pango_font_description_from_string(draw_family);
    PangoFont *font = load_font_quietly(pango_layout_get_context(layout), description);

    pango_font_description_free(description);
    if (!font)
        return false;
    g_object_unref(font);
    return true;
}

PangoLayout *draw_layout_new(cairo_t *cairo, struct err *err)
{
    PangoLayout *layout = pango_cairo_create_layout(cairo);
    cairo_font_options_t *options = cairo_font_options_create();

    /* Widths are those of the letters' shapes, so that lines break alike at any scale. */
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(pango_layout_get_context(layout), options);
    cairo_font_options_destroy(options);
    pango_layout_context_changed(layout);
    /* A name in Arabic must not turn the sentence around it. */
    pango_layout_set_auto_dir(layout, FALSE);
    if (has_font(layout))
        return layout;
    g_object_unref(layout);
    err_set(err, ENOENT,
            "there is no font to write with; install one, such as the package fonts-dejavu-core");
    return NULL;
}

void draw_set_text(PangoLayout *layout, struct str text)
{
    struct buf shown;

    buf_init(&shown, DRAW_TEXT_MAX);
    while (text.n && !shown.over)
        buf_put(&shown, shown_take(&text));
    pango_layout_set_text(layout, buf_str(&shown).p, (int)shown.n);
    buf_free(&shown);
}

void draw_set_font(PangoLayout *layout, const char *family, double size, bool is_bold)
{
    PangoFontDescription *description = pango_font_description_new();

    pango_font_description_set_family(description, family);
    pango_font_description_set_absolute_size(description, size * PANGO_SCALE);
    pango_font_description_set_weight(description,
                                      is_bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
    pango_layout_set_font_description(layout, description);
    pango_font_description_free(description);
}

cairo_status_t draw_write(void *to, const unsigned char *data, unsigned int length)
{
    struct buf *buf = to;

    buf_put(buf, (struct str){ (const char *)data, length });
    return buf->over ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

int draw_outcome(cairo_status_t status, const struct buf *to, const char *what, struct err *err)
{
    if (to->over)
        return err_set(err, EFBIG, "%s is larger than %zu bytes", what, to->max);
    if (status == CAIRO_STATUS_NO_MEMORY)
        return err_set(err, ENOMEM, "there is not enough memory for %s", what);
    if (status != CAIRO_STATUS_SUCCESS)
        return err_set(err, EIO, "cannot make %s: %s", what, cairo_status_to_string(status));
    return 0;
}

static void set_ink(cairo_t *cairo, const struct mark *mark)
{
    const struct ink_look *look = ink_look(mark->ink);

    cairo_set_source_rgba(cairo, (look->rgb >> 16) / 255.0, (look->rgb >> 8 & 255) / 255.0,
                          (look->rgb & 255) / 255.0, look->opacity);
}

/* What PDF writes of a coordinate has as many digits as the number has. */
static double rounded(double coordinate)
{
    return round(coordinate * 10) / 10;
}

static void trace_points(cairo_t *cairo, const struct mark *mark)
{
    bool is_down = false;

    for (size_t i = 0; i < mark->n_points; i++) {
        double x = rounded(mark->point[i].x), y = rounded(mark->point[i].y);

        if (isnan(y)) {
            is_down = false;
            continue;
        }
        /* a line of no length with round ends is a dot */
        if (!is_down)
            cairo_move_to(cairo, x, y);
        cairo_line_to(cairo, x, y);
        is_down = true;
    }
}

static void draw_line(cairo_t *cairo, PangoLayout *layout, const struct mark *mark)
{
    const double *lengths = dash_lengths[mark->dash];
    int n = 0;

    (void)layout;
    while (lengths[n] > 0)
        n++;
    cairo_set_dash(cairo, lengths, n, 0);
    cairo_set_line_width(cairo, mark->width);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cairo, n ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
    trace_points(cairo, mark);
    cairo_stroke(cairo);
}

static void draw_area(cairo_t *cairo, PangoLayout *layout, const struct mark *mark)
{
    (void)layout;
    trace_points(cairo, mark);
    cairo_close_path(cairo);
    cairo_fill(cairo);
}

static void draw_rectangle(cairo_t *cairo, PangoLayout *layout, const struct mark *mark)
{
    (void)layout;
    cairo_rectangle(cairo, mark->at.x, mark->at.y, mark->size.x, mark->size.y);
    cairo_fill(cairo);
}

static void draw_wedge(cairo_t *cairo, PangoLayout *layout, const struct mark *mark)
{
    const double top = -M_PI / 2;

    (void)layout;
    if (mark->to - mark->from < 0.9999)
        cairo_move_to(cairo, mark->at.x, mark->at.y);
    cairo_arc(cairo, mark->at.x, mark->at.y, mark->size.x, top + 2 * M_PI * mark->from,
              top + 2 * M_PI * mark->to);
    cairo_close_path(cairo);
    cairo_fill(cairo);
}

static void draw_text(cairo_t *cairo, PangoLayout *layout, const struct mark *mark)
{
    static const double shares[] = { [ANCHOR_START] = 0, [ANCHOR_MIDDLE] = 0.5, [ANCHOR_END] = 1 };
    PangoLayoutLine *line;
    PangoRectangle size;

    draw_set_font(layout, draw_family, mark->font_size, mark->is_bold);
    draw_set_text(layout, mark->text);
    line = pango_layout_get_line_readonly(layout, 0);
    pango_layout_line_get_extents(line, NULL, &size);
    cairo_move_to(cairo, mark->at.x - shares[mark->anchor] * size.width / PANGO_SCALE, mark->at.y);
    pango_cairo_show_layout_line(cairo, line);
}

void draw_chart(cairo_t *cairo, PangoLayout *layout, const struct chart *chart)
{
    static void (*const drawers[])(cairo_t * cairo, PangoLayout * layout,
                                   const struct mark *mark) = {
        [MARK_LINE] = draw_line,   [MARK_AREA] = draw_area, [MARK_RECTANGLE] = draw_rectangle,
        [MARK_WEDGE] = draw_wedge, [MARK_TEXT] = draw_text,
    };

    pango_layout_set_width(layout, -1);
    pango_layout_set_alignment(layout, PANGO_ALIGN_LEFT);
    cairo_save(cairo);
    for (size_t i = 0; i < chart->n_marks; i++) {
        cairo_new_path(cairo);
        set_ink(cairo, &chart->mark[i]);
        drawers[chart->mark[i].kind](cairo, layout, &chart->mark[i]);
    }
    cairo_restore(cairo);
}

static int draw_picture(struct buf *to, cairo_surface_t *surface, const struct chart *chart,
                        double scale, struct err *err)
{
    cairo_t *cairo = cairo_create(surface);
    PangoLayout *layout;
    cairo_status_t status;

    cairo_scale(cairo, scale, scale);
    layout = draw_layout_new(cairo, err);
    if (!layout) {
        cairo_destroy(cairo);
        return -err->code;
    }
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
    draw_chart(cairo, layout, chart);
    status = cairo_status(cairo);
    g_object_unref(layout);
    cairo_destroy(cairo);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png_stream(surface, draw_write, to);
    return draw_outcome(status, to, "the picture", err);
}

int chart_png(struct buf *to, const struct chart *chart, double scale, struct err *err)
{
    double width = ceil(chart->width * scale), height = ceil(chart->height * scale);
    cairo_surface_t *surface;
    cairo_status_t status;
    int r;

    if (!(width >= 1 && width <= MOST_PIXELS && height >= 1 && height <= MOST_PIXELS))
        return err_set(err, EFBIG, "a picture has between 1 and %d pixels on a side", MOST_PIXELS);
    surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    status = cairo_surface_status(surface);
    r = status == CAIRO_STATUS_SUCCESS ? draw_picture(to, surface, chart, scale, err)
                                       : draw_outcome(status, to, "the picture", err);
    cairo_surface_destroy(surface);
    return r;
}
