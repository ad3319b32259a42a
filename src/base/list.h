/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A list in which any member can leave at once. A link is part of the thing that is listed, and may
 * be moved to another list, but is in one at a time. */
#ifndef SONDE_BASE_LIST_H
#define SONDE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *prev, *next; /* NULL: in no list */
};

/* A ring through the list itself. */
struct list {
    struct link ring;
};

/* The thing of which this is a part. */
#define PART_OF(part, type, member) ((type *)(void *)((char *)(part)-offsetof(type, member)))

static inline void list_init(struct list *list)
{
    list->ring = (struct link){ &list->ring, &list->ring };
}

/* The first, or NULL; and the one after it. */
static inline struct link *list_first(const struct list *list)
{
    return list->ring.next == &list->ring ? NULL : list->ring.next;
}

static inline struct link *list_next(const struct list *list, const struct link *link)
{
    return link->next == &list->ring ? NULL : link->next;
}

/* Leaves the list that it is in, if any. */
static inline void list_remove(struct link *link)
{
    if (!link->next)
        return;
    link->prev->next = link->next;
    link->next->prev = link->prev;
    *link = (struct link){ 0 };
}

/* Moves it from wherever it is to the end of this one. */
static inline void list_append(struct list *list, struct link *link)
{
    list_remove(link);
    *link = (struct link){ list->ring.prev, &list->ring };
    link->prev->next = link;
    list->ring.prev = link;
}

/* The same to its beginning. */
static inline void list_prepend(struct list *list, struct link *link)
{
    list_remove(link);
    *link = (struct link){ &list->ring, list->ring.next };
    link->next->prev = link;
    list->ring.next = link;
}

#endif
