/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of the store, compared with sacct a slice of time after the other: a run belongs to the
 * slice in which it ended, one that has not ended to the last. */
#include "record/reconcile_inside.h"

#include <stdlib.h>

enum {
    DAY = 86400,
    YEAR = 365 * DAY,
    FEW = 1000,   /* of fewer runs in a slice, the next is longer; */
    MANY = 50000, /* of more, shorter */
    HOUR = 3600,
    LATE_SECONDS = 60, /* slurmdbd may learn of a change so long after it */
    RUNS_MAX = 5000000,
};

/* A run as sacct has it. */
struct expected {
    struct audit_job job;
    bool is_resized, is_found;
};

struct slice {
    struct reconciling *rec;
    int64_t from, to;
    bool is_last;
    struct map runs; /* by id and submit time: struct expected */
    struct arena arena;
};

struct key {
    int64_t submit;
    uint64_t id;
};

static struct str key_of(struct key *key, uint32_t id, int64_t submit)
{
    *key = (struct key){ submit, id };
    return (struct str){ (const char *)key, sizeof(*key) };
}

static bool belongs(const struct slice *slice, int64_t end)
{
    return end ? end >= slice->from && end < slice->to : slice->is_last;
}

static void copy_job(struct slice *slice, const struct audit_job *job, struct audit_job *ret)
{
    *ret = *job;
    ret->state = arena_str(&slice->arena, job->state);
    ret->account = arena_str(&slice->arena, job->account);
    ret->user = arena_str(&slice->arena, job->user);
    ret->partition = arena_str(&slice->arena, job->partition);
}

/* A job that changes its size has a row for each; the store has the last. */
static int take_job(void *ctx, const struct audit_job *job)
{
    struct slice *slice = ctx;
    struct key key;
    void **place;
    struct expected *known;

    if (slice->runs.n >= RUNS_MAX)
        return err_set(slice->rec->err, EFBIG,
                       "sacct has more than %d jobs for one day: use a "
                       "later --since",
                       RUNS_MAX);
    place = map_put(&slice->runs, key_of(&key, job->id, job->submit));
    known = *place;
    if (!known) {
        known = ARENA_NEW(&slice->arena, struct expected);
        copy_job(slice, job, &known->job);
        *place = known;
    } else if (known->job.start != job->start) {
        known->is_resized = true;
        if (job->start > known->job.start)
            copy_job(slice, job, &known->job);
    }
    return 0;
}

/* Whether slurmdbd was polled after this: if not, the store cannot have it. */
static bool is_polled(const struct reconciling *rec, int64_t time)
{
    return time < rec->cluster.accounted_until - LATE_SECONDS;
}

static int64_t last_change(const struct audit_job *job)
{
    return job->end ? job->end : job->start ? job->start : job->submit;
}

static enum reconcile_reason why_missing(const struct reconciling *rec, const struct audit_job *job)
{
    const struct cluster_row *cluster = &rec->cluster;

    if (!keep_has(rec->config->keep, job->account, job->user))
        return RECONCILE_LEFT_OUT;
    if (!is_polled(rec, last_change(job)))
        return RECONCILE_NOT_POLLED;
    if (job->end && (job->end < cluster->pruned_before || job->submit <= cluster->pruned_submit))
        return RECONCILE_DELETED;
    if (job->end && job->end < cluster->accounted_since)
        return RECONCILE_BEFORE_STORE;
    return RECONCILE_UNEXPLAINED;
}

/* The usage of a user in an account cannot agree if the runs do not. */
static void mark_pair(struct reconciling *rec, struct str account, struct str user,
                      enum reconcile_reason reason)
{
    struct reconcile_pair *pair = reconcile_pair(rec, account, user);

    if (!pair->has_difference || reason == RECONCILE_UNEXPLAINED)
        pair->reason = reason;
    pair->has_difference = true;
}

static uint64_t or_zero(uint64_t amount)
{
    return amount == MODEL_UNKNOWN_U64 ? 0 : amount;
}

/* A field of a run, as both have it. */
struct field {
    const char *what;
    uint64_t ours, theirs;
};

struct text_field {
    const char *what;
    struct str ours, theirs;
};

static struct str base_word(struct job_state state)
{
    return state.base == JOB_BASE_UNKNOWN ? job_state_word(state) : job_state_words[state.base];
}

static enum reconcile_reason why_different(const struct reconciling *rec,
                                           const struct expected *expected, int64_t as_of)
{
    int64_t changed = last_change(&expected->job);

    if (expected->is_resized)
        return RECONCILE_RESIZED;
    if (!is_polled(rec, changed) || (changed > as_of && !is_polled(rec, as_of)))
        return RECONCILE_NOT_POLLED;
    return RECONCILE_UNEXPLAINED;
}

static void compare_texts(struct reconciling *rec, const struct expected *expected,
                          const struct job_row *row)
{
    const struct audit_job *job = &expected->job;
    const struct text_field fields[] = {
        { "state differs", base_word(row->record.state), job->state },
        { "account differs", row->record.account, job->account },
        /* sacct does not know the name of a deleted user. */
        { "user differs", row->record.user, job->user.n ? job->user : row->record.user },
        { "partition differs", row->record.partition, job->partition },
    };
    enum reconcile_reason reason = why_different(rec, expected, row->record.as_of);

    for (size_t i = 0; i < COUNT(fields); i++) {
        if (str_eq(fields[i].ours, fields[i].theirs))
            continue;
        reconcile_note(rec, RECONCILE_RUNS, fields[i].what, reason, "%u: store %.*s, sacct %.*s",
                       (unsigned)job->id, STR_ARG(fields[i].ours), STR_ARG(fields[i].theirs));
        mark_pair(rec, job->account, job->user, reason);
    }
}

static void compare_numbers(struct reconciling *rec, const struct expected *expected,
                            const struct job_row *row)
{
    const struct audit_job *job = &expected->job;
    const struct job_record *record = &row->record;
    const struct field fields[] = {
        { "tasks differ", record->tasks, job->tasks },
        { "start differs", (uint64_t)record->start_time, (uint64_t)job->start },
        { "end differs", (uint64_t)record->end_time, (uint64_t)job->end },
        { "elapsed time differs", (uint64_t)row->elapsed_seconds, job->elapsed },
        { "CPUs differ", record->cpus == MODEL_UNKNOWN_U32 ? 0 : record->cpus, job->cpus },
        { "GPUs differ", or_zero(row->gpus), job->gpus },
        { "billing differs", or_zero(row->billing), job->billing },
    };
    enum reconcile_reason reason = why_different(rec, expected, record->as_of);
    size_t n = job->start && job->end ? COUNT(fields) : job->end ? 1 : 0;

    for (size_t i = 0; i < n; i++) {
        if (fields[i].ours == fields[i].theirs)
            continue;
        reconcile_note(rec, RECONCILE_RUNS, fields[i].what, reason, "%u: store %llu, sacct %llu",
                       (unsigned)job->id, (unsigned long long)fields[i].ours,
                       (unsigned long long)fields[i].theirs);
        mark_pair(rec, job->account, job->user, reason);
    }
}

static enum reconcile_reason why_unknown(const struct reconciling *rec, const struct job_row *row)
{
    int64_t end = row->record.end_time ? row->record.end_time : row->record.as_of;

    if (rec->settings.purge_seconds && end < rec->config->now - rec->settings.purge_seconds)
        return RECONCILE_PURGED;
    if (rec->settings.hides_jobs)
        return RECONCILE_PRIVATE;
    return is_polled(rec, row->key.submit_time) ? RECONCILE_UNEXPLAINED : RECONCILE_NOT_POLLED;
}

static int take_row(void *ctx, const struct job_row *row)
{
    struct slice *slice = ctx;
    struct reconciling *rec = slice->rec;
    struct key key;
    void **place = map_get(&slice->runs, key_of(&key, row->key.job_id, row->key.submit_time));
    struct expected *expected = place ? *place : NULL;

    if (expected && belongs(slice, expected->job.end) && !expected->is_found) {
        expected->is_found = true;
        rec->result->compared[RECONCILE_RUNS]++;
        compare_texts(rec, expected, row);
        compare_numbers(rec, expected, row);
    }
    if (!expected &&
        belongs(slice, job_record_has_ended(&row->record) ? row->record.end_time : 0)) {
        enum reconcile_reason reason = why_unknown(rec, row);

        reconcile_note(rec, RECONCILE_RUNS, "not in sacct", reason, "%u",
                       (unsigned)row->key.job_id);
        mark_pair(rec, row->record.account, row->record.user, reason);
    }
    return 0;
}

static int ask_store(struct slice *slice, const uint32_t *id)
{
    const struct reconcile_config *config = slice->rec->config;
    const struct job_order order = { 0 };
    struct job_filter filter;

    job_filter_clear(&filter);
    filter.clusters = (struct words){ &config->cluster, 1 };
    if (id) {
        filter.ids = id;
        filter.n_ids = 1;
    } else {
        filter.from = slice->from;
        filter.to = slice->to;
    }
    return store_jobs(config->reader, &filter, &order, config->now, take_row, slice,
                      slice->rec->err);
}

/* Its CPU time that lies in the period is known to the interval of polls. */
static void note_suspended(struct reconciling *rec, const struct audit_job *job)
{
    if (job->suspended)
        reconcile_pair(rec, job->account, job->user)->suspended_cpu += job->suspended * job->cpus;
}

static int end_run(struct slice *slice, struct expected *expected)
{
    struct reconciling *rec = slice->rec;
    const struct audit_job *job = &expected->job;
    enum reconcile_reason reason;
    int r = 0;

    if (!belongs(slice, job->end))
        return 0;
    note_suspended(rec, job);
    if (job->end && keep_has(rec->config->keep, job->account, job->user))
        state_count(rec, &rec->sacct, job->state, job->tasks);
    /* The store may have it with another end. */
    if (!expected->is_found)
        r = ask_store(slice, &job->id);
    if (r < 0 || expected->is_found)
        return r;
    reason = why_missing(rec, job);
    rec->result->compared[RECONCILE_RUNS]++;
    reconcile_note(rec, RECONCILE_RUNS, "missing in the store", reason, "%u", (unsigned)job->id);
    mark_pair(rec, job->account, job->user, reason);
    if (job->end && reason != RECONCILE_UNEXPLAINED)
        state_count(rec, &rec->unpolled, job->state, job->tasks);
    return 0;
}

static int compare_slice(struct slice *slice)
{
    struct reconciling *rec = slice->rec;
    int r;

    map_init(&slice->runs, &slice->arena);
    r = audit_jobs(rec->config->audit, slice->from, slice->to, take_job, slice, rec->err);
    if (r == 0)
        r = ask_store(slice, NULL);
    for (size_t i = 0; i < slice->runs.n && r == 0; i++)
        r = end_run(slice, slice->runs.entries[i].value);
    return r;
}

int reconcile_runs(struct reconciling *rec)
{
    int64_t width = DAY, to = rec->config->now;
    int r = 0;

    for (int64_t from = rec->config->from; from < to && r == 0;) {
        struct slice slice = { .rec = rec, .from = from };

        slice.to = to - from > width ? from + width : to;
        slice.is_last = slice.to == to;
        r = compare_slice(&slice);
        from = slice.to;
        if (slice.runs.n < FEW && width < YEAR)
            width *= 2;
        else if (slice.runs.n > MANY && width > HOUR)
            width /= 2;
        map_free(&slice.runs);
        arena_clear(&slice.arena);
    }
    return r;
}
