/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's collectors: each turns what the jobs on a node use into metric families. */
#ifndef SONDE_COLLECTOR_USAGE_H
#define SONDE_COLLECTOR_USAGE_H

#include "metric/writer.h"
#include "model/usage.h"

/* What the sampler need not find out unless a collector that is switched on wants it. Who a job is,
 * its CPU time and its memory are always there. */
enum usage_need {
    USAGE_CGROUP = 1 << 0,    /* everything else that the kernel says of a job's cgroup */
    USAGE_CORES = 1 << 1,     /* its CPU time by core */
    USAGE_PROCESSES = 1 << 2, /* how many, their threads and resident memory */
    USAGE_NAMES = 1 << 3,     /* the same by name; some sites must not publish these */
    USAGE_FILES = 1 << 4,     /* their descriptors, open files, scratch */
    USAGE_IO = 1 << 5,        /* what they read and wrote */
    USAGE_GPUS = 1 << 6,
    USAGE_STEPS = 1 << 7,
    USAGE_TASKS = 1 << 8,
    USAGE_OWNER = 1 << 9, /* whose each job is, and what its environment claims */
    USAGE_LUSTRE = 1 << 10,
};

struct usage_collector {
    const char *name; /* --collector.NAME, ?collect[]=NAME */
    const char *help; /* one line for --help and docs/metrics.md */
    bool is_off;      /* unless asked for */
    unsigned needs;   /* enum usage_need; what is not there it leaves out */
    const struct family *families;
    size_t n_families;
    void (*collect)(const struct usage *usage, struct metric_writer *writer);
};

/* Every one, in the order in which they are exposed. Ended by NULL. */
extern const struct usage_collector *const usage_collectors[];

enum { USAGE_COLLECTORS_MAX = 16 };

/* A set of them: bit i is usage_collectors[i]. */
typedef uint32_t usage_collector_set;

/* The index of the one with that name, or -1. */
int usage_collector_find(struct str name);

/* What a set of them needs. */
unsigned usage_collectors_need(usage_collector_set set);

#endif
