/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that jobs are added up by, numbered in the order in which they are met. A job's text may
 * name several ("a,b"); each distinct text of a section is cut up once, however many jobs have it.
 */
#ifndef SONDE_COLLECTOR_GROUPS_H
#define SONDE_COLLECTOR_GROUPS_H

#include "model/section.h"

enum { GROUPS_OF_A_TEXT = 1000 }; /* names that one text may hold; any more are passed over */

struct groups;
typedef void groups_cut(struct groups *groups, struct str text);

struct groups {
    const struct section *section;
    groups_cut *cut;  /* NULL: the text is the name */
    struct map names; /* group i is entries[i].key */

    /* the rest is its own */
    struct arena arena;
    uint32_t *list_of; /* by symbol: where in `lists` its groups stand, + 1; 0: not cut yet */
    uint32_t *lists;   /* how many groups, then they; list after list */
    size_t n_lists, lists_room;
    size_t list;         /* the one being made: where its length stands */
    uint32_t *last_list; /* by group: the one that it was last put in, + 1 */
    size_t last_list_room;
};

void groups_init(struct groups *groups, const struct section *section, groups_cut *cut);
void groups_free(struct groups *groups);

/* For a groups_cut: one of the names. What stands in a text twice counts once. */
void groups_put(struct groups *groups, struct str name);

groups_cut groups_cut_at_commas;

static inline struct str groups_name(const struct groups *groups, size_t group)
{
    return groups->names.entries[group].key;
}

struct group_list {
    const uint32_t *group;
    size_t n; /* at least 1: a text without names is of the group "" */
};

/* Valid until the next text is met. */
void groups_meet(struct groups *groups, symbol text);
static inline struct group_list groups_of(struct groups *groups, symbol text)
{
    const uint32_t *list;

    if (!groups->list_of[text])
        groups_meet(groups, text);
    list = groups->lists + groups->list_of[text] - 1;
    return (struct group_list){ list + 1, list[0] };
}

/* The first of them: all there is where nothing is cut. */
static inline uint32_t groups_first(struct groups *groups, symbol text)
{
    return groups_of(groups, text).group[0];
}

#endif
