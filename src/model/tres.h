/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TRES ("cpu=16,mem=32000M,node=1,billing=16,gres/gpu:a100=2") and GRES ("gpu:a100:2(IDX:0-1)",
 * "gpu:4(S:0-1)", "gpu:a100:no_consume:2", "shard:8", "mps:200") strings.
 * slurm.conf(5), AccountingStorageTRES and Gres. */
#ifndef SONDE_MODEL_TRES_H
#define SONDE_MODEL_TRES_H

#include "base/str.h"

#include <stdint.h>

#define TRES_UNKNOWN UINT64_MAX

/* NO_CONSUME_VAL64, NO_VAL64 and INFINITE64, from here on, are no counts. */
#define GRES_NO_CONSUME (UINT64_MAX - 2)

/* The members that every job has; TRES_UNKNOWN where the string does not name one. */
struct tres {
    uint64_t cpus, memory_bytes, nodes, billing;
    uint64_t gpus; /* gres/gpu, or the sum over gres/gpu:TYPE when only those are named */
};

/* False if a part of it cannot be read; what could be read is in *ret. Values may have suffixes
 * (K, M, G, T) in any member. Both "name=value" and "id=value" (1 cpu, 2 mem, 4 node, 5 billing).
 */
bool tres_parse(struct str text, struct tres *ret);

/* One entry at a time from either form. name: "gpu"; type: "a100" or empty; count.
 *     struct gres_item item;
 *     for (struct str rest = text; gres_next(&rest, &item, NULL);) …
 * From a TRES string only its gres/ members are given, the whole ("gres/gpu", type empty) as well
 * as its parts ("gres/gpu:a100"). "gres/gpu:2" and "gres:gpu:2", as squeue prints what a job asks
 * for, are read too. Without a count it is 1, or what "(CNT:2)" or the indexes say. A member that
 * cannot be read is skipped and *ret_bad (may be NULL) set. Commas inside parentheses do not end an
 * entry. Socket and index notes
 * "(S:0)" "(IDX:0-1)" give indexes = "0-1" or empty. */
struct gres_item {
    struct str name, type, indexes;
    uint64_t count;
};
bool gres_next(struct str *rest, struct gres_item *ret, bool *ret_bad);

#endif
