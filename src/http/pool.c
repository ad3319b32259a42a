/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Worker threads with a bounded queue and a share for each owner. */
#include "http/pool.h"

#include "base/arena.h"
#include "http/confine.h"

struct worker {
    struct pool *pool;
    pthread_t thread;
    uint64_t owner; /* of the job that it runs */
};

/* Who is being served is told by the workers and the queue themselves: both are short, and there is
 * no table to grow. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pool_job *first, **last;
    unsigned n_queued, most_queued;
    unsigned most_running; /* of one owner */
    bool is_unconfined, is_stopping;
    unsigned n_workers;
    struct worker workers[];
};

/* Of n workers, or of n places in the queue: one owner leaves some to others, unless there is but
 * one. */
static unsigned share_of(unsigned n)
{
    return n / 3 + 1;
}

static unsigned count_running(const struct pool *pool, uint64_t owner)
{
    unsigned n = 0;

    for (unsigned i = 0; owner && i < pool->n_workers; i++)
        n += pool->workers[i].owner == owner;
    return n;
}

static unsigned count_queued(const struct pool *pool, uint64_t owner)
{
    unsigned n = 0;

    for (const struct pool_job *job = pool->first; owner && job; job = job->next)
        n += job->owner == owner;
    return n;
}

/* Where the next job to run hangs, or NULL: there is none, or none whose owner may have another. */
static struct pool_job **find_next(struct pool *pool)
{
    unsigned fewest = pool->most_running;
    struct pool_job **found = NULL;

    for (struct pool_job **at = &pool->first; *at && fewest; at = &(*at)->next) {
        unsigned running = count_running(pool, (*at)->owner);

        if (running < fewest) {
            fewest = running;
            found = at;
        }
    }
    return found;
}

static struct pool_job *unlink_job(struct pool *pool, struct pool_job **at)
{
    struct pool_job *job = *at;

    *at = job->next;
    if (!*at)
        pool->last = at;
    pool->n_queued--;
    return job;
}

/* The next job, or NULL when the pool stops. */
static struct pool_job *take(struct worker *worker)
{
    struct pool *pool = worker->pool;
    struct pool_job *job = NULL, **at = NULL;

    pthread_mutex_lock(&pool->lock);
    worker->owner = 0;
    while (!pool->is_stopping && !(at = find_next(pool)))
        pthread_cond_wait(&pool->changed, &pool->lock);
    if (!pool->is_stopping) {
        job = unlink_job(pool, at);
        worker->owner = job->owner;
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct pool_job *job;

    if (!worker->pool->is_unconfined)
        confine_thread(NULL); /* the server has logged it if that does not work here */
    while ((job = take(worker)))
        job->run(job);
    return NULL;
}

int pool_new(const struct pool_config *config, struct pool **ret, struct err *err)
{
    struct pool *pool = heap_alloc(sizeof(*pool) + config->threads * sizeof(pool->workers[0]));

    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->last = &pool->first;
    pool->most_queued = config->most_queued;
    pool->most_running = share_of(config->threads);
    pool->is_unconfined = config->is_unconfined;
    while (pool->n_workers < config->threads) {
        struct worker *worker = &pool->workers[pool->n_workers];
        int r;

        worker->pool = pool;
        r = thread_start(&worker->thread, config->name, work, worker, err);
        if (r < 0) {
            pool_free(pool);
            return r;
        }
        pool->n_workers++;
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
    for (unsigned i = 0; i < pool->n_workers; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
    return NULL;
}

bool pool_push(struct pool *pool, struct pool_job *job)
{
    bool has_room;

    pthread_mutex_lock(&pool->lock);
    has_room = pool->n_queued < pool->most_queued && !pool->is_stopping &&
               count_queued(pool, job->owner) < share_of(pool->most_queued);
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
