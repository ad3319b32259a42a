/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "http/pool.h"

#include "base/arena.h"

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pool_job *first, **last;
    unsigned n_queued, most_queued;
    bool is_stopping;
    unsigned n_threads;
    pthread_t threads[];
};

/* The next job, or NULL when the pool stops. */
static struct pool_job *take(struct pool *pool)
{
    struct pool_job *job = NULL;

    pthread_mutex_lock(&pool->lock);
    while (!pool->first && !pool->is_stopping)
        pthread_cond_wait(&pool->changed, &pool->lock);
    if (!pool->is_stopping) {
        job = pool->first;
        pool->first = job->next;
        if (!pool->first)
            pool->last = &pool->first;
        pool->n_queued--;
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void *work(void *arg)
{
    struct pool *pool = arg;
    struct pool_job *job;

    while ((job = take(pool)))
        job->run(job);
    return NULL;
}

int pool_new(const char *name, unsigned threads, unsigned most_queued, struct pool **ret,
             struct err *err)
{
    struct pool *pool = heap_alloc(sizeof(*pool) + threads * sizeof(pool->threads[0]));

    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->last = &pool->first;
    pool->most_queued = most_queued;
    while (pool->n_threads < threads) {
        int r = thread_start(&pool->threads[pool->n_threads], name, work, pool, err);

        if (r < 0) {
            pool_free(pool);
            return r;
        }
        pool->n_threads++;
    }
    *ret = pool;
    return 0;
}

struct pool *pool_free(struct pool *pool)
{
    if (!pool)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
    return NULL;
}

bool pool_push(struct pool *pool, struct pool_job *job)
{
    bool has_room;

    pthread_mutex_lock(&pool->lock);
    has_room = pool->n_queued < pool->most_queued && !pool->is_stopping;
    if (has_room) {
        job->next = NULL;
        *pool->last = job;
        pool->last = &job->next;
        pool->n_queued++;
        pthread_cond_signal(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    return has_room;
}
