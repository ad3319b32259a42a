/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the jobs of a cluster by account and user. */
#include "source/keep.h"

#include "base/buf.h"
#include "base/pattern.h"

#include <pthread.h>

enum { PATTERN_MAX = 64 * 1024 };

struct patterns {
    struct pattern **pattern;
    size_t n;
};

struct keep {
    struct patterns accounts, users;
    pthread_mutex_t lock; /* a pattern is used by one thread at a time */
};

/* Of the whole name: \z, unlike $, does not let a newline follow. */
static int compile(struct str text, struct pattern **ret, struct err *err)
{
    struct pattern *alone;
    struct buf whole;
    int code = pattern_new(text, &alone, err);

    /* By itself first: with what stands around it, "a)|(b" would be one. */
    if (code < 0)
        return code;
    pattern_free(alone);
    buf_init(&whole, PATTERN_MAX);
    buf_text(&whole, "\\A(?:");
    buf_put(&whole, text);
    buf_text(&whole, ")\\z");
    code = whole.over ? err_set(err, EINVAL, "the pattern is longer than %d bytes", PATTERN_MAX)
                      : pattern_new(buf_str(&whole), ret, err);
    buf_free(&whole);
    return code;
}

static int add_patterns(struct patterns *patterns, const struct str *texts, size_t n,
                        struct err *err)
{
    patterns->pattern = heap_array(n, sizeof(struct pattern *));
    for (; patterns->n < n; patterns->n++) {
        int code = compile(texts[patterns->n], &patterns->pattern[patterns->n], err);

        if (code < 0)
            return code;
    }
    return 0;
}

static void free_patterns(struct patterns *patterns)
{
    for (size_t i = 0; i < patterns->n; i++)
        pattern_free(patterns->pattern[i]);
    free(patterns->pattern);
}

int keep_new(const struct str *accounts, size_t n_accounts, const struct str *users, size_t n_users,
             struct keep **ret, struct err *err)
{
    struct keep *keep;

    *ret = NULL;
    if (!n_accounts && !n_users)
        return 0;
    keep = heap_alloc(sizeof(*keep));
    pthread_mutex_init(&keep->lock, NULL);
    if (add_patterns(&keep->accounts, accounts, n_accounts, err) < 0 ||
        add_patterns(&keep->users, users, n_users, err) < 0) {
        keep_free(keep);
        return -EINVAL;
    }
    *ret = keep;
    return 0;
}

struct keep *keep_free(struct keep *keep)
{
    if (keep) {
        free_patterns(&keep->accounts);
        free_patterns(&keep->users);
        pthread_mutex_destroy(&keep->lock);
        free(keep);
    }
    return NULL;
}

static bool matches(const struct keep *keep, const struct patterns *patterns, struct str name)
{
    bool found = false;

    if (!name.n)
        return false;
    pthread_mutex_lock((pthread_mutex_t *)&keep->lock);
    for (size_t i = 0; i < patterns->n && !found; i++)
        found = pattern_finds(patterns->pattern[i], name);
    pthread_mutex_unlock((pthread_mutex_t *)&keep->lock);
    return found;
}

bool keep_has(const struct keep *keep, struct str account, struct str user)
{
    return !keep || matches(keep, &keep->accounts, account) || matches(keep, &keep->users, user);
}

/* Of each account or user it is found out once, however many jobs they have. */
enum answer { NOT_ASKED, YES, NO };

static bool has_symbol(const struct keep *keep, const struct patterns *patterns,
                       const struct section *section, symbol name, unsigned char *answers)
{
    if (answers[name] == NOT_ASKED)
        answers[name] = matches(keep, patterns, section_text(section, name)) ? YES : NO;
    return answers[name] == YES;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* What is told of jobs that are not there any more. */
static void drop_gpus(struct jobs *jobs)
{
    uint32_t *ids = heap_array(jobs->n, sizeof(*ids));
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++)
        ids[i] = jobs->job[i].id;
    qsort(ids, jobs->n, sizeof(*ids), compare_ids);
    for (size_t i = 0; i < jobs->n_gpus; i++)
        if (bsearch(&jobs->gpus[i].job_id, ids, jobs->n, sizeof(*ids), compare_ids))
            jobs->gpus[n++] = jobs->gpus[i];
    jobs->n_gpus = n;
    free(ids);
}

void keep_jobs(const struct keep *keep, struct section *section)
{
    struct jobs *jobs = &section->jobs;
    size_t n_symbols = symbols_count(&section->symbols), n = 0;
    unsigned char *accounts, *users;

    /* What is said again was sifted when it was first said, and others are reading it. */
    if (!keep || section->same_as)
        return;
    accounts = heap_alloc(n_symbols);
    users = heap_alloc(n_symbols);
    for (size_t i = 0; i < jobs->n; i++) {
        const struct job *job = &jobs->job[i];

        if (has_symbol(keep, &keep->accounts, section, job->account, accounts) ||
            has_symbol(keep, &keep->users, section, job->user, users))
            jobs->job[n++] = *job;
    }
    jobs->n = n;
    drop_gpus(jobs);
    free(accounts);
    free(users);
}
