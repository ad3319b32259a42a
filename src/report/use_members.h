/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The members of struct use_facts by their names: for whoever sums them up, writes or reads them.
 */
#ifndef SONDE_REPORT_USE_MEMBERS_H
#define SONDE_REPORT_USE_MEMBERS_H

#include "report/facts.h"

/* What the whole job has, by what its nodes have. */
enum use_sum {
    USE_SUM,       /* of those nodes that tell */
    USE_WHOLE_SUM, /* only if all tell */
    USE_LARGEST,
    USE_LONE,  /* only if there is but one */
    USE_GIVEN, /* as Slurm says of the job; the whole sum if it does not */
};

struct use_member {
    const char *name;
    size_t offset; /* of a double */
    enum use_sum sum;
};

enum { USE_MEMBERS = sizeof(struct use_facts) / sizeof(double) };
extern const struct use_member use_members[USE_MEMBERS];

static inline double *use_place(struct use_facts *use, const struct use_member *member)
{
    return (double *)(void *)((char *)use + member->offset);
}

static inline double use_value(const struct use_facts *use, const struct use_member *member)
{
    return *(const double *)(const void *)((const char *)use + member->offset);
}

/* Of each number the larger, the known one if but one is. */
void use_raise(struct use_facts *use, const struct use_facts *by);

#endif
