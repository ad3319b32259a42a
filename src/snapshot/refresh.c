/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/refresh.h"

/* What is known of one kind; guarded by the refresher's lock. */
struct kind_state {
    bool wanted;         /* somebody waits for a newer section or another format */
    bool seen;           /* there has been a section, perhaps withdrawn since */
    int64_t looked_at;   /* monotonic, when the last look that has ended began */
    int64_t asked_at;    /* monotonic, when the newest section was asked for: its age */
    int64_t fresh_until; /* counted from its arrival, so that a slow Slurm gets its pauses */
    unsigned failures;   /* in a row */
    int64_t backoff_until;
};

struct refresher {
    struct refresh_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool stopping;
    unsigned formats; /* FORMAT_BITs that were ever asked for */
    struct snapshot *snapshot;
    struct kind_state kinds[KINDS];
    struct refresh_stats stats; /* its ages are filled in when asked */
};

/* Nothing newer should or can be had now. */
static bool is_settled(const struct refresher *r, enum kind kind, int64_t now)
{
    const struct kind_state *state = &r->kinds[kind];

    return now < state->backoff_until || (state->seen && now < state->fresh_until);
}

/* Rendered in all formats that are wanted. */
static bool is_rendered(const struct refresher *r, enum kind kind)
{
    const struct edition *edition = r->snapshot->editions[kind];

    return !edition || (edition->formats & r->formats) == r->formats;
}

bool refresher_want(struct refresher *refresher, unsigned kinds, enum metric_format format,
                    int64_t since_ns)
{
    int64_t now = clock_mono(refresher->config.clock);
    bool ready = true;

    pthread_mutex_lock(&refresher->lock);
    refresher->formats |= FORMAT_BIT(format);
    for (int kind = 0; kind < KINDS; kind++) {
        if (!(kinds & KIND_BIT(kind)))
            continue;
        refresher->stats.kinds[kind].asked = true;
        if ((!is_settled(refresher, kind, now) && refresher->kinds[kind].looked_at < since_ns) ||
            !is_rendered(refresher, kind)) {
            refresher->kinds[kind].wanted = true;
            ready = false;
        }
    }
    if (!ready)
        pthread_cond_signal(&refresher->work);
    pthread_mutex_unlock(&refresher->lock);
    return ready;
}

/* Takes the edition over; NULL withdraws. With the lock held. */
static void replace_edition(struct refresher *r, enum kind kind, struct edition *edition)
{
    struct snapshot *old = r->snapshot;

    r->snapshot = snapshot_with(old, kind, edition);
    snapshot_unref(old);
}

struct snapshot *refresher_snapshot(struct refresher *refresher)
{
    int64_t now = clock_mono(refresher->config.clock);
    struct snapshot *snapshot;

    pthread_mutex_lock(&refresher->lock);
    for (int kind = 0; kind < KINDS; kind++)
        if (refresher->snapshot->editions[kind] &&
            now - refresher->kinds[kind].asked_at > refresher->config.stale_limit_ns)
            replace_edition(refresher, kind, NULL);
    snapshot = snapshot_ref(refresher->snapshot);
    pthread_mutex_unlock(&refresher->lock);
    return snapshot;
}

void refresher_stats(struct refresher *refresher, struct refresh_stats *ret)
{
    int64_t now = clock_mono(refresher->config.clock);

    pthread_mutex_lock(&refresher->lock);
    *ret = refresher->stats;
    for (int kind = 0; kind < KINDS; kind++)
        ret->kinds[kind].age_seconds =
            refresher->kinds[kind].seen
                ? (double)(now - refresher->kinds[kind].asked_at) / NS_PER_SEC
                : -1;
    pthread_mutex_unlock(&refresher->lock);
}

static void count_error(struct refresh_stats *stats, enum kind kind, int code)
{
    const char *reason = err_reason(code);

    for (size_t i = 0; i < REFRESH_REASONS; i++) {
        if (!stats->kinds[kind].errors[i].reason)
            stats->kinds[kind].errors[i].reason = reason;
        if (stats->kinds[kind].errors[i].reason == reason) {
            stats->kinds[kind].errors[i].count++;
            return;
        }
    }
}

/* Poll limit, doubled with each failure in a row. */
static int64_t backoff_ns(const struct refresher *r, enum kind kind)
{
    int64_t ns = r->config.poll_limit_ns[kind];

    for (unsigned i = 1; i < r->kinds[kind].failures && ns < r->config.max_backoff_ns; i++)
        ns *= 2;
    return ns < r->config.max_backoff_ns ? ns : r->config.max_backoff_ns;
}

static void note_failure(struct refresher *r, enum kind kind, const struct err *err)
{
    struct kind_state *state = &r->kinds[kind];

    count_error(&r->stats, kind, err->code);
    r->stats.kinds[kind].up = false;
    state->failures++;
    state->backoff_until = clock_mono(r->config.clock) + backoff_ns(r, kind);
    LOG(r->config.log, LOG_WARN, "source failed", LOG_STR("source", r->config.source->class->name),
        LOG_STR("kind", kind_name(kind)), LOG_STR("error", err->text),
        LOG_INT("failures", state->failures));
}

static void note_success(struct refresher *r, enum kind kind, const struct section *section)
{
    struct kind_state *state = &r->kinds[kind];

    if (state->failures)
        LOG(r->config.log, LOG_INFO, "source works again",
            LOG_STR("source", r->config.source->class->name), LOG_STR("kind", kind_name(kind)),
            LOG_INT("failures", state->failures));
    state->failures = 0;
    state->backoff_until = INT64_MIN;
    state->seen = true;
    state->asked_at = section->mono_ns;
    state->fresh_until = clock_mono(r->config.clock) + r->config.poll_limit_ns[kind];
    r->stats.kinds[kind].up = true;
    r->stats.kinds[kind].bytes += section->bytes_read;
    r->stats.kinds[kind].skipped += section->skipped;
}

static void note_warning(struct refresher *r, enum kind kind, const char *warning)
{
    if (!warning[0])
        return;
    r->stats.kinds[kind].warnings++;
    LOG(r->config.log, LOG_WARN, "source warns", LOG_STR("source", r->config.source->class->name),
        LOG_STR("kind", kind_name(kind)), LOG_STR("warning", warning));
}

/* Without the lock: asks the source and renders. NULL with *err set on failure. */
static struct edition *look(struct refresher *r, enum kind kind, unsigned formats,
                            char warning[SOURCE_WARNING], struct err *err)
{
    const struct refresh_config *config = &r->config;
    int64_t wall = clock_wall(config->clock), mono = clock_mono(config->clock);
    int64_t deadline = clock_mono(&clock_real) + config->timeout_ns;
    struct section *section;
    struct edition *edition;

    warning[0] = '\0';
    if (config->source->class->read(config->source, kind, deadline, &section, warning, err) < 0)
        return NULL;
    section->wall_ns = wall;
    section->mono_ns = mono;
    edition = edition_new(&config->publish, section, formats, NULL);
    section_unref(section);
    return edition;
}

/* With the lock held, which is let go while the source is asked. */
static void refresh(struct refresher *r, enum kind kind)
{
    int64_t began = clock_mono(r->config.clock);
    unsigned formats = r->formats;
    struct err err = { 0 };
    char warning[SOURCE_WARNING];
    struct edition *edition;

    pthread_mutex_unlock(&r->lock);
    edition = look(r, kind, formats, warning, &err);
    pthread_mutex_lock(&r->lock);
    r->kinds[kind].looked_at = began;
    histogram_add(&r->stats.kinds[kind].durations,
                  (double)(clock_mono(r->config.clock) - began) / NS_PER_SEC);
    note_warning(r, kind, warning);
    if (edition) {
        note_success(r, kind, edition->section);
        replace_edition(r, kind, edition);
    } else if (err.code != ECANCELED) {
        note_failure(r, kind, &err);
    }
}

/* The facts are fresh, but somebody wants them in another format. Likewise with the lock. */
static void render_more(struct refresher *r, enum kind kind)
{
    struct edition *old = edition_ref(r->snapshot->editions[kind]);
    unsigned formats = r->formats;
    struct edition *edition;

    pthread_mutex_unlock(&r->lock);
    edition = edition_new(&r->config.publish, old->section, formats, old);
    pthread_mutex_lock(&r->lock);
    /* It may have been withdrawn meanwhile. */
    if (r->snapshot->editions[kind] == old)
        replace_edition(r, kind, edition);
    else
        edition_unref(edition);
    edition_unref(old);
}

/* Does one thing that is wanted; false if there was none. */
static bool work_once(struct refresher *r)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!r->kinds[kind].wanted)
            continue;
        r->kinds[kind].wanted = false;
        if (!is_settled(r, kind, clock_mono(r->config.clock)))
            refresh(r, kind);
        else if (!is_rendered(r, kind))
            render_more(r, kind);
        return true;
    }
    return false;
}

static void *refresher_main(void *arg)
{
    struct refresher *r = arg;

    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        if (!work_once(r)) {
            pthread_cond_wait(&r->work, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        r->config.changed(r->config.ctx);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

struct refresher *refresher_start(const struct refresh_config *config)
{
    struct refresher *r = heap_alloc(sizeof(*r));

    r->config = *config;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    r->snapshot = snapshot_new();
    for (int kind = 0; kind < KINDS; kind++)
        r->kinds[kind].looked_at = r->kinds[kind].backoff_until = INT64_MIN;
    if (pthread_create(&r->thread, NULL, refresher_main, r) != 0)
        abort();
    return r;
}

struct refresher *refresher_stop(struct refresher *refresher)
{
    if (!refresher)
        return NULL;
    atomic_store(&refresher->config.source->cancelled, true);
    pthread_mutex_lock(&refresher->lock);
    refresher->stopping = true;
    pthread_cond_signal(&refresher->work);
    pthread_mutex_unlock(&refresher->lock);
    pthread_join(refresher->thread, NULL);
    snapshot_unref(refresher->snapshot);
    pthread_mutex_destroy(&refresher->lock);
    pthread_cond_destroy(&refresher->work);
    free(refresher);
    return NULL;
}
