/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of allocations: what is read of any bytes keeps within docs/allocations.md, and no
 * arithmetic on it gives what cannot be; a refusal names the file. */
#include "source/allocation_file.h"

#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_within(double value, double most)
{
    return isnan(value) || (value >= 0 && value <= most);
}

static void check_name(struct str name)
{
    FUZZ_CHECK(name.n >= 1 && name.n <= 255);
    FUZZ_CHECK(!memchr(name.p, '\0', name.n));
}

static void check_entry(const struct allocation_entry *entry)
{
    check_name(entry->cluster);
    check_name(entry->account);
    FUZZ_CHECK(is_within(entry->gpu_years, 1e8) && is_within(entry->cpu_years, 1e8));
    FUZZ_CHECK(is_within(entry->storage_bytes, 1e21) && is_within(entry->students, 1e6));
    FUZZ_CHECK(!isnan(entry->gpu_years) || !isnan(entry->cpu_years) ||
               !isnan(entry->storage_bytes) || !isnan(entry->students));
    FUZZ_CHECK(!entry->from == !entry->to && (!entry->from || entry->from < entry->to));
    FUZZ_CHECK(entry->from % (24 * 3600) == 0 && entry->to % (24 * 3600) == 0);
    FUZZ_CHECK(entry->n_includes <= 1000 && entry->line >= 1);
    for (size_t i = 0; i < entry->n_includes; i++) {
        check_name(entry->includes[i]);
        FUZZ_CHECK(!str_eq(entry->includes[i], entry->account));
    }
}

static void check_numbers(const struct allocation_entry *entry, double used, double rate)
{
    struct allocation of = allocation_entry_promise(entry);

    for (enum allocation_of what = 0; what < ALLOCATION_KINDS; what++) {
        int64_t now = entry->from + (entry->to - entry->from) / 3;
        double steady = allocation_steady(&of, what), empty_at;

        of.used[what] = used;
        of.rate[what] = rate;
        empty_at = allocation_empty_at(&of, what, now);
        FUZZ_CHECK(isnan(of.seconds[what]) ? isnan(steady) : isfinite(steady) && steady >= 0);
        FUZZ_CHECK(isnan(empty_at) ||
                   (empty_at >= (double)entry->from && empty_at < (double)entry->to));
        FUZZ_CHECK(isnan(empty_at) || allocation_left(&of, what) > 0 || empty_at <= (double)now);
    }
}

static void check_list(const struct allocation_list *list)
{
    FUZZ_CHECK(list->n <= 10000);
    for (size_t i = 0; i < list->n; i++) {
        const struct allocation_entry *entry = &list->entry[i], *last = i ? entry - 1 : NULL;

        check_entry(entry);
        check_numbers(entry, 0, 1);
        check_numbers(entry, 1e12, 0.001);
        check_numbers(entry, 3e7, 0);
        if (last && str_eq(last->account, entry->account) && str_eq(last->cluster, entry->cluster))
            FUZZ_CHECK(last->to && last->to <= entry->from);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct allocation_list list = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char path[64];
    int fd, code;

    if (size > 1 << 20)
        return 0;
    fd = memfd_create("allocations", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    code = allocation_file_read(path, &arena, &list, &err);
    close(fd);
    if (code < 0) {
        FUZZ_CHECK(code == -EINVAL, "%d", code);
        FUZZ_CHECK(err.code == -code && !list.n);
        FUZZ_CHECK(str_starts(str_of(err.text), str_of(path)), "%s", err.text);
    } else {
        check_list(&list);
    }
    arena_clear(&arena);
    return 0;
}
