/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of what is known. What nobody tells is not 0 but absent. */
#ifndef SONDE_COLLECTOR_KNOWN_H
#define SONDE_COLLECTOR_KNOWN_H

#include "metric/writer.h"
#include "model/job.h"

static inline uint64_t known_u32(uint32_t value)
{
    return value == MODEL_UNKNOWN_U32 ? MODEL_UNKNOWN_U64 : value;
}

/* A sample of the family that has been begun; none for MODEL_UNKNOWN_U64, NAN, and time 0. */
void known_write(struct metric_writer *writer, const struct str *labels, uint64_t value);
void known_write_double(struct metric_writer *writer, const struct str *labels, double value);
void known_write_time(struct metric_writer *writer, const struct str *labels, int64_t seconds);

struct known_sum {
    uint64_t total;
    size_t n;     /* how many told their part */
    bool is_over; /* it is more than 64 bits hold: somebody tells nonsense */
};

void known_sum_add(struct known_sum *sum, uint64_t value); /* MODEL_UNKNOWN_U64: not told */

/* The sum of n_members; nothing if there are some but none told. divisor 0: as it is. */
void known_sum_write(struct metric_writer *writer, const struct known_sum *sum, size_t n_members,
                     double divisor, const struct str *labels);

#endif
