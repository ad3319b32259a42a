/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rounds the numbers of a fair share to what sshare prints. */
#include "model/share.h"

#include "base/num.h"

#include <math.h>

static double rounded(double value)
{
    char text[400]; /* the largest double has 309 digits */
    double nearest = value;

    if (!isfinite(value))
        return value;
    snprintf(text, sizeof(text), "%.6f", value);
    num_get_double(str_of(text), &nearest);
    return nearest;
}

void share_round(struct share *share)
{
    double *const numbers[] = { &share->normalised_shares, &share->normalised_usage,
                                &share->effective_usage, &share->factor, &share->level };

    for (size_t i = 0; i < COUNT(numbers); i++)
        *numbers[i] = rounded(*numbers[i]);
}
