/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GPUs (or their shards) by type, from the GRES strings of nodes and the TRES strings of jobs: see
 * model/tres.h. Each distinct string of a section is read once. */
#ifndef SONDE_COLLECTOR_GPU_H
#define SONDE_COLLECTOR_GPU_H

#include "model/section.h"

enum { GPU_TYPES_MAX = 100 }; /* told apart; any more are of the type "other" */

struct gpu_list {
    struct gpu_count {
        symbol type;    /* of gpu_reader.types; 0: the string names no type */
        uint64_t count; /* MODEL_UNKNOWN_U64: more than 64 bits hold, the string tells nonsense */
    } * item;           /* each type once, also those with a count of 0 */
    size_t n;
};

struct gpu_reader {
    const struct section *section;
    struct str name;         /* "gpu" or "shard" */
    struct symbols types;    /* in the order in which they were met; 0 is "" */
    struct gpu_list **lists; /* by the section's symbols; NULL until read */
    struct arena arena;
};

void gpu_reader_init(struct gpu_reader *reader, const struct section *section, struct str name);
void gpu_reader_free(struct gpu_reader *reader);

/* What the string names; nothing for symbol 0. In a TRES string the whole ("gres/gpu=4") is not
 * counted beside its parts ("gres/gpu:a100=3"): what they leave is of no type. Valid until
 * gpu_reader_free. */
const struct gpu_list *gpu_read(struct gpu_reader *reader, symbol text);

/* The value of the label `type`. A label without a value is no label to Prometheus, and a dashboard
 * that lists the types would miss such GPUs: without a type they are of type none, which
 * model/tres takes for no type as well. */
static inline struct str gpu_type(const struct gpu_reader *reader, symbol type)
{
    return type ? symbols_get(&reader->types, type) : STR("none");
}

#endif
