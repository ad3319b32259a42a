/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The runs of one job, which Slurm requeued: the same id on the same cluster, linked by the count
 * of restarts. */
#include "store/job_row.h"

/* Another run of the same job, as the statements SQL_RUN_* tell it. */
struct other_run {
    int64_t id, submit_time, first_submit_time, restarts, user, name, state, reason, partition,
        account;
    bool is_counted;
};

/* 1 if there is one. */
static int find_other_run(struct store *store, enum store_statement which, int64_t cluster,
                          uint32_t job_id, int64_t submit_time, struct other_run *ret,
                          struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, job_id);
    db_bind_i64(statement, 2, submit_time);
    db_bind_i64(statement, 3, cluster);
    r = db_step(statement, err);
    if (r > 0)
        *ret = (struct other_run){
            .id = db_i64(statement, 0, 0),
            .submit_time = db_i64(statement, 1, 0),
            .first_submit_time = db_i64(statement, 2, 0),
            .restarts = db_i64(statement, 3, -1),
            .user = db_i64(statement, 4, 0),
            .name = db_i64(statement, 5, 0),
            .state = db_i64(statement, 6, 0),
            .reason = db_i64(statement, 7, 0),
            .partition = db_i64(statement, 8, 0),
            .account = db_i64(statement, 9, 0),
            .is_counted = db_i64(statement, 10, 0),
        };
    sqlite3_reset(statement);
    return r;
}

/* Whether the later one is the same job, requeued, and not another that got its id when ids had
 * wrapped: that one has not been restarted yet. Where restarts are not told, a job is known by its
 * user and name. */
static bool is_same_job(const struct other_run *earlier, const struct other_run *later)
{
    if (earlier->user && later->user && earlier->user != later->user)
        return false;
    if (later->restarts >= 0)
        return later->restarts > (earlier->restarts > 0 ? earlier->restarts : 0);
    return earlier->user && earlier->user == later->user && earlier->name == later->name;
}

static int set_first_submit(struct store *store, int64_t id, int64_t time, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_SET_FIRST_SUBMIT, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, id);
    db_bind_i64(statement, 2, time);
    return db_run(statement, err);
}

/* Runs that came later may be told earlier. */
static int link_later_runs(struct store *store, int64_t cluster, uint32_t job_id,
                           struct other_run run, struct err *err)
{
    struct other_run later;
    int r;

    while ((r = find_other_run(store, SQL_RUN_AFTER, cluster, job_id, run.submit_time, &later,
                               err)) > 0) {
        int64_t first = is_same_job(&run, &later) ? run.first_submit_time : later.submit_time;

        if (later.first_submit_time == first)
            return 0;
        r = set_first_submit(store, later.id, first, err);
        if (r < 0)
            return r;
        later.first_submit_time = first;
        run = later;
    }
    return r;
}

/* A run that was requeued has ended, which nobody but slurmdbd tells, if there is one. */
static int end_requeued(struct store *store, const struct store_cluster *cluster,
                        const struct other_run *run, int64_t end_time, struct err *err)
{
    sqlite3_stmt *statement;
    int64_t state;
    int r = store_text(store, STR("REQUEUED"), TEXT_WORD, &state, err);

    if (r == 0)
        r = store_use(store, SQL_END_REQUEUED, &statement, err);
    if (r < 0)
        return r;
    db_bind_i64(statement, 1, run->id);
    db_bind_i64(statement, 2, state);
    db_bind_i64(statement, 3, end_time);
    db_bind_i64(statement, 4, RECORD_SEEN);
    db_bind_i64(statement, 5, cluster->marks[MARK_IS_ACCOUNTED] ? RUN_UNCOUNTED : RUN_COUNTED);
    r = db_run(statement, err);
    if (r == 0)
        r = job_life_add(store, run->id, end_time, state, 0, err);
    if (r == 0 && !cluster->marks[MARK_IS_ACCOUNTED])
        store_count_ends(store, cluster->id, state, run->partition, run->account, 1);
    return r;
}

int job_link_runs(struct store *store, const struct store_cluster *cluster,
                  const struct job_record *record, const struct row *before, struct row *now,
                  struct err *err)
{
    struct other_run earlier,
        run = { .submit_time = record->submit_time,
                .first_submit_time = record->submit_time,
                .restarts = is_known(now, RESTARTS) ? value_of(now, RESTARTS) : -1,
                .user = value_of(now, USER),
                .name = value_of(now, NAME) };
    int r;

    if (before->id && !is_changed(now, before, RESTARTS))
        return 0;
    r = find_other_run(store, SQL_RUN_BEFORE, cluster->id, record->id, record->submit_time,
                       &earlier, err);
    if (r > 0 && is_same_job(&earlier, &run)) {
        run.first_submit_time = earlier.first_submit_time;
        if (!earlier.is_counted && run.restarts > 0)
            r = end_requeued(store, cluster, &earlier, record->submit_time, err);
    }
    now->cells[FIRST_SUBMIT_TIME] = number(run.first_submit_time);
    return r < 0 ? r : link_later_runs(store, cluster->id, record->id, run, err);
}
