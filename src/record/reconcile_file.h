/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many differences the last `sonde admin reconcile` found, in a small file beside the store for
 * each cluster: PATH.reconcile.CLUSTER. The exporter serves it as metrics. */
#ifndef SONDE_RECORD_RECONCILE_FILE_H
#define SONDE_RECORD_RECONCILE_FILE_H

#include "record/reconcile.h"

struct reconcile_summary {
    int64_t time; /* of the run, UTC seconds */
    uint64_t explained[RECONCILE_COMPARISONS], unexplained[RECONCILE_COMPARISONS];
};

/* Replaces it as a whole. `store` is the URL. */
int reconcile_file_write(struct str store, struct str cluster,
                         const struct reconcile_summary *summary, struct err *err);

/* False if there is none, or none that can be read. */
bool reconcile_file_read(struct str store, struct str cluster, struct reconcile_summary *ret);

#endif
