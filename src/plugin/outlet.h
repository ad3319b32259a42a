/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A way that samples take out of a slurmstepd: to the agent, or to a Pushgateway. Made by the
 * thread that starts the sender, then used by the sender's alone. */
#ifndef SONDE_PLUGIN_OUTLET_H
#define SONDE_PLUGIN_OUTLET_H

#include "base/clock.h"
#include "base/err.h"
#include "plugin/samples.h"
#include "plugin/step.h"

#include <limits.h>

/* What is told. */
struct telling {
    const struct samples *samples;
    const struct profile_step *step;
    const struct profile_settings *settings;
};

/* How long it may take. */
struct patience {
    int64_t until_ns; /* of the monotonic clock */
    int wake_fd;      /* it ends when this can be read; -1: there is none */
};

/* For poll: 0 when there is none left. */
static inline int patience_left_ms(const struct patience *patience)
{
    int64_t left_ns = patience->until_ns - clock_mono(&clock_real);
    int64_t left_ms = left_ns > 0 ? (left_ns + NS_PER_MS - 1) / NS_PER_MS : 0;

    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

/* The first member of what a way needs. Both return 0 if all has been told or there is nothing to
 * tell, -ECANCELED if they were woken, or -errno with a sentence. */
struct outlet {
    int (*tell)(struct outlet *outlet, const struct telling *telling,
                const struct patience *patience, struct err *err);
    /* The step is over. */
    int (*end)(struct outlet *outlet, const struct telling *telling,
               const struct patience *patience, struct err *err);
    struct outlet *(*free)(struct outlet *outlet); /* returns NULL */
    char peer[300];                                /* in a sentence: who is told */
    bool is_remote;                                /* it is asked less often after failures */
    size_t n_too_large;                            /* families that had no room in the last turn */
};

/* NULL with a sentence. */
struct outlet *outlet_agent_new(const struct profile_settings *settings, struct err *err);
struct outlet *outlet_pushgateway_new(const struct profile_settings *settings,
                                      const struct profile_step *step, struct err *err);

#endif
