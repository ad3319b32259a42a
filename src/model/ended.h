/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many jobs have ended since the store was begun, as the store has counted them. */
#ifndef SONDE_MODEL_ENDED_H
#define SONDE_MODEL_ENDED_H

#include "model/symbols.h"

struct ended_jobs {
    symbol state, partition, account;
    uint64_t count;
};

struct ended {
    struct ended_jobs *row;
    size_t n;
};

#endif
