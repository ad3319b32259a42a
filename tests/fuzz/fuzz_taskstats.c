/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of taskstats: at most one record from each, of a thread that has a number. */
#include "base/arena.h"
#include "source/taskstats.h"

#include "fuzz.h"

enum { FAMILY = 21 };

static void check(void *ctx, const struct exit_record *record)
{
    size_t *n = ctx;

    FUZZ_CHECK(++*n == 1);
    FUZZ_CHECK(record->thread > 0 && record->process >= 0 && record->parent >= 0);
    FUZZ_CHECK(record->comm[USAGE_COMM - 1] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = 0;

    taskstats_parse((struct str){ (const char *)data, size }, FAMILY, check, &n);
    return 0;
}
