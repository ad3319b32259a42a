/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Colours: Masataka Okabe and Kei Ito, "Color Universal Design", with changes that
 * docs/decisions/charts.md gives reasons for. */
#include "report/chart.h"

#include "base/shown.h"

const struct ink_look *ink_look(int ink)
{
    static const struct ink_look looks[INK_FIRST + INK_SERIES] = {
        [INK_TEXT] = { "text", 0x222222, 1, true },
        [INK_FAINT] = { "faint", 0x222222, 0.7, true },
        [INK_GRID] = { "grid", 0x222222, 0.18, true },
        [INK_LIMIT] = { "limit", 0x222222, 0.85, true },
        [INK_BAND] = { "band", 0x0072b2, 0.25, false },
        [INK_FIRST] = { "1", 0x0072b2, 1, false },
        { "2", 0xd55e00, 1, false },
        { "3", 0x009e73, 1, false },
        { "4", 0xcc79a7, 1, false },
        { "5", 0xe69f00, 1, false },
        { "6", 0x56b4e9, 1, false },
        { "7", 0x777777, 1, false },
        { "8", 0xb3a100, 1, false },
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
