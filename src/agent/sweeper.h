/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Deletes what the steps of this node have left on a Pushgateway (push/sweep.h), on a thread of its
 * own. Only a step's slurmstepd pushes its group: once that has ended, the group goes, whether it
 * was deleted already or not, which no Pushgateway tells. What has ended while no agent was there,
 * as when the node lost its power, is found in the list of all groups. That is as large as what
 * Prometheus scrapes there, too much for every node to read all the time: it is read once after
 * the start, when this host turns out to have another name, and after deletions were given up. */
#ifndef SONDE_AGENT_SWEEPER_H
#define SONDE_AGENT_SWEEPER_H

#include "base/clock.h"
#include "base/log.h"
#include "source/stepd.h"

struct sweeper;

enum {
    SWEEPER_STEPS = 16384, /* that are watched, or over and not yet deleted */
    SWEEPER_NAMES = 64,    /* of this host: one for each slurmd */
};

struct sweeper_config {
    const char *url, *password_file, *ca_file; /* as gateway_open; need not last */
    const char *proc, *host;                   /* "/proc", short host name; must outlive it */
    uint32_t slurmd_uid;
    int64_t timeout_ns; /* for one request */
    int64_t round_ns;   /* a group goes from one to two of these after its slurmstepd has ended */
    const struct clock *clock;
    struct log *log;
};

/* As gateway_open, or -errno when /proc cannot be read. */
int sweeper_start(const struct sweeper_config *config, struct sweeper **ret, struct err *err);
struct sweeper *sweeper_stop(struct sweeper *sweeper); /* within a second or two; returns NULL */

/* One that lives; by any thread, which does not wait. */
void sweeper_watch(struct sweeper *sweeper, const struct stepd *stepd);

struct sweeper_stats {
    uint64_t swept;    /* deletions that the Pushgateway took */
    uint64_t failures; /* requests that it did not take */
};
void sweeper_stats(struct sweeper *sweeper, struct sweeper_stats *ret);

#endif
