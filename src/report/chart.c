/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Colours are told apart as docs/decisions/charts.md says. */
#include "report/chart.h"

#include "base/shown.h"

const struct ink_look *ink_look(int ink)
{
    static const struct ink_look looks[INK_FIRST + INK_SERIES] = {
        [INK_TEXT] = { "text", 0x1b2328, 0xdfe6ea, 1, true },
        [INK_FAINT] = { "faint", 0x1b2328, 0xdfe6ea, 0.7, true },
        [INK_GRID] = { "grid", 0x1b2328, 0xdfe6ea, 0.18, true },
        [INK_LIMIT] = { "limit", 0x1b2328, 0xdfe6ea, 0.85, true },
        [INK_BAND] = { "band", 0x0b5cad, 0x3d9bf0, 0.25, false },
        [INK_FIRST] = { "1", 0x0b5cad, 0x3d9bf0, 1, false }, /* blue */
        { "2", 0x9c1a0b, 0xf2694a, 1, false },               /* red */
        { "3", 0x0a9f6e, 0x48d4a1, 1, false },               /* green */
        { "4", 0xb065e8, 0xd7a9f9, 1, false },               /* purple */
        { "5", 0x9a6410, 0xf0a43a, 1, false },               /* amber */
        { "6", 0x1f8799, 0xa3ecf6, 1, false },               /* teal */
        { "7", 0x5c6064, 0x929da6, 1, false },               /* grey */
        { "8", 0x948c18, 0xdfe180, 1, false },               /* olive */
    };

    return &looks[ink < INK_FIRST ? ink : INK_FIRST + (ink - INK_FIRST) % INK_SERIES];
}

const double dash_lengths[DASHES][DASH_MAX + 1] = {
    [DASH_LONG] = { 6, 2 },
    [DASH_SHORT] = { 2, 2 },
    [DASH_MIXED] = { 7, 2, 2, 2 },
    [DASH_LIMIT] = { 4, 3 },
};

void chart_init(struct chart *chart, struct arena *arena, double width, double height)
{
    *chart = (struct chart){ .width = width, .height = height, .arena = arena };
}

static void make_room(struct chart *chart)
{
    struct mark *old = chart->mark;

    if (chart->n_marks < chart->n_room)
        return;
    chart->n_room = chart->n_room ? 2 * chart->n_room : 64;
    chart->mark = ARENA_ARRAY(chart->arena, struct mark, chart->n_room);
    if (chart->n_marks)
        memcpy(chart->mark, old, chart->n_marks * sizeof(*old));
}

void chart_add(struct chart *chart, const struct mark *mark)
{
    struct mark *added;

    make_room(chart);
    added = &chart->mark[chart->n_marks++];
    *added = *mark;
    added->text = arena_str(chart->arena, mark->text);
    if (mark->n_points) {
        struct point *points = ARENA_ARRAY(chart->arena, struct point, mark->n_points);

        memcpy(points, mark->point, mark->n_points * sizeof(*points));
        added->point = points;
    }
}

double chart_text_width(struct str text, double font_size)
{
    /* DejaVu Sans has digits of 0.636; those of most other fonts are narrower. */
    return (double)shown_width(text) * font_size * 0.6;
}
