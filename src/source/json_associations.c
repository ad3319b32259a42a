/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits from slurmrestd's /associations and /qos of slurmdbd: the ASSOC and QOS parsers of Slurm's
 * data_parser plugins, and those of its older openapi plugins. Of what is used nothing is told; of
 * a QOS, GrpSubmitJobs and GrpTRESMins only from v0.0.42 on. */
#include "source/json_answers.h"
#include "source/json_table.h"

enum {
    MINUTE = 60,
    MEBIBYTE = 1 << 20,
    OWNER_LIMITS_MAX = 1000, /* of one association or QOS */
    TRES_NAME_ROOM = 1024,
};

/* The association or QOS that is being read. */
struct owner_draft {
    symbol account, user, partition, name, cluster;
    uint64_t amounts[LIMITS]; /* of the limits that are a number */
};

struct tres_draft {
    symbol type, name;
    uint64_t count;
    enum limit_kind kind;
};

struct json_limits {
    struct json_answer json;
    struct associations told; /* put behind the section's own at the end */
    size_t room, qos_room, limit_room;
    struct owner_draft owner;
    symbol cluster; /* of the first association */
    bool has_clusters;
    struct tres_draft tres;    /* the one being read, */
    struct limit *tres_limits; /* and those of the owner so far */
    size_t n_tres_limits, tres_room;
    struct buf tres_name;
};

static struct json_limits *of(struct answer *answer)
{
    return (struct json_limits *)answer;
}

static const struct json_member tres_members[] = {
    MEMBER(struct tres_draft, "type", SHAPE_NAME, type),
    MEMBER(struct tres_draft, "name", SHAPE_NAME, name),
    MEMBER(struct tres_draft, "count", SHAPE_U64, count),
};

static void *begin_tres(struct answer *answer)
{
    struct tres_draft *tres = &of(answer)->tres;

    *tres = (struct tres_draft){
        .count = MODEL_UNKNOWN_U64,
        .kind = (enum limit_kind)json_answer_list(answer)->offset,
    };
    return tres;
}

static bool is_minutes(enum limit_kind kind)
{
    return kind == LIMIT_WALL_SECONDS || kind == LIMIT_TRES_SECONDS ||
           kind == LIMIT_TRES_RUN_SECONDS;
}

static uint64_t in_base_units(uint64_t amount, enum limit_kind kind, bool is_memory)
{
    uint64_t unit = (is_minutes(kind) ? MINUTE : 1) * (is_memory ? MEBIBYTE : 1);

    return amount == MODEL_UNKNOWN_U64 || __builtin_mul_overflow(amount, unit, &amount)
               ? MODEL_UNKNOWN_U64
               : amount;
}

/* "gres" and "gpu" are gres/gpu; "cpu" and nothing are cpu. */
static symbol full_name(struct json_limits *all, const struct tres_draft *tres)
{
    struct section *section = all->json.answer.section;

    if (!tres->name)
        return tres->type;
    buf_reset(&all->tres_name);
    buf_put(&all->tres_name, section_text(section, tres->type));
    buf_byte(&all->tres_name, '/');
    buf_put(&all->tres_name, section_text(section, tres->name));
    return symbols_put(&section->symbols, buf_str(&all->tres_name));
}

static void end_tres(struct answer *answer, void *record)
{
    struct json_limits *all = of(answer);
    const struct tres_draft *tres = record;
    struct str type = section_text(answer->section, tres->type);
    uint64_t limit = in_base_units(tres->count, tres->kind, str_eq(type, STR("mem")));

    if (!tres->type || all->n_tres_limits == OWNER_LIMITS_MAX) {
        answer_leave_out(answer, type);
        return;
    }
    if (limit == MODEL_UNKNOWN_U64)
        return;
    all->tres_limits = section_grow(answer->section, all->tres_limits, all->n_tres_limits,
                                    &all->tres_room, sizeof(*all->tres_limits));
    all->tres_limits[all->n_tres_limits++] = (struct limit){
        .kind = (uint8_t)tres->kind,
        .tres = full_name(all, tres),
        .limit = limit,
        .used = MODEL_UNKNOWN_U64,
    };
}

static const struct json_table tres_table = {
    .members = tres_members,
    .n = COUNT(tres_members),
    .begin = begin_tres,
    .end = end_tres,
};

static void *begin_owner(struct answer *answer)
{
    struct json_limits *all = of(answer);

    all->owner = (struct owner_draft){ 0 };
    for (size_t kind = 0; kind < LIMITS; kind++)
        all->owner.amounts[kind] = MODEL_UNKNOWN_U64;
    all->n_tres_limits = 0;
    return &all->owner;
}

static void add_limit(struct json_limits *all, const struct limit *limit)
{
    struct associations *told = &all->told;

    told->limit = section_grow(all->json.answer.section, told->limit, told->n_limits,
                               &all->limit_room, sizeof(*told->limit));
    told->limit[told->n_limits++] = *limit;
}

/* The limits of the owner, by kind; returns how many. */
static uint32_t add_limits(struct json_limits *all)
{
    size_t before = all->told.n_limits;

    for (enum limit_kind kind = 0; kind < LIMITS; kind++) {
        uint64_t amount = in_base_units(all->owner.amounts[kind], kind, false);

        if (amount != MODEL_UNKNOWN_U64)
            add_limit(all, &(struct limit){
                               .kind = (uint8_t)kind, .limit = amount, .used = MODEL_UNKNOWN_U64 });
        for (size_t i = 0; i < all->n_tres_limits; i++)
            if (all->tres_limits[i].kind == kind)
                add_limit(all, &all->tres_limits[i]);
    }
    return (uint32_t)(all->told.n_limits - before);
}

static void end_association(struct answer *answer, void *record)
{
    struct json_limits *all = of(answer);
    const struct owner_draft *owner = record;
    struct associations *told = &all->told;
    uint32_t first = (uint32_t)told->n_limits;

    if (!owner->account) {
        answer_leave_out(answer, STR("an association without an account"));
        return;
    }
    if (!told->n)
        all->cluster = owner->cluster;
    all->has_clusters |= owner->cluster != all->cluster;
    told->association = section_grow(answer->section, told->association, told->n, &all->room,
                                     sizeof(*told->association));
    told->association[told->n++] = (struct association){
        .account = owner->account,
        .user = owner->user,
        .partition = owner->partition,
        .first_limit = first,
        .n_limits = add_limits(all),
    };
}

static void end_qos(struct answer *answer, void *record)
{
    struct json_limits *all = of(answer);
    const struct owner_draft *owner = record;
    struct associations *told = &all->told;
    uint32_t first = (uint32_t)told->n_limits;

    if (!owner->name) {
        answer_leave_out(answer, STR("a QOS without a name"));
        return;
    }
    told->qos =
        section_grow(answer->section, told->qos, told->n_qos, &all->qos_room, sizeof(*told->qos));
    told->qos[told->n_qos++] = (struct qos){
        .name = owner->name,
        .first_limit = first,
        .n_limits = add_limits(all),
    };
}

#define OWNER(key, field) MEMBER(struct owner_draft, key, SHAPE_NAME, field)
#define AMOUNT(key, kind) MEMBER(struct owner_draft, key, SHAPE_U64, amounts[kind])
#define AMOUNTS(key, kind)                                                                         \
    {                                                                                              \
        STR_INIT(key), SHAPE_LIST, kind, &tres_table                                               \
    }

/* The names that sacctmgr(1) has for them are in model/association.h. */
static const struct json_member association_members[] = {
    OWNER("account", account),
    OWNER("user", user),
    OWNER("partition", partition),
    OWNER("cluster", cluster),
    AMOUNT("max/jobs/per/count", LIMIT_JOBS),
    AMOUNT("max/jobs/per/submitted", LIMIT_SUBMITTED),
    AMOUNT("max/per/account/wall_clock", LIMIT_WALL_SECONDS),
    AMOUNTS("max/tres/total", LIMIT_TRES),
    AMOUNTS("max/tres/group/minutes", LIMIT_TRES_SECONDS),
    AMOUNTS("max/tres/group/active", LIMIT_TRES_RUN_SECONDS),
    AMOUNT("max/jobs/active", LIMIT_USER_JOBS),
    AMOUNT("max/jobs/total", LIMIT_USER_SUBMITTED),
};

static const struct json_member qos_members[] = {
    OWNER("name", name),
    AMOUNT("limits/max/active_jobs/count", LIMIT_JOBS),
    AMOUNT("limits/max/jobs/count", LIMIT_SUBMITTED),
    AMOUNT("limits/max/wall_clock/per/qos", LIMIT_WALL_SECONDS),
    AMOUNTS("limits/max/tres/total", LIMIT_TRES),
    AMOUNTS("limits/max/tres/minutes/total", LIMIT_TRES_SECONDS),
    AMOUNTS("limits/max/tres/minutes/per/qos", LIMIT_TRES_RUN_SECONDS),
    AMOUNT("limits/max/jobs/active_jobs/per/user", LIMIT_USER_JOBS),
    AMOUNT("limits/max/jobs/per/user", LIMIT_USER_SUBMITTED),
    AMOUNTS("limits/max/tres/per/user", LIMIT_USER_TRES),
};

static const struct json_table association_table = {
    .members = association_members,
    .n = COUNT(association_members),
    .begin = begin_owner,
    .end = end_association,
};

static const struct json_table qos_table = {
    .members = qos_members,
    .n = COUNT(qos_members),
    .begin = begin_owner,
    .end = end_qos,
};

static const struct json_member association_document_members[] = {
    MEMBER_LIST("associations", &association_table),
    MEMBER_ERRORS,
};

static const struct json_member qos_document_members[] = {
    MEMBER_LIST("qos", &qos_table),
    MEMBER_LIST("QOS", &qos_table), /* up to v0.0.38 */
    MEMBER_ERRORS,
};

static const struct json_table association_document = {
    .members = association_document_members,
    .n = COUNT(association_document_members),
};

static const struct json_table qos_document = {
    .members = qos_document_members,
    .n = COUNT(qos_document_members),
};

static void begin_associations(struct answer *answer)
{
    json_answer_begin(answer, &association_document);
    buf_init(&of(answer)->tres_name, TRES_NAME_ROOM);
}

static void begin_all_qos(struct answer *answer)
{
    json_answer_begin(answer, &qos_document);
    buf_init(&of(answer)->tres_name, TRES_NAME_ROOM);
}

/* Two arrays as one. */
static void *joined(struct arena *arena, const void *first, size_t n, const void *second,
                    size_t n_second, size_t size)
{
    char *both = arena_array(arena, n + n_second, size);

    if (n)
        memcpy(both, first, n * size);
    if (n_second)
        memcpy(both + n * size, second, n_second * size);
    return both;
}

/* What another answer has told of the section stays before it. */
static void put_told(struct section *section, struct associations *told)
{
    struct associations *to = &section->associations;

    for (size_t i = 0; i < told->n; i++)
        told->association[i].first_limit += (uint32_t)to->n_limits;
    for (size_t i = 0; i < told->n_qos; i++)
        told->qos[i].first_limit += (uint32_t)to->n_limits;
    to->association = joined(&section->arena, to->association, to->n, told->association, told->n,
                             sizeof(*to->association));
    to->qos = joined(&section->arena, to->qos, to->n_qos, told->qos, told->n_qos, sizeof(*to->qos));
    to->limit = joined(&section->arena, to->limit, to->n_limits, told->limit, told->n_limits,
                       sizeof(*to->limit));
    to->n += told->n;
    to->n_qos += told->n_qos;
    to->n_limits += told->n_limits;
}

static int end(struct answer *answer, struct err *err)
{
    int code = json_answer_end(answer, err);

    if (code == 0 && of(answer)->has_clusters)
        return err_set(
            err, EOPNOTSUPP,
            "slurmdbd keeps the limits of several clusters, and it is not known which of "
            "them is ours");
    if (code == 0)
        put_told(answer->section, &of(answer)->told);
    return code;
}

static void release(struct answer *answer)
{
    struct json_limits *all = of(answer);

    json_answer_free(answer);
    free(all->told.association);
    free(all->told.qos);
    free(all->told.limit);
    free(all->tres_limits);
    buf_free(&all->tres_name);
}

const struct answer_class answer_json_associations = {
    .size = sizeof(struct json_limits),
    .begin = begin_associations,
    .feed = json_answer_feed,
    .end = end,
    .free = release,
};

const struct answer_class answer_json_qos = {
    .size = sizeof(struct json_limits),
    .begin = begin_all_qos,
    .feed = json_answer_feed,
    .end = end,
    .free = release,
};
