/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches of inotify(7), and what each of them is for. */
#ifndef SONDE_SOURCE_WATCHES_H
#define SONDE_SOURCE_WATCHES_H

#include <stddef.h>
#include <stdint.h>

struct watch;

struct watches {
    int fd; /* never blocks; -1: the kernel gives no more, and every watch is refused */
    struct watch *slot;
    size_t n, n_slots; /* a power of two */
};

void watches_open(struct watches *watches);
void watches_close(struct watches *watches);

/* Its number, or -errno: -ENOSPC when the user may have no more, -EEXIST when there is one. */
int watches_add(struct watches *watches, const char *path, uint32_t mask, void *owner);

void watches_remove(struct watches *watches, int number); /* -1 is none */
void watches_forget(struct watches *watches, int number); /* the kernel has removed it */

void *watches_owner(const struct watches *watches, int number); /* NULL: there is none */

#endif
