/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts the jobs of a board once for all pages. */
#include "web/queue_index.h"

#include "collector/gres.h"
#include "collector/top.h"

#include <math.h>
#include <stdlib.h>

/* A job on its way into the order. */
struct placed {
    int64_t submit_time;
    uint32_t id;
    struct queue_place place;
};

static int newest_first(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->submit_time != y->submit_time)
        return x->submit_time > y->submit_time ? -1 : 1;
    if (x->id != y->id)
        return x->id > y->id ? -1 : 1;
    if (x->place.cluster != y->place.cluster)
        return x->place.cluster < y->place.cluster ? -1 : 1;
    return x->place.job < y->place.job ? -1 : 1;
}

static size_t place_jobs(struct queue_index *index, size_t n_clusters, struct placed *placed)
{
    size_t n = 0;

    for (uint32_t c = 0; c < n_clusters; c++) {
        const struct section *jobs = index->cluster[c].jobs;

        for (uint32_t i = 0; jobs && i < jobs->jobs.n; i++) {
            const struct job *job = &jobs->jobs.job[i];

            placed[n++] = (struct placed){ job->submit_time, job->id, { c, i } };
            index->jobs += job->tasks;
        }
    }
    return n;
}

static void make_order(struct queue_index *index, size_t n_clusters, struct arena *arena)
{
    struct placed *placed = heap_array(index->n, sizeof(*placed));

    place_jobs(index, n_clusters, placed);
    qsort(placed, index->n, sizeof(*placed), newest_first);
    index->order = ARENA_ARRAY(arena, struct queue_place, index->n);
    for (size_t i = 0; i < index->n; i++) {
        struct queue_place place = placed[i].place;

        index->order[i] = place;
        index->cluster[place.cluster].position[place.job] = (uint32_t)i;
    }
    free(placed);
}

/* A text that jobs are sorted by, where it stands. The first eight bytes as a number decide most
 * comparisons. */
struct ranked_text {
    uint64_t head;
    struct str text;
    uint32_t *rank;
};

static uint64_t head_of(struct str text)
{
    uint64_t head = 0;

    for (size_t i = 0; i < sizeof(head); i++)
        head = head << 8 | (i < text.n ? (unsigned char)text.p[i] : 0);
    return head;
}

static int by_bytes(const void *a, const void *b)
{
    const struct ranked_text *x = a, *y = b;

    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    return top_by_name(x->text, y->text);
}

struct ranking_texts {
    struct ranked_text *text;
    size_t n, room;
};

/* Once for each symbol: its rank is 1 from then on, until all are sorted. */
static void meet(struct ranking_texts *texts, struct queue_cluster *cluster, symbol s)
{
    struct str text;

    if (!s || cluster->rank[s])
        return;
    text = section_text(cluster->jobs, s);
    cluster->rank[s] = 1;
    texts->text = heap_grow(texts->text, texts->n, &texts->room, sizeof(*texts->text));
    texts->text[texts->n++] = (struct ranked_text){ head_of(text), text, &cluster->rank[s] };
}

static void make_ranks(struct queue_index *index, size_t n_clusters)
{
    struct ranking_texts texts = { 0 };
    uint32_t rank = 0;

    for (size_t c = 0; c < n_clusters; c++) {
        struct queue_cluster *cluster = &index->cluster[c];

        for (size_t i = 0; cluster->jobs && i < cluster->jobs->jobs.n; i++) {
            const struct job *job = &cluster->jobs->jobs.job[i];
            const symbol sorted[] = { job->name, job->user, job->account, job->partition,
                                      job->reason };

            for (size_t k = 0; k < COUNT(sorted); k++)
                meet(&texts, cluster, sorted[k]);
        }
    }
    if (texts.n)
        qsort(texts.text, texts.n, sizeof(*texts.text), by_bytes);
    for (size_t i = 0; i < texts.n; i++) {
        rank += !i || !str_eq(texts.text[i].text, texts.text[i - 1].text);
        *texts.text[i].rank = rank;
    }
    free(texts.text);
}

/* What a TRES string that is told does not name, there is none of. */
static double count_gpus(const struct gres_list *list)
{
    double sum = 0;

    for (size_t i = 0; i < list->n; i++)
        sum += list->item[i].count == MODEL_UNKNOWN_U64 ? NAN : (double)list->item[i].count;
    return sum;
}

static void make_gpus(struct queue_cluster *cluster)
{
    struct gres_reader reader;

    gres_reader_init(&reader, cluster->jobs, STR("gpu"));
    cluster->gpus[0] = NAN;
    for (size_t i = 0; i < cluster->jobs->jobs.n; i++) {
        symbol tres = cluster->jobs->jobs.job[i].tres;

        if (tres && !reader.lists[tres])
            cluster->gpus[tres] = count_gpus(gres_read(&reader, tres));
    }
    gres_reader_free(&reader);
}

struct queue_index *queue_index_make(const struct board *board, struct arena *arena)
{
    struct queue_index *index = ARENA_NEW(arena, struct queue_index);

    index->cluster = ARENA_ARRAY(arena, struct queue_cluster, board->n_clusters);
    for (size_t c = 0; c < board->n_clusters; c++) {
        const struct section *jobs = board->cluster[c].section[KIND_JOBS];
        size_t n_symbols = jobs ? symbols_count(&jobs->symbols) : 0;

        if (!jobs)
            continue;
        index->n += jobs->jobs.n;
        index->cluster[c] = (struct queue_cluster){
            .jobs = jobs,
            .position = ARENA_ARRAY(arena, uint32_t, jobs->jobs.n),
            .rank = ARENA_ARRAY(arena, uint32_t, n_symbols),
            .gpus = ARENA_ARRAY(arena, double, n_symbols),
        };
        make_gpus(&index->cluster[c]);
    }
    make_order(index, board->n_clusters, arena);
    make_ranks(index, board->n_clusters);
    return index;
}
