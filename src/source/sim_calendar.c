/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the calendar alone decides of the simulated cluster: when people work, which nodes are out
 * of order, and what is reserved. */
#include "source/sim_cluster.h"

enum { HOUR = 3600, DAY = 24 * HOUR, WEEK = 7 * DAY };

/* A Monday, so early that no time that can be asked for comes before it. */
static const int64_t origin = -3 * DAY - 520 * (int64_t)WEEK;

int64_t sim_bounded(int64_t time)
{
    const int64_t first = 63072000, last = INT64_C(96000000000);

    return time < first ? first : time < last ? time : last;
}

/* Percent of the average, by hour; a week has 168 times 100. */
static const uint8_t weekday_hours[24] = { 60,  60,  60,  60,  60,  60,  70,  90,
                                           120, 155, 165, 160, 140, 155, 165, 165,
                                           155, 135, 110, 100, 95,  90,  80,  70 };
static const uint8_t weekend_hours[24] = { 60,  60,  60,  60,  60,  60,  60,  60,  80, 80, 80, 80,
                                           100, 100, 100, 100, 100, 100, 100, 100, 90, 90, 85, 85 };

void sim_rhythm_init(struct sim_rhythm *rhythm, double evenness)
{
    rhythm->work[0] = 0;
    for (unsigned hour = 0; hour < SIM_WEEK_HOURS; hour++) {
        double percent = hour < 5 * 24 ? weekday_hours[hour % 24] : weekend_hours[hour % 24];
        double weight = percent / 100 * (1 - evenness) + evenness;

        rhythm->work[hour + 1] =
            rhythm->work[hour] + (uint64_t)(weight * SIM_WORK_PER_SECOND + 0.5) * HOUR;
    }
    /* Rounding must not make one rhythm drift from another over the weeks. */
    rhythm->work[SIM_WEEK_HOURS] = (uint64_t)WEEK * SIM_WORK_PER_SECOND;
}

uint64_t sim_work_at(const struct sim_rhythm *rhythm, int64_t time)
{
    uint64_t since = time > origin ? (uint64_t)(time - origin) : 0;
    uint64_t hour = since % WEEK / HOUR;
    uint64_t slope = (rhythm->work[hour + 1] - rhythm->work[hour]) / HOUR;

    return since / WEEK * rhythm->work[SIM_WEEK_HOURS] + rhythm->work[hour] + since % HOUR * slope;
}

double sim_pace_at(const struct sim_rhythm *rhythm, int64_t time)
{
    uint64_t hour = (uint64_t)(time - origin) % WEEK / HOUR;

    return (double)(rhythm->work[hour + 1] - rhythm->work[hour]) / HOUR / SIM_WORK_PER_SECOND;
}

int64_t sim_time_of(const struct sim_rhythm *rhythm, uint64_t work)
{
    uint64_t week = work / rhythm->work[SIM_WEEK_HOURS];
    uint64_t rest = work % rhythm->work[SIM_WEEK_HOURS];
    unsigned hour = (unsigned)(rest / ((uint64_t)HOUR * SIM_WORK_PER_SECOND));
    uint64_t slope, second;

    while (rest < rhythm->work[hour])
        hour--;
    while (rest >= rhythm->work[hour + 1])
        hour++;
    slope = (rhythm->work[hour + 1] - rhythm->work[hour]) / HOUR;
    second = (rest - rhythm->work[hour]) / slope;
    return origin + (int64_t)(week * WEEK + hour * HOUR + (second < HOUR ? second : HOUR - 1));
}

static const struct {
    uint32_t percent;
    uint32_t shortest, longest; /* seconds */
} outage_rows[] = {
    [SIM_OUTAGE_DRAIN] = { 40, 3 * HOUR, 5 * DAY },
    [SIM_OUTAGE_DOWN] = { 30, HOUR, 4 * DAY },
    [SIM_OUTAGE_REBOOT] = { 12, HOUR, 8 * HOUR },
    [SIM_OUTAGE_POWER] = { 18, 4 * HOUR, 2 * DAY },
};

enum { OUTAGE_PERIOD = 20 * DAY, SMALLEST_WITH_OUTAGES = 8 };

/* A node has at most one outage in each of its periods. */
static uint64_t outage_period(uint64_t node_key, int64_t time)
{
    return ((uint64_t)(time - origin) + node_key % OUTAGE_PERIOD) / OUTAGE_PERIOD;
}

static bool outage_in(uint64_t node_key, uint64_t period, struct sim_outage *ret)
{
    uint64_t key = sim_hash(node_key, period);
    uint64_t drawn = sim_pick(key, SIM_SALT_OUTAGE_KIND, 100);
    unsigned kind = SIM_OUTAGE_DRAIN;
    int64_t length;

    if (key % 100 >= 65)
        return false;
    for (; drawn >= outage_rows[kind].percent; kind++)
        drawn -= outage_rows[kind].percent;
    length = outage_rows[kind].shortest +
             (int64_t)sim_pick(key, SIM_SALT_OUTAGE_LENGTH,
                               outage_rows[kind].longest - outage_rows[kind].shortest);
    ret->kind = (enum sim_outage_kind)kind;
    ret->key = key;
    ret->begin = origin - (int64_t)(node_key % OUTAGE_PERIOD) + (int64_t)period * OUTAGE_PERIOD +
                 (int64_t)sim_pick(key, SIM_SALT_OUTAGE_BEGIN, (uint64_t)(OUTAGE_PERIOD - length));
    ret->end = ret->begin + length;
    return true;
}

static uint64_t outage_key(const struct sim_cluster *cluster, uint32_t node)
{
    return sim_hash(cluster->key ^ SIM_SALT_OUTAGE, node);
}

static bool maintained_at(const struct sim_cluster *cluster, uint32_t node, int64_t time,
                          struct sim_outage *ret)
{
    struct sim_reservation maint;

    sim_reservation_at(cluster, SIM_RESV_MAINT, time, &maint);
    if (node - maint.first >= maint.count || time < maint.begin || time >= maint.end)
        return false;
    *ret = (struct sim_outage){ SIM_OUTAGE_MAINT, maint.begin, maint.end, (uint64_t)maint.begin };
    return true;
}

bool sim_outage_at(const struct sim_cluster *cluster, uint32_t node, int64_t time,
                   struct sim_outage *ret)
{
    uint64_t key = outage_key(cluster, node);

    if (cluster->n_nodes < SMALLEST_WITH_OUTAGES)
        return false;
    if (outage_in(key, outage_period(key, time), ret) && ret->begin <= time && time < ret->end)
        return true;
    return maintained_at(cluster, node, time, ret);
}

int64_t sim_failure_between(const struct sim_cluster *cluster, uint32_t node, int64_t from,
                            int64_t to)
{
    uint64_t key = outage_key(cluster, node);

    if (cluster->n_nodes < SMALLEST_WITH_OUTAGES)
        return 0;
    for (uint64_t period = outage_period(key, from); period <= outage_period(key, to); period++) {
        struct sim_outage outage;
        int64_t failure;

        if (!outage_in(key, period, &outage) || outage.kind != SIM_OUTAGE_DOWN)
            continue;
        failure = outage.begin + SIM_SLURMD_TIMEOUT;
        if (failure >= from && failure < to)
            return failure;
    }
    return 0;
}

static int64_t monday_of(int64_t time)
{
    return time - (time - origin) % WEEK;
}

/* Wednesdays from 6 to 14 o'clock, a different twentieth of the nodes each week. */
static void next_maintenance(const struct sim_cluster *cluster, int64_t time,
                             struct sim_reservation *ret)
{
    uint32_t n = cluster->n_nodes, count = sim_at_least_one(n / 20);

    ret->begin = monday_of(time) + 2 * DAY + 6 * HOUR;
    if (time >= ret->begin + 8 * HOUR)
        ret->begin += WEEK;
    ret->end = ret->begin + 8 * HOUR;
    ret->first = (uint32_t)((uint64_t)(ret->begin - origin) / WEEK % (n / count) * count);
    ret->count = n >= SMALLEST_WITH_OUTAGES ? count : 0;
}

/* On weekdays from 8 to 17 o'clock, on the first GPU nodes. */
static void next_course(const struct sim_cluster *cluster, int64_t time,
                        struct sim_reservation *ret)
{
    const struct sim_region *gpus = &cluster->regions[SIM_A100];
    int64_t day = time - (time - origin) % DAY;

    if (time >= day + 17 * HOUR)
        day += DAY;
    if ((day - origin) % WEEK >= 5 * DAY)
        day = monday_of(day) + WEEK;
    ret->begin = day + 8 * HOUR;
    ret->end = day + 17 * HOUR;
    ret->first = gpus->first;
    ret->count = gpus->count ? sim_at_least_one(gpus->count / 16) : 0;
}

/* The first ten days of every fortnight, in the middle of the first region. */
static void next_campaign(const struct sim_cluster *cluster, int64_t time,
                          struct sim_reservation *ret)
{
    const struct sim_region *region = &cluster->regions[SIM_INTEL];

    ret->begin = time - (time - origin) % (2 * WEEK);
    if (time >= ret->begin + 10 * DAY)
        ret->begin += 2 * WEEK;
    ret->end = ret->begin + 10 * DAY;
    ret->first = region->first + region->count / 2;
    ret->count = cluster->n_nodes >= 16 ? sim_at_least_one(region->count / 32) : 0;
}

void sim_reservation_at(const struct sim_cluster *cluster, unsigned which, int64_t time,
                        struct sim_reservation *ret)
{
    static void (*const next[SIM_RESVS])(const struct sim_cluster *, int64_t,
                                         struct sim_reservation *) = {
        [SIM_RESV_MAINT] = next_maintenance,
        [SIM_RESV_COURSE] = next_course,
        [SIM_RESV_CAMPAIGN] = next_campaign,
    };

    *ret = (struct sim_reservation){ .name = sim_reservation_names[which] };
    next[which](cluster, time, ret);
}

uint32_t sim_reserved_at(const struct sim_cluster *cluster, uint32_t node, int64_t time)
{
    for (unsigned which = SIM_RESV_COURSE; which < SIM_RESVS; which++) {
        struct sim_reservation resv;

        sim_reservation_at(cluster, which, time, &resv);
        if (node - resv.first < resv.count && resv.begin <= time && time < resv.end)
            return which;
    }
    return SIM_NONE;
}
