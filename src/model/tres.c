/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TRES strings as slurmdb_make_tres_string() and GRES strings as gres_node_state and slurm.conf(5)
 * write them, in the spellings of Slurm 20.11 to 26.05. */
#include "model/tres.h"

#include "base/num.h"
#include "model/units.h"

/* NO_VAL64 and INFINITE64: Slurm's ways to say that there is no number. */
static bool is_no_number(uint64_t value)
{
    return value >= UINT64_MAX - 1;
}

/* Slurm's ids are those of tres_table; from 1001 on they differ from site to site. */
static const struct {
    struct str id, name;
    size_t offset;
    bool is_memory;
} members[] = {
    { STR_INIT("1"), STR_INIT("cpu"), offsetof(struct tres, cpus), false },
    { STR_INIT("2"), STR_INIT("mem"), offsetof(struct tres, memory_bytes), true },
    { STR_INIT("4"), STR_INIT("node"), offsetof(struct tres, nodes), false },
    { STR_INIT("5"), STR_INIT("billing"), offsetof(struct tres, billing), false },
};

static uint64_t *find_member(struct tres *tres, struct str name, bool *ret_is_memory)
{
    *ret_is_memory = false;
    if (str_eq(name, STR("gres/gpu")))
        return &tres->gpus;
    for (size_t i = 0; i < COUNT(members); i++) {
        if (str_eq(name, members[i].name) || str_eq(name, members[i].id)) {
            *ret_is_memory = members[i].is_memory;
            return (uint64_t *)(void *)((char *)tres + members[i].offset);
        }
    }
    return NULL;
}

static bool read_value(struct str text, bool is_memory, uint64_t *ret)
{
    char per;

    if (is_memory) /* a bare number counts MiB */
        return units_memory(text, UINT64_C(1) << 20, ret, &per) && !per;
    return units_count(text, ret);
}

static bool add_member(struct tres *tres, uint64_t *typed_gpus, struct str member)
{
    struct str value = member, name = str_cut(&value, '=');
    bool is_memory;
    uint64_t *place = find_member(tres, name, &is_memory);
    uint64_t number;

    if (!name.n || !read_value(value, is_memory, &number))
        return false;
    if (is_no_number(number))
        return true;
    if (place)
        *place = number;
    else if (str_starts(name, STR("gres/gpu:")))
        return !__builtin_add_overflow(*typed_gpus == TRES_UNKNOWN ? 0 : *typed_gpus, number,
                                       typed_gpus);
    return true;
}

bool tres_parse(struct str text, struct tres *ret)
{
    struct tres tres = { TRES_UNKNOWN, TRES_UNKNOWN, TRES_UNKNOWN, TRES_UNKNOWN, TRES_UNKNOWN };
    uint64_t typed_gpus = TRES_UNKNOWN;
    bool is_whole = true;

    if (!units_absent(text))
        for (struct str rest = text; rest.p;)
            is_whole &= add_member(&tres, &typed_gpus, str_cut(&rest, ','));
    if (tres.gpus == TRES_UNKNOWN)
        tres.gpus = typed_gpus;
    *ret = tres;
    return is_whole;
}

/* What stands before the next comma that is not inside parentheses. */
static struct str cut_entry(struct str *rest)
{
    size_t depth = 0, i;
    struct str entry;

    for (i = 0; i < rest->n; i++) {
        if (rest->p[i] == '(')
            depth++;
        else if (rest->p[i] == ')' && depth)
            depth--;
        else if (rest->p[i] == ',' && !depth)
            break;
    }
    entry = str_head(*rest, i);
    *rest = i < rest->n ? str_skip(*rest, i + 1) : (struct str){ NULL, 0 };
    return entry;
}

/* As gres.conf and slurm.conf allow: a whole number, and perhaps one letter of either case. False
 * if it is something else; *ret_fits tells whether 64 bits can hold it. */
static bool read_gres_count(struct str text, uint64_t *ret, bool *ret_fits)
{
    static const char letters[] = "kmgtp";
    const char *letter = NULL;
    uint64_t factor = 1;

    if (text.n > 1)
        letter = memchr(letters, text.p[text.n - 1] | 0x20, sizeof(letters) - 1);
    if (letter) {
        factor = UINT64_C(1024) << 10 * (letter - letters);
        text.n--;
    }
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    *ret_fits = num_get_u64(text, ret) && !__builtin_mul_overflow(*ret, factor, ret);
    return true;
}

/* Cuts the notes "(S:0-1)", "(IDX:0-3)", "(CNT:2)", "(0/4,1/4)" off the end of *entry. */
static bool take_notes(struct str *entry, struct gres_item *item)
{
    while (str_ends(*entry, STR(")")) && !str_ends(*entry, STR(":(null)"))) {
        size_t open = entry->n - 1;
        struct str note;

        while (open && entry->p[open] != '(')
            open--;
        if (entry->p[open] != '(')
            return false;
        note = str_span(entry->p + open + 1, entry->p + entry->n - 1);
        entry->n = open;
        if (str_starts(note, STR("IDX:")) && !units_absent(str_skip(note, 4)))
            item->indexes = str_skip(note, 4);
        if (str_starts(note, STR("CNT:")) && !num_get_u64(str_skip(note, 4), &item->count))
            return false;
    }
    return true;
}

/* One ":" separated part after the name: a word, the type, or, standing last, the count. */
static bool add_part(struct gres_item *item, struct str part, bool is_last)
{
    bool fits;

    if (str_eq(part, STR("no_consume")) || str_eq(part, STR("one_sharing")) || units_absent(part))
        return part.n;
    if (is_last && read_gres_count(part, &item->count, &fits))
        return fits;
    if (item->type.n || str_find(part, '(') < part.n || str_find(part, ')') < part.n)
        return false;
    item->type = part;
    return true;
}

static bool read_gres(struct str entry, struct gres_item *ret)
{
    struct gres_item item = { .type = STR(""), .indexes = STR(""), .count = TRES_UNKNOWN };
    struct str rest;

    if (!take_notes(&entry, &item))
        return false;
    rest = entry;
    item.name = str_cut(&rest, ':');
    if (!item.name.n || str_find(item.name, '(') < item.name.n)
        return false;
    while (rest.p) {
        struct str part = str_cut(&rest, ':');

        if (!add_part(&item, part, !rest.p))
            return false;
    }
    if (item.count == TRES_UNKNOWN && item.indexes.n &&
        !units_array_tasks(item.indexes, &item.count))
        return false;
    if (item.count == TRES_UNKNOWN) /* "gpu" and "gpu:a100" ask for one */
        item.count = 1;
    *ret = item;
    return true;
}

static bool read_tres_gres(struct str entry, size_t equals, struct gres_item *ret)
{
    struct gres_item item = { .indexes = STR("") };

    item.type = str_head(entry, equals);
    item.name = str_cut(&item.type, ':');
    if (!item.type.p)
        item.type = STR("");
    if (!item.name.n || !units_count(str_skip(entry, equals + 1), &item.count) ||
        is_no_number(item.count))
        return false;
    *ret = item;
    return true;
}

bool gres_next(struct str *rest, struct gres_item *ret, bool *ret_bad)
{
    while (rest->p) {
        struct str entry = cut_entry(rest);
        bool has_prefix = str_starts(entry, STR("gres/")) || str_starts(entry, STR("gres:"));
        size_t equals = str_find(entry, '=');

        if (units_absent(entry) || (equals < entry.n && !has_prefix))
            continue;
        if (has_prefix) {
            entry = str_skip(entry, 5);
            equals = str_find(entry, '=');
        }
        if (equals < entry.n ? read_tres_gres(entry, equals, ret) : read_gres(entry, ret))
            return true;
        if (ret_bad)
            *ret_bad = true;
    }
    return false;
}
