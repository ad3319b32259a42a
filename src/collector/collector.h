/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A collector turns one kind of section into metric families. It knows no wire format and no way
 * into Slurm. To add one: CONTRIBUTING.md. */
#ifndef SONDE_COLLECTOR_COLLECTOR_H
#define SONDE_COLLECTOR_COLLECTOR_H

#include "metric/writer.h"
#include "model/section.h"

struct collector {
    const char *name;    /* --collector.NAME, ?collect[]=NAME */
    const char *help;    /* one line for --help and docs/metrics.md */
    enum kind kind;      /* what it is made of */
    unsigned also;       /* KIND_BITs of what is asked with it, to complete that */
    bool is_off;         /* unless asked for */
    const char *profile; /* "mila": shown in its place, as their names clash; NULL: as usual */
    bool is_prefixed;    /* --metrics.prefix comes before its names */
    const struct family *families;
    size_t n_families;
    bool is_of_details; /* of what only SOURCE_DETAILS tells */
    void (*collect)(const struct section *section, struct metric_writer *writer);
};

/* Every collector, in the order in which they are exposed. Ended by NULL. */
extern const struct collector *const collectors[];

enum { COLLECTORS_MAX = 64 };

/* A set of collectors: bit i is collectors[i]. */
typedef uint64_t collector_set;

/* The index of the one with that name, or -1. */
int collector_find(struct str name);

/* Those of a profile; of an empty one, those of none. */
collector_set collector_profile(struct str profile);

/* The kinds that a set is made of, as KIND_BITs. */
unsigned collector_kinds(collector_set set);

bool collector_wants_details(collector_set set);

#endif
