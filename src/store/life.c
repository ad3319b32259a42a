/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a run: (time, state, reason). What has a time of its own, its submission, its start
 * and its end, stands at that time and moves with it; anything else stands where it was seen. */
#include "store/job_row.h"

/* Of one run: a reason may go to and fro for months. */
enum { MOMENTS_MAX = 200 };

static int change_moment(struct store *store, enum store_statement which, int64_t job, int64_t time,
                         int64_t state, int64_t reason, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, which, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, job);
    db_bind_i64(statement, 2, time);
    db_bind_i64(statement, 3, state);
    db_bind_i64(statement, 4, reason);
    return db_run(statement, err);
}

static int has_room_for_moment(struct store *store, int64_t job, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_COUNT_MOMENTS, &statement, err);

    if (r < 0)
        return r;
    db_bind_i64(statement, 1, job);
    r = db_step(statement, err);
    if (r > 0)
        r = db_i64(statement, 0, 0) < MOMENTS_MAX;
    sqlite3_reset(statement);
    return r;
}

int job_life_add(struct store *store, int64_t job, int64_t time, int64_t state, int64_t reason,
                 struct err *err)
{
    return change_moment(store, SQL_ADD_MOMENT, job, time, state, reason, err);
}

static int add_seen_moment(struct store *store, const struct row *now, struct err *err)
{
    int r = has_room_for_moment(store, now->id, err);

    if (r <= 0)
        return r;
    return job_life_add(store, now->id, value_of(now, AS_OF), value_of(now, STATE),
                        value_of(now, REASON), err);
}

static int64_t word_of(struct store *store, enum job_base base, struct err *err)
{
    int64_t id;
    int r = store_text(store, job_state_words[base], TEXT_WORD, &id, err);

    return r < 0 ? r : id;
}

/* One that has ended without nodes never ran, whatever start Slurm gives it. */
static bool has_started(const struct row *row)
{
    return is_known(row, START_TIME) && (!value_of(row, IS_COUNTED) || is_known(row, NODE_LIST));
}

/* 1 if this look is the first that tells of a start, or of another one. */
static int note_start(struct store *store, const struct row *before, const struct row *now,
                      struct err *err)
{
    int64_t running;
    int r = 0;

    if (!has_started(now) || (has_started(before) && !is_changed(now, before, START_TIME)))
        return 0;
    running = word_of(store, JOB_RUNNING, err);
    if (running < 0)
        return (int)running;
    if (has_started(before))
        r = change_moment(store, SQL_DROP_MOMENT, now->id, value_of(before, START_TIME), running, 0,
                          err);
    if (r == 0)
        r = job_life_add(store, now->id, value_of(now, START_TIME), running, 0, err);
    return r < 0 ? r : 1;
}

static int64_t end_of(const struct row *row)
{
    return is_known(row, END_TIME) ? value_of(row, END_TIME) : value_of(row, AS_OF);
}

static int note_end(struct store *store, const struct row *before, const struct row *now,
                    struct err *err)
{
    bool had_ended = before->id && value_of(before, IS_COUNTED);
    int r = 0;

    if (had_ended && end_of(now) == end_of(before) && !is_changed(now, before, STATE) &&
        !is_changed(now, before, REASON))
        return 0;
    if (had_ended)
        r = change_moment(store, SQL_DROP_MOMENT, now->id, end_of(before), value_of(before, STATE),
                          value_of(before, REASON), err);
    return r < 0 ? r
                 : job_life_add(store, now->id, end_of(now), value_of(now, STATE),
                                value_of(now, REASON), err);
}

int job_life_note(struct store *store, const struct job_record *record, const struct row *before,
                  const struct row *now, struct err *err)
{
    int64_t waiting = word_of(store, JOB_PENDING, err);
    bool waits = value_of(now, STATE) == waiting, runs;
    int r = waiting < 0 ? (int)waiting : 0;

    if (r == 0 && !before->id)
        r = job_life_add(store, now->id, record->submit_time, waiting,
                         waits ? value_of(now, REASON) : 0, err);
    if (r == 0)
        r = note_start(store, before, now, err);
    if (r < 0)
        return r;
    runs = r > 0 && record->state.base == JOB_RUNNING && !record->state.flags;
    if (value_of(now, IS_COUNTED))
        return note_end(store, before, now, err);
    if (runs || !is_known(now, STATE) || (!before->id && waits) ||
        (before->id && !is_changed(now, before, STATE) && !is_changed(now, before, REASON)))
        return 0;
    return add_seen_moment(store, now, err);
}
