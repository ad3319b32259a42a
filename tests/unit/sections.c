/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections made from lines of text: see sections.h. */
#include "sections.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/quote.h"
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
    return is_unknown(value) || num_get_u64(value, to);
}

static bool read_u32(struct section *section, void *to, struct str value)
{
    uint64_t number;

    if (!read_u64(section, &number, value) || (number > UINT32_MAX && !is_unknown(value)))
        return false;
    *(uint32_t *)to = (uint32_t)number;
    return true;
}

static bool read_bytes(struct section *section, void *to, struct str value)
{
    return read_u64(section, to, value) || num_get_bytes(value, to);
}

static bool read_real(struct section *section, void *to, struct str value)
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

/* "8", or allocated, idle, other and all, as sinfo prints them: "2/6/0/8". */
static bool read_node_cpus(struct section *section, void *to, struct str value)
{
    struct node *node = to;
    uint64_t aiot[4];

    if (!units_aiot(value, aiot))
        return read_u32(section, &node->cpus, value);
    node->cpus_alloc = (uint32_t)aiot[0];
    node->cpus_idle = (uint32_t)aiot[1];
    node->cpus_other = (uint32_t)aiot[2];
    node->cpus = (uint32_t)aiot[3];
    return true;
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

    (void)section;
    for (uint8_t i = 0; i < LIMITS; i++)
        if (str_eq(value, str_of(words[i]))) {
            *(uint8_t *)to = i;
            return true;
        }
    return false;
}

/* An array that has grown one by one has room for as many as the next power of two. */
static void *grow(struct section *section, void *array, size_t n, size_t size)
{
    void *larger;

    if (n & (n - 1))
        return array;
    larger = arena_array(&section->arena, n ? 2 * n : 1, size);
    if (n)
        memcpy(larger, array, n * size);
    return larger;
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
static bool read_partitions(struct section *section, void *to, struct str value)
{
    struct nodes *nodes = &section->nodes;
    struct node *node = to;

    node->first_partition = (uint32_t)nodes->n_membership;
    node->n_partitions = 0;
    for (struct str rest = value; rest.n; node->n_partitions++) {
        uint32_t partition = find_partition(section, str_cut(&rest, ','));

        nodes->membership =
            grow(section, nodes->membership, nodes->n_membership, sizeof(partition));
        nodes->membership[nodes->n_membership++] = partition;
    }
    return true;
}

/* ---- words ---- */

struct field {
    const char *word;
    bool (*read)(struct section *section, void *to, struct str value);
    size_t offset;
};

#define JOB(member) offsetof(struct job, member)
static const struct field job_fields[] = {
    { "state", read_job_state, JOB(state) },
    { "id", read_u32, JOB(id) },
    { "array", read_u32, JOB(array_job_id) },
    { "task", read_u32, JOB(array_task_id) },
    { "tasks", read_u32, JOB(tasks) },
    { "het", read_u32, JOB(het_job_id) },
    { "het_offset", read_u32, JOB(het_offset) },
    { "user_id", read_u32, JOB(user_id) },
    { "restarts", read_u32, JOB(restarts) },
    { "user", read_text, JOB(user) },
    { "account", read_text, JOB(account) },
    { "qos", read_text, JOB(qos) },
    { "name", read_text, JOB(name) },
    { "reservation", read_text, JOB(reservation) },
    { "features", read_text, JOB(features) },
    { "partition", read_text, JOB(partition) },
    { "reason", read_text, JOB(reason) },
    { "nodes", read_text, JOB(nodes) },
    { "alloc_node", read_text, JOB(alloc_node) },
    { "tres", read_text, JOB(tres) },
    { "cpus", read_u32, JOB(cpus) },
    { "node_count", read_u32, JOB(node_count) },
    { "memory", read_bytes, JOB(memory_bytes) },
    { "limit_minutes", read_u32, JOB(time_limit_minutes) },
    { "priority", read_u64, JOB(priority) },
    { "submit", read_time, JOB(submit_time) },
    { "eligible", read_time, JOB(eligible_time) },
    { "start", read_time, JOB(start_time) },
    { "end", read_time, JOB(end_time) },
};

static const struct field gpus_fields[] = {
    { "job", read_u32, offsetof(struct job_gpus, job_id) },
    { "node", read_text, offsetof(struct job_gpus, node) },
    { "indexes", read_text, offsetof(struct job_gpus, gpus) },
};

#define NODE(member) offsetof(struct node, member)
static const struct field node_fields[] = {
    { "name", read_text, NODE(name) },
    { "state", read_node_state, NODE(state) },
    { "cpus", read_node_cpus, 0 },
    { "cpus_alloc", read_u32, NODE(cpus_alloc) },
    { "cpus_idle", read_u32, NODE(cpus_idle) },
    { "cpus_other", read_u32, NODE(cpus_other) },
    { "load", read_real, NODE(cpu_load) },
    { "memory", read_bytes, NODE(memory_bytes) },
    { "memory_alloc", read_bytes, NODE(memory_alloc_bytes) },
    { "memory_free", read_bytes, NODE(memory_free_bytes) },
    { "gres", read_text, NODE(gres) },
    { "gres_used", read_text, NODE(gres_used) },
    { "features", read_text, NODE(features) },
    { "reservation", read_text, NODE(reservation) },
    { "version", read_text, NODE(version) },
    { "reason", read_text, NODE(reason) },
    { "reason_user", read_text, NODE(reason_user) },
    { "reason_time", read_time, NODE(reason_time) },
    { "weight", read_u32, NODE(weight) },
    { "partitions", read_partitions, 0 },
};

static const struct field partition_fields[] = {
    { "name", read_text, offsetof(struct partition, name) },
    { "default", read_bool, offsetof(struct partition, is_default) },
    { "up", read_bool, offsetof(struct partition, is_up) },
    { "limit_minutes", read_u32, offsetof(struct partition, time_limit_minutes) },
};

static const struct field license_fields[] = {
    { "name", read_text, offsetof(struct license, name) },
    { "total", read_u64, offsetof(struct license, total) },
    { "used", read_u64, offsetof(struct license, used) },
    { "free", read_u64, offsetof(struct license, free) },
    { "reserved", read_u64, offsetof(struct license, reserved) },
    { "last_consumed", read_u64, offsetof(struct license, last_consumed) },
    { "last_deficit", read_u64, offsetof(struct license, last_deficit) },
};

#define RESERVATION(member) offsetof(struct reservation, member)
static const struct field reservation_fields[] = {
    { "name", read_text, RESERVATION(name) },
    { "nodes", read_text, RESERVATION(nodes) },
    { "users", read_text, RESERVATION(users) },
    { "accounts", read_text, RESERVATION(accounts) },
    { "partition", read_text, RESERVATION(partition) },
    { "flags", read_text, RESERVATION(flags) },
    { "node_count", read_u32, RESERVATION(node_count) },
    { "core_count", read_u32, RESERVATION(core_count) },
    { "active", read_bool, RESERVATION(is_active) },
    { "start", read_time, RESERVATION(start_time) },
    { "end", read_time, RESERVATION(end_time) },
};

#define SHARE(member) offsetof(struct share, member)
static const struct field share_fields[] = {
    { "account", read_text, SHARE(account) },
    { "user", read_text, SHARE(user) },
    { "partition", read_text, SHARE(partition) },
    { "is_parent", read_bool, SHARE(is_parent) },
    { "raw_shares", read_u64, SHARE(raw_shares) },
    { "normalized_shares", read_real, SHARE(normalised_shares) },
    { "raw_usage", read_real, SHARE(raw_usage) },
    { "normalized_usage", read_real, SHARE(normalised_usage) },
    { "effective_usage", read_real, SHARE(effective_usage) },
    { "factor", read_real, SHARE(factor) },
    { "level", read_real, SHARE(level) },
};

static const struct field association_fields[] = {
    { "account", read_text, offsetof(struct association, account) },
    { "user", read_text, offsetof(struct association, user) },
    { "partition", read_text, offsetof(struct association, partition) },
};

static const struct field qos_fields[] = {
    { "name", read_text, offsetof(struct qos, name) },
};

static const struct field limit_fields[] = {
    { "kind", read_limit_kind, offsetof(struct limit, kind) },
    { "limit", read_bytes, offsetof(struct limit, limit) },
    { "used", read_bytes, offsetof(struct limit, used) },
    { "tres", read_text, offsetof(struct limit, tres) },
};

/* ---- records ---- */

/* What a line can be. Those of one kind stand together; the last is that of a line that begins with
 * no record's word. The fields that must be there come first. */
struct record {
    enum kind kind;
    const char *word; /* or NULL */
    const char *defaults;
    const struct field *fields;
    size_t n_fields, n_required;
    size_t array, n, size; /* offsets in struct section; bytes of one */
};

#define RECORDS(fields, n_required, array, n)                                                      \
    fields, COUNT(fields), n_required, offsetof(struct section, array),                            \
        offsetof(struct section, n), sizeof(*((struct section *)NULL)->array)

static const struct record records[] = {
    { KIND_JOBS, "gpus", "", RECORDS(gpus_fields, 3, jobs.gpus, jobs.n_gpus) },
    { KIND_JOBS, NULL,
      "task=unknown tasks=1 user_id=1000 user=ann account=physics partition=cpu qos=normal cpus=1 "
      "node_count=1 memory=1G limit_minutes=60 priority=1000 submit=-60s",
      RECORDS(job_fields, 1, jobs.job, jobs.n) },
    { KIND_NODES, "partition", "up=yes limit_minutes=unknown",
      RECORDS(partition_fields, 1, nodes.partition, nodes.n_partitions) },
    { KIND_NODES, NULL,
      "cpus=unknown cpus_alloc=unknown cpus_idle=unknown cpus_other=unknown load=unknown "
      "memory=unknown memory_alloc=unknown memory_free=unknown weight=unknown",
      RECORDS(node_fields, 2, nodes.node, nodes.n) },
    { KIND_LICENSES, NULL, "last_consumed=unknown last_deficit=unknown",
      RECORDS(license_fields, 1, licenses.license, licenses.n) },
    { KIND_RESERVATIONS, NULL, "node_count=unknown core_count=unknown",
      RECORDS(reservation_fields, 1, reservations.reservation, reservations.n) },
    { KIND_ASSOCIATIONS, "qos", "", RECORDS(qos_fields, 1, associations.qos, associations.n_qos) },
    { KIND_ASSOCIATIONS, "limit", "",
      RECORDS(limit_fields, 3, associations.limit, associations.n_limits) },
    { KIND_ASSOCIATIONS, NULL, "",
      RECORDS(association_fields, 1, associations.association, associations.n) },
    { KIND_SHARES, NULL, "raw_shares=1", RECORDS(share_fields, 1, shares.share, shares.n) },
};

static const struct record *find_record(enum kind kind, struct str word)
{
    for (size_t i = 0; i < COUNT(records); i++)
        if (records[i].kind == kind && (!records[i].word || str_eq(word, str_of(records[i].word))))
            return &records[i];
    return NULL;
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

static int read_field(struct section *section, void *to, const struct record *record,
                      struct str word, struct str value, struct err *err)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct field *field = &record->fields[i];

        if (!str_eq(word, str_of(field->word)))
            continue;
        if (unquote(&value) && field->read(section, (char *)to + field->offset, value))
            return 0;
        return err_set(err, EINVAL, "%s is not a valid value of %s", quote(value).text,
                       field->word);
    }
    return err_set(err, EINVAL, "unknown word %s", quote(word).text);
}

/* n_required: how many words without "=" must come first. */
static int read_fields(struct section *section, void *to, const struct record *record,
                       size_t n_required, struct str line, struct err *err)
{
    size_t n = 0;
    int code = 0;

    while (line.n && code == 0) {
        struct str value = cut(&line, ' '), word = STR("");

        if (n < n_required)
            word = str_of(record->fields[n++].word);
        else if (value.n)
            word = str_cut(&value, '=');
        else
            continue;
        code = value.p ? read_field(section, to, record, word, value, err)
                       : err_set(err, EINVAL, "%s has no value", quote(word).text);
    }
    if (code == 0 && n < n_required)
        return err_set(err, EINVAL, "there is no %s", record->fields[n].word);
    return code;
}

static void append(struct section *section, const struct record *record, const void *item)
{
    char *array, *at = (char *)section + record->array;
    size_t *n = (size_t *)((char *)section + record->n);

    memcpy(&array, at, sizeof(array));
    array = grow(section, array, *n, record->size);
    memcpy(array + *n * record->size, item, record->size);
    memcpy(at, &array, sizeof(array));
    ++*n;
}

/* A limit is of the QOS that was added last, or of the association if there is no QOS yet. */
static void own_limit(struct associations *all)
{
    struct association *association = all->n ? &all->association[all->n - 1] : NULL;
    struct qos *qos = all->n_qos ? &all->qos[all->n_qos - 1] : NULL;
    uint32_t *first = qos ? &qos->first_limit : &association->first_limit;
    uint32_t *n = qos ? &qos->n_limits : &association->n_limits;

    if (!(*n)++)
        *first = (uint32_t)all->n_limits - 1;
}

/* Ids count from 1 unless a line says otherwise. */
static void number_job(const struct section *section, struct job *job)
{
    job->id = (uint32_t)section->jobs.n + 1;
}

static int read_line(struct section *section, void *defaults, struct str line, struct err *err)
{
    struct str rest = line, word = cut(&rest, ' ');
    const struct record *record = find_record(section->kind, word);
    void *item = arena_alloc(&section->arena, record->size);
    int code = 0;

    if (str_eq(word, STR("*")))
        return read_fields(section, defaults, record, 0, rest, err);
    if (record->word) {
        line = rest;
        code = read_fields(section, item, record, 0, str_of(record->defaults), err);
    } else {
        memcpy(item, defaults, record->size);
    }
    if (record->fields == job_fields)
        number_job(section, item);
    if (code == 0)
        code = read_fields(section, item, record, record->n_required, line, err);
    if (code < 0)
        return code;
    append(section, record, item);
    if (record->fields == limit_fields)
        own_limit(&section->associations);
    return 0;
}

int section_read(struct section *section, struct str lines, struct err *err)
{
    const struct record *record = find_record(section->kind, STR(""));
    void *defaults = arena_alloc(&section->arena, record->size);
    int code = read_fields(section, defaults, record, 0, str_of(record->defaults), err);

    for (unsigned n = 1; lines.n && code == 0; n++) {
        struct str line = cut(&lines, '\n');

        if (line.n && read_line(section, defaults, line, err) < 0)
            code = err_prefix(err, "line %u of %s, \"%s\"", n, kind_name(section->kind),
                              quote(line).text);
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
