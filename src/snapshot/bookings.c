/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds the reservation of each node to sections of nodes. */
#include "snapshot/bookings.h"

#include "model/hostlist.h"

enum { HOSTS_MAX = 200000 };

struct bookings {
    struct arena arena;
    struct map nodes; /* name to that of the reservation that is active on it, a struct str */
    uint64_t hash;    /* of all of it */
};

struct bookings *bookings_new(void)
{
    struct bookings *bookings = heap_alloc(sizeof(*bookings));

    map_init(&bookings->nodes, &bookings->arena);
    return bookings;
}

static void forget(struct bookings *bookings)
{
    map_free(&bookings->nodes);
    arena_clear(&bookings->arena);
    map_init(&bookings->nodes, &bookings->arena);
}

struct bookings *bookings_free(struct bookings *bookings)
{
    if (bookings) {
        forget(bookings);
        free(bookings);
    }
    return NULL;
}

/* Of several on one node the first is told. */
static void book(struct bookings *bookings, struct str name, struct str nodes)
{
    struct arena scratch = { 0 };
    struct hostlist hosts;
    struct str *value = ARENA_NEW(&bookings->arena, struct str);

    *value = arena_str(&bookings->arena, name);
    if (hostlist_expand(nodes, &scratch, HOSTS_MAX, &hosts, NULL) == 0) {
        for (size_t i = 0; i < hosts.n; i++) {
            void **place = map_put(&bookings->nodes, hosts.hosts[i]);

            if (!*place)
                *place = value;
        }
    }
    arena_clear(&scratch);
}

static bool note_reservations(struct bookings *bookings, const struct section *section)
{
    uint64_t before = bookings->hash;

    forget(bookings);
    bookings->hash = 0;
    for (size_t i = 0; i < section->reservations.n; i++) {
        const struct reservation *reservation = &section->reservations.reservation[i];
        struct str name = section_text(section, reservation->name);
        struct str nodes = section_text(section, reservation->nodes);

        if (!reservation->is_active)
            continue;
        book(bookings, name, nodes);
        bookings->hash = bookings->hash * 31 + map_hash(name) * 7 + map_hash(nodes);
    }
    return bookings->hash != before;
}

/* A section that says an earlier one again shares its nodes, which others are reading. */
static void own_nodes(struct section *section)
{
    struct node *nodes = ARENA_ARRAY(&section->arena, struct node, section->nodes.n);

    memcpy(nodes, section->nodes.node, section->nodes.n * sizeof(*nodes));
    section->nodes.node = nodes;
}

static void fill_in(const struct bookings *bookings, struct section *section)
{
    bool is_own = !section->same_as;

    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];
        bool is_untold = !node->reservation && node->state.flags & NODE_RESERVED;
        void **place =
            is_untold ? map_get(&bookings->nodes, section_text(section, node->name)) : NULL;

        if (!place)
            continue;
        if (!is_own)
            own_nodes(section);
        is_own = true;
        section->nodes.node[i].reservation =
            symbols_put(&section->symbols, *(const struct str *)*place);
    }
}

bool bookings_note(struct bookings *bookings, struct section *section)
{
    if (section->kind == KIND_RESERVATIONS)
        return note_reservations(bookings, section);
    if (section->kind == KIND_NODES && bookings->nodes.n)
        fill_in(bookings, section);
    return false;
}
