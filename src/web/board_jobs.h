/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue as a store remembers it, as sections of jobs. */
#ifndef SONDE_WEB_BOARD_JOBS_H
#define SONDE_WEB_BOARD_JOBS_H

#include "model/section.h"
#include "store/query.h"

/* Of each cluster, the jobs that have not ended, or not before `ended_since`: sections with nothing
 * but their time left to be set. What the queue no longer shows, and whose end nobody has told, is
 * not among them. After a failure there may be some. */
int board_jobs_read(struct store_reader *reader, const struct look_row *clusters, size_t n,
                    int64_t ended_since, int64_t now, struct section **ret, struct err *err);

#endif
