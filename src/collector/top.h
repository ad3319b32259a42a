/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The largest of many amounts by name, the rest added up as other: for names of which there is no
 * telling how many there are. Of gauges only; a counter keeps its series. */
#ifndef SONDE_COLLECTOR_TOP_H
#define SONDE_COLLECTOR_TOP_H

#include "metric/writer.h"

struct top_row {
    struct str name;
    uint64_t amount;
};

/* Samples of the family that has been begun, whose only label is the name. Sorts the rows if there
 * are more than `most`. */
void top_write(struct metric_writer *writer, struct top_row *rows, size_t n, size_t most);

/* Where that is not all: which of the rows are among the largest. */
void top_mark(const struct top_row *rows, size_t n, size_t most, bool *ret_is_top);

/* The same of things that have an order of their own, negative if a comes before b: which of n come
 * first. No two may be alike. Linear in n, unless they come from the last to the first. */
typedef int top_order(const void *ctx, size_t a, size_t b);
void top_pick(size_t n, size_t most, top_order *order, const void *ctx, bool *ret_is_top);

/* For those that are equally large, so that the ones shown do not change while the amounts do not.
 */
int top_by_name(struct str a, struct str b);

#endif
