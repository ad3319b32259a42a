/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes boards for pages from the sections of the refreshers. */
#include "cmd/up_board.h"

#include "base/moment.h"

/* Shown on pages; the rest are for scrapes only. */
static const unsigned shown_kinds = KIND_BIT(KIND_NODES) | KIND_BIT(KIND_JOBS) |
                                    KIND_BIT(KIND_RESERVATIONS) | KIND_BIT(KIND_LICENSES) |
                                    KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
                                    KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG);

/* How long somebody waits for news who can be shown what there is. */
static const int64_t moment_ns = NS_PER_SEC / 10;

enum { REASON_MAX = 240 }; /* bytes of an error that pages show; the log has all of it */

/* What is left of the deadline to make a page of it. */
static const int64_t margin_ns = NS_PER_SEC / 2;

/* Two boards of one version would be the same. */
struct version {
    uint64_t engine, serial, failing; /* serials added up: each only grows */
};

struct up_board {
    const struct clock *clock;
    struct up_health *health; /* or NULL */
    pthread_rwlock_t using;   /* held to read while the engine is asked */
    atomic_bool is_cancelled; /* whoever waits for the engine is to leave it */
    struct engine *engine;    /* this and the next: of `using` */
    uint64_t engine_number;
    pthread_mutex_t making;
    struct board *board; /* this and the next: of `making`; NULL: none yet */
    struct version version;
};

static unsigned kinds_of(const struct engine_cluster *cluster)
{
    return shown_kinds & cluster->feeds[FEED_SLURM].source->class->kinds;
}

static bool want_all(const struct engine *engine, int64_t since_ns)
{
    bool is_ready = true;

    for (size_t i = 0; i < engine->n_clusters; i++)
        is_ready &= refresher_want(engine->clusters[i].feeds[FEED_SLURM].refresher,
                                   kinds_of(&engine->clusters[i]), METRIC_TEXT, since_ns);
    return is_ready;
}

/* Until all that was wanted has been looked at, or that time has come. */
static void wait_for_all(struct up_board *boards, int64_t until_ns)
{
    const struct engine *engine = boards->engine;
    struct err unwanted;

    for (size_t i = 0; i < engine->n_clusters; i++)
        for (int kind = 0; kind < KINDS; kind++)
            if (kinds_of(&engine->clusters[i]) & KIND_BIT(kind))
                section_unref(refresher_wait(engine->clusters[i].feeds[FEED_SLURM].refresher, kind,
                                             until_ns, &boards->is_cancelled, &unwanted));
}

/* Whether the last look at what every page shows has failed. */
static bool is_failing(const struct engine_cluster *cluster)
{
    struct refresh_stats stats;

    refresher_stats(cluster->feeds[FEED_SLURM].refresher, &stats);
    return (stats.kinds[KIND_JOBS].looks && !stats.kinds[KIND_JOBS].up) ||
           (stats.kinds[KIND_NODES].looks && !stats.kinds[KIND_NODES].up);
}

/* When that kind was read last, in UTC seconds, also if it was withdrawn since; 0: never. */
static int64_t last_read(const struct up_board *boards, const struct refresh_stats *stats,
                         enum kind kind)
{
    double age = stats->kinds[kind].age_seconds;

    return age < 0 ? 0 : clock_wall(boards->clock) / NS_PER_SEC - (int64_t)age;
}

static void put_reason(struct up_board *boards, struct refresher *refresher, enum kind kind,
                       struct buf *to)
{
    struct err err = { 0 };

    section_unref(refresher_wait(refresher, kind, 0, &boards->is_cancelled, &err));
    if (err.text[0]) {
        buf_text(to, ": ");
        buf_cut(to, str_of(err.text), REASON_MAX);
    }
}

/* That nothing newer is shown, and why. */
static void tell_trouble(struct up_board *boards, const struct engine_cluster *cluster,
                         struct arena *arena, struct board_cluster *shown)
{
    struct refresher *refresher = cluster->feeds[FEED_SLURM].refresher;
    struct refresh_stats stats;
    int64_t jobs, nodes;
    struct buf text;

    refresher_stats(refresher, &stats);
    jobs = last_read(boards, &stats, KIND_JOBS);
    nodes = last_read(boards, &stats, KIND_NODES);
    shown->is_empty = !jobs && !nodes;
    buf_init(&text, 2 * REASON_MAX);
    if (jobs && nodes) {
        buf_text(&text, "No reply from Slurm since ");
        moment_put(&text, jobs < nodes ? jobs : nodes);
    } else {
        buf_printf(&text, "Cannot %s",
                   jobs    ? "read nodes from Slurm"
                   : nodes ? "read jobs from Slurm"
                           : "reach Slurm");
    }
    shown->trouble = arena_str(arena, buf_str(&text));
    put_reason(boards, refresher, jobs && !nodes ? KIND_NODES : KIND_JOBS, &text);
    shown->trouble_in_full = arena_str(arena, buf_str(&text));
    buf_free(&text);
}

static struct str name_of(const struct engine_cluster *cluster, const struct section *config,
                          struct arena *arena)
{
    struct str told = config ? section_text(config, config->config.cluster) : STR("");

    return arena_str(arena, cluster->name ? str_of(cluster->name) : told);
}

static void fill_cluster(struct up_board *boards, const struct engine_cluster *cluster,
                         const struct snapshot *snapshot, bool is_in_trouble, struct arena *arena,
                         struct section *config, struct board_cluster *ret)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (shown_kinds & KIND_BIT(kind) && snapshot->editions[kind] &&
            snapshot->editions[kind]->section)
            ret->section[kind] = section_ref(snapshot->editions[kind]->section);
    if (!ret->section[KIND_CONFIG] && config)
        ret->section[KIND_CONFIG] = section_ref(config);
    ret->is_simulated = cluster->feeds[FEED_SLURM].source->simulated;
    ret->name = name_of(cluster, ret->section[KIND_CONFIG], arena);
    if (is_in_trouble)
        tell_trouble(boards, cluster, arena, ret);
}

static bool is_same(struct version a, struct version b)
{
    return a.engine == b.engine && a.serial == b.serial && a.failing == b.failing;
}

static void replace(struct up_board *boards, struct snapshot *const *snapshots, uint64_t failing)
{
    const struct engine *engine = boards->engine;
    struct board *before = boards->board;
    bool is_same_engine = before && boards->version.engine == boards->engine_number;
    int64_t began_ns;

    boards->board = board_new(engine->n_clusters, clock_wall(boards->clock) / NS_PER_SEC);
    for (size_t i = 0; i < engine->n_clusters; i++) {
        /* An old configuration rather than none: what is private stays so while slurmctld does not
         * tell it again. */
        struct section *config = is_same_engine ? before->cluster[i].section[KIND_CONFIG] : NULL;

        fill_cluster(boards, &engine->clusters[i], snapshots[i], failing >> i & 1,
                     &boards->board->arena, config, &boards->board->cluster[i]);
        if (boards->health)
            up_health_note(boards->health, i, &engine->clusters[i], snapshots[i]);
    }
    board_unref(before);
    began_ns = clock_mono(&clock_real);
    board_sum(boards->board);
    if (boards->health)
        up_health_add(boards->health, "adding up",
                      (double)(clock_mono(&clock_real) - began_ns) / NS_PER_SEC);
}

/* With `making` held: the newest board, made if there is anything that it does not show. */
static struct board *make(struct up_board *boards)
{
    const struct engine *engine = boards->engine;
    struct snapshot *snapshots[CLUSTERS_MAX];
    struct version version = { .engine = boards->engine_number };

    for (size_t i = 0; i < engine->n_clusters; i++) {
        snapshots[i] = refresher_snapshot(engine->clusters[i].feeds[FEED_SLURM].refresher);
        version.serial += snapshots[i]->serial;
        version.failing |= (uint64_t)is_failing(&engine->clusters[i]) << i;
    }
    if (!boards->board || !is_same(version, boards->version)) {
        replace(boards, snapshots, version.failing);
        boards->version = version;
    }
    for (size_t i = 0; i < engine->n_clusters; i++)
        snapshot_unref(snapshots[i]);
    return board_ref(boards->board);
}

static bool has_board(struct up_board *boards)
{
    bool has_one;

    pthread_mutex_lock(&boards->making);
    has_one = boards->board != NULL;
    pthread_mutex_unlock(&boards->making);
    return has_one;
}

static struct board *take_by(struct up_board *boards, int64_t until_ns, struct err *err)
{
    struct board *board = NULL;

    pthread_rwlock_rdlock(&boards->using);
    if (!boards->engine) {
        err_set(err, ECANCELED, "sonde is about to end");
    } else {
        if (!want_all(boards->engine, clock_mono(&clock_real)))
            wait_for_all(boards, until_ns);
        pthread_mutex_lock(&boards->making);
        board = make(boards);
        pthread_mutex_unlock(&boards->making);
    }
    pthread_rwlock_unlock(&boards->using);
    return board;
}

static struct board *take(void *ctx, int64_t deadline_ns, struct err *err)
{
    struct up_board *boards = ctx;
    int64_t soon_ns = clock_mono(&clock_real) + moment_ns, last_ns = deadline_ns - margin_ns;

    return take_by(boards, has_board(boards) && soon_ns < last_ns ? soon_ns : last_ns, err);
}

static struct board *take_patiently(void *ctx, int64_t deadline_ns, struct err *err)
{
    return take_by(ctx, deadline_ns, err);
}

struct board_source up_board_source(struct up_board *boards)
{
    return (struct board_source){ .take = take, .ctx = boards };
}

struct board_source up_board_patient(struct up_board *boards)
{
    return (struct board_source){ .take = take_patiently, .ctx = boards };
}

struct up_board *up_board_new(const struct clock *clock, struct up_health *health)
{
    struct up_board *boards = heap_alloc(sizeof(*boards));

    boards->clock = clock;
    boards->health = health;
    pthread_rwlock_init(&boards->using, NULL);
    pthread_mutex_init(&boards->making, NULL);
    return boards;
}

struct up_board *up_board_free(struct up_board *boards)
{
    if (boards) {
        board_unref(boards->board);
        pthread_rwlock_destroy(&boards->using);
        pthread_mutex_destroy(&boards->making);
        free(boards);
    }
    return NULL;
}

void up_board_use(struct up_board *boards, struct engine *engine)
{
    atomic_store(&boards->is_cancelled, true);
    pthread_rwlock_wrlock(&boards->using);
    boards->engine = engine;
    boards->engine_number++;
    atomic_store(&boards->is_cancelled, false);
    pthread_rwlock_unlock(&boards->using);
}
