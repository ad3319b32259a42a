/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket at which the profile plugins of this node's slurmstepds are heard: datagrams, see
 * unix(7). Who sent one the kernel tells; only root and slurmd's user are listened to. How many
 * wait is the kernel's to say (net.unix.max_dgram_qlen): a plugin never waits for room. */
#ifndef SONDE_SOURCE_PROFILE_SOCKET_H
#define SONDE_SOURCE_PROFILE_SOCKET_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct profile_socket;

/* What a file left behind by a process that has ended is removed for; one that somebody answers at
 * is -EADDRINUSE. -ENOENT: the directory is missing. */
int profile_socket_open(const char *path, uint32_t slurmd_uid, struct profile_socket **ret,
                        struct err *err);
struct profile_socket *profile_socket_close(struct profile_socket *socket); /* returns NULL */

int profile_socket_fd(const struct profile_socket *socket); /* readable: something waits */

/* The next datagram, valid until the next question. 1; 0: none waits; -EPERM: it is not from whom
 * is heard; -EMSGSIZE: it is longer than any that the plugin sends. */
int profile_socket_read(struct profile_socket *socket, struct str *ret);

#endif
