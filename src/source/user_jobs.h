/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose jobs are which, from the restricted views that `sonde admin create-view` makes in
 * slurmdbd's database: user_job_view of the first cluster, CLUSTER_user_job_view of further ones.
 */
#ifndef SONDE_SOURCE_USER_JOBS_H
#define SONDE_SOURCE_USER_JOBS_H

#include "source/mariadb.h"

enum { USER_JOBS_MAX = 100000 };

/* Newest first, at most `most`. -ENOENT: no such view, with a sentence that says how to make it.
 * The array is the caller's: free(). */
int user_jobs_read(struct mariadb *mariadb, struct str cluster, struct str user, size_t most,
                   uint32_t **ret, size_t *ret_n, struct err *err);

#endif
