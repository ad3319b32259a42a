/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes munge credentials, one at a time. */
#include "http/unsealer.h"

#include "base/arena.h"

enum { BAD_CLIENTS = 1024 };

/* Whose credentials were refused. */
struct bad_client {
    uint64_t client;
    int64_t until_ns;
    unsigned n_refused; /* 0: free */
};

struct unsealer {
    struct unsealer_config config;
    pthread_mutex_t lock; /* of the rest; not held while munged is asked */
    pthread_cond_t changed;
    bool is_busy;      /* with a credential, … */
    int64_t since_ns;  /* … since then */
    bool is_away;      /* the last one failed for want of munged: … */
    int64_t resume_ns; /* … the next is tried then, alone */
    struct bad_client bad[BAD_CLIENTS];
};

struct unsealer *unsealer_new(const struct unsealer_config *config)
{
    struct unsealer *unsealer = heap_alloc(sizeof(*unsealer));

    unsealer->config = *config;
    pthread_mutex_init(&unsealer->lock, NULL);
    clock_cond_init(&unsealer->changed);
    return unsealer;
}

struct unsealer *unsealer_free(struct unsealer *unsealer)
{
    if (unsealer) {
        pthread_cond_destroy(&unsealer->changed);
        pthread_mutex_destroy(&unsealer->lock);
        free(unsealer);
    }
    return NULL;
}

static int64_t now_of(const struct unsealer *unsealer)
{
    return clock_mono(unsealer->config.clock);
}

/* Under the lock. */
static int check(const struct unsealer *unsealer, struct err *err)
{
    int64_t now = now_of(unsealer);
    bool hangs = unsealer->is_busy && now - unsealer->since_ns >= UNSEALER_PATIENCE_NS;

    if (hangs || (unsealer->is_away && (unsealer->is_busy || now < unsealer->resume_ns)))
        return err_set(err, EAGAIN,
                       "munged does not answer the exporter, so that no credential can be checked; "
                       "try again in 10 seconds");
    return 0;
}

static bool is_current(const struct bad_client *bad, int64_t now_ns)
{
    return bad->n_refused && now_ns < bad->until_ns;
}

/* NULL: there is none. Under the lock. */
static struct bad_client *find_bad(struct unsealer *unsealer, uint64_t client)
{
    int64_t now_ns = now_of(unsealer);

    for (size_t i = 0; i < BAD_CLIENTS; i++)
        if (unsealer->bad[i].client == client && is_current(&unsealer->bad[i], now_ns))
            return &unsealer->bad[i];
    return NULL;
}

static struct bad_client *add_bad(struct unsealer *unsealer, uint64_t client)
{
    int64_t now_ns = now_of(unsealer);

    for (size_t i = 0; i < BAD_CLIENTS; i++) {
        struct bad_client *bad = &unsealer->bad[i];

        if (is_current(bad, now_ns))
            continue;
        *bad = (struct bad_client){ .client = client,
                                    .until_ns = now_ns + unsealer->config.refused_ns };
        return bad;
    }
    return NULL;
}

int unsealer_check(struct unsealer *unsealer, uint64_t client, struct err *err)
{
    const struct bad_client *bad;
    int code;

    pthread_mutex_lock(&unsealer->lock);
    code = check(unsealer, err);
    bad = find_bad(unsealer, client);
    if (code == 0 && bad && bad->n_refused >= unsealer->config.max_refused)
        code = err_set(err, EBUSY,
                       "too many credentials from your address were refused; try again later");
    pthread_mutex_unlock(&unsealer->lock);
    return code;
}

bool unsealer_blame(struct unsealer *unsealer, uint64_t client)
{
    struct bad_client *bad;

    pthread_mutex_lock(&unsealer->lock);
    bad = find_bad(unsealer, client);
    if (!bad)
        bad = add_bad(unsealer, client);
    if (bad)
        bad->n_refused++;
    pthread_mutex_unlock(&unsealer->lock);
    return bad != NULL;
}

static int enter(struct unsealer *unsealer, struct err *err)
{
    int code;

    pthread_mutex_lock(&unsealer->lock);
    while ((code = check(unsealer, err)) == 0 && unsealer->is_busy)
        clock_wait(unsealer->config.clock, &unsealer->changed, &unsealer->lock,
                   unsealer->since_ns + UNSEALER_PATIENCE_NS);
    if (code == 0) {
        unsealer->is_busy = true;
        unsealer->since_ns = now_of(unsealer);
    }
    pthread_mutex_unlock(&unsealer->lock);
    return code;
}

/* Only what munged, and not the sender, is to blame for counts: a stranger must not be able to keep
 * out the others. */
static void leave(struct unsealer *unsealer, int code)
{
    int64_t now;
    bool has_answered = code == 0 || code == -EACCES || code == -EFBIG;

    pthread_mutex_lock(&unsealer->lock);
    now = now_of(unsealer);
    unsealer->is_away =
        !has_answered && (code == -ENOENT || now - unsealer->since_ns >= UNSEALER_PATIENCE_NS);
    unsealer->resume_ns = now + UNSEALER_PAUSE_NS;
    unsealer->is_busy = false;
    pthread_cond_broadcast(&unsealer->changed);
    pthread_mutex_unlock(&unsealer->lock);
}

int unsealer_open(struct unsealer *unsealer, struct str credential, struct buf *to,
                  struct munge_origin *ret, struct err *err)
{
    const struct unsealer_config *config = &unsealer->config;
    int code = enter(unsealer, err);

    if (code < 0)
        return code;
    code = config->unseal(config->socket, credential, to, ret, err);
    leave(unsealer, code);
    return code;
}
