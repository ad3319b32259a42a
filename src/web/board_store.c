/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One of those who ask makes a new board while the others get the one that there is. */
#include "web/board_store.h"

#include "base/moment.h"
#include "source/record_reader.h"
#include "store/query.h"
#include "store/store.h"
#include "web/board_jobs.h"

#include <stdlib.h>

enum {
    MINUTE = 60,
    ENDED_SECONDS = 5 * MINUTE, /* for which a job that has ended is still shown */
    TROUBLE_MAX = 1000,
};

static const int64_t pause_ns = 10 * NS_PER_SEC; /* from one look at the store to the next */

/* By age; what an exporter asks for rarely (--slurm.*-poll-limit) is told rarely. */
static const int64_t stale_seconds[KINDS] = {
    [KIND_NODES] = 5 * MINUTE,         [KIND_JOBS] = 5 * MINUTE,  [KIND_RESERVATIONS] = 5 * MINUTE,
    [KIND_LICENSES] = 5 * MINUTE,      [KIND_DIAG] = 5 * MINUTE,  [KIND_SHARES] = 15 * MINUTE,
    [KIND_ASSOCIATIONS] = 15 * MINUTE, [KIND_CONFIG] = INT32_MAX, /* what is private stays so */
};

struct board_store {
    char *url;
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t made;
    bool is_making;
    uint64_t tries;      /* that have ended */
    struct err err;      /* of the last one; no code: it went well */
    struct board *board; /* the newest; or NULL */
    int64_t look_at;     /* not before that (monotonic) */

    struct store_reader *reader; /* of who makes one, as the next ones */
    int64_t version;
    int64_t stale_at; /* UTC seconds: when something is to be withdrawn, if nothing is written */
};

int board_store_open(const char *url, const struct clock *clock, struct board_store **ret,
                     struct err *err)
{
    struct board_store *boards;
    char path[STORE_PATH_MAX];
    int code = store_path(str_of(url), path, err);

    if (code < 0)
        return code;
    boards = heap_alloc(sizeof(*boards));
    boards->url = heap_str(str_of(url));
    boards->clock = clock;
    boards->look_at = INT64_MIN;
    pthread_mutex_init(&boards->lock, NULL);
    clock_cond_init(&boards->made);
    *ret = boards;
    return 0;
}

struct board_store *board_store_close(struct board_store *boards)
{
    if (!boards)
        return NULL;
    store_reader_close(boards->reader);
    board_unref(boards->board);
    pthread_mutex_destroy(&boards->lock);
    pthread_cond_destroy(&boards->made);
    free(boards->url);
    free(boards);
    return NULL;
}

/* ---- making one, by one thread at a time ---- */

struct making {
    struct board_store *boards;
    struct board *board;
    const struct look_row *looks; /* of each cluster */
    const struct board *old;      /* or NULL */
    int64_t now, stale_at;
    struct err *err;
};

static int read_document(struct str document, struct section **ret, struct err *err)
{
    struct record_reader *reader = record_reader_new(STORE_SECTION_MAX);
    int code = record_reader_feed(reader, document, err);

    if (code == 0)
        code = record_reader_end(reader, ret, err);
    record_reader_free(reader);
    return code;
}

static void set_time(struct making *making, struct section *section, int64_t time)
{
    const struct clock *clock = making->boards->clock;

    section->wall_ns = time * NS_PER_SEC;
    section->mono_ns = clock_mono(clock) - (clock_wall(clock) - section->wall_ns);
}

/* The same section as before, if it has not been written since. */
static struct section *old_section(const struct making *making, struct str cluster, enum kind kind)
{
    const struct board_cluster *of = making->old ? board_find(making->old, cluster) : NULL;

    return of && str_eq(of->name, cluster) ? of->section[kind] : NULL;
}

static int read_kept(struct making *making, struct str cluster, enum kind kind,
                     struct section **ret, int64_t *ret_time)
{
    struct section *old = old_section(making, cluster, kind);
    struct arena arena = { 0 };
    struct str document;
    int code = store_section(making->boards->reader, cluster, kind_name(kind),
                             old ? old->wall_ns / NS_PER_SEC : 0, &arena, ret_time, &document,
                             making->err);

    *ret = NULL;
    if (code == 0 && document.n) {
        code = read_document(document, ret, making->err);
        if (code == 0 && (*ret)->kind != kind)
            code = err_set(making->err, EBADMSG, "it is of another kind");
        if (code < 0)
            err_prefix(making->err, "what the store has of %s", kind_name(kind));
    } else if (code == 0 && old && *ret_time) {
        *ret = section_ref(old);
    }
    arena_clear(&arena);
    if (code < 0)
        *ret = section_unref(*ret);
    else if (*ret && *ret != old)
        set_time(making, *ret, *ret_time);
    return code;
}

static bool is_stale(const struct making *making, enum kind kind, int64_t time)
{
    return making->now - time > stale_seconds[kind];
}

static void put_since(struct buf *trouble, enum kind kind, int64_t time)
{
    buf_printf(trouble, trouble->n ? "; of %s since " : "Nothing was recorded of %s since ",
               kind_name(kind));
    moment_put_zoned(trouble, time);
}

/* Takes it over. One of which nothing was ever told is no trouble. */
static void show(struct making *making, struct board_cluster *cluster, struct section *section,
                 int64_t time, enum kind kind, struct buf *trouble)
{
    int64_t stale_at = time + stale_seconds[kind] + 1;

    if (!time || is_stale(making, kind, time)) {
        section_unref(section);
        if (time)
            put_since(trouble, kind, time);
        return;
    }
    cluster->section[kind] = section;
    if (stale_at < making->stale_at)
        making->stale_at = stale_at;
}

static int fill_kept(struct making *making, struct board_cluster *cluster, struct buf *trouble)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct section *section;
        int64_t time = 0;
        int code;

        if (kind == KIND_JOBS || !stale_seconds[kind])
            continue;
        code = read_kept(making, cluster->name, (enum kind)kind, &section, &time);
        if (code < 0)
            return code;
        show(making, cluster, section, time, (enum kind)kind, trouble);
    }
    return 0;
}

static int fill_cluster(struct making *making, size_t i, struct section *jobs)
{
    struct board_cluster *cluster = &making->board->cluster[i];
    int64_t looked = making->looks[i].jobs_seen;
    struct buf trouble;
    int code;

    buf_init(&trouble, TROUBLE_MAX);
    cluster->name = arena_str(&making->board->arena, making->looks[i].cluster);
    cluster->is_simulated = store_reader_is_simulated(making->boards->reader);
    set_time(making, jobs, looked);
    show(making, cluster, jobs, looked, KIND_JOBS, &trouble);
    code = fill_kept(making, cluster, &trouble);
    cluster->trouble = cluster->trouble_in_full =
        arena_str(&making->board->arena, buf_str(&trouble));
    buf_free(&trouble);
    return code;
}

static int fill(struct making *making, size_t n, struct arena *arena)
{
    struct section **jobs = ARENA_ARRAY(arena, struct section *, n);
    int code = board_jobs_read(making->boards->reader, making->looks, n,
                               making->now - ENDED_SECONDS, making->now, jobs, making->err);

    for (size_t i = 0; i < n && code == 0; i++) {
        code = fill_cluster(making, i, jobs[i]);
        jobs[i] = NULL;
    }
    for (size_t i = 0; i < n; i++)
        section_unref(jobs[i]);
    return code;
}

static int make(struct making *making)
{
    struct arena arena = { 0 };
    struct look_row *looks;
    size_t n;
    int code = store_looks(making->boards->reader, &arena, &looks, &n, making->err);

    if (code == 0) {
        making->looks = looks;
        making->board = board_new(n, making->now);
        code = fill(making, n, &arena);
    }
    arena_clear(&arena);
    if (code < 0)
        making->board = board_unref(making->board);
    else
        board_sum(making->board);
    return code;
}

static int open_reader(struct board_store *boards, int64_t deadline_ns, struct err *err)
{
    int code = 0;

    if (!boards->reader)
        code = store_reader_open(str_of(boards->url), &boards->reader, err);
    if (code == 0)
        store_reader_deadline(boards->reader, deadline_ns);
    return code;
}

/* *ret is NULL if the old one is as good. */
static int renew(struct board_store *boards, const struct board *old, int64_t deadline_ns,
                 struct board **ret, struct err *err)
{
    struct making making = {
        .boards = boards,
        .old = old,
        .now = clock_wall(boards->clock) / NS_PER_SEC,
        .stale_at = INT64_MAX,
        .err = err,
    };
    int64_t version;
    int code = open_reader(boards, deadline_ns, err);

    *ret = NULL;
    if (code == 0)
        code = store_reader_version(boards->reader, &version, err);
    if (code == 0 && old && version == boards->version && making.now < boards->stale_at)
        return 0;
    if (code == 0)
        code = make(&making);
    if (code < 0) {
        boards->reader = store_reader_close(boards->reader);
        return code;
    }
    boards->version = version;
    boards->stale_at = making.stale_at;
    *ret = making.board;
    return 0;
}

/* ---- who asks ---- */

/* Whether the board that there is will do, although no newer one could be made: the store was only
 * slow, and nothing on it is too old. */
static bool will_do(const struct board_store *boards, int code)
{
    return code == 0 || ((code == -ETIMEDOUT || code == -EBUSY) &&
                         clock_wall(boards->clock) / NS_PER_SEC < boards->stale_at);
}

/* With the lock held, which is let go meanwhile. */
static void try_once(struct board_store *boards, int64_t deadline_ns)
{
    struct board *old = boards->board, *fresh;
    struct err err = { 0 };
    int code;

    boards->is_making = true;
    pthread_mutex_unlock(&boards->lock);
    code = renew(boards, old, deadline_ns, &fresh, &err);
    pthread_mutex_lock(&boards->lock);
    boards->is_making = false;
    boards->tries++;
    boards->err = err;
    if (fresh || !will_do(boards, code)) {
        boards->board = fresh;
        board_unref(old);
    }
    boards->look_at = code < 0 ? INT64_MIN : clock_mono(boards->clock) + pause_ns;
    pthread_cond_broadcast(&boards->made);
}

/* Until the one under way is made, or has failed. Likewise. */
static bool wait_for_other(struct board_store *boards, int64_t deadline_ns)
{
    uint64_t tries = boards->tries;

    while (boards->tries == tries && clock_mono(&clock_real) < deadline_ns)
        clock_wait(&clock_real, &boards->made, &boards->lock, deadline_ns);
    return boards->tries != tries;
}

static struct board *take(void *ctx, int64_t deadline_ns, struct err *err)
{
    struct board_store *boards = ctx;
    struct board *board = NULL;
    bool is_over = true;

    pthread_mutex_lock(&boards->lock);
    if (!boards->is_making && clock_mono(boards->clock) >= boards->look_at &&
        clock_mono(&clock_real) < deadline_ns)
        try_once(boards, deadline_ns);
    else if (!boards->board)
        is_over = wait_for_other(boards, deadline_ns);
    if (boards->board)
        board = board_ref(boards->board);
    else if (is_over)
        *err = boards->err;
    else
        err_set(err, ETIMEDOUT, "the store did not answer in time");
    pthread_mutex_unlock(&boards->lock);
    return board;
}

struct board_source board_store_source(struct board_store *boards)
{
    return (struct board_source){ .take = take, .ctx = boards };
}
