/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the pages of clusters, nodes and partitions share. */
#ifndef SONDE_WEB_SHOW_CLUSTER_H
#define SONDE_WEB_SHOW_CLUSTER_H

#include "web/html.h"
#include "web/site.h"

/* Slurm's PrivateData keeps it from people, or may do so, and whoever looks is not staff. */
bool show_is_private(const struct site_call *call, const struct board_cluster *cluster,
                     enum private_data what);

/* That it does, in place of what is kept from them: "Nodes". */
void show_private(struct site_call *call, const struct board_cluster *cluster, const char *what);
const char *show_why_private(const struct board_cluster *cluster); /* a part of a sentence */

/* A cluster's name as an argument of addresses: empty if there is no other. */
struct str show_word(const struct site_call *call, const struct board_cluster *cluster);

/* "/jobs?state=PENDING&cluster=beluga": encoded, in the arena, ended by a NUL. Arguments without a
 * value are left out. */
struct show_argument {
    const char *name; /* NULL: there are no more */
    struct str value;
};
#define SHOW_ARGUMENTS(...)                                                                        \
    (const struct show_argument[])                                                                 \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
const char *show_address(struct site_call *call, const struct board_cluster *cluster,
                         const char *path, const struct show_argument *arguments);

/* Jobs that hold what is allocated, for ?state= of /jobs: squeue shows a flag in the place of
 * RUNNING. */
#define SHOW_HOLDING "RUNNING,SUSPENDED,COMPLETING,CONFIGURING,RESIZING,SIGNALING,STOPPED"

/* An address as a link, with these words or this number in it. 0 is made of nothing: no link. */
void show_link(struct buf *to, const char *address, struct str words);
void show_count(struct buf *to, const char *address, double number);
void show_amount(struct buf *to, const char *address, double amount,
                 void (*put)(struct buf *to, double amount));

/* The cells of what jobs hold or ask for, from that column on, each a link to these jobs, those
 * with most of it first. Their columns are SHOW_JOBS_COLUMNS. */
struct which_jobs {
    struct str user, account, state, reason;
};
enum { SHOW_JOBS_CELLS = 4 };
#define SHOW_JOBS_COLUMNS                                                                          \
    { "jobs", NULL, true }, { "CPUs", NULL, true }, { "GPUs", NULL, true },                        \
    {                                                                                              \
        "memory", NULL, true                                                                       \
    }
void show_jobs_cells(struct site_call *call, const struct board_cluster *cluster,
                     struct html_table *table, size_t column, const struct which_jobs *which,
                     const struct sums_jobs *jobs);
const char *show_jobs_address(struct site_call *call, const struct board_cluster *cluster,
                              const struct which_jobs *which);

/* A part of the page that is renewed while somebody looks, with the cluster's name as its heading
 * if there are several. */
void show_begin_cluster(struct site_call *call, const struct board_cluster *cluster);
void show_end_cluster(struct site_call *call);

/* A heading below that of the cluster, or of the page if there is no other. */
void show_heading(struct site_call *call, const char *words);

/* The chart of a trend. */
enum { SHOW_HOURS = 6, SHOW_HOURS_MAX = 31 * 24 };
void show_trend(struct site_call *call, const struct board_cluster *cluster, enum trend trend,
                struct str node, unsigned hours);

/* The colour of a state, as a class; words stand beside it everywhere. */
const char *show_node_class(struct node_state state);
extern const char *const show_node_classes[]; /* all of them, ended by NULL; each is its own word */
void show_node_state(struct buf *to, struct node_state state);

#endif
