/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde web: the jobs that are kept, over HTTP. */
#include "cmd/serve.h"

#include "base/process.h"
#include "http/lifecycle.h"
#include "http/webconfig.h"
#include "store/store.h"
#include "web/api.h"

#include <pthread.h>

struct settings {
    struct serve_options serve;
    struct str store, allocations_file;
    int64_t timeout_ns;
    bool allow_anonymous;
};

#define SETTING(member) offsetof(struct settings, member)

static const struct option web_rows[] = {
    { "web.allow-anonymous", OPTION_BOOL, SETTING(allow_anonymous), NULL, "false", NULL, NULL,
      "Web",
      "Answer everybody who reaches the address, where it is not one of this machine alone and "
      "--web.config.file has no users. Whoever asks sees the jobs of all." },
};

static const struct option other_rows[] = {
    { "store", OPTION_STRING, SETTING(store), "URL", "sqlite:/var/lib/sonde/sonde.db",
      "SONDE_STORE", NULL, "Store", "Where the exporter keeps jobs: sqlite:/path. Only read." },
    { "allocations.file", OPTION_STRING, SETTING(allocations_file), "FILE", NULL, NULL, NULL,
      "Store", "What accounts were promised, for /api/v1/constants. Read for each answer." },
    { "api.timeout", OPTION_DURATION, SETTING(timeout_ns), "DURATION", "10s", NULL, NULL, "API",
      "How long an answer may take; past it there is 504." },
};

/* There are no metrics here. */
static bool is_of_metrics(const struct option *row)
{
    return strcmp(row->name, "web.telemetry-path") == 0 ||
           strcmp(row->name, "metrics.exclude") == 0;
}

struct made_options {
    struct option rows[SERVE_OPTIONS + COUNT(web_rows) + COUNT(other_rows) + 1];
    size_t n;
};

static void add_rows(struct made_options *made, const struct option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_of_metrics(&rows[i]))
            made->rows[made->n++] = rows[i];
}

static bool is_of_web(const struct option *row)
{
    return strcmp(row->group, "Web") == 0;
}

/* Rows of a group stand together: --web.allow-anonymous follows the last of "Web". */
static void make_options(struct made_options *made)
{
    struct option serve[SERVE_OPTIONS];
    size_t n_web = 0;

    serve_options_rows(SETTING(serve), "127.0.0.1:8080", "256", serve);
    while (n_web < SERVE_OPTIONS && is_of_web(&serve[n_web]))
        n_web++;
    add_rows(made, serve, n_web);
    add_rows(made, web_rows, COUNT(web_rows));
    add_rows(made, serve + n_web, SERVE_OPTIONS - n_web);
    add_rows(made, other_rows, COUNT(other_rows));
}

static int check(const struct settings *settings, struct err *err)
{
    char path[STORE_PATH_MAX];
    int code = serve_options_check(&settings->serve, err);

    if (code < 0)
        return code;
    if (settings->timeout_ns <= 0)
        return err_set(err, EINVAL, "--api.timeout must be more than 0");
    return store_path(settings->store, path, err);
}

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 struct err *err)
{
    struct made_options made = { 0 };
    const struct option_command command = {
        .name = "sonde web",
        .summary = "serve the jobs that are kept over HTTP",
        .description =
            "Serves what the store has of jobs, nodes and clusters, and what was used of them, as "
            "JSON: /api/v1/jobs, /api/v1/clusters, /api/v1/nodes, /api/v1/usage and "
            "/api/v1/constants; the page at / lists what can be asked.\n\n"
            "The store is the one that sonde exporter --store writes, on the same host. It is only "
            "read. While it is away or cannot be read, answers are 503, and it is looked for again "
            "at each request.\n\n"
            "It listens on the loopback address. To listen elsewhere it wants users in "
            "--web.config.file, or --web.allow-anonymous: whoever may ask sees the jobs of all "
            "users.\n\n"
            "SIGHUP, or POST to /-/reload, reads --web.config.file again: all of it takes effect, "
            "or, if there is a mistake in it, nothing changes and the log says why.",
        .options = made.rows,
    };
    char **rest;
    int outcome;

    make_options(&made);
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    settings->serve.telemetry_path = STR("/");
    return outcome == OPTION_GO_ON ? check(settings, err) : outcome;
}

struct web {
    struct arena arena;
    struct settings settings;
    struct log *log;
    struct api *api;
    struct lifecycle lifecycle;
    struct http_route routes[API_ROUTES + LIFECYCLE_ROUTES + 1]; /* the last one ends the table */
    struct http_server *server;
    pthread_mutex_t reloading; /* one at a time, and none before all is there */
};

static const char *text_or_null(struct str text)
{
    return text.n ? text.p : NULL;
}

static int reload(void *ctx, struct err *err)
{
    struct web *web = ctx;
    int code;

    pthread_mutex_lock(&web->reloading);
    code = http_reload(web->server, err);
    pthread_mutex_unlock(&web->reloading);
    if (code < 0)
        LOG(web->log, LOG_ERROR, "configuration not reloaded, the old one stays",
            LOG_STR("error", err->text));
    else
        LOG(web->log, LOG_INFO, "configuration reloaded");
    return code;
}

static bool has_users(const struct web *web)
{
    struct webconfig_files files = { 0 };
    struct webconfig *config = NULL;
    struct err err;
    bool has =
        webconfig_load(text_or_null(web->settings.serve.web_config), &files, &config, &err) == 0 &&
        config->n_users;

    webconfig_unref(config);
    webconfig_files_clear(&files);
    return has;
}

/* Judged by the sockets that there are, also those of systemd. Until then nobody is answered, nor
 * afterwards, should the users go from the file, who has not proved a name. */
static int decide_who_may_ask(struct web *web, struct err *err)
{
    bool is_open = web->settings.allow_anonymous || http_is_local(web->server);

    if (!is_open && !has_users(web))
        return err_set(err, EINVAL,
                       "whoever reaches this address would see the jobs of all: give users in "
                       "--web.config.file, listen on 127.0.0.1, or say --web.allow-anonymous");
    api_set_anonymous(web->api, is_open);
    return 0;
}

static int start(struct web *web, struct err *err)
{
    const struct api_config config = {
        .store = web->settings.store.p,
        .allocations_file = text_or_null(web->settings.allocations_file),
        .timeout_ns = web->settings.timeout_ns,
        .clock = clock_of_environment(),
        .log = web->log,
    };
    struct http_config http = serve_http_config(&web->settings.serve, web->log);
    int code;

    web->api = api_new(&config);
    api_routes(web->api, web->routes);
    web->lifecycle = (struct lifecycle){ .reload = reload, .ctx = web };
    lifecycle_routes(&web->lifecycle, web->routes + API_ROUTES);
    http.routes = web->routes;
    http.workers = 4; /* they wait for the disk more than they compute */
    code = http_start(&http, &web->server, err);
    return code < 0 ? code : decide_who_may_ask(web, err);
}

static void stop(struct web *web)
{
    http_stop(web->server);
    api_free(web->api);
    log_free(web->log);
    arena_clear(&web->arena);
    pthread_mutex_destroy(&web->reloading);
}

/* Until a signal ends it. */
static void serve(struct web *web, const sigset_t *signals)
{
    int signal;

    while (sigwait(signals, &signal) == 0 && signal == SIGHUP)
        reload(web, &(struct err){ 0 });
}

int main(int argc, char **argv)
{
    struct web web = { 0 };
    struct err err = { 0 };
    sigset_t signals;
    int outcome, code;

    process_keep_standard_fds();
    outcome = parse(argc, argv, &web.arena, &web.settings, &err);
    if (outcome != OPTION_GO_ON) {
        if (outcome < 0)
            fprintf(stderr, "sonde web: %s\n", err.text);
        arena_clear(&web.arena);
        return outcome < 0 ? 2 : 0;
    }
    serve_prepare(&signals);
    web.log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    serve_use_log_level(web.log, &web.settings.serve);
    pthread_mutex_init(&web.reloading, NULL);
    pthread_mutex_lock(&web.reloading);
    code = start(&web, &err);
    pthread_mutex_unlock(&web.reloading);
    if (code == 0) {
        serve_say_where("sonde web", web.server, STR("/"));
        serve(&web, &signals);
    } else {
        fprintf(stderr, "sonde web: %s\n", err.text);
    }
    stop(&web);
    return serve_exit_status(code);
}
