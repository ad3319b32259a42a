/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts how long runs were pending, once for each that has started, and reads what is counted. */
#include "store/job_row.h"

/* Of what accounting has of a run that goes on, the start is not final: it is set again when nodes
 * have booted. The queue shows those. */
static bool has_started(const struct job_record *record)
{
    return record->start_time > 0 &&
           (record->origin == RECORD_SEEN || (record->nodes.n && job_record_has_ended(record)));
}

void job_count_wait(struct store *store, const struct store_cluster *cluster,
                    const struct job_record *record, struct row *now)
{
    int64_t seconds = wait_seconds(record->submit_time, record->eligible_time, record->start_time);

    if (value_of(now, IS_WAIT_COUNTED) || !has_started(record) ||
        record->start_time < cluster->marks[MARK_WAITS_SINCE])
        return;
    now->cells[IS_WAIT_COUNTED] = number(1);
    if (seconds >= 0)
        store_count_wait(store, cluster->id, value_of(now, PARTITION), seconds);
}

static void add_bucket(struct partition_wait *to, sqlite3_stmt *statement)
{
    int64_t bound = db_i64(statement, 1, 0);

    to->wait.buckets[bound ? wait_bucket((double)bound) : WAIT_BOUNDS] +=
        (uint64_t)db_i64(statement, 2, 0);
    to->wait.sum += (double)db_i64(statement, 3, 0);
}

int store_waits(struct store *store, struct str cluster, struct arena *arena,
                struct partition_wait **ret, size_t *ret_n, struct err *err)
{
    struct partition_wait *waits = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *statement;
    int r = store_use(store, SQL_WAITS, &statement, err);

    if (r < 0)
        return r;
    db_bind_text(statement, 1, cluster);
    while ((r = db_step(statement, err)) > 0) {
        struct str partition = db_text(statement, 0);

        if (!n || !str_eq(waits[n - 1].partition, partition)) {
            waits = heap_grow(waits, n, &room, sizeof(*waits));
            waits[n++] = (struct partition_wait){ .partition = arena_str(arena, partition) };
        }
        add_bucket(&waits[n - 1], statement);
    }
    sqlite3_reset(statement);
    arena_adopt(arena, waits);
    *ret = waits;
    *ret_n = n;
    return r;
}
