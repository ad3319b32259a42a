/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody's runs held of the last day, week and month: the same for their page and for the
 * API, and one look at the store for all of it. */
#ifndef SONDE_WEB_RECENT_USAGE_H
#define SONDE_WEB_RECENT_USAGE_H

#include "store/query.h"

enum { RECENT_PERIODS = 3, RECENT_GROUPS_MAX = 2 };
extern const int recent_days[RECENT_PERIODS]; /* the longest last */

struct recent_usage {
    struct usage_row total[RECENT_PERIODS];
    struct usage_sum by[RECENT_GROUPS_MAX]; /* of the longest, by each of the keys */
};

/* When a period of so many days begins. */
int64_t recent_from(int64_t now, int days);

/* The filter is without a time; `keys` are at most RECENT_GROUPS_MAX. As store_usage. */
int recent_usage_ask(struct store_reader *reader, const struct job_filter *filter, int64_t now,
                     const enum usage_key *keys, size_t n_keys, struct arena *arena,
                     struct recent_usage *ret, struct err *err);

#endif
