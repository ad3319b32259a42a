/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes samples of known values and omits unknown ones. */
#include "collector/known.h"

#include <math.h>

void known_write(struct metric_writer *writer, const struct str *labels, uint64_t value)
{
    if (value != MODEL_UNKNOWN_U64)
        metric_u64(writer, labels, value);
}

void known_write_double(struct metric_writer *writer, const struct str *labels, double value)
{
    if (!isnan(value))
        metric_double(writer, labels, value);
}

void known_write_time(struct metric_writer *writer, const struct str *labels, int64_t seconds)
{
    if (seconds > 0)
        metric_u64(writer, labels, (uint64_t)seconds);
}

void known_sum_add(struct known_sum *sum, uint64_t value)
{
    if (value == MODEL_UNKNOWN_U64)
        return;
    sum->n++;
    sum->is_over |= __builtin_add_overflow(sum->total, value, &sum->total);
}

void known_sum_write(struct metric_writer *writer, const struct known_sum *sum, size_t n_members,
                     double divisor, const struct str *labels)
{
    if (sum->is_over || (n_members && !sum->n))
        return;
    if (divisor > 0)
        metric_double(writer, labels, (double)sum->total / divisor);
    else
        metric_u64(writer, labels, sum->total);
}
