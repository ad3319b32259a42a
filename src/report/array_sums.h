/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What there is to say of many tasks together. Its size has a ceiling, however many they are. */
#ifndef SONDE_REPORT_ARRAY_SUMS_H
#define SONDE_REPORT_ARRAY_SUMS_H

#include "report/report.h"

enum {
    ARRAY_STATES = 16,
    ARRAY_OUTLIERS = 5,
    ARRAY_FAILED = 20,
    ARRAY_NODES = 10,
};

enum array_measure {
    ARRAY_CPU,
    ARRAY_MEMORY_RATIO,
    ARRAY_MEMORY,
    ARRAY_GPU,
    ARRAY_ELAPSED,
    ARRAY_WAIT,
    ARRAY_MEASURES,
};

/* Least, quartiles, most. */
enum { ARRAY_QUANTILES = 5 };
extern const char *const array_quantile_words[ARRAY_QUANTILES]; /* "least", … */

struct array_spread {
    double quantile[ARRAY_QUANTILES];
    size_t n; /* tasks of which it is known; 0: none */
};

struct array_state {
    struct str word; /* ended by a NUL */
    uint64_t tasks;
};

struct array_node {
    struct str name;
    size_t failed, tasks; /* that ran there */
};

struct array_finding {
    const struct check *check;
    enum severity severity;
    size_t tasks;
    const struct job_facts *first; /* of whom the sentence is */
    struct str sentence, link;
};

struct array_sums {
    const struct job_record *any; /* the first: for what all have in common */
    uint64_t tasks;               /* those that wait together included */
    struct array_state state[ARRAY_STATES];
    size_t n_states;
    struct array_spread spread[ARRAY_MEASURES];
    const struct job_facts *slowest[ARRAY_OUTLIERS], *hungriest[ARRAY_OUTLIERS],
        *failed[ARRAY_FAILED];
    size_t n_slowest, n_hungriest, n_failed; /* n_failed: all, also those that are not in failed */
    struct array_node node[ARRAY_NODES];     /* on which tasks failed, the most first */
    size_t n_nodes, n_nodes_left_out;
    struct array_finding *finding; /* the gravest first, then the most frequent */
    size_t n_findings;
    double cpu_seconds, cpu_seconds_held; /* of those of which both are known */
};

/* Texts are those of the tasks, or in the arena. */
void array_sums_make(struct array_sums *to, struct arena *arena, const struct array_report *report);

#endif
