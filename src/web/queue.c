/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs that are asked for get a number that sorts them; then only the page is put in order. */
#include "web/queue.h"

#include "model/job_times.h"
#include "web/queue_filter.h"
#include "web/queue_index.h"

#include <math.h>
#include <stdlib.h>

enum key_type {
    KEY_U32, /* MODEL_UNKNOWN_U32 */
    KEY_U64, /* MODEL_UNKNOWN_U64 */
    KEY_TIME,
    KEY_TEXT, /* a symbol */
    KEY_STATE,
    KEY_GPUS,
    KEY_START,
    KEY_ELAPSED,
};

static const struct {
    enum key_type type;
    size_t offset; /* of a member of struct job */
} key_rows[QUEUE_SORTS] = {
    [QUEUE_BY_SUBMIT] = { KEY_TIME, offsetof(struct job, submit_time) },
    [QUEUE_BY_ID] = { KEY_U32, offsetof(struct job, id) },
    [QUEUE_BY_NAME] = { KEY_TEXT, offsetof(struct job, name) },
    [QUEUE_BY_USER] = { KEY_TEXT, offsetof(struct job, user) },
    [QUEUE_BY_ACCOUNT] = { KEY_TEXT, offsetof(struct job, account) },
    [QUEUE_BY_PARTITION] = { KEY_TEXT, offsetof(struct job, partition) },
    [QUEUE_BY_STATE] = { KEY_STATE, 0 },
    [QUEUE_BY_REASON] = { KEY_TEXT, offsetof(struct job, reason) },
    [QUEUE_BY_NODES] = { KEY_U32, offsetof(struct job, node_count) },
    [QUEUE_BY_CPUS] = { KEY_U32, offsetof(struct job, cpus) },
    [QUEUE_BY_GPUS] = { KEY_GPUS, 0 },
    [QUEUE_BY_MEMORY] = { KEY_U64, offsetof(struct job, memory_bytes) },
    [QUEUE_BY_START] = { KEY_START, 0 },
    [QUEUE_BY_ELAPSED] = { KEY_ELAPSED, 0 },
    [QUEUE_BY_LIMIT] = { KEY_U32, offsetof(struct job, time_limit_minutes) },
    [QUEUE_BY_PRIORITY] = { KEY_U64, offsetof(struct job, priority) },
};

const char *const queue_sort_words[QUEUE_SORTS] = {
    [QUEUE_BY_SUBMIT] = "submit",   [QUEUE_BY_ID] = "id",
    [QUEUE_BY_NAME] = "name",       [QUEUE_BY_USER] = "user",
    [QUEUE_BY_ACCOUNT] = "account", [QUEUE_BY_PARTITION] = "partition",
    [QUEUE_BY_STATE] = "state",     [QUEUE_BY_REASON] = "reason",
    [QUEUE_BY_NODES] = "nodes",     [QUEUE_BY_CPUS] = "cpus",
    [QUEUE_BY_GPUS] = "gpus",       [QUEUE_BY_MEMORY] = "memory",
    [QUEUE_BY_START] = "start",     [QUEUE_BY_ELAPSED] = "elapsed",
    [QUEUE_BY_LIMIT] = "limit",     [QUEUE_BY_PRIORITY] = "priority",
};

#define UNTOLD UINT64_MAX

static uint64_t told_u32(uint32_t value)
{
    return value == MODEL_UNKNOWN_U32 ? UNTOLD : value;
}

static uint64_t told_time(int64_t time)
{
    return time > 0 ? (uint64_t)time : UNTOLD;
}

/* By which it is sorted, the lowest first; UNTOLD: nobody told. */
static uint64_t amount_of(const struct queue_question *question,
                          const struct queue_cluster *cluster, const struct job *job)
{
    const void *at = (const char *)job + key_rows[question->sort].offset;
    int64_t elapsed;
    uint32_t rank;

    switch (key_rows[question->sort].type) {
    case KEY_U32:
        return told_u32(*(const uint32_t *)at);
    case KEY_U64:
        return *(const uint64_t *)at;
    case KEY_TIME:
        return told_time(*(const int64_t *)at);
    case KEY_TEXT:
        rank = cluster->rank[*(const symbol *)at];
        return rank ? rank : UNTOLD;
    case KEY_STATE:
        return job_state_index(job->state);
    case KEY_GPUS:
        return isnan(cluster->gpus[job->tres]) ? UNTOLD : (uint64_t)cluster->gpus[job->tres];
    case KEY_START:
        return told_time(job_began(job));
    case KEY_ELAPSED:
        elapsed = queue_elapsed(job, question->now);
        return elapsed < 0 ? UNTOLD : (uint64_t)elapsed;
    }
    return UNTOLD;
}

/* A job that is asked for: no two have the same position. */
struct found {
    uint64_t key;
    uint32_t position;
};

struct finds {
    struct found *found;
    size_t n;
    uint64_t jobs;
};

static bool comes_before(const struct found *a, const struct found *b)
{
    return a->key != b->key ? a->key < b->key : a->position < b->position;
}

static int in_order(const void *a, const void *b)
{
    return comes_before(a, b) ? -1 : comes_before(b, a);
}

static uint64_t key_of(const struct queue_question *question, const struct queue_cluster *cluster,
                       const struct job *job)
{
    uint64_t amount = amount_of(question, cluster, job);

    return question->is_descending && amount != UNTOLD ? UNTOLD - 1 - amount : amount;
}

static void find_in(struct finds *finds, const struct queue_question *question,
                    const struct queue_cluster *cluster, struct queue_filter *filter)
{
    const struct jobs *jobs = &cluster->jobs->jobs;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct job *job = &jobs->job[i];

        if (!queue_filter_takes(filter, job))
            continue;
        finds->found[finds->n++] =
            (struct found){ key_of(question, cluster, job), cluster->position[i] };
        finds->jobs += job->tasks;
    }
}

static void swap(struct found *a, struct found *b)
{
    struct found c = *a;

    *a = *b;
    *b = c;
}

/* Moves what comes before the first of them in front of it, and returns where that then stands. */
static size_t part(struct found *found, size_t n)
{
    size_t at = 0;

    for (size_t i = 1; i < n; i++)
        if (comes_before(&found[i], &found[0]))
            swap(&found[++at], &found[i]);
    swap(&found[0], &found[at]);
    return at;
}

/* Until the first `n_first` of them, in whatever order, come before all others (Hoare's FIND). Its
 * pivots are drawn at random: nobody can arrange jobs so that it takes long. */
static void pick_first(struct found *found, size_t n, size_t n_first)
{
    uint64_t dice = map_hash(STR("pivot"));

    while (n_first && n_first < n) {
        size_t at;

        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
        swap(&found[0], &found[(dice >> 33) % n]);
        at = part(found, n);
        if (at >= n_first) {
            n = at;
        } else {
            found += at + 1;
            n -= at + 1;
            n_first -= at + 1;
        }
    }
}

static size_t page_length(const struct queue_question *question, size_t n)
{
    size_t left = question->offset < n ? n - question->offset : 0;
    size_t limit = question->limit < QUEUE_ROWS_MAX ? question->limit : QUEUE_ROWS_MAX;

    return left < limit ? left : limit;
}

static void put_row(const struct board *board, const struct queue_question *question,
                    struct queue_place place, struct queue_page *page)
{
    const struct queue_cluster *cluster = &board->index->cluster[place.cluster];
    const struct job *job = &cluster->jobs->jobs.job[place.job];

    page->row[page->n++] = (struct queue_row){
        .cluster = &board->cluster[place.cluster],
        .job = job,
        .gpus = cluster->gpus[job->tres],
        .elapsed_seconds = queue_elapsed(job, question->now),
    };
}

static void put_page(const struct board *board, const struct queue_question *question,
                     struct finds *finds, struct queue_page *page)
{
    size_t n = page_length(question, finds->n);
    struct found *first = finds->found + (n ? question->offset : 0);

    if (n) {
        pick_first(finds->found, finds->n, question->offset);
        pick_first(first, finds->n - question->offset, n);
        qsort(first, n, sizeof(*first), in_order);
    }
    for (size_t i = 0; i < n; i++)
        put_row(board, question, board->index->order[first[i].position], page);
    page->matches = finds->n;
    page->jobs = finds->jobs;
}

/* All jobs stand in this order already. */
static void put_ready_page(const struct board *board, const struct queue_question *question,
                           struct queue_page *page)
{
    size_t n = page_length(question, board->index->n);

    for (size_t i = 0; i < n; i++)
        put_row(board, question, board->index->order[question->offset + i], page);
    page->matches = board->index->n;
    page->jobs = board->index->jobs;
}

static void find_page(const struct board *board, const struct queue_question *question,
                      const struct queue_words *words, struct queue_page *page)
{
    struct finds finds = { .found = heap_array(board->index->n + 1, sizeof(*finds.found)) };

    for (size_t i = 0; i < board->n_clusters; i++) {
        const struct queue_cluster *cluster = &board->index->cluster[i];
        struct queue_filter filter;

        if (!queue_filter_init(&filter, words, &board->cluster[i], cluster))
            continue;
        find_in(&finds, question, cluster, &filter);
        queue_filter_free(&filter);
    }
    put_page(board, question, &finds, page);
    free(finds.found);
}

int queue_find(const struct board *board, const struct queue_question *question,
               struct arena *arena, struct queue_page *ret, struct err *err)
{
    struct queue_words words;
    int code = queue_words_init(&words, question, err);

    if (code == 0) {
        *ret = (struct queue_page){
            .row = ARENA_ARRAY(arena, struct queue_row, page_length(question, board->index->n)),
        };
        if (question->sort == QUEUE_BY_SUBMIT && question->is_descending &&
            queue_words_are_none(&words))
            put_ready_page(board, question, ret);
        else
            find_page(board, question, &words, ret);
    }
    queue_words_free(&words);
    return code;
}
