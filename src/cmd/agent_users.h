/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Users that the agent's settings name: the file of those not to look at, the one slurmd runs as.
 */
#ifndef SONDE_CMD_AGENT_USERS_H
#define SONDE_CMD_AGENT_USERS_H

#include "base/arena.h"
#include "base/err.h"

#include <stdint.h>

/* users_find, or a test's own. */
typedef int user_finder(const char *name, uint32_t *ret);

struct blacklist {
    uint32_t *uids; /* in order, each once */
    size_t n;
    size_t n_unknown;        /* names that nobody has; the directory may be away */
    char first_unknown[100]; /* one of them */
};

/* A file of jobs_exporter's: a uid or a name on each line; what follows # is a comment. -EINVAL
 * with a sentence that names the line for one that is neither, and for a file that cannot be read.
 */
int blacklist_read(const char *path, user_finder *find, struct arena *arena, struct blacklist *ret,
                   struct err *err);

#endif
