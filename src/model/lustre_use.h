/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one look at the targets of a Lustre server brought: filled by source/lustre_targets, read by
 * the collector. Immutable, shared by counting references. */
#ifndef SONDE_MODEL_LUSTRE_USE_H
#define SONDE_MODEL_LUSTRE_USE_H

#include "model/symbols.h"

#include <stdatomic.h>

/* Reads, or writes, since Lustre began to count for this id. */
struct lustre_io {
    bool is_there;
    bool has_sizes; /* Lustre tells how many of which size (2.16 and later) */
    uint64_t samples, bytes;
    uint64_t least_bytes, most_bytes; /* of one of them */
    uint64_t small_samples;           /* of at most LUSTRE_SMALL_BYTES */
};
#define LUSTRE_SMALL_BYTES 32768 /* Lustre's own counts end at powers of two */

struct lustre_operation {
    symbol name; /* "open" */
    uint64_t samples;
};

/* What one job id did on one target. */
struct lustre_id_use {
    symbol target, id;
    bool is_mdt;
    struct lustre_io read, write;
    uint32_t first_operation, n_operations; /* a run of lustre_use.operation */
};

struct lustre_use {
    atomic_uint refs;
    int64_t mono_ns;
    struct arena arena; /* of the symbols */
    struct symbols symbols;
    struct lustre_id_use *id;
    size_t n;
    struct lustre_operation *operation;
    size_t n_operations;
    size_t n_targets;        /* there are on this server, at least; 0: it is none */
    size_t n_unread;         /* of them that could not be read */
    uint64_t ids_left_out;   /* past the ceilings, in this look */
    uint64_t lines_left_out; /* that could not be read, in this look */
    uint64_t ids_merged;     /* entries of ids that the target had told already, in this look */
    double seconds;          /* that it took */
    uint64_t bytes_read;
    char first_error[200]; /* a sentence about what could not be read, or empty */
};

/* Text that one sample of an id takes, at most, and without the name of the operation. */
size_t lustre_sample_bytes(struct str target, struct str id);

struct lustre_use *lustre_use_unref(struct lustre_use *use); /* returns NULL */

#endif
