/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One look at a run, merged with what is known of it. */
#include "store/job_row.h"

/* An end is not taken back; of two ends, accounting's is right; else the later look is. */
static int64_t rank_of(const struct row *row)
{
    return value_of(row, IS_COUNTED) ? 1 + (value_of(row, ORIGIN) == RECORD_ACCOUNTED) : 0;
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
 * for another one. */
static void fill_unknown(struct row *better, const struct row *other)
{
    bool is_other_state = is_known(better, STATE) && is_changed(better, other, STATE);

    for (size_t i = 0; i < COLUMNS; i++)
        if (!is_known(better, i) && !(i == REASON && is_other_state))
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

static void merge(struct store *store, const struct job_record *record, const struct row *before,
                  struct row *now)
{
    bool is_better = outranks(now, before);
    struct row other = *now;

    merge_rest(store, record, is_better, before, now);
    if (is_better) {
        fill_unknown(now, before);
    } else {
        other.cells[STATE] = before->cells[STATE];
        memcpy(now->cells, before->cells, sizeof(now->cells));
        fill_unknown(now, &other);
        now->cells[REASON] = before->cells[REASON];
    }
    now->cells[FIRST_SUBMIT_TIME] = before->cells[FIRST_SUBMIT_TIME];
    now->id = before->id;
}

/* By its one word: flags come and go while a job cleans up. */
static int count_once(struct store *store, int64_t cluster, const struct job_record *record,
                      const struct row *before, const struct row *now, struct err *err)
{
    struct str word = record->state.base == JOB_BASE_UNKNOWN ? job_state_word(record->state)
                                                             : job_state_words[record->state.base];
    int64_t state;
    int r;

    if (!value_of(now, IS_COUNTED) || (before->id && value_of(before, IS_COUNTED)))
        return 0;
    r = store_text(store, word, TEXT_WORD, &state, err);
    if (r == 0)
        store_count_end(store, cluster, state, value_of(now, PARTITION), value_of(now, ACCOUNT));
    return r;
}

/* It was there, and would be counted again. */
static bool is_pruned(const struct store_cluster *cluster, const struct job_record *record,
                      const struct row *row)
{
    return value_of(row, IS_COUNTED) &&
           (record->submit_time <= cluster->pruned_submit ||
            (is_known(row, END_TIME) && value_of(row, END_TIME) < cluster->pruned_end));
}

/* For store_open_seen. */
static void note_open(struct store_cluster *cluster, const struct job_record *record)
{
    if (record->as_of > cluster->open_seen && !job_record_has_ended(record))
        cluster->open_seen = record->as_of;
}

static int put_row(struct store *store, const struct store_cluster *cluster,
                   const struct job_record *record, struct err *err)
{
    struct row before = { 0 }, now = { 0 };
    int knows_id = job_row_find(store, cluster->id, record, &before, err);
    int r = knows_id < 0 ? knows_id : job_row_of_record(store, record, &now, err);

    if (r < 0 || (!before.id && is_pruned(cluster, record, &now)))
        return r;
    if (before.id)
        merge(store, record, &before, &now);
    else
        now.rest = pack_rest(store, record);
    if (knows_id)
        r = job_link_runs(store, cluster->id, record, &before, &now, err);
    if (r == 0)
        r = before.id ? job_row_change(store, &before, &now, err)
                      : job_row_add(store, cluster->id, record, &now, err);
    if (r == 0)
        r = job_life_note(store, record, &before, &now, err);
    return r < 0 ? r : count_once(store, cluster->id, record, &before, &now, err);
}

int store_put_job(struct store *store, struct str cluster, const struct job_record *record,
                  struct err *err)
{
    struct store_cluster *of;
    int r;

    if (!record->id || record->submit_time <= 0)
        return 0;
    r = store_cluster(store, cluster, &of, err);
    if (r == 0)
        r = put_row(store, of, record, err);
    if (r == 0)
        note_open(of, record);
    arena_clear(&store->scratch);
    return r;
}
