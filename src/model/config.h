/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the cluster's configuration says of itself, and what it hides from us: slurm.conf(5),
 * PrivateData. */
#ifndef SONDE_MODEL_CONFIG_H
#define SONDE_MODEL_CONFIG_H

#include "model/job.h"

/* What PrivateData can hide from somebody who is neither operator nor administrator. Its word
 * "cloud" hides nothing: it shows nodes that are powered down. */
enum private_data {
    PRIVATE_ACCOUNTS,
    PRIVATE_EVENTS,
    PRIVATE_JOBS,
    PRIVATE_NODES,
    PRIVATE_PARTITIONS,
    PRIVATE_RESERVATIONS,
    PRIVATE_USAGE,
    PRIVATE_USERS,
    PRIVATE_DATA,
};

struct config {
    symbol cluster, version;
    uint32_t user_id; /* as whom we ask Slurm */
    symbol user;      /* his name; told only where it decides what is hidden */
    unsigned hidden;  /* 1 << private_data of what is hidden from him */
    unsigned private; /* … of all that slurm.conf names, whoever asks; 0 where a door does not tell
                       */
};

extern const struct str private_data_words[PRIVATE_DATA];

#endif
