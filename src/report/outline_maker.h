/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an outline is made: words are put into a buffer, and taken from it for their place. Nothing
 * put means nothing known. */
#ifndef SONDE_REPORT_OUTLINE_MAKER_H
#define SONDE_REPORT_OUTLINE_MAKER_H

#include "report/outline.h"

#include <math.h>

struct maker {
    const struct job_report *report;
    const struct job_facts *facts;
    const struct job_record *record;
    struct arena *arena;
    struct outline *to;
    struct outline_section *section;
    struct buf words; /* of what is being made; empty again afterwards */
};

/* What was put. The buffer is empty again. */
struct str maker_take(struct maker *maker);

/* What a user may have written. */
void maker_put_text(struct maker *maker, struct str text);

/* "4.8 GiB of 32 GiB": as much of it as is known; nothing without the first. */
void maker_put_part(struct maker *maker, void (*put)(struct buf *to, double value), double part,
                    double whole);

/* "1 node", "4 nodes" */
void maker_put_things(struct maker *maker, double count, const char *thing);

/* All sections. */
void maker_add_sections(struct maker *maker);

static inline double known_u32(uint32_t count)
{
    return count == MODEL_UNKNOWN_U32 ? NAN : count;
}

static inline double known_u64(uint64_t count)
{
    return count == MODEL_UNKNOWN_U64 ? NAN : (double)count;
}

static inline double known_span(int64_t seconds)
{
    return seconds < 0 ? NAN : (double)seconds;
}

static inline bool facts_are_measured(const struct facts_origin *origin)
{
    return origin->has_agents || origin->has_series || origin->has_summary;
}

#endif
