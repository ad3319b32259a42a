/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws title, frame, values and legend of a chart. */
#include "report/plot.h"

#include "base/shown.h"

#include <math.h>

static const double title_size = 9.5, title_height = 20;
static const double row_height = 10.5; /* of a line of text */
static const double gap = 4;
static const double right_margin = 10, bottom_margin = 3;
static const double sample_width = 16, entry_gap = 10;

enum { LEGEND_COLUMNS = 40, TEXT_MAX = 1024 };

void plot_text(struct chart *chart, struct point at, enum anchor anchor, int ink, struct str text)
{
    chart_add(chart, &(struct mark){
                         .kind = MARK_TEXT,
                         .ink = ink,
                         .at = at,
                         .anchor = anchor,
                         .font_size = plot_font_size,
                         .text = text,
                     });
}

void plot_line(struct chart *chart, struct point from, struct point to, int ink, double width)
{
    chart_add(chart, &(struct mark){
                         .kind = MARK_LINE,
                         .ink = ink,
                         .width = width,
                         .point = (struct point[]){ from, to },
                         .n_points = 2,
                     });
}

void plot_title(struct chart *chart)
{
    chart_add(chart, &(struct mark){
                         .kind = MARK_TEXT,
                         .ink = INK_TEXT,
                         .is_bold = true,
                         .at = { 2, plot_title_foot },
                         .font_size = title_size,
                         .text = chart->title,
                     });
}

static struct str cut_text(struct arena *arena, struct str text)
{
    struct buf cut;
    struct str kept;

    buf_init(&cut, TEXT_MAX);
    shown_put_cut(&cut, text, LEGEND_COLUMNS);
    kept = arena_str(arena, buf_str(&cut));
    buf_free(&cut);
    return kept;
}

static double entry_width(const struct chart *chart, const struct legend_entry *entry)
{
    return (entry->sample == SAMPLE_NONE ? 0 : sample_width + gap) +
           chart_text_width(cut_text(chart->arena, entry->text), plot_font_size);
}

static void put_sample(struct chart *chart, const struct legend_entry *entry, double x, double y)
{
    const struct point ends[] = { { x, y - 2.5 }, { x + sample_width, y - 2.5 } };

    if (entry->sample == SAMPLE_LINE)
        chart_add(chart, &(struct mark){
                             .kind = MARK_LINE,
                             .ink = entry->ink,
                             .dash = entry->dash,
                             .width = 1.4,
                             .point = ends,
                             .n_points = COUNT(ends),
                         });
    else if (entry->sample == SAMPLE_AREA)
        chart_add(chart, &(struct mark){
                             .kind = MARK_RECTANGLE,
                             .ink = entry->ink,
                             .at = { x, y - 6 },
                             .size = { sample_width, 7 },
                         });
}

/* Returns how many rows it takes; draws them if `top` is a number. */
static size_t lay_legend(struct chart *chart, const struct legend *legend, double left, double top)
{
    double x = left;
    size_t row = 0;

    for (size_t i = 0; i < legend->n; i++) {
        const struct legend_entry *entry = &legend->entry[i];
        double width = entry_width(chart, entry), y = top + row_height * (double)row;

        if (x > left && x + width > chart->width - 2) {
            x = left;
            y = top + row_height * (double)++row;
        }
        if (!isnan(top)) {
            double at = entry->sample == SAMPLE_NONE ? x : x + sample_width + gap;

            put_sample(chart, entry, x, y);
            plot_text(chart, (struct point){ at, y }, ANCHOR_START, INK_TEXT,
                      cut_text(chart->arena, entry->text));
        }
        x += width + entry_gap;
    }
    return legend->n ? row + 1 : 0;
}

static struct str value_text(const struct plot *plot, double value)
{
    struct buf text;
    struct str kept;

    buf_init(&text, TEXT_MAX);
    axis_put(&text, &plot->axis, value);
    kept = arena_str(plot->chart->arena, buf_str(&text));
    buf_free(&text);
    return kept;
}

static size_t count_steps(const struct plot *plot)
{
    return (size_t)lround(plot->axis.most / plot->axis.step);
}

static double widest_value(const struct plot *plot)
{
    double widest = 0;

    for (size_t i = 0; i <= count_steps(plot); i++)
        widest = fmax(widest, chart_text_width(value_text(plot, plot->axis.step * (double)i),
                                               plot_font_size));
    return widest;
}

static void put_values(const struct plot *plot)
{
    for (size_t i = 0; i <= count_steps(plot); i++) {
        double value = plot->axis.step * (double)i, y = plot_height_of(plot, value);

        plot_line(plot->chart, (struct point){ plot->left, y }, (struct point){ plot->right, y },
                  i ? INK_GRID : INK_FAINT, i ? 0.5 : 0.7);
        plot_text(plot->chart, (struct point){ plot->left - gap, y + plot_font_size / 3 },
                  ANCHOR_END, INK_FAINT, value_text(plot, value));
    }
}

void plot_init(struct plot *plot, struct chart *chart, enum axis_unit unit, double highest,
               size_t n_rows, const struct legend *legend)
{
    const double least_height = 40, step_height = 26;
    double below;

    *plot = (struct plot){ .chart = chart, .top = title_height };
    below = row_height * (double)(n_rows + lay_legend(chart, legend, 2, NAN)) + gap + bottom_margin;
    plot->bottom = fmax(plot->top + least_height, chart->height - below);
    axis_init(&plot->axis, unit, highest,
              (size_t)fmax(2, fmin(6, (plot->bottom - plot->top) / step_height)));
    plot->left = widest_value(plot) + gap + 2;
    plot->right = chart->width - right_margin;
    put_values(plot);
    lay_legend(chart, legend, 2, plot_row(plot, n_rows) + 2);
}

double plot_height_of(const struct plot *plot, double value)
{
    double within = fmax(0, fmin(value, plot->axis.most));

    return plot->bottom - (plot->bottom - plot->top) * within / plot->axis.most;
}

double plot_row(const struct plot *plot, size_t row)
{
    return plot->bottom + row_height * (double)(row + 1);
}

void plot_limit(struct plot *plot, double value, struct str text)
{
    double y = plot_height_of(plot, value);

    chart_add(plot->chart, &(struct mark){
                               .kind = MARK_LINE,
                               .ink = INK_LIMIT,
                               .dash = DASH_LIMIT,
                               .width = 1,
                               .point = (struct point[]){ { plot->left, y }, { plot->right, y } },
                               .n_points = 2,
                               .text = text,
                           });
}
