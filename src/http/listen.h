/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets to listen on: addresses as --web.listen-address has them, unix sockets, and those that
 * systemd hands over (sd_listen_fds(3) defines how). */
#ifndef SONDE_HTTP_LISTEN_H
#define SONDE_HTTP_LISTEN_H

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

struct listen_socket {
    int fd;
    char *place;       /* "127.0.0.1:9092", "[::1]:9092"; of a unix socket "unix:/path" */
    char *unix_path;   /* to be removed at the end, if we made it */
    dev_t unix_device; /* of the file that we made: another process may have put its own there */
    ino_t unix_inode;
};

/* -EINVAL for an address that is none, -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, … */
int listen_open(struct str address, struct listen_socket *ret, struct err *err);

/* The sockets that systemd passed to this process, in an array on the heap; none is no error. */
int listen_inherited(struct listen_socket **ret, size_t *ret_n, struct err *err);

/* A loopback address or a unix socket. */
bool listen_is_local(const struct listen_socket *socket);

/* Also when fd is -1 because somebody else has closed it. */
void listen_close(struct listen_socket *socket);

#endif
