/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands on a host that is reached by another command: "ssh -oBatchMode=yes cedar", "sudo -u x sh
 * -c". Its words are followed by one more, a command line for whatever shell is there (ssh(1), sh
 * -c).
 */
#ifndef SONDE_SOURCE_PREFIX_H
#define SONDE_SOURCE_PREFIX_H

#include "base/spawn.h"

/* -EINVAL with a sentence if it is not a command line. Empty: NULL in *ret. */
int prefix_parse(struct str prefix, char ***ret, struct err *err);

/* As spawn_run does it here, but there: spawn's argv is looked for in the other side's PATH, and
 * its env, which must not be NULL, is set there. `secret`, "NAME=value", goes where nobody can see
 * it among the arguments of a process; NULL: there is none. spawn's name, input and mark are not
 * looked at.
 * Where the prefix does not get as far as a shell, or its connection breaks, -EHOSTUNREACH and what
 * to do about it; -ENOENT if the command is not there. */
int prefix_run(char *const *prefix, const struct spawn *spawn, const char *secret,
               struct spawn_result *ret, struct err *err);

/* As whom commands run there. `cancelled` and `stuck` as for spawn_run. */
int prefix_user_id(char *const *prefix, int64_t deadline_ns, const atomic_bool *cancelled,
                   pid_t *stuck, uint32_t *ret, struct err *err);

#endif
