/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One look at a run, merged with what is known of it. */
#include "store/job_row.h"

enum { SETTLE_SECONDS = 30, SETTLE_ARRAY_SECONDS = 600 };

/* An end is not taken back; of two ends, accounting's is right; else the later look is. */
enum rank { OPEN, SEEN_ENDED, ACCOUNTED_ENDED };

static enum rank rank_of(const struct row *row)
{
    if (!value_of(row, IS_COUNTED))
        return OPEN;
    return value_of(row, ORIGIN) == RECORD_ACCOUNTED ? ACCOUNTED_ENDED : SEEN_ENDED;
}

static bool outranks(const struct row *now, const struct row *before)
{
    if (rank_of(now) != rank_of(before))
        return rank_of(now) > rank_of(before);
    if (value_of(now, AS_OF) != value_of(before, AS_OF))
        return value_of(now, AS_OF) > value_of(before, AS_OF);
    return value_of(now, ORIGIN) >= value_of(before, ORIGIN);
}

/* Fills what `better` does not know from `other`. A reason belongs to its state: it is not kept
 * for another one. Tasks of an array that wait together have no number. */
static void fill_unknown(struct row *better, const struct row *other)
{
    bool is_other_state = is_known(better, STATE) && is_changed(better, other, STATE);
    bool is_many = value_of(better, TASKS) > 1;

    for (size_t i = 0; i < COLUMNS; i++)
        if (!is_known(better, i) && !(i == REASON && is_other_state) &&
            !(i == ARRAY_TASK_ID && is_many))
            better->cells[i] = other->cells[i];
}

/* Of tres, tres_requested and each extra, what the better one does not have is the other's. */
static void merge_extras(struct arena *arena, struct job_record *better,
                         const struct job_record *other)
{
    struct record_extra *extra =
        ARENA_ARRAY(arena, struct record_extra, better->n_extra + other->n_extra);
    size_t n = 0;

    if (!better->tres.n)
        better->tres = other->tres;
    if (!better->tres_requested.n)
        better->tres_requested = other->tres_requested;
    for (size_t i = 0; i < better->n_extra; i++)
        if (better->extra[i].value.n)
            extra[n++] = better->extra[i];
    for (size_t i = 0; i < other->n_extra; i++) {
        size_t k = 0;

        while (k < n && !str_eq(extra[k].name, other->extra[i].name))
            k++;
        if (k == n)
            extra[n++] = other->extra[i];
    }
    better->extra = extra;
    better->n_extra = n;
}

/* The packed rest lives until the next call. */
static struct str pack_rest(struct store *store, const struct job_record *record)
{
    buf_reset(&store->plain);
    buf_reset(&store->packed);
    rest_encode(record, &store->plain);
    if (store->plain.n)
        rest_pack(store->packer, REST_JOBS, buf_str(&store->plain), &store->packed);
    return buf_str(&store->packed);
}

static void merge_rest(struct store *store, const struct job_record *record, bool is_better,
                       const struct row *before, struct row *now)
{
    struct job_record mine = *record, known = { 0 };

    now->rest = pack_rest(store, record);
    if (!before->rest.n || str_eq(now->rest, before->rest) ||
        rest_decode(before->rest, &store->scratch, &known, NULL) < 0)
        return; /* one that cannot be read is replaced */
    if (is_better) {
        merge_extras(&store->scratch, &mine, &known);
        now->rest = pack_rest(store, &mine);
    } else {
        merge_extras(&store->scratch, &known, &mine);
        now->rest = pack_rest(store, &known);
    }
}

/* Suspended seconds are those until AS_OF, but the queue gives none: a run that the row before
 * shows as suspended was so from then until now, or until its end. Accounting corrects what changed
 * between two polls. */
static void count_suspended(struct row *now, const struct row *before, int64_t suspended)
{
    int64_t until = value_of(now, AS_OF), since = value_of(before, AS_OF);

    if (value_of(before, STATE) != suspended || value_of(before, IS_COUNTED))
        return;
    if (value_of(now, IS_COUNTED) && is_known(now, END_TIME) && value_of(now, END_TIME) < until)
        until = value_of(now, END_TIME);
    if (until > since)
        now->cells[SUSPENDED_SECONDS] = number(value_of(before, SUSPENDED_SECONDS) + until - since);
}

static int merge(struct store *store, const struct job_record *record, bool has_right_name,
                 const struct row *before, struct row *now, struct err *err)
{
    bool is_better = outranks(now, before);
    struct row other = *now;
    int64_t suspended;
    int r = store_text(store, job_state_words[JOB_SUSPENDED], TEXT_WORD, &suspended, err);

    if (r < 0)
        return r;
    merge_rest(store, record, is_better, before, now);
    if (is_better) {
        fill_unknown(now, before);
        if (!is_known(&other, SUSPENDED_SECONDS))
            count_suspended(now, before, suspended);
    } else {
        other.cells[STATE] = before->cells[STATE];
        memcpy(now->cells, before->cells, sizeof(now->cells));
        fill_unknown(now, &other);
        now->cells[REASON] = before->cells[REASON];
    }
    if (record->origin == RECORD_SEEN)
        now->cells[LAST_SEEN] = number_if(false, 0);
    if (has_right_name)
        now->cells[NAME] = other.cells[NAME];
    now->cells[FIRST_SUBMIT_TIME] = before->cells[FIRST_SUBMIT_TIME];
    now->id = before->id;
    return 0;
}

/* What the queue shows of a run that is requeued or resized depends on when one looks: where there
 * is accounting, ends count as it tells them, and so do those that were counted before it came. */
static int begin_accounting(struct store *store, struct store_cluster *cluster, struct err *err)
{
    sqlite3_stmt *statement;
    int r = store_write_tallies(store, err);

    if (r == 0)
        r = store_use(store, SQL_DROP_ENDED, &statement, err);
    if (r < 0)
        return r;
    store_raise_mark(cluster, MARK_IS_ACCOUNTED, 1);
    db_bind_i64(statement, 1, cluster->id);
    return db_run(statement, err);
}

static enum rank counted_rank(const struct store_cluster *cluster)
{
    return cluster->marks[MARK_IS_ACCOUNTED] ? ACCOUNTED_ENDED : SEEN_ENDED;
}

static bool is_end_counted(const struct store_cluster *cluster, const struct row *row)
{
    return rank_of(row) >= counted_rank(cluster) && value_of(row, IS_COUNTED) == RUN_COUNTED;
}

/* slurmctld sends ends at once, but which tasks a pending array has only now and then: of one that
 * was canceled just now, slurmdbd may have more tasks or fewer than it has minutes later (up to 285
 * s were seen). A counter cannot take them back. */
static bool is_settled(const struct job_record *record)
{
    int64_t age = record->as_of - record->end_time;

    if (!record->end_time || (record->nodes.n && record->tasks == 1))
        return true;
    return age >= (record->tasks > 1 ? SETTLE_ARRAY_SECONDS : SETTLE_SECONDS);
}

/* An end that was seen waits for accounting's, where there is accounting. */
static void hold_back_end(const struct store_cluster *cluster, const struct job_record *record,
                          const struct row *before, struct row *now)
{
    bool is_certain =
        rank_of(now) == ACCOUNTED_ENDED ? is_settled(record) : !cluster->marks[MARK_IS_ACCOUNTED];

    if (rank_of(now) != OPEN && !is_certain && !is_end_counted(cluster, before))
        now->cells[IS_COUNTED] = number(RUN_UNCOUNTED);
}

/* Tasks of an array that ended while they were pending together are one row. */
static int64_t ends_of(const struct row *row)
{
    return value_of(row, TASKS) > 1 ? value_of(row, TASKS) : 1;
}

/* By its one word: flags come and go while a job cleans up. */
static int count_ends(struct store *store, const struct store_cluster *cluster,
                      const struct job_record *record, const struct row *before,
                      const struct row *now, struct err *err)
{
    struct str word = record->state.base == JOB_BASE_UNKNOWN ? job_state_word(record->state)
                                                             : job_state_words[record->state.base];
    int64_t state, more;
    int r;

    if (!is_end_counted(cluster, now))
        return 0;
    more = ends_of(now) - (is_end_counted(cluster, before) ? ends_of(before) : 0);
    if (more <= 0)
        return 0;
    r = store_text(store, word, TEXT_WORD, &state, err);
    if (r == 0)
        store_count_ends(store, cluster->id, state, value_of(now, PARTITION),
                         value_of(now, ACCOUNT), more);
    return r;
}

/* It was there, and would be counted again. */
static bool is_pruned(const struct store_cluster *cluster, const struct job_record *record,
                      const struct row *row)
{
    return value_of(row, IS_COUNTED) &&
           (record->submit_time <= cluster->marks[MARK_PRUNED_SUBMIT] ||
            (is_known(row, END_TIME) &&
             value_of(row, END_TIME) < cluster->marks[MARK_PRUNED_BEFORE]));
}

/* slurmdbd keeps the double quotes of a name as backticks. */
static bool is_name_with_quotes(struct str name, struct str accounted)
{
    bool has_quotes = false;

    if (name.n != accounted.n)
        return false;
    for (size_t i = 0; i < name.n; i++) {
        bool is_quote = name.p[i] == '"' && accounted.p[i] == '`';

        if (!is_quote && name.p[i] != accounted.p[i])
            return false;
        has_quotes |= is_quote;
    }
    return has_quotes;
}

/* Of two names that differ in nothing else, that with quotes is right: the record gets it, or is
 * told to have it. */
static int settle_name(struct store *store, const struct row *before, struct job_record *record,
                       bool *ret_is_right, struct err *err)
{
    struct str name = db_fit(record->name, STORE_TEXT_MAX), known;
    int r;

    *ret_is_right = false;
    if (!is_known(before, NAME) || (str_find(name, '"') == name.n && str_find(name, '`') == name.n))
        return 0;
    r = store_read_text(store, value_of(before, NAME), &known, err);
    if (r < 0)
        return r;
    *ret_is_right = is_name_with_quotes(name, known);
    if (is_name_with_quotes(known, name))
        record->name = known;
    return 0;
}

static int put_row(struct store *store, struct store_cluster *cluster, struct job_record *record,
                   struct err *err)
{
    struct row before = { 0 }, now = { 0 };
    bool has_right_name;
    int knows_id = job_row_find(store, cluster->id, record, &before, err);
    int r = knows_id < 0 ? knows_id : settle_name(store, &before, record, &has_right_name, err);

    if (r == 0)
        r = job_row_of_record(store, record, &now, err);
    if (r < 0)
        return r;
    hold_back_end(cluster, record, &before, &now);
    if (!before.id && is_pruned(cluster, record, &now)) {
        store_raise_mark(cluster, MARK_PRUNED_END, value_of(&now, END_TIME));
        return 0;
    }
    if (before.id)
        r = merge(store, record, has_right_name, &before, &now, err);
    else
        now.rest = pack_rest(store, record);
    if (r == 0)
        job_count_wait(store, cluster, record, &now);
    if (r == 0 && knows_id)
        r = job_link_runs(store, cluster, record, &before, &now, err);
    if (r == 0)
        r = before.id ? job_row_change(store, &before, &now, err)
                      : job_row_add(store, cluster->id, record, &now, err);
    if (r == 0 && !before.id)
        r = store_release_held(store, cluster->id, record->id, err);
    if (r == 0)
        r = job_life_note(store, record, &before, &now, err);
    return r < 0 ? r : count_ends(store, cluster, record, &before, &now, err);
}

int store_put_job(struct store *store, struct str cluster, const struct job_record *record,
                  struct err *err)
{
    struct job_record own = *record;
    struct store_cluster *of;
    int r;

    if (!record->id || record->submit_time <= 0)
        return 0;
    r = store_cluster(store, cluster, &of, err);
    if (r == 0 && record->origin == RECORD_ACCOUNTED && !of->marks[MARK_IS_ACCOUNTED])
        r = begin_accounting(store, of, err);
    if (r == 0)
        store_begin_waits(of, record->as_of);
    if (r == 0)
        r = put_row(store, of, &own, err);
    if (r == 0 && !job_record_has_ended(record))
        store_raise_mark(of, MARK_OPEN_SEEN, record->as_of);
    arena_clear(&store->scratch);
    return r;
}
