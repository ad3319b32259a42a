/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/allocations.md defines the file. */
#include "source/allocation_file.h"

#include "base/num.h"
#include "base/quote.h"
#include "base/yaml.h"
#include "model/units.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST_ENTRIES = 10000, MOST_INCLUDES = 1000, LONGEST_NAME = 255 };

struct reader {
    const char *path;
    struct arena *arena;
    struct err *err;
    struct allocation_entry *entry; /* on the heap until all are there */
    size_t n, room;
};

static bool is_decimal(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!memchr("0123456789.eE+-", text.p[i], 15))
            return false;
    return true;
}

static bool get_amount(struct str text, double *ret)
{
    return is_decimal(text) && num_get_double(text, ret) && isfinite(*ret) && *ret >= 0;
}

struct key {
    struct str name;
    int (*read)(struct reader *reader, const struct key *key, const struct yaml_node *node,
                struct allocation_entry *entry);
    size_t offset; /* of the member that it sets */
    double most;
};

static void *member_of(struct allocation_entry *entry, const struct key *key)
{
    return (char *)entry + key->offset;
}

static int read_years(struct reader *reader, const struct key *key, const struct yaml_node *node,
                      struct allocation_entry *entry)
{
    double *years = member_of(entry, key);

    if (!get_amount(node->text, years) || *years > key->most)
        return yaml_refuse(node, reader->path, reader->err,
                           "%s is a number from 0 to %.0f, like 12.5: \"%s\" is not", key->name.p,
                           key->most, quote(node->text).text);
    return 0;
}

static int read_count(struct reader *reader, const struct key *key, const struct yaml_node *node,
                      struct allocation_entry *entry)
{
    uint64_t count;

    if (!num_get_u64(node->text, &count) || (double)count > key->most)
        return yaml_refuse(node, reader->path, reader->err,
                           "%s is a whole number from 0 to %.0f: \"%s\" is not", key->name.p,
                           key->most, quote(node->text).text);
    *(double *)member_of(entry, key) = (double)count;
    return 0;
}

static const struct {
    struct str unit;
    double bytes;
} units[] = {
    { STR_INIT(""), 1 },         { STR_INIT("B"), 1 },        { STR_INIT("kB"), 1e3 },
    { STR_INIT("MB"), 1e6 },     { STR_INIT("GB"), 1e9 },     { STR_INIT("TB"), 1e12 },
    { STR_INIT("PB"), 1e15 },    { STR_INIT("EB"), 1e18 },    { STR_INIT("KiB"), 0x1p10 },
    { STR_INIT("MiB"), 0x1p20 }, { STR_INIT("GiB"), 0x1p30 }, { STR_INIT("TiB"), 0x1p40 },
    { STR_INIT("PiB"), 0x1p50 }, { STR_INIT("EiB"), 0x1p60 },
};

/* "10TB", "1.5 TiB", "4096". A bare T is neither: Slurm's is binary, a disk's decimal. */
static bool get_bytes(struct str text, double *ret)
{
    size_t digits = 0;
    struct str unit;
    double amount;

    while (digits < text.n && memchr("0123456789.", text.p[digits], 11))
        digits++;
    unit = str_trim(str_skip(text, digits));
    if (!get_amount(str_head(text, digits), &amount))
        return false;
    for (size_t i = 0; i < COUNT(units); i++) {
        if (str_eq_nocase(unit, units[i].unit)) {
            *ret = amount * units[i].bytes;
            return true;
        }
    }
    return false;
}

static int read_bytes(struct reader *reader, const struct key *key, const struct yaml_node *node,
                      struct allocation_entry *entry)
{
    double *bytes = member_of(entry, key);

    if (!get_bytes(node->text, bytes) || *bytes > key->most)
        return yaml_refuse(
            node, reader->path, reader->err,
            "%s is at most 1000 EB, written as bytes, as 10TB (powers of 1000) or as "
            "10TiB (of 1024): \"%s\" is not",
            key->name.p, quote(node->text).text);
    return 0;
}

/* From 2000 on: Slurm is younger than that. */
static bool get_day(struct str text, int64_t *ret)
{
    static const int64_t start_of_2000 = 946684800;
    char midnight[sizeof("YYYY-MM-DDT00:00:00")];

    if (text.n != STR("YYYY-MM-DD").n)
        return false;
    snprintf(midnight, sizeof(midnight), "%.*sT00:00:00", STR_ARG(text));
    return units_timestamp(str_of(midnight), ret) && *ret >= start_of_2000;
}

static int read_day(struct reader *reader, const struct key *key, const struct yaml_node *node,
                    struct allocation_entry *entry)
{
    if (!get_day(node->text, member_of(entry, key)))
        return yaml_refuse(node, reader->path, reader->err,
                           "%s is a day from 2000-01-01 on, as YYYY-MM-DD: \"%s\" is not",
                           key->name.p, quote(node->text).text);
    return 0;
}

static int check_name(struct reader *reader, const struct yaml_node *node, const char *of,
                      struct str name)
{
    if (!name.n || name.n > LONGEST_NAME)
        return yaml_refuse(node, reader->path, reader->err,
                           "the name of %s has 1 to %d bytes: \"%s\" has %zu", of, LONGEST_NAME,
                           quote(name).text, name.n);
    return 0;
}

static bool is_included(const struct allocation_entry *entry, const struct map *names,
                        struct str name)
{
    return str_eq(name, entry->account) || map_get(names, name);
}

static int read_included(struct reader *reader, const struct yaml_node *list, struct map *names,
                         const struct allocation_entry *entry)
{
    for (const struct yaml_node *node = list->child; node; node = node->next) {
        if (node->kind != YAML_SCALAR)
            return yaml_refuse(node, reader->path, reader->err,
                               "includes is a list of accounts, like [a, b]");
        if (check_name(reader, node, "an account", node->text) < 0)
            return -EINVAL;
        if (is_included(entry, names, node->text))
            return yaml_refuse(node, reader->path, reader->err,
                               "account %s is already counted here; remove it",
                               quote(node->text).text);
        if (names->n == MOST_INCLUDES)
            return yaml_refuse(node, reader->path, reader->err,
                               "more than %d accounts are included", MOST_INCLUDES);
        map_put(names, node->text);
    }
    return 0;
}

static int read_includes(struct reader *reader, const struct key *key, const struct yaml_node *node,
                         struct allocation_entry *entry)
{
    struct str *includes;
    struct map names;
    int code;

    if (node->kind != YAML_LIST)
        return yaml_refuse(node, reader->path, reader->err, "%s is a list of accounts, like [a, b]",
                           key->name.p);
    map_init(&names, reader->arena);
    code = read_included(reader, node, &names, entry);
    includes = ARENA_ARRAY(reader->arena, struct str, names.n + 1);
    for (size_t i = 0; i < names.n; i++)
        includes[i] = names.entries[i].key;
    entry->includes = includes;
    entry->n_includes = names.n;
    map_free(&names);
    return code;
}

#define SETS(member) offsetof(struct allocation_entry, member)

static const struct key keys[] = {
    { STR_INIT("gpu_years"), read_years, SETS(gpu_years), 1e8 },
    { STR_INIT("cpu_years"), read_years, SETS(cpu_years), 1e8 },
    { STR_INIT("storage"), read_bytes, SETS(storage_bytes), 1e21 },
    { STR_INIT("students"), read_count, SETS(students), 1e6 },
    { STR_INIT("from"), read_day, SETS(from), 0 },
    { STR_INIT("to"), read_day, SETS(to), 0 },
    { STR_INIT("includes"), read_includes, SETS(includes), 0 },
};

static const struct key *nearest_key(struct str name)
{
    const struct key *nearest = &keys[0];

    for (size_t i = 1; i < COUNT(keys); i++)
        if (str_distance(name, keys[i].name) < str_distance(name, nearest->name))
            nearest = &keys[i];
    return nearest;
}

static int refuse_key(struct reader *reader, const struct yaml_node *node, const struct key *key)
{
    if (str_distance(node->key, key->name) <= node->key.n / 2)
        return yaml_refuse(node, reader->path, reader->err, "unknown key %s; did you mean %s?",
                           quote(node->key).text, key->name.p);
    return yaml_refuse(
        node, reader->path, reader->err,
        "unknown key %s; there are gpu_years, cpu_years, storage, students, from, to and "
        "includes",
        quote(node->key).text);
}

static int read_key(struct reader *reader, const struct yaml_node *node,
                    struct allocation_entry *entry)
{
    const struct key *key;

    if (node->key.n > LONGEST_NAME) /* comparing takes as long as it is */
        return yaml_refuse(node, reader->path, reader->err, "unknown key %s",
                           quote(node->key).text);
    key = nearest_key(node->key);
    if (!str_eq(node->key, key->name))
        return refuse_key(reader, node, key);
    if (yaml_is_null(node))
        return yaml_refuse(node, reader->path, reader->err,
                           "%s has no value; give it one, or leave it out", key->name.p);
    if (node->kind != YAML_SCALAR && key->read != read_includes)
        return yaml_refuse(node, reader->path, reader->err,
                           "%s is one value, not a list or mapping", key->name.p);
    return key->read(reader, key, node, entry);
}

static int check_entry(struct reader *reader, const struct yaml_node *node,
                       const struct allocation_entry *entry)
{
    if (isnan(entry->gpu_years) && isnan(entry->cpu_years) && isnan(entry->storage_bytes) &&
        isnan(entry->students))
        return yaml_refuse(
            node, reader->path, reader->err,
            "account %s is given nothing; say gpu_years, cpu_years, storage or students",
            quote(entry->account).text);
    if (!entry->from != !entry->to)
        return yaml_refuse(node, reader->path, reader->err,
                           "%s is there without %s; give both, or none",
                           entry->from ? "from" : "to", entry->from ? "to" : "from");
    if (entry->from && entry->from >= entry->to)
        return yaml_refuse(node, reader->path, reader->err,
                           "to must be later than from; it is the first day that no longer counts");
    return 0;
}

static int read_entry(struct reader *reader, const struct yaml_node *node, struct str cluster,
                      struct str account)
{
    struct allocation_entry entry = {
        .cluster = cluster,
        .account = account,
        .cpu_years = NAN,
        .gpu_years = NAN,
        .storage_bytes = NAN,
        .students = NAN,
        .line = node->line,
    };

    if (node->kind != YAML_MAPPING && !yaml_is_null(node))
        return yaml_refuse(node, reader->path, reader->err,
                           "account %s has one mapping like {gpu_years: 10}, or a list of such",
                           quote(account).text);
    for (const struct yaml_node *child = node->child; child; child = child->next)
        if (read_key(reader, child, &entry) < 0)
            return -EINVAL;
    if (check_entry(reader, node, &entry) < 0)
        return -EINVAL;
    if (reader->n == MOST_ENTRIES)
        return yaml_refuse(node, reader->path, reader->err,
                           "more than %d allocations; remove those that are long over",
                           MOST_ENTRIES);
    reader->entry = heap_grow(reader->entry, reader->n, &reader->room, sizeof(*reader->entry));
    reader->entry[reader->n++] = entry;
    return 0;
}

/* One for good is before all others, and reaches past all of them. */
static int earlier_first(const void *a, const void *b)
{
    const struct allocation_entry *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Those of one account, which are put in order. */
static int check_periods(struct reader *reader, struct allocation_entry *entry, size_t n)
{
    qsort(entry, n, sizeof(*entry), earlier_first);
    for (size_t i = 1; i < n; i++) {
        const struct allocation_entry *a = &entry[i - 1], *b = &entry[i];
        bool is_a_first = a->line < b->line;

        if (a->to && a->to <= b->from)
            continue;
        return err_set(reader->err, EINVAL,
                       "%s:%u: the time of this allocation of account %s overlaps that of line %u; "
                       "to is the first day that no longer counts",
                       quote(str_of(reader->path)).text, is_a_first ? b->line : a->line,
                       quote(a->account).text, is_a_first ? a->line : b->line);
    }
    return 0;
}

static int read_account(struct reader *reader, const struct yaml_node *node, struct str cluster)
{
    size_t first = reader->n;
    int code = check_name(reader, node, "an account", node->key);

    if (code == 0 && (node->kind != YAML_LIST || !node->child))
        return read_entry(reader, node, cluster, node->key);
    for (const struct yaml_node *child = node->child; child && code == 0; child = child->next)
        code = read_entry(reader, child, cluster, node->key);
    return code < 0 ? code : check_periods(reader, reader->entry + first, reader->n - first);
}

static int read_cluster(struct reader *reader, const struct yaml_node *node)
{
    int code = check_name(reader, node, "a cluster", node->key);

    if (code < 0)
        return code;
    if (node->kind != YAML_MAPPING && !yaml_is_null(node))
        return yaml_refuse(node, reader->path, reader->err, "cluster %s is a mapping of accounts",
                           quote(node->key).text);
    for (const struct yaml_node *child = node->child; child && code == 0; child = child->next)
        code = read_account(reader, child, node->key);
    return code;
}

static int read_root(struct reader *reader, const struct yaml_node *root)
{
    static const struct str clusters = STR_INIT("clusters");
    const struct yaml_node *node = root->child;

    if (root->kind != YAML_MAPPING)
        return yaml_refuse(root, reader->path, reader->err,
                           "the file is a mapping that has the key clusters");
    for (; node && str_eq(node->key, clusters); node = node->next) {
        if (node->kind != YAML_MAPPING && !yaml_is_null(node))
            return yaml_refuse(node, reader->path, reader->err,
                               "clusters is a mapping of their names");
        for (const struct yaml_node *child = node->child; child; child = child->next)
            if (read_cluster(reader, child) < 0)
                return -EINVAL;
    }
    if (node)
        return yaml_refuse(node, reader->path, reader->err,
                           "unknown key %s; did you mean clusters?", quote(node->key).text);
    return 0;
}

int allocation_file_read(const char *path, struct arena *arena, struct allocation_list *ret,
                         struct err *err)
{
    struct reader reader = { .path = path, .arena = arena, .err = err };
    struct yaml_node *root;
    int code = yaml_read_file(arena, path, &root, err);

    if (code < 0) {
        if (err)
            err->code = EINVAL;
        return -EINVAL;
    }
    code = read_root(&reader, root);
    arena_adopt(arena, reader.entry);
    if (code == 0)
        *ret = (struct allocation_list){ reader.entry, reader.n };
    return code;
}

bool allocation_entry_holds(const struct allocation_entry *entry, int64_t now)
{
    return (!entry->from && !entry->to) || (entry->from <= now && now < entry->to);
}

struct allocation allocation_entry_promise(const struct allocation_entry *entry)
{
    return (struct allocation){
        .from = entry->from,
        .to = entry->to,
        .seconds = { [ALLOCATION_CPUS] = entry->cpu_years * ALLOCATION_YEAR_SECONDS,
                     [ALLOCATION_GPUS] = entry->gpu_years * ALLOCATION_YEAR_SECONDS },
        .used = { NAN, NAN },
        .rate = { NAN, NAN },
        .storage_bytes = entry->storage_bytes,
        .students = entry->students,
    };
}
