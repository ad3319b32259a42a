/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reservation, as scontrol show reservation tells it. */
#ifndef SONDE_MODEL_RESERVATION_H
#define SONDE_MODEL_RESERVATION_H

#include "model/job.h"

struct reservation {
    symbol name, nodes, users, accounts, partition, flags, tres;
    uint32_t node_count, core_count;
    bool is_active;
    int64_t start_time, end_time;
};

struct reservations {
    struct reservation *reservation;
    size_t n;
};

#endif
