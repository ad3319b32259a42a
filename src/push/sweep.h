/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The groups that Slurm's profile plugin has on a Pushgateway,
 * /metrics/job/JOBID/instance/NODE/step/STEP: which there are, and how one is deleted. See the
 * Pushgateway's README, "Query API" and "DELETE method". The slurmstepd that pushes a group deletes
 * it at the step's end; of one that was killed, or that was not heard, it stays and looks alive.
 *
 * Others push to the same place. A group counts as the plugin's only if its labels are exactly job,
 * a number, instance and step, and one of its metrics has a name that the plugin gives. Without
 * step it is of the plugin that sonde's takes the place of, and must have one of that one's names.
 */
#ifndef SONDE_PUSH_SWEEP_H
#define SONDE_PUSH_SWEEP_H

#include "push/gateway.h"

enum { SWEEP_NODE = 256 }; /* bytes of a node's name, with its NUL */

struct sweep_group {
    uint32_t job_id;
    char node[SWEEP_NODE];
    char step[24];         /* "batch", "extern", "interactive", or its number; "": not told apart */
    char cluster[64];      /* as its metrics are labelled; "": they are not */
    double pushed_seconds; /* UTC, by the Pushgateway's clock: when it was last pushed */
};

/* Whether anybody wants to know of it. */
typedef bool sweep_wish(void *ctx, const struct sweep_group *group);

struct sweep_wishes {
    sweep_wish *is_wanted;
    void *ctx;
    size_t most; /* groups that are kept; more are counted */
};

struct sweep_list {
    struct sweep_group *groups;
    size_t n, room;
    size_t n_all;      /* groups on the Pushgateway, whoever's */
    size_t n_left_out; /* wanted, but past `most` */
};

void sweep_list_clear(struct sweep_list *list);

struct sweep_limits {
    int64_t timeout_ms; /* of the request */
    size_t max_answer;
    const atomic_bool *cancelled; /* or NULL */
};

/* Adds those that are wanted to the list, which is empty at first. On failure it is of no use: it
 * may hold some of them. */
int sweep_read(const struct gateway *gateway, const struct sweep_limits *limits,
               const struct sweep_wishes *wishes, struct sweep_list *list, struct err *err);

/* Also 0 where it is gone already: a Pushgateway does not tell. */
int sweep_delete(const struct gateway *gateway, const struct sweep_group *group,
                 const struct sweep_limits *limits, struct err *err);

/* The answer, in pieces. -EBADMSG or -EFBIG with a sentence for one that no Pushgateway gives. */
struct sweep_reader;
struct sweep_reader *sweep_reader_new(const struct sweep_wishes *wishes, struct sweep_list *list);
struct sweep_reader *sweep_reader_free(struct sweep_reader *reader); /* returns NULL */
int sweep_reader_add(struct sweep_reader *reader, struct str piece, struct err *err);
int sweep_reader_end(struct sweep_reader *reader, struct err *err);

#endif
