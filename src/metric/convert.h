/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the writer has written in one format, in the other. The samples are the same: only the lines
 * before each family differ, and the bounds of histograms. So the facts need not be kept for
 * whoever may come and want the other format. */
#ifndef SONDE_METRIC_CONVERT_H
#define SONDE_METRIC_CONVERT_H

#include "metric/writer.h"

/* Appends to `out`. `text` is the writer's, made from the same table of families and with the same
 * prefix, whole. */
void metric_convert(const struct family *families, size_t n_families, struct str prefix,
                    struct str text, enum metric_format from, enum metric_format to,
                    struct buf *out);

#endif
