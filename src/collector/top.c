/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collector/top.h"

#include "base/arena.h"

#include <stdlib.h>

/* Then by name, so that those shown do not change while the amounts do not. */
static int larger_first(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
    int order = n ? memcmp(x->name.p, y->name.p, n) : 0;

    if (x->amount != y->amount)
        return x->amount < y->amount ? 1 : -1;
    return order ? order : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

void top_write(struct metric_writer *writer, struct top_row *rows, size_t n, size_t most)
{
    uint64_t other = 0;

    if (n > most)
        qsort(rows, n, sizeof(*rows), larger_first);
    for (size_t i = 0; i < n; i++) {
        if (i < most && (n <= most || !str_eq(rows[i].name, STR("other")))) {
            metric_u64(writer, &rows[i].name, rows[i].amount);
            continue;
        }
        other += rows[i].amount;
        writer->folded += !str_eq(rows[i].name, STR("other"));
    }
    if (n > most)
        metric_u64(writer, METRIC_VALUES(STR("other")), other);
}

void top_mark(const struct top_row *rows, size_t n, size_t most, bool *ret_is_top)
{
    struct top_row *sorted = heap_array(n, sizeof(*sorted));

    if (n > most) {
        memcpy(sorted, rows, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), larger_first);
    }
    for (size_t i = 0; i < n; i++)
        ret_is_top[i] = n <= most || larger_first(&rows[i], &sorted[most - 1]) <= 0;
    free(sorted);
}
