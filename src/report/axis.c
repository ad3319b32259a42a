/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places and labels the ticks of chart axes. */
#include "report/axis.h"

#include <math.h>
#include <time.h>

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

/* A rung is taken from `least` on: nobody reads "0.02 h". */
struct axis_rung {
    double size, least;
    const char *name;
};

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)
#define PIB (1024 * TIB)

/* Each ends with a rung without a name. */
static const struct axis_rung number_rungs[] = { { 1, 0, "" }, { 0, 0, NULL } };
static const struct axis_rung ratio_rungs[] = { { 0.01, 0, " %" }, { 0, 0, NULL } };
static const struct axis_rung watt_rungs[] = { { 1, 0, " W" },
                                               { 1e3, 2e3, " kW" },
                                               { 0, 0, NULL } };
static const struct axis_rung second_rungs[] = { { 1, 0, " s" },
                                                 { MINUTE, 2 * MINUTE, " min" },
                                                 { HOUR, 2 * HOUR, " h" },
                                                 { DAY, 4 * DAY, " days" },
                                                 { 0, 0, NULL } };
static const struct axis_rung byte_rungs[] = { { 1, 0, " B" },       { KIB, KIB, " KiB" },
                                               { MIB, MIB, " MiB" }, { GIB, GIB, " GiB" },
                                               { TIB, TIB, " TiB" }, { PIB, PIB, " PiB" },
                                               { 0, 0, NULL } };
static const struct axis_rung rate_rungs[] = { { 1, 0, " B/s" },       { KIB, KIB, " KiB/s" },
                                               { MIB, MIB, " MiB/s" }, { GIB, GIB, " GiB/s" },
                                               { TIB, TIB, " TiB/s" }, { PIB, PIB, " PiB/s" },
                                               { 0, 0, NULL } };

static const struct axis_rung *const ladders[] = {
    [AXIS_NUMBER] = number_rungs, [AXIS_BYTES] = byte_rungs, [AXIS_BYTES_PER_SECOND] = rate_rungs,
    [AXIS_RATIO] = ratio_rungs,   [AXIS_WATTS] = watt_rungs, [AXIS_SECONDS] = second_rungs,
};

static const double highest_of_nothing[] = {
    [AXIS_NUMBER] = 1, [AXIS_BYTES] = KIB, [AXIS_BYTES_PER_SECOND] = KIB,
    [AXIS_RATIO] = 1,  [AXIS_WATTS] = 100, [AXIS_SECONDS] = 1,
};

/* The smallest of 1, 2, 5 times a power of ten that is no smaller. */
static double round_up(double step)
{
    double power = pow(10, floor(log10(step)));

    /* a little less than 2 is 2: sums of doubles end that way */
    for (size_t i = 0; i < 3; i++)
        if (step <= (double[]){ 1, 2, 5 }[i] * power * (1 + 1e-9))
            return (double[]){ 1, 2, 5 }[i] * power;
    return 10 * power;
}

void axis_init(struct axis *axis, enum axis_unit unit, double highest, size_t n_steps)
{
    /* what is smaller or larger is not measured, and powers of ten must remain numbers */
    const double least = 1e-9, most = 1e300;
    const struct axis_rung *rung = ladders[unit];

    if (!(highest > least && highest < most))
        highest = highest_of_nothing[unit];
    while (rung[1].name && highest >= rung[1].least)
        rung++;
    axis->unit = unit;
    axis->rung = rung;
    axis->step = round_up(highest / rung->size / (double)n_steps) * rung->size;
    axis->most = ceil(highest / axis->step - 1e-9) * axis->step;
}

void axis_put(struct buf *to, const struct axis *axis, double value)
{
    double step = axis->step / axis->rung->size;
    int decimals = step < 1 ? (int)-floor(log10(step) + 1e-9) : 0;
    double power = pow(10, decimals);

    if (fabs(value) < axis->step / 2) {
        buf_byte(to, '0');
        return;
    }
    buf_double(to, round(value / axis->rung->size * power) / power);
    buf_text(to, axis->rung->name);
}

static struct tm local(int64_t moment)
{
    time_t seconds = moment;
    struct tm tm = { 0 };

    localtime_r(&seconds, &tm);
    return tm;
}

static int64_t offset_at(int64_t moment)
{
    return local(moment).tm_gmtoff;
}

static int64_t step_for(int64_t seconds, size_t most)
{
    static const int64_t steps[] = {
        1,          2,   5,       10,      15,       30,       MINUTE,   2 * MINUTE,
        5 * MINUTE, 600, 900,     1800,    HOUR,     2 * HOUR, 3 * HOUR, 6 * HOUR,
        12 * HOUR,  DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY,
    };
    int64_t step = steps[COUNT(steps) - 1];

    for (size_t i = 0; i < COUNT(steps); i++)
        if (seconds / steps[i] < (int64_t)most)
            return steps[i];
    while (seconds / step >= (int64_t)most)
        step *= 2;
    return step;
}

void axis_moments(struct axis_moments *ret, int64_t begin, int64_t end, size_t most)
{
    size_t limit = most < AXIS_MOMENTS ? most : AXIS_MOMENTS;
    int64_t step = step_for(end - begin, limit ? limit : 1);
    int64_t offset = offset_at(begin);
    /* Of local time: midnight is a whole day there, wherever it is. */
    int64_t wall = (begin + offset + step - 1) / step * step;

    ret->step_seconds = step;
    ret->n = 0;
    for (; ret->n < limit; wall += step) {
        int64_t moment;

        offset = offset_at(wall - offset);
        moment = wall - offset;
        if (moment > end)
            break;
        /* when clocks are put forward, two may fall on one */
        if (moment >= begin && (ret->n == 0 || moment > ret->moment[ret->n - 1]))
            ret->moment[ret->n++] = moment;
    }
}

static void put_day(struct buf *to, const struct tm *tm)
{
    static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

    buf_printf(to, "%d %s", tm->tm_mday, months[tm->tm_mon]);
}

void axis_put_clock(struct buf *to, int64_t moment, int64_t step_seconds)
{
    struct tm tm = local(moment);

    if (step_seconds >= DAY)
        put_day(to, &tm);
    else if (step_seconds >= MINUTE)
        buf_printf(to, "%02d:%02d", tm.tm_hour, tm.tm_min);
    else
        buf_printf(to, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void axis_put_date(struct buf *to, int64_t moment)
{
    struct tm tm = local(moment);

    put_day(to, &tm);
    buf_printf(to, " %d", tm.tm_year + 1900);
}

void axis_put_zone(struct buf *to, int64_t moment)
{
    struct tm tm = local(moment);
    long minutes = labs(tm.tm_gmtoff) / MINUTE;
    /* many zones have no name but their offset: "-03" */
    bool has_name = tm.tm_zone && tm.tm_zone[0] >= 'A' && tm.tm_zone[0] <= 'Z';

    if (minutes == 0) {
        buf_text(to, has_name ? tm.tm_zone : "UTC");
        return;
    }
    if (has_name)
        buf_printf(to, "%s (", tm.tm_zone);
    buf_printf(to, "UTC%c%02ld:%02ld%s", tm.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60,
               has_name ? ")" : "");
}

bool axis_is_same_day(int64_t a, int64_t b)
{
    struct tm first = local(a), second = local(b);

    return first.tm_yday == second.tm_yday && first.tm_year == second.tm_year;
}
