/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/section.h"

struct section *section_new(enum kind kind)
{
    struct section *section = heap_alloc(sizeof(*section));

    atomic_init(&section->refs, 1);
    section->kind = kind;
    symbols_init(&section->symbols, &section->arena);
    return section;
}

struct section *section_ref(struct section *section)
{
    atomic_fetch_add_explicit(&section->refs, 1, memory_order_relaxed);
    return section;
}

struct section *section_unref(struct section *section)
{
    if (section && atomic_fetch_sub_explicit(&section->refs, 1, memory_order_acq_rel) == 1) {
        symbols_free(&section->symbols);
        arena_clear(&section->arena);
        free(section);
    }
    return NULL;
}

const char *kind_name(enum kind kind)
{
    static const char *const names[KINDS] = {
        [KIND_JOBS] = "jobs",         [KIND_NODES] = "nodes", [KIND_RESERVATIONS] = "reservations",
        [KIND_LICENSES] = "licenses", [KIND_DIAG] = "diag",   [KIND_SHARES] = "shares",
    };

    return names[kind];
}
