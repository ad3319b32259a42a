/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Those of many that stand out. */
#ifndef SONDE_REPORT_CHOOSE_H
#define SONDE_REPORT_CHOOSE_H

#include "base/arena.h"

/* Which of n values are the lowest, or the highest: their places, the most extreme first, of equal
 * ones in their order; NAN is never one. Returns how many, at most `most`. */
size_t choose_lowest(struct arena *arena, const double *value, size_t n, size_t most,
                     size_t **ret_places);
size_t choose_highest(struct arena *arena, const double *value, size_t n, size_t most,
                      size_t **ret_places);

#endif
