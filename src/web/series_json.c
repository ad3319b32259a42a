/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the data of a chart as JSON. */
#include "web/series_json.h"

#include <math.h>

static const char *const units[] = {
    [AXIS_NUMBER] = "number", [AXIS_BYTES] = "bytes", [AXIS_BYTES_PER_SECOND] = "bytes/s",
    [AXIS_RATIO] = "ratio",   [AXIS_WATTS] = "watts", [AXIS_SECONDS] = "seconds",
};

static bool has_limit(const struct time_chart *chart)
{
    return isfinite(chart->limit) && chart->from->n_points;
}

static void put_labels(struct buf *to, const struct time_chart *chart)
{
    buf_text(to, ",\"labels\":[\"time\"");
    for (size_t i = 0; i < chart->from->n_lines && chart->from->n_points; i++) {
        buf_byte(to, ',');
        buf_json(to, chart->from->line[i].name);
    }
    if (has_limit(chart)) {
        buf_byte(to, ',');
        buf_json(to, chart->limit_text);
    }
    buf_byte(to, ']');
}

static void put_colours(struct buf *to, const struct time_chart *chart, struct arena *arena)
{
    size_t n = chart->from->n_points ? chart->from->n_lines : 0;
    int *ink = ARENA_ARRAY(arena, int, n);

    if (n)
        time_chart_inks(chart->from, ink);
    buf_text(to, ",\"colours\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s%d", i ? "," : "", (ink[i] - INK_FIRST) % INK_SERIES + 1);
    buf_text(to, has_limit(chart) ? (n ? ",0]" : "0]") : "]");
}

static void put_number(struct buf *to, double value)
{
    buf_byte(to, ',');
    if (isfinite(value))
        buf_double(to, value);
    else
        buf_text(to, "null");
}

static void put_point(struct buf *to, const struct time_chart *chart, size_t i)
{
    const struct facts_plot *from = chart->from;

    buf_byte(to, '[');
    buf_i64(to, from->begin + from->step_seconds * (int64_t)i);
    for (size_t k = 0; k < from->n_lines; k++)
        put_number(to, from->line[k].value[i]);
    if (has_limit(chart))
        put_number(to, chart->limit);
    buf_byte(to, ']');
}

void series_json(struct buf *to, const struct time_chart *chart, struct arena *arena)
{
    buf_text(to, "{\"title\":");
    buf_json(to, str_of(chart->title));
    buf_printf(to, ",\"unit\":\"%s\"", units[chart->unit]);
    put_labels(to, chart);
    put_colours(to, chart, arena);
    buf_text(to, ",\"points\":[");
    for (size_t i = 0; i < chart->from->n_points; i++) {
        buf_text(to, i ? "," : "");
        put_point(to, chart, i);
    }
    buf_text(to, "]}\n");
}
