/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws charts of values over time. */
#include "report/time_chart.h"

#include "base/shown.h"
#include "report/plot.h"
#include "report/words.h"

#include <math.h>

enum {
    LINES_NAMED = 8, /* more are told by their number */
    NAME_COLUMNS = 40,
    TEXT_MAX = 4096,
};

/* Of each column two points are drawn: all that can be seen. Of many lines less is seen of each,
 * and a chart has a size that can be mailed. */
static const double column_width = 2.5;
static const double most_columns = 1200, least_columns = 60; /* of all lines; of one */

struct extent {
    double lowest, highest, sum;
    size_t n; /* values; 0: the others mean nothing */
};

struct drawing {
    const struct time_chart *ask;
    const struct facts_plot *from;
    struct chart *chart;
    struct plot plot;
    struct extent all; /* of all lines */
    int *ink;          /* of each line */
    int64_t begin, end;
};

static bool is_range(const struct facts_plot *from)
{
    return from->n_members > from->n_lines;
}

static const struct plot_line *find_line(const struct facts_plot *from, struct str name)
{
    for (size_t i = 0; i < from->n_lines; i++)
        if (str_eq(from->line[i].name, name))
            return &from->line[i];
    return NULL;
}

static void measure_line(struct extent *extent, const struct facts_plot *from, size_t line)
{
    for (size_t i = 0; i < from->n_points; i++) {
        double value = from->line[line].value[i];

        if (!isfinite(value))
            continue;
        extent->lowest = extent->n ? fmin(extent->lowest, value) : value;
        extent->highest = extent->n ? fmax(extent->highest, value) : value;
        extent->sum += value;
        extent->n++;
    }
}

static void set_times(struct drawing *drawing)
{
    const struct facts_plot *from = drawing->from;
    int64_t step = from->step_seconds > 0 ? from->step_seconds : 1;

    drawing->begin = from->begin;
    drawing->end = from->begin + step * (int64_t)(from->n_points - 1);
    if (drawing->end == drawing->begin) {
        drawing->begin -= step / 2 + 1;
        drawing->end += step / 2 + 1;
    }
}

static void put_amount(struct buf *to, enum axis_unit unit, double amount)
{
    static void (*const writers[])(struct buf * to, double amount) = {
        [AXIS_NUMBER] = words_number,          [AXIS_BYTES] = words_bytes,
        [AXIS_BYTES_PER_SECOND] = words_bytes, [AXIS_RATIO] = words_percent,
        [AXIS_WATTS] = words_number,
    };

    writers[unit](to, amount);
    buf_text(to, unit == AXIS_BYTES_PER_SECOND ? "/s" : unit == AXIS_WATTS ? " W" : "");
}

/* "between 0.1 and 31.9", "31.9" */
static void put_extent(const struct drawing *drawing, struct buf *to, const struct extent *extent)
{
    if (extent->lowest < extent->highest) {
        buf_text(to, "between ");
        put_amount(to, drawing->ask->unit, extent->lowest);
        buf_text(to, " and ");
    }
    put_amount(to, drawing->ask->unit, extent->highest);
}

static void put_mean(const struct drawing *drawing, struct buf *to, const struct extent *extent)
{
    put_amount(to, drawing->ask->unit, extent->sum / (double)extent->n);
    buf_text(to, " on average");
}

/* "between 0.1 and 31.9, the median 16.2 on average" */
static void describe_range(const struct drawing *drawing, struct buf *to)
{
    const struct facts_plot *from = drawing->from;
    const struct plot_line *median = find_line(from, STR("median"));
    struct extent extent = { 0 };

    put_extent(drawing, to, &drawing->all);
    if (median)
        measure_line(&extent, from, (size_t)(median - from->line));
    if (extent.n) {
        buf_text(to, ", the median ");
        put_mean(drawing, to, &extent);
    }
}

/* "c1 between 0.1 and 31.9, 16.2 on average; c2 0". Lines may be parts of a whole, or of unlike
 * things: a mean over several of them would be of nothing. */
static void describe_lines(const struct drawing *drawing, struct buf *to)
{
    const struct facts_plot *from = drawing->from;
    const char *before = "";

    for (size_t i = 0; i < from->n_lines; i++) {
        struct extent extent = { 0 };

        measure_line(&extent, from, i);
        if (!extent.n)
            continue;
        buf_text(to, before);
        shown_put_cut(to, from->line[i].name, NAME_COLUMNS);
        buf_byte(to, ' ');
        put_extent(drawing, to, &extent);
        if (extent.lowest < extent.highest) {
            buf_text(to, ", ");
            put_mean(drawing, to, &extent);
        }
        before = "; ";
    }
}

/* "CPUs in use by node: 12 nodes between 0.1 and 31.9" */
static void set_summary(struct drawing *drawing)
{
    const struct facts_plot *from = drawing->from;
    struct buf text;

    buf_init(&text, TEXT_MAX);
    buf_printf(&text, "%s: ", drawing->ask->title);
    if (is_range(from)) {
        describe_range(drawing, &text);
    } else if (from->n_lines <= LINES_NAMED) {
        describe_lines(drawing, &text);
    } else {
        buf_printf(&text, "%zu %s ", from->n_lines, drawing->ask->members);
        put_extent(drawing, &text, &drawing->all);
    }
    drawing->chart->summary = arena_str(drawing->chart->arena, buf_str(&text));
    buf_free(&text);
}

static struct str count_text(const struct drawing *drawing, const char *before, size_t n)
{
    struct buf text;
    struct str kept;

    buf_init(&text, TEXT_MAX);
    buf_text(&text, before);
    words_number(&text, (double)n);
    buf_printf(&text, " %s", drawing->ask->members);
    kept = arena_str(drawing->chart->arena, buf_str(&text));
    buf_free(&text);
    return kept;
}

enum dash time_chart_dash(const struct facts_plot *from, size_t line)
{
    static const enum dash dashes[] = { DASH_NONE, DASH_LONG, DASH_SHORT, DASH_MIXED };

    /* of many, dashes would hide each other */
    return from->n_lines > LINES_NAMED ? DASH_NONE : dashes[line % COUNT(dashes)];
}

/* As the "Colours" of src/web/static/sonde.css. */
enum { BLUE = INK_FIRST, RED, GREEN, PURPLE, AMBER, TEAL, GREY };

static const struct {
    struct str name;
    int ink;
} known[] = {
    { STR_INIT("allocated"), BLUE },      { STR_INIT("running"), BLUE },
    { STR_INIT("idle"), GREEN },          { STR_INIT("completed"), GREEN },
    { STR_INIT("unusable"), RED },        { STR_INIT("down"), RED },
    { STR_INIT("failed"), RED },          { STR_INIT("timeout"), RED },
    { STR_INIT("out_of_memory"), RED },   { STR_INIT("node_fail"), RED },
    { STR_INIT("mixed"), TEAL },          { STR_INIT("pending"), AMBER },
    { STR_INIT("drained"), AMBER },       { STR_INIT("draining"), AMBER },
    { STR_INIT("suspended"), AMBER },     { STR_INIT("completing"), PURPLE },
    { STR_INIT("powered_down"), PURPLE }, { STR_INIT("reserved"), PURPLE },
    { STR_INIT("preempted"), PURPLE },    { STR_INIT("cancelled"), GREY },
    { STR_INIT("unknown"), GREY },
};

static int ink_of(struct str name)
{
    for (size_t i = 0; i < COUNT(known); i++)
        if (str_eq_nocase(name, known[i].name))
            return known[i].ink;
    return 0;
}

static int take_left(const bool *is_taken)
{
    int i = 0;

    while (i < INK_SERIES - 1 && is_taken[i])
        i++;
    return INK_FIRST + i;
}

static void choose_inks(const struct facts_plot *from, int ret[])
{
    bool is_taken[INK_SERIES] = { false };

    for (size_t i = 0; i < from->n_lines; i++) {
        int ink = ink_of(from->line[i].name);

        ret[i] = ink && !is_taken[ink - INK_FIRST] ? ink : 0;
        if (ret[i])
            is_taken[ink - INK_FIRST] = true;
    }
    for (size_t i = 0; i < from->n_lines; i++) {
        if (ret[i])
            continue;
        ret[i] = take_left(is_taken);
        is_taken[ret[i] - INK_FIRST] = true;
    }
}

/* More lines than colours have them in turn. */
void time_chart_inks(const struct facts_plot *from, int ret[])
{
    if (from->n_lines <= INK_SERIES) {
        choose_inks(from, ret);
        return;
    }
    for (size_t i = 0; i < from->n_lines; i++)
        ret[i] = INK_FIRST + (int)i;
}

static void make_legend(const struct drawing *drawing, struct legend *legend)
{
    const struct facts_plot *from = drawing->from;

    legend->n = 0;
    if (is_range(from)) {
        legend->entry[legend->n++] =
            (struct legend_entry){ SAMPLE_LINE, INK_FIRST, DASH_NONE,
                                   count_text(drawing, "median of ", from->n_members) };
        legend->entry[legend->n++] =
            (struct legend_entry){ SAMPLE_AREA, INK_BAND, DASH_NONE, STR("lowest to highest") };
    } else if (from->n_lines > LINES_NAMED) {
        legend->entry[legend->n++] =
            (struct legend_entry){ SAMPLE_NONE, INK_TEXT, DASH_NONE,
                                   count_text(drawing, "", from->n_lines) };
    } else {
        for (size_t i = 0; i < from->n_lines; i++)
            legend->entry[legend->n++] =
                (struct legend_entry){ SAMPLE_LINE, drawing->ink[i], time_chart_dash(from, i),
                                       from->line[i].name };
    }
    if (!isnan(drawing->ask->limit))
        legend->entry[legend->n++] =
            (struct legend_entry){ SAMPLE_LINE, INK_LIMIT, DASH_LIMIT, drawing->ask->limit_text };
}

static double x_of(const struct drawing *drawing, int64_t moment)
{
    const struct plot *plot = &drawing->plot;

    return plot->left + (plot->right - plot->left) * (double)(moment - drawing->begin) /
                            (double)(drawing->end - drawing->begin);
}

/* Text of a moment, as one of the axis' functions writes it. */
static struct str moment_text(const struct drawing *drawing, int64_t moment, int64_t step,
                              void (*put)(struct buf *to, int64_t moment))
{
    struct buf text;
    struct str kept;

    buf_init(&text, TEXT_MAX);
    if (put)
        put(&text, moment);
    else
        axis_put_clock(&text, moment, step);
    kept = arena_str(drawing->chart->arena, buf_str(&text));
    buf_free(&text);
    return kept;
}

static double text_width(struct str text)
{
    return chart_text_width(text, plot_font_size);
}

/* A day's date, unless it would run into the one before it. */
static void put_date(const struct drawing *drawing, int64_t moment, double *taken)
{
    const double gap = 8;
    const struct plot *plot = &drawing->plot;
    struct str date = moment_text(drawing, moment, 0, axis_put_date);
    double half = text_width(date) / 2, x = fmin(x_of(drawing, moment), plot->right - half);

    if (x - half < *taken)
        return;
    plot_text(plot->chart, (struct point){ x, plot_row(plot, 1) }, ANCHOR_MIDDLE, INK_FAINT, date);
    *taken = x + half + gap;
}

/* The day on which it begins stands at the left, each further one below its first mark. */
static void put_dates(const struct drawing *drawing, const struct axis_moments *moments)
{
    enum { DAY = 86400 };
    const struct plot *plot = &drawing->plot;
    struct str first = moment_text(drawing, drawing->begin, 0, axis_put_date);
    double taken = 0, room = text_width(first) * 1.6;
    int64_t day = drawing->begin;

    for (size_t i = 0; i < moments->n && moments->step_seconds < DAY; i++) {
        int64_t moment = moments->moment[i];

        /* midnight is soon: its date says enough */
        if (!axis_is_same_day(moment, day) && day == drawing->begin &&
            x_of(drawing, moment) - plot->left < room)
            first.n = 0;
        if (!axis_is_same_day(moment, day))
            put_date(drawing, moment, &taken);
        day = moment;
    }
    if (first.n)
        plot_text(plot->chart, (struct point){ plot->left, plot_row(plot, 1) }, ANCHOR_START,
                  INK_FAINT, first);
}

static void put_zone(const struct drawing *drawing)
{
    plot_text(drawing->chart, (struct point){ drawing->plot.right, plot_title_foot }, ANCHOR_END,
              INK_FAINT, moment_text(drawing, drawing->begin, 0, axis_put_zone));
}

static void put_times(const struct drawing *drawing)
{
    const double least_gap = 52, tick = 3;
    const struct plot *plot = &drawing->plot;
    struct axis_moments moments;

    axis_moments(&moments, drawing->begin, drawing->end,
                 (size_t)fmax(1, (plot->right - plot->left) / least_gap));
    for (size_t i = 0; i < moments.n; i++) {
        double x = x_of(drawing, moments.moment[i]);
        struct str text = moment_text(drawing, moments.moment[i], moments.step_seconds, NULL);
        double last = plot->chart->width - text_width(text) / 2;

        plot_line(plot->chart, (struct point){ x, plot->bottom },
                  (struct point){ x, plot->bottom + tick }, INK_FAINT, 0.7);
        plot_text(plot->chart, (struct point){ fmin(x, last), plot_row(plot, 0) }, ANCHOR_MIDDLE,
                  INK_FAINT, text);
    }
    put_dates(drawing, &moments);
    put_zone(drawing);
}

/* The lowest and the highest of each column of points, in their order; gaps stay. */
struct thinning {
    struct point *to;
    size_t n;
    struct point low, high; /* of the column so far */
    bool is_open;
};

static void close_column(struct thinning *thinning)
{
    bool is_rising = thinning->low.x <= thinning->high.x;

    if (!thinning->is_open)
        return;
    thinning->to[thinning->n++] = is_rising ? thinning->low : thinning->high;
    if (thinning->low.x != thinning->high.x)
        thinning->to[thinning->n++] = is_rising ? thinning->high : thinning->low;
    thinning->is_open = false;
}

static void take_point(struct thinning *thinning, struct point point, bool begins_column)
{
    if (begins_column)
        close_column(thinning);
    if (!thinning->is_open) {
        thinning->low = thinning->high = point;
        thinning->is_open = true;
    }
    /* y goes down */
    if (point.y > thinning->low.y)
        thinning->low = point;
    if (point.y < thinning->high.y)
        thinning->high = point;
}

static void take_gap(struct thinning *thinning, double x)
{
    close_column(thinning);
    if (thinning->n && !isnan(thinning->to[thinning->n - 1].y))
        thinning->to[thinning->n++] = (struct point){ x, NAN };
}

/* `to` has room for as many points as the plot has, and one more. */
static size_t points_of(const struct drawing *drawing, const double *value, struct point *to)
{
    const struct facts_plot *from = drawing->from;
    double most = fmax(least_columns, most_columns / (double)from->n_lines);
    double n_columns = fmin(most, (drawing->plot.right - drawing->plot.left) / column_width);
    double per_column = (double)from->n_points / fmax(1, n_columns);
    struct thinning thinning = { .to = to };
    double column = -1;

    for (size_t i = 0; i < from->n_points; i++) {
        double x = x_of(drawing, from->begin + from->step_seconds * (int64_t)i);
        double now = per_column > 2 ? floor((double)i / per_column) : (double)i;

        if (isfinite(value[i]))
            take_point(&thinning, (struct point){ x, plot_height_of(&drawing->plot, value[i]) },
                       now != column);
        else
            take_gap(&thinning, x);
        column = now;
    }
    close_column(&thinning);
    return thinning.n;
}

static bool is_gap(const struct point *point, size_t n, size_t i)
{
    return i >= n || isnan(point[i].y);
}

/* A value with none before and none after it is a dot that can be seen. */
static void put_dots(struct drawing *drawing, const struct mark *line)
{
    struct point *dot = heap_array(2 * line->n_points, sizeof(*dot));
    struct mark mark = *line;
    size_t n = 0;

    for (size_t i = 0; i < line->n_points; i++) {
        if (is_gap(line->point, line->n_points, i) ||
            (i && !is_gap(line->point, line->n_points, i - 1)) ||
            !is_gap(line->point, line->n_points, i + 1))
            continue;
        dot[n++] = line->point[i];
        dot[n++] = (struct point){ line->point[i].x, NAN };
    }
    mark.point = dot;
    mark.n_points = n;
    mark.dash = DASH_NONE;
    mark.width = 4;
    if (n)
        chart_add(drawing->chart, &mark);
    free(dot);
}

static void put_line(struct drawing *drawing, const struct plot_line *line, size_t i, int ink)
{
    const struct facts_plot *from = drawing->from;
    struct point *point = heap_array(from->n_points + 1, sizeof(*point));
    struct mark mark = {
        .kind = MARK_LINE,
        .ink = ink,
        .dash = is_range(from) ? DASH_NONE : time_chart_dash(from, i),
        .width = from->n_lines > LINES_NAMED ? 0.7 : 1.2,
        .point = point,
        .n_points = points_of(drawing, line->value, point),
        .text = str_head(line->name, TEXT_MAX),
    };

    if (mark.n_points) {
        chart_add(drawing->chart, &mark);
        put_dots(drawing, &mark);
    }
    free(point);
}

/* One area for each stretch without gaps: above along the highest, and back along the lowest. */
static void put_band(struct drawing *drawing, const double *low, const double *high)
{
    const struct facts_plot *from = drawing->from;
    struct point *point = heap_array(2 * from->n_points + 1, sizeof(*point));
    size_t begin = 0;

    for (size_t i = 0; i <= from->n_points; i++) {
        size_t n = 0;

        if (i < from->n_points && isfinite(low[i]) && isfinite(high[i]))
            continue;
        for (size_t k = begin; k < i; k++)
            point[n++] =
                (struct point){ x_of(drawing, from->begin + from->step_seconds * (int64_t)k),
                                plot_height_of(&drawing->plot, high[k]) };
        for (size_t k = i; k > begin; k--)
            point[n++] =
                (struct point){ x_of(drawing, from->begin + from->step_seconds * (int64_t)(k - 1)),
                                plot_height_of(&drawing->plot, low[k - 1]) };
        if (n)
            chart_add(drawing->chart, &(struct mark){ .kind = MARK_AREA,
                                                      .ink = INK_BAND,
                                                      .point = point,
                                                      .n_points = n,
                                                      .text = STR("lowest to highest") });
        begin = i + 1;
    }
    free(point);
}

static void put_range(struct drawing *drawing)
{
    const struct facts_plot *from = drawing->from;
    const struct plot_line *median = find_line(from, STR("median"));
    const struct plot_line *low = find_line(from, STR("lowest"));
    const struct plot_line *high = find_line(from, STR("highest"));

    if (low && high)
        put_band(drawing, low->value, high->value);
    if (median)
        put_line(drawing, median, 0, INK_FIRST);
}

bool time_chart(struct chart *to, const struct time_chart *ask)
{
    struct drawing drawing = { .ask = ask, .from = ask->from, .chart = to };
    struct legend legend;
    double highest;

    for (size_t i = 0; i < drawing.from->n_lines; i++)
        measure_line(&drawing.all, drawing.from, i);
    if (!drawing.all.n)
        return false;
    to->title = str_of(ask->title);
    drawing.ink = ARENA_ARRAY(to->arena, int, drawing.from->n_lines);
    time_chart_inks(drawing.from, drawing.ink);
    set_summary(&drawing);
    set_times(&drawing);
    make_legend(&drawing, &legend);
    highest = fmax(drawing.all.highest, ask->limit);
    if (ask->unit == AXIS_RATIO)
        highest = fmax(highest, 1);
    plot_title(to);
    plot_init(&drawing.plot, to, ask->unit, highest, 2, &legend);
    put_times(&drawing);
    if (is_range(drawing.from))
        put_range(&drawing);
    else
        for (size_t i = 0; i < drawing.from->n_lines; i++)
            put_line(&drawing, &drawing.from->line[i], i, drawing.ink[i]);
    if (!isnan(ask->limit))
        plot_limit(&drawing.plot, ask->limit, ask->limit_text);
    return true;
}
