/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Durations and states of the parts of `sonde up`, for the health page. */
#include "cmd/up_health.h"

#include "base/process.h"
#include "web/health_facts.h"

enum { STAGE_NAME = 80, DOCUMENT_MAX = 1 << 20 };

/* The last so many, in a ring. */
struct stage {
    char name[STAGE_NAME];
    double second[HEALTH_SECONDS];
    size_t n; /* ever */
};

/* What was noted last of a kind of a cluster. */
struct noted {
    uint64_t looks;
    int64_t rendered_ns; /* when the section was told that was rendered */
};

/* What is told of a cluster's source. */
struct told {
    char name[80];
    struct source_about about;
    struct {
        bool is_asked, is_up;
        uint64_t errors;
    } kind[KINDS];
};

struct up_health {
    pthread_mutex_t lock;
    struct stage stage[HEALTH_STAGES];
    size_t n_stages;
    struct noted noted[CLUSTERS_MAX][KINDS];
    struct told *told; /* CLUSTERS_MAX of them */
    size_t n_told;
};

struct up_health *up_health_new(void)
{
    struct up_health *health = heap_alloc(sizeof(*health));

    health->told = heap_alloc(CLUSTERS_MAX * sizeof(*health->told));
    pthread_mutex_init(&health->lock, NULL);
    return health;
}

struct up_health *up_health_free(struct up_health *health)
{
    if (health) {
        pthread_mutex_destroy(&health->lock);
        free(health->told);
        free(health);
    }
    return NULL;
}

/* With the lock held. Stages past the ceiling are not shown. */
static void add(struct up_health *health, const char *name, double seconds)
{
    struct stage *stage = health->stage, *const end = stage + health->n_stages;

    while (stage < end && strcmp(stage->name, name) != 0)
        stage++;
    if (stage == end) {
        if (health->n_stages == HEALTH_STAGES)
            return;
        snprintf(stage->name, sizeof(stage->name), "%s", name);
        health->n_stages++;
    }
    stage->second[stage->n++ % HEALTH_SECONDS] = seconds;
}

void up_health_add(struct up_health *health, const char *stage, double seconds)
{
    pthread_mutex_lock(&health->lock);
    add(health, stage, seconds);
    pthread_mutex_unlock(&health->lock);
}

static double render_seconds(const struct edition *edition)
{
    double sum = 0;

    for (size_t i = 0; collectors[i]; i++)
        sum += edition->collectors[i].seconds;
    return sum;
}

static void note_kind(struct up_health *health, size_t cluster, enum kind kind,
                      const struct refresh_stats *stats, const struct edition *edition)
{
    struct noted *noted = &health->noted[cluster][kind];
    char name[STAGE_NAME];

    if (stats->kinds[kind].looks != noted->looks) {
        snprintf(name, sizeof(name), "refresh of %s", kind_name(kind));
        add(health, name, stats->kinds[kind].last_seconds);
        noted->looks = stats->kinds[kind].looks;
    }
    if (edition && edition->section && edition->section->mono_ns != noted->rendered_ns) {
        snprintf(name, sizeof(name), "rendering of %s", kind_name(kind));
        add(health, name, render_seconds(edition));
        noted->rendered_ns = edition->section->mono_ns;
    }
}

static void tell_cluster(struct told *told, const char *name, const struct refresh_stats *stats)
{
    snprintf(told->name, sizeof(told->name), "%s", name ? name : "");
    told->about = stats->about;
    for (int kind = 0; kind < KINDS; kind++) {
        told->kind[kind].is_asked = stats->kinds[kind].asked;
        told->kind[kind].is_up = stats->kinds[kind].up;
        told->kind[kind].errors = 0;
        for (size_t i = 0; i < REFRESH_REASONS && stats->kinds[kind].errors[i].reason; i++)
            told->kind[kind].errors += stats->kinds[kind].errors[i].count;
    }
}

void up_health_note(struct up_health *health, size_t cluster, const struct engine_cluster *of,
                    const struct snapshot *snapshot)
{
    struct refresh_stats *stats = heap_alloc(sizeof(*stats));

    refresher_stats(of->feeds[FEED_SLURM].refresher, stats);
    pthread_mutex_lock(&health->lock);
    for (int kind = 0; kind < KINDS; kind++)
        note_kind(health, cluster, kind, stats, snapshot->editions[kind]);
    tell_cluster(&health->told[cluster], of->name, stats);
    if (cluster >= health->n_told)
        health->n_told = cluster + 1;
    pthread_mutex_unlock(&health->lock);
    free(stats);
}

/* ---- the document ---- */

static void put_key(struct buf *to, const char *name)
{
    if (to->n && to->p[to->n - 1] != '{')
        buf_byte(to, ',');
    buf_json(to, str_of(name));
    buf_byte(to, ':');
}

static void put_number(struct buf *to, const char *name, double number)
{
    put_key(to, name);
    buf_double(to, number);
}

static void put_text(struct buf *to, const char *name, const char *text)
{
    if (!text || !text[0])
        return;
    put_key(to, name);
    buf_json(to, str_of(text));
}

static void put_flag(struct buf *to, const char *name, bool flag)
{
    put_key(to, name);
    buf_text(to, flag ? "true" : "false");
}

static void put_stages(struct buf *to, const struct up_health *health)
{
    buf_text(to, "\"stages\":[");
    for (size_t i = 0; i < health->n_stages; i++) {
        const struct stage *stage = &health->stage[i];
        size_t n = stage->n < HEALTH_SECONDS ? stage->n : HEALTH_SECONDS;

        buf_text(to, i ? ",{" : "{");
        put_text(to, "name", stage->name);
        put_key(to, "seconds");
        for (size_t k = 0; k < n; k++) {
            buf_byte(to, k ? ',' : '[');
            buf_double(to, stage->second[(stage->n - n + k) % HEALTH_SECONDS]);
        }
        buf_text(to, n ? "]}" : "[]}");
    }
    buf_byte(to, ']');
}

static void put_source(struct buf *to, const struct told *told)
{
    char group[sizeof(told->name) + 20];

    snprintf(group, sizeof(group), "source%s%s", told->name[0] ? " of " : "", told->name);
    put_key(to, group);
    buf_byte(to, '{');
    put_text(to, "door", told->about.door);
    put_text(to, "why_that_door", told->about.reason);
    put_text(to, "interface", told->about.interface);
    for (int kind = 0; kind < KINDS; kind++) {
        char name[STAGE_NAME];

        if (!told->kind[kind].is_asked)
            continue;
        snprintf(name, sizeof(name), "%s_is_up", kind_name(kind));
        put_flag(to, name, told->kind[kind].is_up);
        if (told->kind[kind].errors) {
            snprintf(name, sizeof(name), "%s_failures", kind_name(kind));
            put_number(to, name, (double)told->kind[kind].errors);
        }
    }
    buf_byte(to, '}');
}

static void put_store(struct buf *to, struct recorder *recorder)
{
    struct recorder_stats stats;

    recorder_stats(recorder, &stats);
    put_key(to, "store");
    buf_byte(to, '{');
    put_flag(to, "is_written", stats.is_up);
    put_number(to, "size_bytes", (double)stats.size.bytes);
    put_number(to, "jobs", (double)stats.size.runs);
    put_number(to, "transactions", (double)stats.commits);
    put_number(to, "last_transaction_seconds", stats.last_seconds);
    put_number(to, "behind_seconds", stats.behind_seconds);
    buf_byte(to, '}');
}

static void put_series(struct buf *to, struct ticker *ticker, bool has_agent)
{
    struct ticker_stats stats;

    ticker_stats(ticker, &stats);
    put_key(to, "series");
    buf_byte(to, '{');
    put_flag(to, "is_written", stats.is_up);
    put_number(to, "size_bytes", (double)stats.series.bytes);
    put_number(to, "series", (double)stats.series.series);
    put_number(to, "ticks", (double)stats.ticks);
    put_number(to, "failures", (double)stats.failures);
    put_number(to, "last_tick_seconds", stats.last_seconds);
    if (stats.series.first_time)
        put_number(to, "first_time", (double)stats.series.first_time);
    if (has_agent)
        put_flag(to, "agent_answers", stats.is_agent_up);
    buf_byte(to, '}');
}

static void put_process(struct buf *to)
{
    struct process process;

    process_read(&process);
    put_text(to, "version", SONDE_VERSION);
    put_number(to, "uptime_seconds",
               (double)(clock_wall(&clock_real) / NS_PER_SEC) - process.start_time_seconds);
    put_number(to, "cpu_seconds", process.cpu_seconds);
    put_number(to, "resident_bytes", (double)process.resident_bytes);
    put_number(to, "threads", (double)process.threads);
    put_number(to, "open_files", (double)process.open_fds);
}

struct str up_health_put(struct up_health *health, struct arena *arena, struct recorder *recorder,
                         struct ticker *ticker, bool has_agent)
{
    struct str document;
    struct buf text;

    buf_init(&text, DOCUMENT_MAX);
    buf_byte(&text, '{');
    pthread_mutex_lock(&health->lock);
    put_stages(&text, health);
    put_key(&text, "facts");
    buf_byte(&text, '{');
    put_process(&text);
    for (size_t i = 0; i < health->n_told; i++)
        put_source(&text, &health->told[i]);
    pthread_mutex_unlock(&health->lock);
    if (recorder)
        put_store(&text, recorder);
    if (ticker)
        put_series(&text, ticker, has_agent);
    buf_text(&text, "}}");
    document = arena_str(arena, buf_str(&text));
    buf_free(&text);
    return document;
}
