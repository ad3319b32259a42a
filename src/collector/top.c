/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the largest amounts and adds up the rest as "other". */
#include "collector/top.h"

#include "base/arena.h"

#include <stdlib.h>

int top_by_name(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int larger_first(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;

    if (x->amount != y->amount)
        return x->amount < y->amount ? 1 : -1;
    return top_by_name(x->name, y->name);
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

struct ordering {
    top_order *order;
    const void *ctx;
};

static int compare_things(const void *a, const void *b, void *ordering)
{
    const struct ordering *by = ordering;

    return by->order(by->ctx, *(const size_t *)a, *(const size_t *)b);
}

/* Never holds more than twice what is wanted: when that is full, the latter half goes, and what
 * comes after the last that stayed need not be taken in. */
void top_pick(size_t n, size_t most, top_order *order, const void *ctx, bool *ret_is_top)
{
    struct ordering by = { order, ctx };
    bool has_been_cut = false;
    size_t *kept, n_kept = 0;

    for (size_t i = 0; i < n; i++)
        ret_is_top[i] = n <= most;
    if (n <= most || !most)
        return;
    kept = heap_array(2 * most, sizeof(*kept));
    for (size_t i = 0; i < n; i++) {
        if (has_been_cut && order(ctx, kept[most - 1], i) < 0)
            continue;
        kept[n_kept++] = i;
        if (n_kept < 2 * most)
            continue;
        qsort_r(kept, n_kept, sizeof(*kept), compare_things, &by);
        n_kept = most;
        has_been_cut = true;
    }
    qsort_r(kept, n_kept, sizeof(*kept), compare_things, &by);
    for (size_t i = 0; i < most; i++)
        ret_is_top[kept[i]] = true;
    free(kept);
}

static int order_of_rows(const void *rows, size_t a, size_t b)
{
    const struct top_row *of = rows;

    return larger_first(&of[a], &of[b]);
}

void top_mark(const struct top_row *rows, size_t n, size_t most, bool *ret_is_top)
{
    top_pick(n, most, order_of_rows, rows, ret_is_top);
}
