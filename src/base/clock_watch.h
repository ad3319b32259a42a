/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides whether data may be deleted because of its age. A wrong wall clock makes everything look
 * old, so it is not believed alone: slurmctld's clock has to agree, or, where slurmctld's time is
 * not known, the clock must not have jumped for an hour. Used by one thread. */
#ifndef SONDE_BASE_CLOCK_WATCH_H
#define SONDE_BASE_CLOCK_WATCH_H

#include "base/log.h"

/* The times of one clock, compared with the monotonic clock. */
struct steadiness {
    bool is_known, has_jumped;
    int64_t offset_ns; /* wall minus monotonic time */
    int64_t since_ns;  /* monotonic: the offset has been the same since then */
};

enum clock_trust {
    CLOCK_TRUSTED,
    CLOCK_UNPROVEN,  /* not seen for long enough */
    CLOCK_JUMPED,    /* less than an hour ago */
    CLOCK_DISAGREES, /* with slurmctld's */
    CLOCK_FAR_AHEAD, /* of the newest record */
    CLOCK_TRUSTS,
};

struct clock_watch {
    const struct clock *clock;
    const char *data;             /* what is deleted, for the log: "job history" */
    struct steadiness own, slurm; /* slurm: what slurmctld's time was */
    int64_t slurm_heard_ns;       /* monotonic */
    int64_t newest_ns;            /* wall: of what earlier processes have written; 0: unknown */
    enum clock_trust told;        /* the last that was logged */
};

/* `data` must last as long as the watch. */
void clock_watch_init(struct clock_watch *watch, const struct clock *clock, const char *data);

/* The time of the newest record that an earlier process has written. A clock that is more than a
 * day ahead of it is wrong, or sonde did not run: it has to be steady for an hour, even if
 * slurmctld, which may run on this host, agrees with it. */
void clock_watch_recall(struct clock_watch *watch, int64_t newest_seconds);

/* slurmctld's time as of a monotonic time; from there on it is known, as the monotonic clock does
 * not jump. Repeating the same changes nothing. */
void clock_watch_hear(struct clock_watch *watch, int64_t slurm_seconds, int64_t mono_ns);

enum clock_trust clock_watch_judge(struct clock_watch *watch);

/* Whether data may be deleted by its age now. Logs when that stops, and when it resumes. */
bool clock_watch_allows(struct clock_watch *watch, struct log *log);

/* Whether deletion is paused because the clock is wrong, or was, as last logged. False while the
 * clock has only not been seen for long enough, as after every start. */
bool clock_watch_is_paused(const struct clock_watch *watch);

#endif
