/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde web: the jobs that are kept, as pages and over an API. */
#include "cmd/serve.h"

#include "base/process.h"
#include "base/stop_guard.h"
#include "cmd/drain_child.h"
#include "cmd/web_serving.h"
#include "http/lifecycle.h"
#include "store/store.h"
#include "web/board_store.h"

#include <pthread.h>

struct settings {
    struct serve_options serve;
    struct web_options web;
    struct str store, allocations_file, report_config;
    struct prometheus_options prometheus;
    struct option_list matchers;
};

#define SETTING(member) offsetof(struct settings, member)

static const struct option store_rows[] = {
    { "store", OPTION_STRING, SETTING(store), "URL", "sqlite:/var/lib/sonde/sonde.db",
      "SONDE_STORE", NULL, "Store", "Where the exporter keeps jobs: sqlite:/path. Only read." },
    { "allocations.file", OPTION_STRING, SETTING(allocations_file), "FILE", NULL, NULL, NULL,
      "Store", "What accounts were promised. Read for each answer." },
};

static const struct option report_rows[] = {
    { "report.config", OPTION_STRING, SETTING(report_config), "FILE", NULL, NULL, NULL, "Reports",
      "Send the mails that sonde-mail keeps, with reports of their jobs: runs sonde report --drain "
      "--follow with this file of settings." },
};

/* There are no metrics here. */
static bool is_of_metrics(const struct option *row)
{
    return strcmp(row->name, "web.telemetry-path") == 0 ||
           strcmp(row->name, "metrics.exclude") == 0;
}

enum {
    MOST_ROWS = SERVE_OPTIONS + WEB_OPTIONS + COUNT(store_rows) + COUNT(report_rows) +
                PROMETHEUS_OPTIONS + 2
};

struct made_options {
    struct option rows[MOST_ROWS];
    size_t n;
};

static void add_rows(struct made_options *made, const struct option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_of_metrics(&rows[i]))
            made->rows[made->n++] = rows[i];
}

static size_t count_web(const struct option *rows, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(rows[i].group, "Web") == 0)
        i++;
    return i;
}

/* Rows of a group stand together. */
static void make_options(struct made_options *made)
{
    const struct option matcher = prometheus_matcher_row(SETTING(matchers));
    struct option serve[SERVE_OPTIONS], web[WEB_OPTIONS], prometheus[PROMETHEUS_OPTIONS];
    size_t n_serve, n_web;

    serve_options_rows(SETTING(serve), "127.0.0.1:8080", "4096", serve);
    web_options_rows(SETTING(web), web);
    prometheus_options_rows(SETTING(prometheus), prometheus);
    n_serve = count_web(serve, SERVE_OPTIONS);
    n_web = count_web(web, WEB_OPTIONS);
    add_rows(made, serve, n_serve);
    add_rows(made, web, n_web);
    add_rows(made, serve + n_serve, SERVE_OPTIONS - n_serve);
    add_rows(made, store_rows, COUNT(store_rows));
    add_rows(made, prometheus, PROMETHEUS_OPTIONS);
    add_rows(made, &matcher, 1);
    add_rows(made, report_rows, COUNT(report_rows));
    add_rows(made, web + n_web, WEB_OPTIONS - n_web);
}

static int check(const struct settings *settings, struct err *err)
{
    char path[STORE_PATH_MAX];
    int code = serve_options_check(&settings->serve, err);

    if (code == 0)
        code = prometheus_options_check(&settings->prometheus, err);
    if (code == 0)
        code = web_options_check(&settings->web, web_serving_has_users(settings->serve.web_config),
                                 err);
    return code < 0 ? code : store_path(settings->store, path, err);
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
            "pages, and as JSON under /api/v1; the page at /api lists what can be asked.\n\n"
            "The store is the one that sonde exporter --store writes, on the same host. It is only "
            "read. While it is away or cannot be read, answers are 503, also that of /-/ready, and "
            "it is looked for again at each request. Charts come from the Prometheus of "
            "--prometheus.url.\n\n"
            "It listens on the loopback address. To listen elsewhere it wants to know who looks: "
            "users in --web.config.file, or --web.auth=proxy; or --web.allow-anonymous. A user "
            "sees their own jobs, staff (--web.staff) see all: docs/web.md. On the loopback "
            "address it is called localhost or by that address, as pages of other sites could read "
            "it under names of theirs; --web.host adds a name.\n\n"
            "SIGHUP, or POST to /-/reload, reads --web.config.file again: all of it takes effect, "
            "or, if there is a mistake in it, nothing changes and the log says why." SERVE_STOPS,
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
    struct board_store *boards;
    struct web_serving *serving;
    struct lifecycle lifecycle;
    /* the last one ends the table */
    struct http_route routes[WEB_SERVING_ROUTES + LIFECYCLE_ROUTES + 1];
    struct http_server *server;
    struct drain_child *drain; /* NULL: mails are none of ours */
    struct stop_guard *guard;
    pthread_mutex_t reloading; /* one at a time, and none before all is there */
};

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

static int check_store(void *ctx, struct err *err)
{
    struct web *web = ctx;

    return web_serving_check_store(web->serving, err);
}

static int start_drain(struct web *web, struct err *err)
{
    const struct drain_child_config config = {
        .config_file = web->settings.report_config.p,
        .clock = &clock_real,
        .log = web->log,
    };

    return drain_child_start(&config, &web->drain, err);
}

static int make_serving(struct web *web, struct err *err)
{
    struct web_serving_config config = {
        .options = &web->settings.web,
        .web_config = web->settings.serve.web_config,
        .store = web->settings.store,
        .allocations_file = web->settings.allocations_file,
        .prometheus = &web->settings.prometheus,
        .matchers = &web->settings.matchers,
        .clock = clock_of_environment(),
        .log = web->log,
    };
    int code = board_store_open(web->settings.store.p, config.clock, &web->boards, err);

    if (code < 0)
        return code;
    config.boards = board_store_source(web->boards);
    return web_serving_new(&config, &web->serving, err);
}

static bool is_for_staff(void *ctx, const struct http_exchange *x)
{
    const struct web *web = ctx;

    return web_serving_is_for_staff(web->serving, x);
}

static int start(struct web *web, struct err *err)
{
    struct http_config http = serve_http_config(&web->settings.serve, &clock_real, web->log);
    int code = make_serving(web, err);
    size_t n;

    if (code < 0)
        return code;
    n = web_serving_routes(web->serving, web->routes);
    web->lifecycle = (struct lifecycle){
        .check_ready = check_store, .reload = reload, .may_reload = is_for_staff, .ctx = web
    };
    lifecycle_routes(&web->lifecycle, web->routes + n);
    http.routes = web->routes;
    http.workers = 8; /* they wait for the disk more than they compute */
    http.proxies = web->settings.web.proxies.items;
    http.n_proxies = web->settings.web.proxies.n;
    code = http_start(&http, &web->server, err);
    if (code == 0)
        code = web_serving_open(web->serving, web->server, err);
    return code < 0 || !web->settings.report_config.n ? code : start_drain(web, err);
}

/* It only reads: nothing is lost with a part that does not stop in time. */
static void stop(struct web *web)
{
    stop_guard_part(web->guard, "HTTP server");
    drain_child_end(web->drain);
    http_stop(web->server);
    stop_guard_part(web->guard, "sonde report --drain");
    drain_child_stop(web->drain);
    stop_guard_part(web->guard, "store");
    web_serving_free(web->serving);
    board_store_close(web->boards);
    stop_guard_end(web->guard);
    log_free(web->log);
    arena_clear(&web->arena);
    pthread_mutex_destroy(&web->reloading);
}

/* Until a signal ends it. */
static void serve(struct web *web)
{
    while (stop_guard_wait(web->guard, -1) == SIGHUP) {
        stop_guard_part(web->guard, "reload");
        reload(web, &(struct err){ 0 });
    }
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
    code = stop_guard_start(&signals, clock_of_environment(), web.log, &web.guard, &err);
    if (code == 0)
        code = start(&web, &err);
    pthread_mutex_unlock(&web.reloading);
    if (code == 0) {
        serve_say_where("sonde web", web.server, STR("/"));
        check_store(&web, &err);
        serve(&web);
    } else {
        fprintf(stderr, "sonde web: %s\n", err.text);
        stop_guard_fail(web.guard, serve_exit_status(code));
    }
    stop(&web);
    return serve_exit_status(code);
}
