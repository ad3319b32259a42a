/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one way into Slurm said of one kind of thing at one moment: filled by a source, then never
 * changed, shared by counting references. */
#ifndef SONDE_MODEL_SECTION_H
#define SONDE_MODEL_SECTION_H

#include "base/arena.h"
#include "model/allocation.h"
#include "model/association.h"
#include "model/config.h"
#include "model/diag.h"
#include "model/ended.h"
#include "model/job.h"
#include "model/license.h"
#include "model/lustre.h"
#include "model/node.h"
#include "model/reservation.h"
#include "model/share.h"
#include "model/symbols.h"
#include "model/trace.h"

#include <stdatomic.h>

enum kind {
    KIND_NODES, /* with the partitions, which come from the same answer; first, so that they are
                 * known when the jobs come */
    KIND_JOBS,
    KIND_RESERVATIONS,
    KIND_LICENSES,
    KIND_DIAG,
    KIND_SHARES,
    KIND_ASSOCIATIONS, /* with the QOS, which come from the same answer */
    KIND_CONFIG,
    KIND_TRACES, /* told by the jobs themselves, not by a source */
    KIND_LUSTRE, /* told by a Prometheus, not by Slurm */
    KIND_ENDED,  /* told by the store, as the next */
    KIND_ALLOCATIONS,
    KINDS,
};

#define KIND_BIT(kind) (1u << (kind))

/* What is true of no moment but that at which it was told: it is not shown once a later look has
 * failed, nor to who could not wait for the one under way. */
#define MOMENTARY_KINDS KIND_BIT(KIND_LUSTRE)

struct section {
    atomic_uint refs;
    struct section *same_as; /* what is below lives there: it was said again; or NULL */
    enum kind kind;
    struct arena arena;     /* everything below lives here */
    struct symbols symbols; /* of every `symbol` below */
    int64_t wall_ns;        /* when Slurm was asked */
    int64_t mono_ns;
    size_t grown_bytes;         /* of the arrays of section_grow */
    uint64_t bytes_read;        /* what the source read to learn it */
    uint64_t skipped;           /* records that could not be read; the rest is here */
    struct str skipped_example; /* the beginning of the first of them, or empty */
    union {
        struct jobs jobs;
        struct nodes nodes;
        struct reservations reservations;
        struct licenses licenses;
        struct diag diag;
        struct shares shares;
        struct associations associations;
        struct config config;
        struct traces traces;
        struct lustre lustre;
        struct ended ended;
        struct allocations allocations;
    };
};

struct section *section_new(enum kind kind);
struct section *section_ref(struct section *section);
struct section *section_unref(struct section *section); /* returns NULL */

/* The same facts, said again at another time: nothing but the table of symbols is copied. */
struct section *section_again(struct section *section);

/* heap_grow for an array of the section or of its reader: section_bytes counts it. */
void *section_grow(struct section *section, void *array, size_t n, size_t *n_room, size_t size);

/* Memory of the section and of the reader that fills it. */
size_t section_bytes(const struct section *section);

const char *kind_name(enum kind kind); /* "jobs", "nodes", … */

/* Of a section of nodes, once they have their states and versions. */
void section_set_node_releases(struct section *section);

static inline struct str section_text(const struct section *section, symbol s)
{
    return symbols_get(&section->symbols, s);
}

#endif
