/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the token of /ingest and compares what agents send with it. */
#include "http/ingest_token.h"

#include "base/arena.h"
#include "base/secret.h"

#include <pthread.h>
#include <sys/stat.h>

static const int64_t token_lasts_ns = NS_PER_SEC; /* until the next look at the file */

struct ingest_token {
    char *path;
    const struct clock *clock;
    struct log *log;
    struct stat seen; /* the file as it was when the token was read; of the worker that looks */

    pthread_mutex_t lock; /* of what follows; held for a moment only */
    char *text;           /* NULL: there is none to compare with */
    int64_t looked_ns;    /* when the last look at the file began */
    bool is_looking;      /* a worker is at it */
};

struct ingest_token *ingest_token_new(const char *path, const struct clock *clock, struct log *log)
{
    struct ingest_token *token = heap_alloc(sizeof(*token));

    token->path = heap_str(str_of(path));
    token->clock = clock;
    token->log = log;
    token->looked_ns = INT64_MIN / 2;
    pthread_mutex_init(&token->lock, NULL);
    return token;
}

struct ingest_token *ingest_token_free(struct ingest_token *token)
{
    if (token) {
        secret_free(token->text);
        pthread_mutex_destroy(&token->lock);
        free(token->path);
        free(token);
    }
    return NULL;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Only by the worker that looks. While the file cannot be read, every token is refused. */
static void read_text(struct ingest_token *token)
{
    char *text = NULL, *old;
    struct err err = { 0 };

    if (secret_read(token->path, "token", &text, &err) < 0)
        LOG(token->log, LOG_ERROR, "/ingest refuses all tokens: cannot read its own",
            LOG_STR("error", err.text));
    pthread_mutex_lock(&token->lock);
    old = token->text;
    token->text = text;
    pthread_mutex_unlock(&token->lock);
    secret_free(old);
}

void ingest_token_look(struct ingest_token *token)
{
    int64_t began_ns = clock_mono(token->clock);
    struct stat now = { 0 };

    if (stat(token->path, &now) < 0 || !token->text || !is_same_file(&now, &token->seen))
        read_text(token);
    token->seen = now;
    pthread_mutex_lock(&token->lock);
    token->looked_ns = began_ns;
    token->is_looking = false;
    pthread_mutex_unlock(&token->lock);
}

void ingest_token_cancel_look(struct ingest_token *token)
{
    pthread_mutex_lock(&token->lock);
    token->is_looking = false;
    pthread_mutex_unlock(&token->lock);
}

/* Takes as long whatever differs. */
static bool is_equal(struct str given, struct str text)
{
    unsigned char difference = given.n != text.n;

    for (size_t i = 0; i < given.n; i++)
        difference |= (unsigned char)(given.p[i] ^ text.p[text.n ? i % text.n : 0]);
    return !difference;
}

enum token_verdict ingest_token_check(struct ingest_token *token, struct str given,
                                      int64_t since_ns)
{
    int64_t now_ns = clock_mono(token->clock);
    enum token_verdict verdict = TOKEN_WRONG;

    pthread_mutex_lock(&token->lock);
    if (token->looked_ns < since_ns && now_ns - token->looked_ns >= token_lasts_ns)
        verdict = token->is_looking ? TOKEN_WAIT : TOKEN_LOOK;
    else if (!token->text)
        verdict = TOKEN_UNREADABLE;
    else if (is_equal(given, str_of(token->text)))
        verdict = TOKEN_RIGHT;
    if (verdict == TOKEN_LOOK)
        token->is_looking = true;
    pthread_mutex_unlock(&token->lock);
    return verdict;
}
