/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections made from lines of text: see sections.h. The fields are those of model/fields. */
#include "sections.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/quote.h"
#include "model/fields.h"
#include "model/units.h"

#include <math.h>

__attribute__((weak)) int64_t sections_now = 1794744000;

/* ---- values ---- */

static bool is_unknown(struct str value)
{
    return str_eq(value, STR("unknown"));
}

static bool read_text(struct section *section, void *to, struct str value)
{
    *(symbol *)to = symbols_put(&section->symbols, value);
    return true;
}

static bool read_u64(struct section *section, void *to, struct str value)
{
    (void)section;
    *(uint64_t *)to = MODEL_UNKNOWN_U64;
    return is_unknown(value) || num_get_u64(value, to) || num_get_bytes(value, to);
}

static bool read_u32(struct section *section, void *to, struct str value)
{
    uint64_t number;

    if (!read_u64(section, &number, value) || (number > UINT32_MAX && !is_unknown(value)))
        return false;
    *(uint32_t *)to = (uint32_t)number;
    return true;
}

static bool read_double(struct section *section, void *to, struct str value)
{
    (void)section;
    *(double *)to = NAN;
    return is_unknown(value) || num_get_double(value, to);
}

static bool read_bool(struct section *section, void *to, struct str value)
{
    (void)section;
    *(bool *)to = str_eq(value, STR("yes"));
    return *(bool *)to || str_eq(value, STR("no"));
}

static bool read_time(struct section *section, void *to, struct str value)
{
    int64_t ns;

    (void)section;
    if (!value.n || !strchr("+-", value.p[0]))
        return num_get_i64(value, to);
    if (!num_get_duration_ns(str_skip(value, 1), &ns))
        return false;
    *(int64_t *)to = sections_now + (value.p[0] == '-' ? -ns : ns) / NS_PER_SEC;
    return true;
}

static bool read_job_state(struct section *section, void *to, struct str value)
{
    (void)section;
    return job_state_parse(value, to);
}

static bool read_node_state(struct section *section, void *to, struct str value)
{
    (void)section;
    return node_state_parse(value, to);
}

static bool read_limit_kind(struct section *section, void *to, struct str value)
{
    static const char *const words[LIMITS] = {
        [LIMIT_JOBS] = "jobs",
        [LIMIT_SUBMITTED] = "submitted",
        [LIMIT_WALL_SECONDS] = "wall",
        [LIMIT_TRES] = "tres",
        [LIMIT_TRES_SECONDS] = "tres_time",
        [LIMIT_TRES_RUN_SECONDS] = "running_tres_time",
        [LIMIT_USER_JOBS] = "user_jobs",
        [LIMIT_USER_SUBMITTED] = "user_submitted",
        [LIMIT_USER_TRES] = "user_tres",
    };
    uint8_t i = 0;

    (void)section;
    while (i < LIMITS && !str_eq(value, str_of(words[i])))
        i++;
    *(uint8_t *)to = i;
    return i < LIMITS;
}

static bool (*const readers[])(struct section *section, void *to, struct str value) = {
    [FIELD_BOOL] = read_bool,
    [FIELD_U8] = read_limit_kind, /* there is no other */
    [FIELD_U32] = read_u32,
    [FIELD_U64] = read_u64,
    [FIELD_TIME] = read_time,
    [FIELD_DOUBLE] = read_double,
    [FIELD_SYMBOL] = read_text,
    [FIELD_JOB_STATE] = read_job_state,
    [FIELD_NODE_STATE] = read_node_state,
};

/* ---- records ---- */

/* What a line can be. Those of a kind stand together; the last has no word of its own. */
struct line {
    enum kind kind;
    const char *word;
    const char *array; /* of field_kinds */
    const char *required, *defaults;
};

static const struct line lines_table[] = {
    { KIND_JOBS, "gpus", "job_gpus", "job_id node gpus", "" },
    { KIND_JOBS, NULL, "jobs", "state",
      "array_task_id=unknown tasks=1 user_id=1000 user=ann account=physics partition=cpu "
      "qos=normal cpus=1 node_count=1 memory=1G time_limit=60 priority=1000 submit=-60s" },
    { KIND_NODES, "partition", "partitions", "name", "up=yes time_limit=unknown" },
    { KIND_NODES, NULL, "nodes", "name state",
      "cpus=unknown cpus_alloc=unknown cpus_idle=unknown cpus_other=unknown cpu_load=unknown "
      "memory=unknown memory_alloc=unknown memory_free=unknown weight=unknown" },
    { KIND_LICENSES, NULL, "licenses", "name", "last_consumed=unknown last_deficit=unknown" },
    { KIND_RESERVATIONS, NULL, "reservations", "name", "node_count=unknown core_count=unknown" },
    { KIND_ASSOCIATIONS, "qos", "qos", "name", "" },
    { KIND_ASSOCIATIONS, "limit", "limits", "kind limit used", "" },
    { KIND_ASSOCIATIONS, NULL, "associations", "account", "" },
    { KIND_SHARES, NULL, "shares", "account", "raw_shares=1" },
};

static const struct line *find_line(enum kind kind, struct str word)
{
    for (size_t i = 0; i < COUNT(lines_table); i++) {
        const struct line *line = &lines_table[i];

        if (line->kind == kind && (!line->word || str_eq(word, str_of(line->word))))
            return line;
    }
    return NULL;
}

static const struct field_array *find_array(enum kind kind, const char *name)
{
    const struct field_array *array = field_kinds[kind].arrays;

    while (strcmp(array->name, name) != 0)
        array++;
    return array;
}

/* An array has room for as many as the next power of two. */
static void append(struct section *section, const struct field_array *array, const void *item)
{
    size_t *n = (size_t *)((char *)section + array->count), size = array->record->size;
    char *items, *larger, *at = (char *)section + array->items;

    memcpy(&items, at, sizeof(items));
    if (!(*n & (*n - 1))) {
        larger = arena_array(&section->arena, *n ? 2 * *n : 1, size);
        if (*n)
            memcpy(larger, items, *n * size);
        items = larger;
    }
    memcpy(items + *n * size, item, size);
    memcpy(at, &items, sizeof(items));
    ++*n;
}

/* ---- nodes ---- */

/* "8", or allocated, idle, other and all, as sinfo prints them: "2/6/0/8". */
static bool read_node_cpus(struct section *section, struct node *node, struct str value)
{
    uint64_t aiot[4];

    if (!units_aiot(value, aiot))
        return read_u32(section, &node->cpus, value);
    node->cpus_alloc = (uint32_t)aiot[0];
    node->cpus_idle = (uint32_t)aiot[1];
    node->cpus_other = (uint32_t)aiot[2];
    node->cpus = (uint32_t)aiot[3];
    return true;
}

static uint32_t find_partition(struct section *section, struct str name)
{
    struct nodes *nodes = &section->nodes;

    for (uint32_t i = 0; i < nodes->n_partitions; i++)
        if (str_eq(section_text(section, nodes->partition[i].name), name))
            return i;
    section_add(section, "partition '%.*s'", STR_ARG(name));
    return (uint32_t)nodes->n_partitions - 1;
}

/* "cpu,gpu"; those that no line has made are made. */
static bool read_node_partitions(struct section *section, struct node *node, struct str value)
{
    const struct field_array *memberships = find_array(KIND_NODES, "memberships");

    node->first_partition = (uint32_t)section->nodes.n_membership;
    node->n_partitions = 0;
    for (struct str rest = value; rest.n; node->n_partitions++) {
        uint32_t partition = find_partition(section, str_cut(&rest, ','));

        append(section, memberships, &partition);
    }
    return true;
}

/* ---- text ---- */

/* What stands before the end, where that is outside quotes. */
static struct str cut(struct str *rest, char end)
{
    struct str before = *rest;
    bool is_quoted = false;

    for (before.n = 0; before.n < rest->n; before.n++) {
        if (rest->p[before.n] == end && !is_quoted)
            break;
        is_quoted ^= rest->p[before.n] == '\'';
    }
    *rest = str_skip(*rest, before.n + 1);
    return before;
}

/* A quote is at both ends or nowhere. */
static bool unquote(struct str *value)
{
    if (value->n >= 2 && value->p[0] == '\'' && value->p[value->n - 1] == '\'')
        *value = str_head(str_skip(*value, 1), value->n - 2);
    return str_find(*value, '\'') == value->n;
}

/* "memory" is short for memory_bytes, "up" for is_up. */
static bool is_short_for(struct str word, struct str name)
{
    static const struct str units[] = { STR_INIT("_bytes"), STR_INIT("_time"),
                                        STR_INIT("_minutes") };

    if (str_starts(name, STR("is_")))
        return str_eq(word, str_skip(name, 3));
    for (size_t i = 0; i < COUNT(units); i++)
        if (str_ends(name, units[i]) && str_eq(word, str_head(name, name.n - units[i].n)))
            return true;
    return false;
}

static const struct field *find_field(const struct field_record *record, struct str word)
{
    const struct field *found = NULL;

    for (size_t i = 0; i < record->n; i++) {
        struct str name = str_of(record->fields[i].name);

        if (str_eq(word, name))
            return &record->fields[i];
        if (is_short_for(word, name))
            found = &record->fields[i];
    }
    return found;
}

static bool read_value(struct section *section, void *item, const struct field *field,
                       struct str word, struct str value)
{
    bool is_node = section->kind == KIND_NODES;

    if (!unquote(&value))
        return false;
    if (is_node && str_eq(word, STR("partitions")))
        return read_node_partitions(section, item, value);
    if (is_node && str_eq(word, STR("cpus")))
        return read_node_cpus(section, item, value);
    return readers[field->type](section, (char *)item + field->offset, value);
}

static int read_field(struct section *section, void *item, const struct line *line, struct str word,
                      struct str value, struct err *err)
{
    bool is_list = strcmp(line->array, "nodes") == 0 && str_eq(word, STR("partitions"));
    const struct field *field = find_field(find_array(line->kind, line->array)->record, word);

    if (!field && !is_list)
        return err_set(err, EINVAL, "unknown word %s", quote(word).text);
    if (!read_value(section, item, field, word, value))
        return err_set(err, EINVAL, "%s is not a valid value of %s", quote(value).text,
                       quote(word).text);
    return 0;
}

/* First the values of the required fields, then field=value. */
static int read_fields(struct section *section, void *item, const struct line *line,
                       struct str required, struct str text, struct err *err)
{
    int code = 0;

    while (text.n && code == 0) {
        struct str value = cut(&text, ' '), word = STR("");

        if (required.n)
            word = cut(&required, ' ');
        else if (value.n)
            word = str_cut(&value, '=');
        else
            continue;
        code = value.p ? read_field(section, item, line, word, value, err)
                       : err_set(err, EINVAL, "%s has no value", quote(word).text);
    }
    if (code == 0 && required.n)
        return err_set(err, EINVAL, "there is no %.*s", STR_ARG(required));
    return code;
}

/* A limit is of the QOS that was added last, or of the association if there is no QOS yet. */
static bool own_limit(struct associations *all)
{
    uint32_t *first, *n;

    if (all->n_qos) {
        first = &all->qos[all->n_qos - 1].first_limit;
        n = &all->qos[all->n_qos - 1].n_limits;
    } else if (all->n) {
        first = &all->association[all->n - 1].first_limit;
        n = &all->association[all->n - 1].n_limits;
    } else {
        return false;
    }
    if (!(*n)++)
        *first = (uint32_t)all->n_limits - 1;
    return true;
}

static int read_line(struct section *section, void *defaults, struct str text, struct err *err)
{
    struct str rest = text, word = cut(&rest, ' ');
    const struct line *line = find_line(section->kind, word);
    const struct field_array *array = find_array(line->kind, line->array);
    void *item = arena_alloc(&section->arena, array->record->size);
    int code = 0;

    if (str_eq(word, STR("*")))
        return read_fields(section, defaults, line, STR(""), rest, err);
    if (line->word)
        code = read_fields(section, item, line, STR(""), str_of(line->defaults), err);
    else
        memcpy(item, defaults, array->record->size);
    if (section->kind == KIND_JOBS && !line->word)
        ((struct job *)item)->id = (uint32_t)section->jobs.n + 1;
    if (code == 0)
        code =
            read_fields(section, item, line, str_of(line->required), line->word ? rest : text, err);
    if (code < 0)
        return code;
    append(section, array, item);
    if (strcmp(line->array, "limits") == 0 && !own_limit(&section->associations))
        return err_set(err, EINVAL, "no association or QOS stands before it");
    return 0;
}

int section_read(struct section *section, struct str lines, struct err *err)
{
    const struct line *line = find_line(section->kind, STR(""));
    const struct field_record *record = find_array(line->kind, line->array)->record;
    void *defaults = arena_alloc(&section->arena, record->size);
    int code = read_fields(section, defaults, line, STR(""), str_of(line->defaults), err);

    for (unsigned n = 1; lines.n && code == 0; n++) {
        struct str text = cut(&lines, '\n');

        if (text.n && read_line(section, defaults, text, err) < 0)
            code = err_prefix(err, "line %u of %s, \"%s\"", n, kind_name(section->kind),
                              quote(text).text);
    }
    return code;
}

static void add_format(struct section *section, const char *format, va_list arguments)
{
    struct err err = { 0 };
    char *lines;
    int n = vasprintf(&lines, format, arguments);

    assert_true(n >= 0);
    if (section_read(section, (struct str){ lines, (size_t)n }, &err) < 0)
        fail_msg("%s", err.text);
    free(lines);
}

void section_add(struct section *section, const char *lines, ...)
{
    va_list arguments;

    va_start(arguments, lines);
    add_format(section, lines, arguments);
    va_end(arguments);
}

#define SECTION_FROM(name, kind)                                                                   \
    struct section *name(const char *lines, ...)                                                   \
    {                                                                                              \
        struct section *section = section_new(kind);                                               \
        va_list arguments;                                                                         \
                                                                                                   \
        section->wall_ns = sections_now * NS_PER_SEC;                                              \
        va_start(arguments, lines);                                                                \
        add_format(section, lines, arguments);                                                     \
        va_end(arguments);                                                                         \
        return section;                                                                            \
    }

SECTION_FROM(jobs_from, KIND_JOBS)
SECTION_FROM(nodes_from, KIND_NODES)
SECTION_FROM(licenses_from, KIND_LICENSES)
SECTION_FROM(reservations_from, KIND_RESERVATIONS)
SECTION_FROM(associations_from, KIND_ASSOCIATIONS)
SECTION_FROM(shares_from, KIND_SHARES)
