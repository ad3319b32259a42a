/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the bytes of a Lustre target's samples, and frees them. */
#include "model/lustre_use.h"

/* Of the longest name of a family, those of four labels, the largest number, and what stands
 * between: not more than this. */
enum { SAMPLE_BYTES = 128 };

/* As a label's value: what is not UTF-8 becomes longer, and what needs a backslash. */
static size_t label_bytes(struct str s)
{
    size_t n = 0;

    while (s.n) {
        size_t length = str_utf8_len(s);

        n += length == 0 ? 3 : s.p[0] == '"' || s.p[0] == '\\' || s.p[0] == '\n' ? 2 : length;
        s = str_skip(s, length ? length : 1);
    }
    return n;
}

size_t lustre_sample_bytes(struct str target, struct str id)
{
    return SAMPLE_BYTES + label_bytes(target) + label_bytes(id);
}

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
