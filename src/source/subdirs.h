/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directories in a directory: getdents(2), without the memory that readdir(3) takes. */
#ifndef SONDE_SOURCE_SUBDIRS_H
#define SONDE_SOURCE_SUBDIRS_H

/* Calls `visit` with the name of each directory in the open one, "." and ".." apart; symbolic links
 * are none. 0, or -errno when not all could be listed. */
int subdirs_each(int fd, void (*visit)(void *ctx, const char *name), void *ctx);

#endif
