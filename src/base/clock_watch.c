/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the wall clock with the monotonic clock and with slurmctld's. */
#include "base/clock_watch.h"

/* munge accepts no credential of a host whose clock differs by more than this. */
static const int64_t tolerance_ns = 300 * NS_PER_SEC;
static const int64_t hour_ns = 3600 * NS_PER_SEC;
static const int64_t day_ns = 24 * 3600 * NS_PER_SEC;

static int64_t difference(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

static void note_offset(struct steadiness *of, int64_t offset_ns, int64_t mono_ns)
{
    if (of->is_known && difference(of->offset_ns, offset_ns) <= tolerance_ns)
        return;
    *of = (struct steadiness){ true, of->is_known, offset_ns, mono_ns };
}

static bool is_steady(const struct steadiness *of, int64_t mono_ns)
{
    return mono_ns - of->since_ns >= hour_ns;
}

void clock_watch_init(struct clock_watch *watch, const struct clock *clock, const char *data)
{
    *watch = (struct clock_watch){ .clock = clock, .data = data };
    clock_watch_judge(watch);
}

void clock_watch_recall(struct clock_watch *watch, int64_t newest_seconds)
{
    watch->newest_ns = newest_seconds * NS_PER_SEC;
}

void clock_watch_hear(struct clock_watch *watch, int64_t slurm_seconds, int64_t mono_ns)
{
    if (watch->slurm.is_known && mono_ns <= watch->slurm_heard_ns)
        return;
    note_offset(&watch->slurm, slurm_seconds * NS_PER_SEC - mono_ns, mono_ns);
    watch->slurm_heard_ns = mono_ns;
}

static bool is_far_ahead(const struct clock_watch *watch, int64_t wall_ns)
{
    return watch->newest_ns && wall_ns - watch->newest_ns > day_ns;
}

/* A clock of slurmctld's that has jumped itself confirms nothing until it is steady. */
static bool is_confirmed(const struct clock_watch *watch, int64_t mono_ns)
{
    return !watch->slurm.has_jumped || is_steady(&watch->slurm, mono_ns);
}

enum clock_trust clock_watch_judge(struct clock_watch *watch)
{
    int64_t wall_ns = clock_wall(watch->clock), mono_ns = clock_mono(watch->clock);
    bool has_slurm = watch->slurm.is_known;

    note_offset(&watch->own, wall_ns - mono_ns, mono_ns);
    if (has_slurm && difference(watch->slurm.offset_ns, wall_ns - mono_ns) > tolerance_ns)
        return CLOCK_DISAGREES;
    if (is_steady(&watch->own, mono_ns))
        return CLOCK_TRUSTED;
    if (is_far_ahead(watch, wall_ns))
        return CLOCK_FAR_AHEAD;
    if (has_slurm && is_confirmed(watch, mono_ns))
        return CLOCK_TRUSTED;
    return watch->own.has_jumped ? CLOCK_JUMPED : CLOCK_UNPROVEN;
}

static const char *const warnings[CLOCK_TRUSTS] = {
    [CLOCK_JUMPED] = "the clock jumped: no data is deleted by age until slurmctld's clock agrees, "
                     "or it has been steady for an hour; check NTP",
    [CLOCK_DISAGREES] = "the clock differs from slurmctld's: no data is deleted by age until both "
                        "agree; check NTP on both hosts",
    [CLOCK_FAR_AHEAD] = "the clock is more than a day ahead of the newest record: no data is "
                        "deleted by age until it has been steady for an hour",
};

static void tell(struct clock_watch *watch, enum clock_trust trust, struct log *log)
{
    struct log_field fields[] = {
        LOG_STR("data", watch->data),
        LOG_INT("clock", clock_wall(watch->clock) / NS_PER_SEC),
        LOG_INT("slurmctld_clock",
                (watch->slurm.offset_ns + clock_mono(watch->clock)) / NS_PER_SEC),
    };

    if (warnings[trust])
        log_write(log, LOG_WARN, warnings[trust], fields, trust == CLOCK_DISAGREES ? 3 : 2);
    else if (trust == CLOCK_TRUSTED && warnings[watch->told])
        log_write(log, LOG_INFO, "the clock is trusted again: data is deleted by age", fields, 2);
    watch->told = trust;
}

bool clock_watch_is_paused(const struct clock_watch *watch)
{
    return warnings[watch->told] != NULL;
}

bool clock_watch_allows(struct clock_watch *watch, struct log *log)
{
    enum clock_trust trust = clock_watch_judge(watch);

    if (trust != watch->told)
        tell(watch, trust, log);
    return trust == CLOCK_TRUSTED;
}
