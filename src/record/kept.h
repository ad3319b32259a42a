/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A source of what only the store knows of a cluster: jobs that have ended (KIND_ENDED), and what
 * is used of what was promised (KIND_ALLOCATIONS). */
#ifndef SONDE_RECORD_KEPT_H
#define SONDE_RECORD_KEPT_H

#include "record/recorder.h"
#include "source/source.h"

struct kept_settings {
    struct str url;              /* of the store; copied, as the file */
    struct str allocations_file; /* empty: there is none, and no such kind */
    struct recorder *recorder;   /* knows the cluster's name; outlives it */
    size_t cluster;
    bool is_simulated;
};

/* -EINVAL with a sentence for a wrong URL; also if the file has a mistake: a later one leaves what
 * it said before, with a warning. */
int source_open_kept(const struct kept_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err);

#endif
