/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/lustre_use.h"

struct lustre_use *lustre_use_unref(struct lustre_use *use)
{
    if (!use || atomic_fetch_sub(&use->refs, 1) > 1)
        return NULL;
    free(use->id);
    free(use->operation);
    symbols_free(&use->symbols);
    arena_clear(&use->arena);
    free(use);
    return NULL;
}
