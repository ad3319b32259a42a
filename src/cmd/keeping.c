/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts and stops the parts that record jobs in a store. */
#include "cmd/keeping.h"

#include "base/munge.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/secret.h"
#include "base/users.h"
#include "http/ingest.h"
#include "record/history.h"
#include "record/kept.h"
#include "record/recorder.h"

void keeping_init(struct keeping *keeping, const struct clock *clock, struct log *log)
{
    *keeping = (struct keeping){ .clock = clock, .log = log };
    pthread_mutex_init(&keeping->telling, NULL);
}

/* What is simulated and what is real are never in one store. */
int keeping_start_recorder(struct keeping *keeping, const struct settings *settings,
                           const struct engine *engine, struct err *err)
{
    struct recorded_cluster clusters[CLUSTERS_MAX];
    const struct recorder_config config = {
        .url = settings->store.url,
        .is_simulated = engine->clusters[0].feeds[FEED_SLURM].source->simulated,
        .clusters = clusters,
        .n_clusters = engine->n_clusters,
        .clock = keeping->clock,
        .log = keeping->log,
    };

    for (size_t i = 0; i < engine->n_clusters; i++) {
        if (engine->clusters[i].feeds[FEED_SLURM].source->simulated != config.is_simulated)
            return err_set(err, EINVAL,
                           "one store does not take simulated and real clusters: run an exporter "
                           "for each");
        clusters[i] = (struct recorded_cluster){ .name = settings->clusters[i].name,
                                                 .retention_ns = settings->clusters[i].retention_ns,
                                                 .max_bytes = settings->clusters[i].max_bytes };
        keeping->watched[i] = (struct keeping_watched){ keeping, i };
    }
    return recorder_start(&config, &keeping->recorder, err);
}

/* On the refresher's thread. */
static void note(void *ctx, struct section *section)
{
    const struct keeping_watched *watched = ctx;
    struct recorder *recorder = watched->keeping->recorder;

    if (section->kind == KIND_CONFIG)
        recorder_name(recorder, watched->cluster, section_text(section, section->config.cluster));
    recorder_note(recorder, watched->cluster, section);
}

static void put_waits(void *ctx, struct section *jobs)
{
    const struct keeping_watched *watched = ctx;

    recorder_put_waits(watched->keeping->recorder, watched->cluster, jobs);
}

void keeping_watch(struct keeping *keeping, size_t cluster, struct refresh_config *config)
{
    if (!keeping->recorder)
        return;
    config->noted = note;
    config->noted_ctx = &keeping->watched[cluster];
    config->waits = put_waits;
    config->waits_ctx = &keeping->watched[cluster];
}

int keeping_open_source(struct keeping *keeping, const struct settings *settings, size_t i,
                        struct engine_cluster *cluster, struct err *err)
{
    const struct kept_settings kept = {
        .url = settings->store.url,
        .allocations_file = settings->store.allocations_file,
        .recorder = keeping->recorder,
        .cluster = i,
        .is_simulated = cluster->feeds[FEED_SLURM].source->simulated,
    };

    return source_open_kept(&kept, keeping->clock, &cluster->feeds[FEED_STORE].source, err);
}

/* What was simulated is nothing that a Prometheus could know of. */
int keeping_make_summaries(struct keeping *keeping, const struct settings *settings,
                           const struct engine *engine, struct summaries **ret, struct err *err)
{
    struct summaries_config config = {
        .recorder = keeping->recorder,
        .store = settings->store.url,
        .prometheus = prometheus_options_settings(&settings->prometheus),
        .matcher = settings->matcher,
        .n_matchers = settings->matchers.n,
        .timeout_ns = settings->prometheus.timeout_ns,
        .clock = keeping->clock,
        .log = keeping->log,
    };

    if (!settings_want_summaries(settings) ||
        engine->clusters[0].feeds[FEED_SLURM].source->simulated)
        return 0;
    config.pause_ns = NS_PER_SEC / (int64_t)settings->store.summaries_per_second;
    return summaries_start(&config, ret, err);
}

/* While a scrape may ask for them. */
void keeping_use_summaries(struct keeping *keeping, struct summaries *summaries)
{
    struct summaries *old = keeping->summaries;

    pthread_mutex_lock(&keeping->telling);
    keeping->summaries = summaries;
    pthread_mutex_unlock(&keeping->telling);
    summaries_stop(old);
}

/* A recording or a simulation has no slurmdbd. */
static bool has_history(const struct settings *settings, const struct source *source)
{
    return settings->store.history.is_on && !source->simulated &&
           strcmp(source->class->name, "replay") != 0;
}

static int start_histories(struct keeping *keeping, const struct settings *settings,
                           const struct engine *engine, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < engine->n_clusters; i++) {
        struct history_config config = {
            .recorder = keeping->recorder,
            .cluster = i,
            .source = source_options_settings(&settings->clusters[i].source),
            .interval_ns = settings->store.history.interval_ns,
            .timeout_ns = settings->store.history.timeout_ns,
            .first_time = settings->history_from,
            .store = settings->store.url,
            .clock = keeping->clock,
            .log = keeping->log,
        };

        if (!has_history(settings, engine->clusters[i].feeds[FEED_SLURM].source))
            continue;
        code = cluster_options_keep(&settings->clusters[i], &keeping->keeps[i], err);
        config.keep = keeping->keeps[i];
        if (code == 0)
            code = history_start(&config, &keeping->histories[i], err);
    }
    return code;
}

enum { MOST_INGEST_USERS = 32 };

static bool find_ingest_user(struct str word, uid_t *ret)
{
    uint64_t number;
    char *name;
    int code;

    if (num_get_u64(word, &number)) {
        *ret = (uid_t)number;
        return number < (uid_t)-1;
    }
    name = heap_str(word);
    code = users_find(name, ret);
    free(name);
    return code == 0;
}

/* Of the range from which systemd gives out numbers for a while (DynamicUser=). On other hosts they
 * may belong to people, so that they are accepted only if the administrator lists them. */
static bool is_dynamic(uid_t uid)
{
    return uid >= 61184 && uid <= 65519;
}

/* The users of --ingest.users. Of the default, the agent's own may be absent here. */
static size_t find_ingest_users(const struct keeping *keeping, struct str list,
                                uid_t to[MOST_INGEST_USERS])
{
    bool is_default = str_eq(list, STR(INGEST_USERS));
    size_t n = 0;

    for (struct str rest = list; rest.p;) {
        struct str word = str_trim(str_cut(&rest, ','));
        bool is_found = word.n && n < MOST_INGEST_USERS && find_ingest_user(word, &to[n]);

        if (is_found && !(is_default && is_dynamic(to[n])))
            n++;
        else if (word.n && !is_default)
            LOG(keeping->log, LOG_WARN, "a user of --ingest.users cannot be used",
                LOG_STR("user", quote(word).text),
                LOG_STR("error", n < MOST_INGEST_USERS ? "there is no such user on this host"
                                                       : "the list is too long"));
    }
    return n;
}

/* Whether munge credentials can be checked here at all. */
static bool has_munge(const struct keeping *keeping, bool has_token)
{
    struct err err = { 0 };

    if (munge_find(&err) == 0)
        return true;
    if (has_token)
        LOG(keeping->log, LOG_INFO, "/ingest accepts tokens only", LOG_STR("reason", err.text));
    else
        LOG(keeping->log, LOG_DEBUG, "/ingest accepts nothing", LOG_STR("reason", err.text));
    return false;
}

static void check_token_file(const struct keeping *keeping, const char *path)
{
    struct err err;

    if (secret_check(path, "token", &err) < 0)
        LOG(keeping->log, LOG_WARN, "the file of --ingest.token-file will not do",
            LOG_STR("error", err.text));
}

static void start_ingest(struct keeping *keeping, const struct settings *settings,
                         struct metrics *metrics)
{
    uid_t users[MOST_INGEST_USERS];
    struct http_ingest_config config = {
        .recorder = keeping->recorder,
        .munge = { .credentials = { .unseal = munge_unseal, .clock = keeping->clock },
                   .lookup = node_lookup_system,
                   .users = users },
        .max_posts = (unsigned)settings->serve.max_connections / 2 + 1,
        .clock = keeping->clock,
        .log = keeping->log,
    };
    struct http_route routes[HTTP_INGEST_ROUTES];

    if (settings->store.token_file.n) {
        config.token_file = settings->store.token_file.p;
        check_token_file(keeping, config.token_file);
    }
    if (settings->store.ingest_users.n && has_munge(keeping, config.token_file))
        config.munge.n_users = find_ingest_users(keeping, settings->store.ingest_users, users);
    if (settings->store.munge_socket.n)
        config.munge.credentials.socket = settings->store.munge_socket.p;
    keeping->ingest = http_ingest_new(&config);
    http_ingest_routes(keeping->ingest, routes);
    for (size_t i = 0; i < HTTP_INGEST_ROUTES; i++)
        metrics_add_route(metrics, &routes[i]);
}

int keeping_start(struct keeping *keeping, const struct settings *settings,
                  const struct engine *engine, struct metrics *metrics, struct err *err)
{
    int code = start_histories(keeping, settings, engine, err);

    if (code == 0)
        code = keeping_make_summaries(keeping, settings, engine, &keeping->summaries, err);
    if (code == 0 && (settings->store.token_file.n || settings->store.ingest_users.n))
        start_ingest(keeping, settings, metrics);
    return code;
}

static void tell_history(struct history *history, struct self_cluster *cluster)
{
    struct history_stats stats;

    history_stats(history, &stats);
    cluster->has_history = true;
    cluster->history = (struct self_history){
        .is_up = stats.is_up,
        .questions = stats.questions,
        .failures = stats.failures,
        .records = stats.records,
        .skipped = stats.skipped,
        .since = stats.since,
        .until = stats.until,
        .is_complete = stats.is_complete,
    };
    cluster->reconciled.time = stats.reconciled.time;
    for (int i = 0; i < SELF_COMPARISONS; i++) {
        cluster->reconciled.explained[i] = stats.reconciled.explained[i];
        cluster->reconciled.unexplained[i] = stats.reconciled.unexplained[i];
    }
}

static void tell_summaries(struct keeping *keeping, struct self_store *store)
{
    struct summaries_stats stats;

    pthread_mutex_lock(&keeping->telling);
    store->keeps_summaries = keeping->summaries != NULL;
    if (keeping->summaries)
        summaries_stats(keeping->summaries, &stats);
    pthread_mutex_unlock(&keeping->telling);
    if (!store->keeps_summaries)
        return;
    store->is_summarising = stats.is_up;
    store->summaries = stats.written;
    store->summaries_empty = stats.empty - stats.failures;
    store->summaries_failed = stats.failures;
}

bool keeping_tell(struct keeping *keeping, struct self_store *store, struct self_cluster *clusters,
                  size_t n)
{
    struct http_ingest_stats ingest;
    struct recorder_stats stats;

    if (!keeping->recorder)
        return false;
    recorder_stats(keeping->recorder, &stats);
    *store = (struct self_store){
        .is_up = stats.is_up,
        .commits = stats.commits,
        .jobs = stats.jobs,
        .finals = stats.finals,
        .unchanged = stats.unchanged,
        .skipped = stats.skipped,
        .replaced = stats.replaced,
        .last_seconds = stats.last_seconds,
        .behind_seconds = stats.behind_seconds,
        .bytes = stats.size.bytes,
        .runs = stats.size.runs,
        .is_retention_paused = stats.is_retention_paused,
        .takes_posts = keeping->ingest != NULL,
    };
    for (size_t i = 0; i < RECORDER_REASONS && stats.errors[i].reason; i++) {
        store->errors[i].reason = stats.errors[i].reason;
        store->errors[i].count = stats.errors[i].count;
    }
    tell_summaries(keeping, store);
    if (keeping->ingest) {
        http_ingest_stats(keeping->ingest, &ingest);
        store->posts = ingest.posts;
        store->posts_refused = ingest.refused;
    }
    for (size_t i = 0; i < n; i++)
        if (keeping->histories[i])
            tell_history(keeping->histories[i], &clusters[i]);
    return true;
}

/* A reload may be replacing the summaries. */
void keeping_cancel_askers(struct keeping *keeping)
{
    for (size_t i = 0; i < CLUSTERS_MAX; i++)
        history_end(keeping->histories[i]);
    pthread_mutex_lock(&keeping->telling);
    summaries_end(keeping->summaries);
    pthread_mutex_unlock(&keeping->telling);
}

void keeping_stop_askers(struct keeping *keeping)
{
    http_ingest_free(keeping->ingest);
    for (size_t i = 0; i < CLUSTERS_MAX; i++)
        history_stop(keeping->histories[i]);
    summaries_stop(keeping->summaries);
}

void keeping_end(struct keeping *keeping)
{
    recorder_stop(keeping->recorder);
    for (size_t i = 0; i < CLUSTERS_MAX; i++)
        keep_free(keeping->keeps[i]);
    pthread_mutex_destroy(&keeping->telling);
}
