/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing list of process ids. A zeroed one is empty; who made it frees `pid`. */
#ifndef SONDE_SOURCE_PID_LIST_H
#define SONDE_SOURCE_PID_LIST_H

#include "base/arena.h"

#include <sys/types.h>

struct pid_list {
    pid_t *pid;
    size_t n, room;
};

static inline void pid_list_add(struct pid_list *list, pid_t pid)
{
    list->pid = heap_grow(list->pid, list->n, &list->room, sizeof(*list->pid));
    list->pid[list->n++] = pid;
}

/* Adds the ids that stand in a file, whatever its length, between spaces or newlines; what is no id
 * is passed over. 0, -EFBIG when the list has `max` and there are more, or -errno. */
int pid_list_read(struct pid_list *list, int fd, size_t max);

#endif
