/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits that are set on accounts, users in an account and QOS, and what of each is in use; the
 * names in parentheses are those of sacctmgr(1). The first four families are those that
 * prometheus-slurm-exporter has. */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/once.h"

enum {
    ACCOUNT_CPU_LIMIT,
    ACCOUNT_MEM_LIMIT,
    ACCOUNT_JOB_ALLOC_LIMIT,
    ACCOUNT_JOB_LIMIT,
    ACCOUNT_FAMILIES,
};

/* Then two for each kind of limit on an association, and on a QOS: the limit, and what is used. */
enum { KINDS_OF_ASSOCIATION = LIMIT_USER_TRES, KINDS_OF_QOS = LIMITS };

#define ASSOCIATION_LIMIT(kind) (ACCOUNT_FAMILIES + 2 * (kind))
#define ASSOCIATION_USED(kind)  (ASSOCIATION_LIMIT(kind) + 1)
#define QOS_LIMIT(kind)         (ASSOCIATION_LIMIT(KINDS_OF_ASSOCIATION) + 2 * (kind))
#define QOS_USED(kind)          (QOS_LIMIT(kind) + 1)

enum { MOST_LIMITS = 50000 };

#define OF_ASSOCIATION "account", "user", "partition"
#define OF_WHOM        " of an account (user is empty) or a user"
#define DECAYED        "; old usage decays."

static const struct family families[] = {
    [ACCOUNT_CPU_LIMIT] = { "slurm_account_cpu_limit",
                            METRIC_GAUGE,
                            "CPUs that an account's jobs may hold at once.",
                            { "account" } },
    [ACCOUNT_MEM_LIMIT] = { "slurm_account_mem_limit",
                            METRIC_GAUGE,
                            "Memory that an account's jobs may hold at once, in bytes.",
                            { "account" } },
    [ACCOUNT_JOB_ALLOC_LIMIT] = { "slurm_account_job_alloc_limit",
                                  METRIC_GAUGE,
                                  "Jobs of an account that may run at once.",
                                  { "account" } },
    [ACCOUNT_JOB_LIMIT] = { "slurm_account_job_limit",
                            METRIC_GAUGE,
                            "Jobs of an account that may run or wait at once.",
                            { "account" } },
    [ASSOCIATION_LIMIT(LIMIT_JOBS)] = { "slurm_association_jobs_limit",
                                        METRIC_GAUGE,
                                        "Jobs" OF_WHOM " that may run at once (GrpJobs).",
                                        { OF_ASSOCIATION } },
    [ASSOCIATION_USED(LIMIT_JOBS)] = { "slurm_association_jobs_used",
                                       METRIC_GAUGE,
                                       "Jobs that run, where GrpJobs is set.",
                                       { OF_ASSOCIATION } },
    [ASSOCIATION_LIMIT(LIMIT_SUBMITTED)] = { "slurm_association_submitted_jobs_limit",
                                             METRIC_GAUGE,
                                             "Jobs" OF_WHOM " that may run or wait at once "
                                             "(GrpSubmitJobs).",
                                             { OF_ASSOCIATION } },
    [ASSOCIATION_USED(LIMIT_SUBMITTED)] = { "slurm_association_submitted_jobs_used",
                                            METRIC_GAUGE,
                                            "Jobs that run or wait, where GrpSubmitJobs is set.",
                                            { OF_ASSOCIATION } },
    [ASSOCIATION_LIMIT(LIMIT_WALL_SECONDS)] = { "slurm_association_wall_limit_seconds",
                                                METRIC_GAUGE,
                                                "Wall time that jobs" OF_WHOM
                                                " may use in all (GrpWall).",
                                                { OF_ASSOCIATION } },
    [ASSOCIATION_USED(LIMIT_WALL_SECONDS)] = { "slurm_association_wall_used_seconds",
                                               METRIC_GAUGE,
                                               "Wall time used, where GrpWall is set" DECAYED,
                                               { OF_ASSOCIATION } },
    [ASSOCIATION_LIMIT(LIMIT_TRES)] = { "slurm_association_tres_limit",
                                        METRIC_GAUGE,
                                        "How much of a resource jobs" OF_WHOM
                                        " may hold at once (GrpTRES); memory in bytes.",
                                        { OF_ASSOCIATION, "tres" } },
    [ASSOCIATION_USED(LIMIT_TRES)] = { "slurm_association_tres_used",
                                       METRIC_GAUGE,
                                       "How much of a resource jobs hold, where GrpTRES is set; "
                                       "memory in bytes.",
                                       { OF_ASSOCIATION, "tres" } },
    [ASSOCIATION_LIMIT(LIMIT_TRES_SECONDS)] = { "slurm_association_tres_time_limit_seconds",
                                                METRIC_GAUGE,
                                                "Seconds of a resource that jobs" OF_WHOM
                                                " may use in all (GrpTRESMins); memory in byte "
                                                "seconds.",
                                                { OF_ASSOCIATION, "tres" } },
    [ASSOCIATION_USED(LIMIT_TRES_SECONDS)] = { "slurm_association_tres_time_used_seconds",
                                               METRIC_GAUGE,
                                               "Seconds of a resource used, where GrpTRESMins is "
                                               "set" DECAYED,
                                               { OF_ASSOCIATION, "tres" } },
    [ASSOCIATION_LIMIT(
        LIMIT_TRES_RUN_SECONDS)] = { "slurm_association_running_tres_time_limit_seconds",
                                     METRIC_GAUGE,
                                     "Seconds of a resource that the running jobs" OF_WHOM
                                     " may still have before them (GrpTRESRunMins); memory in byte "
                                     "seconds.",
                                     { OF_ASSOCIATION, "tres" } },
    [ASSOCIATION_USED(
        LIMIT_TRES_RUN_SECONDS)] = { "slurm_association_running_tres_time_used_seconds",
                                     METRIC_GAUGE,
                                     "Seconds of a resource that running jobs have before them, "
                                     "where GrpTRESRunMins is set.",
                                     { OF_ASSOCIATION, "tres" } },
    [ASSOCIATION_LIMIT(LIMIT_USER_JOBS)] = { "slurm_association_user_jobs_limit",
                                             METRIC_GAUGE,
                                             "Jobs of one user that may run at once (MaxJobs).",
                                             { OF_ASSOCIATION } },
    [ASSOCIATION_USED(LIMIT_USER_JOBS)] = { "slurm_association_user_jobs_used",
                                            METRIC_GAUGE,
                                            "Jobs of the user that run, where MaxJobs is set.",
                                            { OF_ASSOCIATION } },
    [ASSOCIATION_LIMIT(LIMIT_USER_SUBMITTED)] = { "slurm_association_user_submitted_jobs_limit",
                                                  METRIC_GAUGE,
                                                  "Jobs of one user that may run or wait at once "
                                                  "(MaxSubmitJobs).",
                                                  { OF_ASSOCIATION } },
    [ASSOCIATION_USED(LIMIT_USER_SUBMITTED)] = { "slurm_association_user_submitted_jobs_used",
                                                 METRIC_GAUGE,
                                                 "Jobs of the user that run or wait, where "
                                                 "MaxSubmitJobs is set.",
                                                 { OF_ASSOCIATION } },
    [QOS_LIMIT(LIMIT_JOBS)] = { "slurm_qos_jobs_limit",
                                METRIC_GAUGE,
                                "Jobs of a QOS that may run at once (GrpJobs).",
                                { "qos" } },
    [QOS_USED(LIMIT_JOBS)] = { "slurm_qos_jobs_used",
                               METRIC_GAUGE,
                               "Jobs of a QOS that run, where GrpJobs is set.",
                               { "qos" } },
    [QOS_LIMIT(LIMIT_SUBMITTED)] = { "slurm_qos_submitted_jobs_limit",
                                     METRIC_GAUGE,
                                     "Jobs of a QOS that may run or wait at once (GrpSubmitJobs).",
                                     { "qos" } },
    [QOS_USED(LIMIT_SUBMITTED)] = { "slurm_qos_submitted_jobs_used",
                                    METRIC_GAUGE,
                                    "Jobs of a QOS that run or wait, where GrpSubmitJobs is set.",
                                    { "qos" } },
    [QOS_LIMIT(LIMIT_WALL_SECONDS)] = { "slurm_qos_wall_limit_seconds",
                                        METRIC_GAUGE,
                                        "Wall time that jobs of a QOS may use in all (GrpWall).",
                                        { "qos" } },
    [QOS_USED(LIMIT_WALL_SECONDS)] = { "slurm_qos_wall_used_seconds",
                                       METRIC_GAUGE,
                                       "Wall time used in a QOS, where GrpWall is set" DECAYED,
                                       { "qos" } },
    [QOS_LIMIT(LIMIT_TRES)] = { "slurm_qos_tres_limit",
                                METRIC_GAUGE,
                                "How much of a resource jobs of a QOS may hold at once (GrpTRES); "
                                "memory in bytes.",
                                { "qos", "tres" } },
    [QOS_USED(LIMIT_TRES)] = { "slurm_qos_tres_used",
                               METRIC_GAUGE,
                               "How much of a resource jobs of a QOS hold, where GrpTRES is set; "
                               "memory in bytes.",
                               { "qos", "tres" } },
    [QOS_LIMIT(LIMIT_TRES_SECONDS)] = { "slurm_qos_tres_time_limit_seconds",
                                        METRIC_GAUGE,
                                        "Seconds of a resource that jobs of a QOS may use in all "
                                        "(GrpTRESMins); memory in byte seconds.",
                                        { "qos", "tres" } },
    [QOS_USED(LIMIT_TRES_SECONDS)] = { "slurm_qos_tres_time_used_seconds",
                                       METRIC_GAUGE,
                                       "Seconds of a resource used in a QOS, where GrpTRESMins is "
                                       "set" DECAYED,
                                       { "qos", "tres" } },
    [QOS_LIMIT(LIMIT_TRES_RUN_SECONDS)] = { "slurm_qos_running_tres_time_limit_seconds",
                                            METRIC_GAUGE,
                                            "Seconds of a resource that running jobs of a QOS may "
                                            "still have before them (GrpTRESRunMins); memory in "
                                            "byte seconds.",
                                            { "qos", "tres" } },
    [QOS_USED(LIMIT_TRES_RUN_SECONDS)] = { "slurm_qos_running_tres_time_used_seconds",
                                           METRIC_GAUGE,
                                           "Seconds of a resource that running jobs of a QOS have "
                                           "before them, where GrpTRESRunMins is set.",
                                           { "qos", "tres" } },
    [QOS_LIMIT(LIMIT_USER_JOBS)] = { "slurm_qos_user_jobs_limit",
                                     METRIC_GAUGE,
                                     "Jobs of one user that may run at once in a QOS (MaxJobsPU).",
                                     { "qos" } },
    [QOS_USED(LIMIT_USER_JOBS)] = { "slurm_qos_user_jobs_used",
                                    METRIC_GAUGE,
                                    "Running jobs of the user who has most of them in a QOS, where "
                                    "MaxJobsPU is set.",
                                    { "qos" } },
    [QOS_LIMIT(LIMIT_USER_SUBMITTED)] = { "slurm_qos_user_submitted_jobs_limit",
                                          METRIC_GAUGE,
                                          "Jobs of one user that may run or wait at once in a QOS "
                                          "(MaxSubmitJobsPU).",
                                          { "qos" } },
    [QOS_USED(LIMIT_USER_SUBMITTED)] = { "slurm_qos_user_submitted_jobs_used",
                                         METRIC_GAUGE,
                                         "Running and waiting jobs of the user who has most of "
                                         "them in a QOS, where MaxSubmitJobsPU is set.",
                                         { "qos" } },
    [QOS_LIMIT(LIMIT_USER_TRES)] = { "slurm_qos_user_tres_limit",
                                     METRIC_GAUGE,
                                     "How much of a resource one user may hold at once in a QOS "
                                     "(MaxTRESPU); memory in bytes.",
                                     { "qos", "tres" } },
    [QOS_USED(LIMIT_USER_TRES)] = { "slurm_qos_user_tres_used",
                                    METRIC_GAUGE,
                                    "How much of a resource the user holds who has most of it in a "
                                    "QOS, where MaxTRESPU is set; memory in bytes.",
                                    { "qos", "tres" } },
};

_Static_assert(KINDS_OF_ASSOCIATION + 1 == LIMITS, "an association has all but the last kind");

/* Which limit of an account's own row each of the first families shows. */
static const struct {
    enum limit_kind kind;
    struct str tres;
} account_limits[ACCOUNT_FAMILIES] = {
    [ACCOUNT_CPU_LIMIT] = { LIMIT_TRES, STR_INIT("cpu") },
    [ACCOUNT_MEM_LIMIT] = { LIMIT_TRES, STR_INIT("mem") },
    [ACCOUNT_JOB_ALLOC_LIMIT] = { LIMIT_JOBS, STR_INIT("") },
    [ACCOUNT_JOB_LIMIT] = { LIMIT_SUBMITTED, STR_INIT("") },
};

/* One limit, and whose it is: labels as the families have them, the TRES last. */
struct row {
    struct str labels[4];
    struct limit limit;
};

struct rows {
    struct row *row;
    size_t n, room;
};

static struct row *add_row(struct rows *rows, const struct limit *limit)
{
    rows->row = heap_grow(rows->row, rows->n, &rows->room, sizeof(*rows->row));
    rows->row[rows->n] = (struct row){ .limit = *limit };
    return &rows->row[rows->n++];
}

static size_t count_series(const struct limit *limit)
{
    return (limit->limit != MODEL_UNKNOWN_U64) + (limit->used != MODEL_UNKNOWN_U64);
}

/* Each limit once, and no more than there is room for. */
static void pick_association(const struct section *section, const struct association *of,
                             struct once *once, struct rows *rows, struct metric_writer *writer)
{
    for (uint32_t k = 0; k < of->n_limits; k++) {
        const struct limit *limit = &section->associations.limit[of->first_limit + k];
        struct row *row;

        if (!once_numbers(once, of->account, of->user, of->partition, limit->kind, limit->tres))
            continue;
        if (rows->n == MOST_LIMITS) {
            writer->folded += count_series(limit);
            continue;
        }
        row = add_row(rows, limit);
        row->labels[0] = section_text(section, of->account);
        row->labels[1] = section_text(section, of->user);
        row->labels[2] = section_text(section, of->partition);
        row->labels[3] = section_text(section, limit->tres);
    }
}

/* Accounts first, so that where room is short it is some users that are left out. */
static void pick_associations(const struct section *section, struct rows *rows,
                              struct metric_writer *writer)
{
    const struct associations *all = &section->associations;
    struct once once;

    once_init(&once);
    for (size_t i = 0; i < all->n; i++)
        if (!all->association[i].user)
            pick_association(section, &all->association[i], &once, rows, writer);
    for (size_t i = 0; i < all->n; i++)
        if (all->association[i].user)
            pick_association(section, &all->association[i], &once, rows, writer);
    once_free(&once);
}

static void pick_qos(const struct section *section, struct rows *rows)
{
    const struct associations *all = &section->associations;
    struct once once;

    once_init(&once);
    for (size_t i = 0; i < all->n_qos; i++) {
        const struct qos *of = &all->qos[i];

        for (uint32_t k = 0; k < of->n_limits; k++) {
            const struct limit *limit = &all->limit[of->first_limit + k];
            struct row *row;

            if (!once_numbers(&once, of->name, limit->kind, limit->tres))
                continue;
            row = add_row(rows, limit);
            row->labels[0] = section_text(section, of->name);
            row->labels[1] = section_text(section, limit->tres);
        }
    }
    once_free(&once);
}

static void write_accounts(const struct rows *rows, struct metric_writer *writer)
{
    for (size_t family = 0; family < ACCOUNT_FAMILIES; family++) {
        metric_begin(writer, family);
        for (size_t i = 0; i < rows->n; i++) {
            const struct row *row = &rows->row[i];

            if (row->limit.kind == account_limits[family].kind && !row->labels[1].n &&
                !row->labels[2].n && str_eq(row->labels[3], account_limits[family].tres))
                known_write(writer, row->labels, row->limit.limit);
        }
    }
}

static void write_kinds(const struct rows *rows, struct metric_writer *writer, size_t first_family,
                        unsigned n_kinds)
{
    for (unsigned kind = 0; kind < n_kinds; kind++) {
        metric_begin(writer, first_family + 2 * kind);
        for (size_t i = 0; i < rows->n; i++)
            if (rows->row[i].limit.kind == kind)
                known_write(writer, rows->row[i].labels, rows->row[i].limit.limit);
        metric_begin(writer, first_family + 2 * kind + 1);
        for (size_t i = 0; i < rows->n; i++)
            if (rows->row[i].limit.kind == kind)
                known_write(writer, rows->row[i].labels, rows->row[i].limit.used);
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct rows associations = { .n = 0 }, qos = { .n = 0 };

    pick_associations(section, &associations, writer);
    pick_qos(section, &qos);
    write_accounts(&associations, writer);
    write_kinds(&associations, writer, ASSOCIATION_LIMIT(0), KINDS_OF_ASSOCIATION);
    write_kinds(&qos, writer, QOS_LIMIT(0), KINDS_OF_QOS);
    free(associations.row);
    free(qos.row);
}

const struct collector collector_limits = {
    .name = "limits",
    .help = "limits on accounts, users and QOS, and what of them is in use",
    .kind = KIND_ASSOCIATIONS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
