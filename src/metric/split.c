/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits rendered metrics into families. */
#include "metric/split.h"

#include "base/arena.h"

enum { WORTH_DEFLATING = 512 }; /* bytes; setting zlib up costs more than a shorter text saves */

static struct segment *segment_of(struct str text)
{
    struct segment *segment;
    struct buf copy;

    buf_init(&copy, text.n);
    buf_put(&copy, text);
    segment = text.n < WORTH_DEFLATING ? segment_new_stored(&copy) : segment_new(&copy);
    buf_free(&copy);
    return segment;
}

/* The name in "# HELP NAME …", which OpenMetrics has without _total. */
static bool is_header_of(struct str header, const struct family *family, struct str prefix)
{
    struct str name, full = str_of(family->name);

    str_cut(&header, ' ');
    str_cut(&header, ' ');
    name = str_cut(&header, ' ');
    if (prefix.n && !str_eq(name, full) && str_starts(name, prefix))
        name = str_skip(name, prefix.n);
    return str_eq(name, full) ||
           (str_ends(full, STR("_total")) && str_eq(name, str_head(full, full.n - 6)));
}

/* Cuts off the lines that begin with a hash, or those that do not: no sample does. */
static struct str cut_lines(struct str *rest, bool are_comments)
{
    const char *begin = rest->p;

    while (rest->n && (rest->p[0] == '#') == are_comments)
        *rest = str_skip(*rest, str_find(*rest, '\n') + 1);
    return str_span(begin, rest->p);
}

struct split *split_new(const struct family *families, size_t n_families, struct str prefix,
                        struct str text)
{
    struct split *split = heap_alloc(sizeof(*split) + n_families * sizeof(split->family[0]));

    atomic_init(&split->refs, 1);
    split->n = n_families;
    for (struct str rest = text; rest.n;) {
        struct str header = cut_lines(&rest, true), samples = cut_lines(&rest, false);
        size_t i = 0;

        while (i < n_families &&
               (split->family[i].header || !is_header_of(header, &families[i], prefix)))
            i++;
        if (i < n_families)
            split->family[i] = (struct split_family){ segment_of(header), segment_of(samples) };
    }
    return split;
}

struct split *split_ref(struct split *split)
{
    atomic_fetch_add_explicit(&split->refs, 1, memory_order_relaxed);
    return split;
}

struct split *split_unref(struct split *split)
{
    if (split && atomic_fetch_sub_explicit(&split->refs, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < split->n; i++) {
            segment_unref(split->family[i].header);
            segment_unref(split->family[i].samples);
        }
        free(split);
    }
    return NULL;
}

void split_join(const struct split *split, struct buf *to)
{
    for (size_t i = 0; i < split->n; i++) {
        if (!split->family[i].header)
            continue;
        buf_put(to, buf_str(&split->family[i].header->text));
        buf_put(to, buf_str(&split->family[i].samples->text));
    }
}

/* One family of all of them. */
static size_t weave_family(struct split *const *splits, size_t n_splits, size_t family,
                           struct segment **to)
{
    size_t n = 0;

    for (size_t i = 0; i < n_splits; i++) {
        const struct split_family *of = splits[i] ? &splits[i]->family[family] : NULL;

        if (!of || !of->header)
            continue;
        if (n == 0)
            to[n++] = segment_ref(of->header);
        to[n++] = segment_ref(of->samples);
    }
    return n;
}

size_t split_weave(struct split *const *splits, size_t n_splits, struct segment **to)
{
    size_t n_families = 0, n = 0;

    for (size_t i = 0; i < n_splits; i++)
        if (splits[i])
            n_families = splits[i]->n;
    for (size_t family = 0; family < n_families; family++)
        n += weave_family(splits, n_splits, family, to + n);
    return n;
}
