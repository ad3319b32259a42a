/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads usage of the last day, week and month. */
#include "web/recent_usage.h"

enum { MOST_ROWS = 1 << 20 };

static const int64_t day_seconds = 86400;

const int recent_days[RECENT_PERIODS] = { 1, 7, 30 };

int64_t recent_from(int64_t now, int days)
{
    return now - days * day_seconds;
}

int recent_usage_ask(struct store_reader *reader, const struct job_filter *filter, int64_t now,
                     const enum usage_key *keys, size_t n_keys, struct arena *arena,
                     struct recent_usage *ret, struct err *err)
{
    struct usage_question question = { .filter = *filter, .now = now, .most = MOST_ROWS };
    struct usage_sum sums[RECENT_PERIODS + RECENT_GROUPS_MAX] = { 0 };
    int code;

    question.filter.from = recent_from(now, recent_days[RECENT_PERIODS - 1]);
    question.filter.to = now;
    for (size_t i = 0; i < RECENT_PERIODS; i++)
        sums[i].from = recent_from(now, recent_days[i]);
    for (size_t i = 0; i < n_keys; i++)
        sums[RECENT_PERIODS + i] = (struct usage_sum){ .keys = &keys[i], .n_keys = 1 };
    code = store_usage_sums(reader, &question, sums, RECENT_PERIODS + n_keys, arena, err);
    if (code < 0)
        return code;
    *ret = (struct recent_usage){ 0 };
    for (size_t i = 0; i < RECENT_PERIODS; i++)
        if (sums[i].n)
            ret->total[i] = sums[i].row[0];
    for (size_t i = 0; i < n_keys; i++)
        ret->by[i] = sums[RECENT_PERIODS + i];
    return 0;
}
