/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up a job's processes by program name, for a bounded number of names. */
#include "agent/names.h"

#include "base/arena.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct name_past {
    uint64_t cpu_ns; /* of processes that have ended */
    bool was_living; /* some process had this name when it was last looked */
};

enum { FIRST_ROOM = 4 }; /* there are many jobs, and most have few names */

static const uint64_t of_no_account_ns = NS_PER_SEC;

void names_free(struct names *names)
{
    free(names->item);
    free(names->past);
    *names = (struct names){ 0 };
}

static void name_place(struct names *names, size_t i, const char *name)
{
    names->item[i] = (struct name_use){ 0 };
    names->past[i] = (struct name_past){ 0 };
    snprintf(names->item[i].name, sizeof(names->item[i].name), "%s", name);
}

static void make_room(struct names *names)
{
    if (names->n < names->room)
        return;
    names->room = names->room ? 2 * names->room : FIRST_ROOM;
    names->item = heap_resize(names->item, names->room, sizeof(*names->item));
    names->past = heap_resize(names->past, names->room, sizeof(*names->past));
}

void names_begin(struct names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        struct name_use *use = &names->item[i];

        names->past[i].was_living = use->processes > 0;
        use->processes = use->threads = use->resident_bytes = 0;
        use->cpu_ns = names->past[i].cpu_ns;
    }
}

uint8_t names_place(struct names *names, size_t most, const char *name)
{
    size_t i, unused = 0;

    if (most > UINT8_MAX)
        most = UINT8_MAX;
    if (!names->n) {
        make_room(names);
        name_place(names, names->n++, "other");
    }
    /* One that is really called so is among the others too. */
    if (strcmp(names->item[0].name, name) == 0)
        return 0;
    for (i = 1; i < names->n; i++) {
        if (strcmp(names->item[i].name, name) == 0)
            return (uint8_t)i;
        if (!names->item[i].processes && !names->past[i].was_living &&
            names->past[i].cpu_ns < of_no_account_ns)
            unused = i;
    }
    if (i <= most) {
        make_room(names);
        names->n++;
    } else if (unused) {
        names_end(names, 0, names->past[unused].cpu_ns);
        i = unused;
    } else {
        names->n_folded++;
        return 0;
    }
    name_place(names, i, name);
    return (uint8_t)i;
}

void names_add(struct names *names, uint8_t place, uint64_t threads, uint64_t resident_bytes,
               uint64_t cpu_ns)
{
    struct name_use *use = &names->item[place];

    use->processes++;
    use->threads += threads;
    use->resident_bytes += resident_bytes;
    use->cpu_ns += cpu_ns;
}

void names_end(struct names *names, uint8_t place, uint64_t cpu_ns)
{
    names->past[place].cpu_ns += cpu_ns;
    names->item[place].cpu_ns += cpu_ns;
}
