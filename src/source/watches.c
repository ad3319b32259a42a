/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of inotify watches. */
#include "source/watches.h"

#include "base/arena.h"

#include <errno.h>
#include <sys/inotify.h>

enum { FIRST_SLOTS = 64 };

struct watch {
    int number; /* from 1 on; 0: a free slot */
    void *owner;
};

void watches_open(struct watches *watches)
{
    *watches = (struct watches){ .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC) };
}

void watches_close(struct watches *watches)
{
    if (watches->fd >= 0)
        close(watches->fd);
    free(watches->slot);
    *watches = (struct watches){ .fd = -1 };
}

/* The kernel counts numbers up, so that neighbours stay apart. */
static size_t home(const struct watches *watches, int number)
{
    return (size_t)number & (watches->n_slots - 1);
}

/* Where a watch is, or the free slot where it would be. */
static size_t find(const struct watches *watches, int number)
{
    size_t i = home(watches, number);

    while (watches->slot[i].number && watches->slot[i].number != number)
        i = (i + 1) & (watches->n_slots - 1);
    return i;
}

static void grow(struct watches *watches)
{
    struct watches larger = *watches;

    larger.n_slots = watches->n_slots ? 2 * watches->n_slots : FIRST_SLOTS;
    larger.slot = heap_alloc(larger.n_slots * sizeof(*larger.slot));
    for (size_t i = 0; i < watches->n_slots; i++)
        if (watches->slot[i].number)
            larger.slot[find(&larger, watches->slot[i].number)] = watches->slot[i];
    free(watches->slot);
    *watches = larger;
}

int watches_add(struct watches *watches, const char *path, uint32_t mask, void *owner)
{
    int number = watches->fd < 0 ? -1 : inotify_add_watch(watches->fd, path, mask | IN_MASK_CREATE);

    if (number < 0)
        return watches->fd < 0 ? -ENOSPC : -errno;
    if (2 * (watches->n + 1) > watches->n_slots)
        grow(watches);
    watches->slot[find(watches, number)] = (struct watch){ number, owner };
    watches->n++;
    return number;
}

/* Whether what lies at `from` may move to the free slot: its home is not between them. */
static bool may_move(const struct watches *watches, size_t from, size_t free_slot)
{
    size_t mask = watches->n_slots - 1;
    size_t way = (from - home(watches, watches->slot[from].number)) & mask;

    return way >= ((from - free_slot) & mask);
}

void watches_forget(struct watches *watches, int number)
{
    size_t free_slot, mask = watches->n_slots - 1;

    if (!watches_owner(watches, number))
        return;
    free_slot = find(watches, number);
    for (size_t i = (free_slot + 1) & mask; watches->slot[i].number; i = (i + 1) & mask) {
        if (!may_move(watches, i, free_slot))
            continue;
        watches->slot[free_slot] = watches->slot[i];
        free_slot = i;
    }
    watches->slot[free_slot] = (struct watch){ 0 };
    watches->n--;
}

void watches_remove(struct watches *watches, int number)
{
    if (number <= 0)
        return;
    /* Fails when the kernel has removed it already. */
    inotify_rm_watch(watches->fd, number);
    watches_forget(watches, number);
}

void *watches_owner(const struct watches *watches, int number)
{
    return number > 0 && watches->n ? watches->slot[find(watches, number)].owner : NULL;
}
