/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits, and what of them is in use, from scontrol(1), "scontrol show assoc_mgr flags=assoc,qos":
 * "GrpJobs=10(3)" is limit(usage), N no limit. Not --oneliner: a QOS tells of each of its users,
 * which on one line may be megabytes. */
#include "base/num.h"
#include "source/cli.h"
#include "source/pairs.h"

#include <math.h>

enum {
    MINUTE = 60,
    MEBIBYTE = 1 << 20,
    OWNER_LIMITS_MAX = 1000, /* of one association or QOS */
};

enum owner { NOBODY, ASSOCIATION, QOS };

static const struct field {
    struct str key;
    enum limit_kind kind;
    bool is_tres; /* "cpu=12(11),mem=N(1500)" */
    bool is_minutes;
    enum owner of_users; /* a limit of one user: an account's association hands it down, a QOS tells
                            it for each of its users. NOBODY: a limit of all together, in both */
} fields[] = {
    { .key = STR_INIT("GrpJobs"), .kind = LIMIT_JOBS },
    { .key = STR_INIT("GrpSubmitJobs"), .kind = LIMIT_SUBMITTED },
    { .key = STR_INIT("GrpWall"), .kind = LIMIT_WALL_SECONDS, .is_minutes = true },
    { .key = STR_INIT("GrpTRES"), .kind = LIMIT_TRES, .is_tres = true },
    { .key = STR_INIT("GrpTRESMins"),
      .kind = LIMIT_TRES_SECONDS,
      .is_tres = true,
      .is_minutes = true },
    { .key = STR_INIT("GrpTRESRunMins"),
      .kind = LIMIT_TRES_RUN_SECONDS,
      .is_tres = true,
      .is_minutes = true },
    { .key = STR_INIT("MaxJobs"), .kind = LIMIT_USER_JOBS, .of_users = ASSOCIATION },
    { .key = STR_INIT("MaxSubmitJobs"), .kind = LIMIT_USER_SUBMITTED, .of_users = ASSOCIATION },
    { .key = STR_INIT("MaxJobsPU"), .kind = LIMIT_USER_JOBS, .of_users = QOS },
    { .key = STR_INIT("MaxSubmitJobsPU"), .kind = LIMIT_USER_SUBMITTED, .of_users = QOS },
    { .key = STR_INIT("MaxTRESPU"), .kind = LIMIT_USER_TRES, .is_tres = true, .of_users = QOS },
};

enum { CLUSTER, ACCOUNT, USER, PARTITION, KEYS };

static const struct str keys[KEYS] = {
    [CLUSTER] = STR_INIT("ClusterName"),
    [ACCOUNT] = STR_INIT("Account"),
    [USER] = STR_INIT("UserName"),
    [PARTITION] = STR_INIT("Partition"),
};

struct assoc_mgr {
    struct lined lined;
    size_t room, qos_room, limit_room; /* of the section's arrays */
    bool has_begun;
    enum owner owner; /* of the limits in the next lines: the last one of its kind */
};

/* Whole numbers stay exact; "0.25" minutes are 15 seconds. Unknown if it does not fit. */
static uint64_t read_amount(struct str text, uint64_t unit)
{
    uint64_t number;
    double fraction;

    if (num_get_u64(text, &number))
        return __builtin_mul_overflow(number, unit, &number) ? MODEL_UNKNOWN_U64 : number;
    if (num_get_double(text, &fraction) && fraction >= 0 && fraction * (double)unit < 0x1p63)
        return (uint64_t)llround(fraction * (double)unit);
    return MODEL_UNKNOWN_U64;
}

/* The limits of the current owner, which are the last ones. */
static uint32_t *limit_count(const struct assoc_mgr *mgr)
{
    struct associations *all = &mgr->lined.answer.section->associations;

    return mgr->owner == QOS ? &all->qos[all->n_qos - 1].n_limits
                             : &all->association[all->n - 1].n_limits;
}

/* Each user of a QOS has the same limit; of what they use the most is kept. */
static bool is_merged(const struct assoc_mgr *mgr, const struct limit *limit)
{
    struct associations *all = &mgr->lined.answer.section->associations;

    for (size_t i = all->n_limits - *limit_count(mgr); i < all->n_limits; i++) {
        struct limit *one = &all->limit[i];

        if (one->kind != limit->kind || one->tres != limit->tres)
            continue;
        if (one->used == MODEL_UNKNOWN_U64 ||
            (limit->used != MODEL_UNKNOWN_U64 && limit->used > one->used))
            one->used = limit->used;
        return true;
    }
    return false;
}

/* "12(11)", "N(1500)", "" */
static void read_limit(struct assoc_mgr *mgr, const struct field *field, struct str tres,
                       struct str text)
{
    struct associations *all = &mgr->lined.answer.section->associations;
    uint64_t unit = (field->is_minutes ? MINUTE : 1) * (str_eq(tres, STR("mem")) ? MEBIBYTE : 1);
    struct str used, amount = pairs_name(text, &used);
    struct limit limit = {
        .kind = (uint8_t)field->kind,
        .limit = read_amount(amount, unit),
        .used = read_amount(used, unit),
    };

    if (limit.limit == MODEL_UNKNOWN_U64)
        return;
    if (field->of_users == ASSOCIATION && !all->association[all->n - 1].user)
        limit.used = MODEL_UNKNOWN_U64;
    limit.tres = symbols_put(&mgr->lined.answer.section->symbols, tres);
    if (field->of_users == QOS && is_merged(mgr, &limit))
        return;
    if (*limit_count(mgr) == OWNER_LIMITS_MAX) {
        answer_leave_out(&mgr->lined.answer, tres);
        return;
    }
    all->limit = section_grow(mgr->lined.answer.section, all->limit, all->n_limits,
                              &mgr->limit_room, sizeof(*all->limit));
    all->limit[all->n_limits++] = limit;
    ++*limit_count(mgr);
}

static void read_field(struct assoc_mgr *mgr, const struct field *field, struct str value)
{
    if (!field->is_tres) {
        read_limit(mgr, field, STR(""), value);
        return;
    }
    for (struct str rest = value; rest.p;) {
        struct str amount = str_cut(&rest, ','), tres = str_cut(&amount, '=');

        if (tres.n && amount.p)
            read_limit(mgr, field, tres, amount);
    }
}

static void read_pair(struct assoc_mgr *mgr, const struct pair *pair)
{
    for (size_t i = 0; i < COUNT(fields); i++)
        if (str_eq(pair->key, fields[i].key) &&
            (fields[i].of_users == NOBODY || fields[i].of_users == mgr->owner))
            read_field(mgr, &fields[i], pair->value);
}

/* A comment is what an administrator likes, over several lines too; it comes last. */
static void read_limits(struct assoc_mgr *mgr, struct str line)
{
    struct pair pair;

    for (struct str rest = line; mgr->owner != NOBODY && pairs_next(&rest, &pair);) {
        if (str_eq(pair.key, STR("Comment")))
            mgr->owner = NOBODY;
        else
            read_pair(mgr, &pair);
    }
}

static void begin_association(struct assoc_mgr *mgr, struct str line)
{
    struct answer *answer = &mgr->lined.answer;
    struct associations *all = &answer->section->associations;
    struct str values[KEYS];

    mgr->owner = NOBODY;
    if (!pairs_read(line, keys, KEYS, values) || answer_is_nameless(values[ACCOUNT])) {
        answer_leave_out(answer, line);
        return;
    }
    mgr->owner = ASSOCIATION;
    all->association = section_grow(answer->section, all->association, all->n, &mgr->room,
                                    sizeof(*all->association));
    all->association[all->n++] = (struct association){
        .account = answer_name(answer, values[ACCOUNT]),
        .user = answer_name(answer, pairs_name(values[USER], NULL)),
        .partition = answer_name(answer, values[PARTITION]),
        .first_limit = (uint32_t)all->n_limits,
    };
}

static void begin_qos(struct assoc_mgr *mgr, struct str name)
{
    struct answer *answer = &mgr->lined.answer;
    struct associations *all = &answer->section->associations;

    mgr->owner = NOBODY;
    if (answer_is_nameless(name)) {
        answer_leave_out(answer, name);
        return;
    }
    mgr->owner = QOS;
    all->qos =
        section_grow(answer->section, all->qos, all->n_qos, &mgr->qos_room, sizeof(*all->qos));
    all->qos[all->n_qos++] = (struct qos){
        .name = answer_name(answer, name),
        .first_limit = (uint32_t)all->n_limits,
    };
}

static void read_line(void *ctx, struct str line)
{
    struct assoc_mgr *mgr = ctx;

    if (str_starts(line, STR(" ")))
        read_limits(mgr, line);
    else if (str_starts(line, STR("ClusterName=")))
        begin_association(mgr, line);
    else if (str_starts(line, STR("QOS=")))
        begin_qos(mgr, pairs_name(str_skip(line, strlen("QOS=")), NULL));
    else if (str_eq(line, STR("Current Association Manager state")))
        mgr->has_begun = true;
}

static void begin(struct answer *answer)
{
    lined_begin(answer, read_line);
}

static int end(struct answer *answer, struct err *err)
{
    int code = lined_end(answer, NULL, err);

    if (code == 0 && !((struct assoc_mgr *)answer)->has_begun)
        return err_set(err, EBADMSG, "there are no associations in it");
    return code;
}

static void release(struct answer *answer)
{
    struct associations *all = &answer->section->associations;

    lined_free(answer);
    arena_adopt(&answer->section->arena, all->association);
    arena_adopt(&answer->section->arena, all->qos);
    arena_adopt(&answer->section->arena, all->limit);
}

const struct answer_class answer_associations = {
    .size = sizeof(struct assoc_mgr),
    .begin = begin,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
