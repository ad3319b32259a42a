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

#endif
