/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs sonde-report to make PNG and PDF. */
#include "web/report_child.h"

#include "base/arena.h"
#include "base/spawn.h"
#include "http/pool.h"

struct report_child {
    const char *program;
    char *const *flags;
    size_t n_flags;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned n_running, n_waiting;
    struct pool *pool; /* a thread for each child: those who ask may start no commands */
};

/* A command on the pool. */
struct run {
    struct pool_job job;
    struct report_child *child;
    const struct spawn *spawn;
    struct spawn_result *result;
    struct err *err;
    int code;
    bool has_ended; /* under the child's lock */
};

int report_child_new(const char *program, char *const *flags, struct report_child **ret,
                     struct err *err)
{
    const struct pool_config config = {
        .name = "report",
        .threads = REPORT_CHILDREN,
        .most_queued = REPORT_CHILDREN,
        .is_unconfined = true,
    };
    struct report_child *child = heap_alloc(sizeof(*child));
    int code = pool_new(&config, &child->pool, err);

    if (code < 0) {
        free(child);
        return code;
    }

    child->program = program;
    child->flags = flags;
    while (flags && flags[child->n_flags])
        child->n_flags++;
    pthread_mutex_init(&child->lock, NULL);
    clock_cond_init(&child->ended);
    *ret = child;
    return 0;
}

struct report_child *report_child_free(struct report_child *child)
{
    if (child) {
        pool_free(child->pool);
        pthread_cond_destroy(&child->ended);
        pthread_mutex_destroy(&child->lock);
        free(child);
    }
    return NULL;
}

/* False: the deadline came first, or enough wait already. */
static bool begin(struct report_child *child, int64_t deadline_ns)
{
    bool may_wait, is_free;

    pthread_mutex_lock(&child->lock);
    may_wait = child->n_waiting < REPORT_WAITERS;
    child->n_waiting += may_wait;
    while (may_wait && child->n_running == REPORT_CHILDREN)
        if (!clock_wait(&clock_real, &child->ended, &child->lock, deadline_ns))
            break;
    child->n_waiting -= may_wait;
    is_free = child->n_running < REPORT_CHILDREN;
    child->n_running += is_free;
    pthread_mutex_unlock(&child->lock);
    return is_free;
}

static void run_command(struct pool_job *job)
{
    struct run *run = (struct run *)((char *)job - offsetof(struct run, job));
    struct report_child *child = run->child;

    run->code = spawn_run(run->spawn, run->result, run->err);
    pthread_mutex_lock(&child->lock);
    run->has_ended = true;
    child->n_running--;
    pthread_cond_broadcast(&child->ended);
    pthread_mutex_unlock(&child->lock);
}

/* After begin: there is a thread for it. The deadline is the command's. */
static int run_on_pool(struct report_child *child, const struct spawn *spawn,
                       struct spawn_result *result, struct err *err)
{
    struct run run = {
        .job.run = run_command,
        .child = child,
        .spawn = spawn,
        .result = result,
        .err = err,
    };

    pool_push(child->pool, &run.job);
    pthread_mutex_lock(&child->lock);
    while (!run.has_ended)
        pthread_cond_wait(&child->ended, &child->lock);
    pthread_mutex_unlock(&child->lock);
    return run.code;
}

/* "beluga:4711": the flag --cluster would say whose sacct it is. */
static const char *name_of(struct arena *arena, struct str cluster, struct str job)
{
    struct buf name;
    const char *text;

    buf_init(&name, cluster.n + job.n + 1);
    if (cluster.n) {
        buf_put(&name, cluster);
        buf_byte(&name, ':');
    }
    buf_put(&name, job);
    text = arena_str(arena, buf_str(&name)).p;
    buf_free(&name);
    return text;
}

/* What is asked comes after what the site has set, and the job's name after "--": whatever it is,
 * it is no flag. */
static const char **arguments_of(const struct report_child *child,
                                 const struct report_question *question, struct arena *arena)
{
    const char **argv = ARENA_ARRAY(arena, const char *, child->n_flags + REPORT_CHILD_FORMS + 4);
    size_t n = 0;

    argv[n++] = child->program;
    for (size_t i = 0; i < child->n_flags; i++)
        argv[n++] = child->flags[i];
    for (size_t i = 0; i < REPORT_CHILD_FORMS; i++)
        if (question->form[i])
            argv[n++] = question->form[i];
    argv[n++] = "--";
    argv[n] = name_of(arena, question->cluster, question->job);
    return argv;
}

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

static bool has_nothing_to_draw(const struct spawn_result *result)
{
    struct str warning = str_of(result->warning);

    return str_find_str(warning, STR("nothing to draw")) < warning.n;
}

int report_child_run(struct report_child *child, const struct report_question *question,
                     struct buf *to, struct err *err)
{
    struct arena arena = { 0 };
    struct spawn_result result;
    struct spawn spawn = {
        .argv = arguments_of(child, question, &arena),
        .name = "sonde-report",
        .deadline_ns = question->deadline_ns,
        .max_output = REPORT_CHILD_BYTES,
        .sink = collect,
        .ctx = to,
    };
    int code;

    if (begin(child, question->deadline_ns)) {
        code = run_on_pool(child, &spawn, &result, err);
        if (code == -EREMOTEIO && has_nothing_to_draw(&result))
            code = err_set(err, ENODATA, "there is nothing to draw");
    } else {
        code = err_set(err, EBUSY, "others are being made at the moment");
    }
    arena_clear(&arena);
    return code;
}
