/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a run was, and how far apart the points are that are asked or drawn of it. */
#include "report/series.h"

enum {
    /* The agent shows the counters of a job that has ended for two minutes: what it used since the
     * last scrape is in them. A run of the same job does not begin earlier than that. */
    LINGER_SECONDS = 60,
    /* What it counted of the run before may still be shown when this one has begun. */
    LEFTOVER_SECONDS = 150,
    PLOT_POINTS_MIN = 100,
    EVALUATIONS = 4 * PLOT_LINES_MAX * PLOT_POINTS_MAX, /* members times points of one query */
};

static int64_t at_least(int64_t value, int64_t least)
{
    return value < least ? least : value;
}

int64_t series_step(const struct series *series, size_t n_members)
{
    int64_t seconds = series->end - series->begin;
    int64_t points = EVALUATIONS / at_least((int64_t)n_members, 1), step;

    if (points > PLOT_POINTS_MAX)
        points = PLOT_POINTS_MAX;
    points = at_least(points, PLOT_POINTS_MIN);
    step = (seconds + points - 2) / (points - 1);
    return at_least(step, series->interval_seconds);
}

bool series_is_requeued(const struct series *series)
{
    const struct job_row *row = &series->facts->row;
    bool has_restarted = row->record.restarts && row->record.restarts != MODEL_UNKNOWN_U32;

    return has_restarted ||
           (row->first_submit_time && row->first_submit_time < row->record.submit_time);
}

int64_t series_rate_seconds(const struct series *series, int64_t step)
{
    return at_least(4 * series->interval_seconds, step);
}

int64_t series_gauge_seconds(const struct series *series, int64_t step)
{
    return at_least(2 * series->interval_seconds, step);
}

bool series_find_times(struct series *series)
{
    const struct job_facts *facts = series->facts;
    const struct job_record *record = &facts->row.record;
    int64_t now = facts->now + 1; /* of the second that has begun there are samples, too */

    series->begin = record->start_time;
    series->end = facts->is_running || !record->end_time ? now : record->end_time;
    series->end = at_least(series->end, series->begin + 1);
    series->last = series->end + LINGER_SECONDS;
    if (series->last > now)
        series->last = at_least(now, series->end);
    series->clean = series->begin;
    if (series_is_requeued(series))
        series->clean += LEFTOVER_SECONDS;
    if (series->clean >= series->end)
        series->clean = series->end - 1;
    return series->begin > 0;
}
