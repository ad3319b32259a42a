/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A licence, as scontrol show licenses tells it. */
#ifndef SONDE_MODEL_LICENSE_H
#define SONDE_MODEL_LICENSE_H

#include "model/job.h"

struct license {
    symbol name;
    bool is_remote;
    uint64_t total, used, free, reserved;
    uint64_t last_consumed, last_deficit; /* of a remote one, from Slurm 23.02 on */
};

struct licenses {
    struct license *license;
    size_t n;
};

#endif
