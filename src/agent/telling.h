/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sampler tells of the jobs: on the board for scrapes, to the Pushgateway, and in the
 * log. */
#ifndef SONDE_AGENT_TELLING_H
#define SONDE_AGENT_TELLING_H

#include "agent/agent.h"
#include "base/arena.h"
#include "base/map.h"

struct telling {
    uint64_t serial;
    struct job_use **view;
    size_t n_view_room;
    const struct profile_use **profiles;
    size_t n_profiles_room;
    struct gpu_look *gpus; /* NULL: none yet, or stale */
    bool has_said_gpus_down, has_said_gpus_partly;
    struct lustre_use *lustre; /* likewise */
    bool is_lustre_stuck;      /* a look at it does not come to its end */
    int64_t lustre_stale_ns;   /* the limit at the last tick; 0: there was none */
    bool has_said_lustre_down, has_said_lustre_denied;
    bool has_said_unreadable;
    struct map nodes; /* that something was pushed for */
    struct arena nodes_arena;
};

void telling_init(struct telling *telling);
void telling_free(struct telling *telling);
int64_t telling_stale_ns(const struct agent *agent); /* older readings of drivers are dropped */
void telling_take_gpus(struct telling *telling, struct agent *agent, struct gpu_look *look);
void telling_take_lustre(struct telling *telling, struct agent *agent);
void telling_publish(struct telling *telling, struct agent *agent);
void telling_push(struct telling *telling, struct agent *agent);
void telling_complain(struct telling *telling, struct agent *agent); /* once, of what is denied */

#endif
