/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An association's fair share, as sshare tells it. Rows stand in tree order, parents first. */
#ifndef SONDE_MODEL_SHARE_H
#define SONDE_MODEL_SHARE_H

#include "model/job.h"

struct share {
    symbol account, user, partition, parent; /* user 0: the account itself */
    bool is_parent;                          /* shares are "parent": counted with the account */
    uint64_t raw_shares;                     /* MODEL_UNKNOWN_U64 when is_parent */
    double normalised_shares, raw_usage, normalised_usage, effective_usage;
    double factor, level; /* NAN: unknown; level may be infinite */
};

/* To the six digits that sshare prints, so that every door tells the same. */
void share_round(struct share *share);

struct shares {
    struct share *share;
    size_t n;
};

#endif
