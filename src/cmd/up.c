/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde up: everything on one machine, in one process and its agent. */
#include "base/stop_guard.h"
#include "cmd/beside.h"
#include "cmd/exporting.h"
#include "cmd/up_agent.h"
#include "cmd/up_board.h"
#include "cmd/up_demo.h"
#include "cmd/up_health.h"
#include "cmd/up_place.h"
#include "cmd/up_settings.h"
#include "cmd/web_serving.h"
#include "web/ticker.h"

struct up {
    struct arena arena;         /* of the settings' texts that are needed for as long */
    struct up_place place;      /* where things are kept */
    struct str series_path;     /* empty: none are kept */
    struct str store;           /* URL; empty: none */
    struct ticks_config series; /* how */
    int64_t interval_ns;
    bool is_demo;
    struct sim sim;                     /* of the demo */
    const char *motd;                   /* what every page begins with; or NULL */
    const struct up_settings *settings; /* until all is started */
    struct log *log;
    struct up_agent *agent; /* NULL: there is none */
    struct up_health *health;
    struct up_board *boards;
    struct web_serving *serving;
    struct recorder *recorder;       /* NULL: no jobs are kept */
    _Atomic(struct ticker *) ticker; /* NULL: there are no series, or none yet */
    struct up_demo *demo;            /* NULL: it is real */
};

/* What an unprivileged user does not see, said where it would be missed. */
static void tell_limits(struct up *up)
{
    struct buf text;

    if (!up->agent || up->place.has_capabilities)
        return;
    buf_init(&text, 1000);
    buf_printf(&text,
               "sonde up was started by user %u, not by root: of jobs on this machine it sees no "
               "more than that user may see.",
               (unsigned)geteuid());
    up->motd = arena_str(&up->arena, buf_str(&text)).p;
    buf_free(&text);
    LOG(up->log, LOG_WARN, "not started by root: jobs of other users on this machine are not seen");
}

/* Root may have found us where nobody else can: what we start later is sought there too. */
static void check_programs(struct up *up)
{
    char *report = program_beside_us("sonde-report");

    if (up->place.was_root && access(report, X_OK) < 0)
        LOG(up->log, LOG_WARN,
            "PDFs and pictures cannot be made: the program for it is out of reach",
            LOG_STR("program", report), LOG_STR("user", up->place.user),
            LOG_STR("error", err_words(errno)),
            LOG_STR("hint", "install sonde where that user may enter, or name another by --user"));
    free(report);
}

static int start_agent(struct up *up, struct err *err)
{
    const struct up_agent_config config = {
        .socket_path = up->place.agent_socket,
        .owner = up->place.uid,
        .group = up->place.gid,
        .user = up->place.was_root ? up->place.user : NULL,
        .tick_ns = up->interval_ns,
        .log = up->log,
    };

    return up_agent_start(&config, &up->agent, err);
}

/* What it is made of, and what is promised in it. */
static int prepare_demo(struct up *up, const struct up_settings *settings, struct err *err)
{
    struct str spec = settings->exporter.own.source.source;
    struct str file = settings->exporter.store.allocations_file;
    int64_t now = clock_wall(clock_of_environment()) / NS_PER_SEC;
    int code = sim_parse(str_skip(spec, str_find(spec, ':') + 1), &up->sim, err);

    if (code < 0 || !up->place.is_temporary || !str_starts(file, str_of(up->place.directory)))
        return code;
    return up_demo_promise(&up->sim, now, file.p, err);
}

static int prepare(void *ctx, const struct settings *base, struct log *log, struct err *err)
{
    const struct up_settings *settings = up_settings_of(base);
    struct up *up = ctx;
    int code;

    up->settings = settings;
    up->log = log;
    up->is_demo = settings->is_demo;
    up->interval_ns = settings->series.interval_ns;
    up->store = arena_str(&up->arena, settings->exporter.store.url);
    up->series_path = arena_str(&up->arena, settings->series.path);
    up->series = (struct ticks_config){
        .path = up->series_path.p,
        .is_simulated = settings->is_demo,
        .retention_seconds = settings->series.retention_ns / NS_PER_SEC,
        .max_bytes = settings->series.max_bytes,
    };
    code = up_place_make(&up->place, settings, err);
    if (code == 0 && !up->is_demo) /* read again, settings find the same place as another user */
        setenv("STATE_DIRECTORY", up->place.directory, 1);
    if (code == 0 && settings->has_agent)
        code = start_agent(up, err);
    if (code == 0)
        code = up_place_drop_privileges(&up->place, err);
    if (code == 0 && up->is_demo)
        code = prepare_demo(up, settings, err);
    tell_limits(up);
    check_programs(up);
    return code;
}

static struct str tell_health(void *ctx, struct arena *arena)
{
    struct up *up = ctx;

    return up_health_put(up->health, arena, up->recorder, up->ticker, up->agent != NULL);
}

static struct str tell_notice(void *ctx, struct arena *arena)
{
    const struct up *up = ctx;
    struct ticker *ticker = up->ticker;
    struct ticker_stats stats;
    struct buf text;
    struct str notice;

    if (!ticker)
        return STR("");
    ticker_stats(ticker, &stats);
    buf_init(&text, 1000);
    if (up->agent && stats.agent_failures)
        buf_text(&text, "The agent of this machine does not answer: what jobs on it use is not "
                        "seen, and charts of them have a gap. ");
    if (stats.failures && !stats.is_up)
        buf_text(&text, "Numbers over time are not written, and charts end: the log says why. ");
    notice = arena_str(arena, buf_str(&text));
    buf_free(&text);
    return notice;
}

static void tell_up(void *ctx, struct up_self *up_self)
{
    const struct up *up = ctx;
    struct ticker *ticker = up->ticker;
    struct up_agent_stats agent = { 0 };
    struct ticker_stats stats = { 0 };

    if (up->agent)
        up_agent_stats(up->agent, &agent);
    if (ticker)
        ticker_stats(ticker, &stats);
    *up_self = (struct up_self){
        .has_agent = up->agent && ticker, /* it is the ticker who asks it */
        .is_agent_up = stats.is_agent_up,
        .agent_ends = agent.ends,
        .agent_hangs = agent.hangs,
        .has_series = ticker != NULL,
        .is_series_up = stats.is_up,
        .is_retention_paused = stats.is_retention_paused,
        .ticks = stats.ticks,
        .tick_failures = stats.failures,
        .series = stats.series.series,
        .skipped = stats.series.skipped + stats.left_out,
        .bytes = stats.series.bytes,
    };
}

/* What is simulated and what is real are never in one file. */
static int judge_series(struct up *up, const struct engine *engine, struct err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < engine->n_clusters; i++)
        n += engine->clusters[i].feeds[FEED_SLURM].source->simulated;
    if (n && (n < engine->n_clusters || !up->is_demo) && up->series_path.n)
        return err_set(
            err, EINVAL,
            "a simulated cluster in --cluster.file would be kept among real series: give "
            "--series.path= (empty), or show it by --demo alone");
    return 0;
}

static int start(void *ctx, struct engine *engine, struct recorder *recorder,
                 struct metrics *metrics, struct err *err)
{
    struct up *up = ctx;
    const struct settings *settings = &up->settings->exporter;
    struct web_serving_config config = {
        .options = &up->settings->web,
        .web_config = settings->serve.web_config,
        .store = settings->store.url,
        .series_path = up->series_path,
        .allocations_file = settings->store.allocations_file,
        .prometheus = &settings->prometheus,
        .matchers = &settings->matchers,
        .is_up = true,
        .motd = up->motd,
        .health = tell_health,
        .notice = tell_notice,
        .health_ctx = up,
        .clock = clock_of_environment(),
        .log = up->log,
    };
    struct http_route routes[WEB_SERVING_ROUTES];
    size_t n;
    int code;

    code = judge_series(up, engine, err);
    if (code < 0)
        return code;
    up->recorder = recorder;
    up->health = up_health_new();
    up->boards = up_board_new(clock_of_environment(), up->health);
    up_board_use(up->boards, engine);
    config.boards = up_board_source(up->boards);
    code = web_serving_new(&config, &up->serving, err);
    if (code < 0)
        return code;
    up->settings = NULL;
    n = web_serving_routes(up->serving, routes);
    for (size_t i = 0; i < n; i++)
        metrics_add_route(metrics, &routes[i]);
    return 0;
}

static int start_ticker(void *ctx, struct err *err)
{
    struct up *up = ctx;
    char url[sizeof(up->place.agent_socket) + 8];
    const struct ticker_config config = {
        .series = up->series,
        .boards = up_board_patient(up->boards),
        .agent_url = up->agent ? url : NULL,
        .more = up->is_demo ? up_demo_more : NULL,
        .ctx = &up->sim,
        .interval_ns = up->interval_ns,
        .clock = clock_of_environment(),
        .log = up->log,
    };
    struct ticker *ticker;
    int code;

    if (!up->series_path.n)
        return 0;
    snprintf(url, sizeof(url), "unix:%s", up->place.agent_socket);
    code = ticker_start(&config, &ticker, err);
    if (code == 0)
        up->ticker = ticker;
    return code;
}

/* A past is made only for what is its own. */
static int start_demo(struct up *up, struct err *err)
{
    const struct up_demo_config config = {
        .sim = up->sim,
        .recorder = up->recorder,
        .series = up->series_path.n ? &up->series : NULL,
        .then = start_ticker,
        .ctx = up,
        .clock = clock_of_environment(),
        .log = up->log,
    };

    return up_demo_start(&config, &up->demo, err);
}

static void tell_places(const struct up *up)
{
    if (up->store.n)
        LOG(up->log, LOG_INFO, "jobs are kept: sonde jobs and sonde usage ask for them by --store",
            LOG_STR("store", up->store.p));
    if (up->is_demo && !up->place.is_temporary)
        LOG(up->log, LOG_INFO,
            "the past is not computed: in a directory that was named, history begins now");
}

static int serve(void *ctx, struct http_server *server, struct err *err)
{
    struct up *up = ctx;
    int code = web_serving_open(up->serving, server, err);

    if (code < 0)
        return code;
    tell_places(up);
    return up->place.is_temporary ? start_demo(up, err) : start_ticker(up, err);
}

static void use_engine(void *ctx, struct engine *engine)
{
    struct up *up = ctx;

    up_board_use(up->boards, engine);
}

static bool may_scrape(void *ctx, const struct http_exchange *x)
{
    const struct up *up = ctx;

    return web_serving_is_for_staff(up->serving, x);
}

static void end(void *ctx)
{
    struct up *up = ctx;

    ticker_end(up->ticker);
    up_agent_end(up->agent);
}

static void stop(void *ctx, struct stop_guard *guard)
{
    struct up *up = ctx;

    if (up->boards)
        up_board_use(up->boards, NULL);
    stop_guard_part(guard, "time series");
    up_demo_stop(up->demo);
    ticker_stop(up->ticker);
    stop_guard_part(guard, "sonde agent");
    up_agent_stop(up->agent);
    stop_guard_part(guard, "pages");
    web_serving_free(up->serving);
    up_board_free(up->boards);
    up_health_free(up->health);
}

/* A demo leaves nothing behind, and nobody finds the socket of an agent that ends. */
static void clean(void *ctx)
{
    const struct up *up = ctx;

    if (up->agent)
        unlink(up->place.agent_socket);
    up_place_clear(&up->place);
}

static const char description[] =
    "Runs the exporter, a store of jobs, series for charts, the web pages and, as a child, "
    "the agent of this machine, on one port. It needs no configuration.\n\n"
    "It finds Slurm by itself. With --demo it shows a simulated cluster with a day of "
    "computed history, marked as such on every page and metric, and leaves nothing "
    "behind.\n\n"
    "It listens on the loopback address. To listen elsewhere it wants to know who looks: "
    "users in --web.config.file, or --web.auth=proxy; or --web.allow-anonymous.\n\n"
    "Started as root, it becomes the user of --user, and the agent keeps the capabilities "
    "that it needs. Started by anybody else, it shows what that user may see.\n\n"
    "It answers /metrics too: point a Prometheus at it, give its address by "
    "--prometheus.url, and charts come from there.\n\n"
    "SIGHUP, or POST to /-/reload, reads the configuration again: all of it takes effect, "
    "or, if there is a mistake in it, nothing changes and the log says why." SERVE_STOPS;

static void configure(const struct settings *settings, struct http_config *config)
{
    const struct option_list *proxies = &up_settings_of(settings)->web.proxies;

    config->workers = 8; /* pages wait for the disk more than they compute */
    config->proxies = proxies->items;
    config->n_proxies = proxies->n;
}

int main(int argc, char **argv)
{
    struct up up = { 0 };
    const struct exporter_hooks hooks = {
        .settings_size = sizeof(struct up_settings),
        .make_options = up_settings_make_options,
        .complete = up_settings_complete,
        .read = up_settings_read,
        .changed = up_settings_changed,
        .configure = configure,
        .prepare = prepare,
        .start = start,
        .serve = serve,
        .end = end,
        .stop = stop,
        .clean = clean,
        .use_engine = use_engine,
        .may_scrape = may_scrape,
        .tell_up = tell_up,
        .ctx = &up,
    };
    const struct exporter_shape shape = {
        .name = "sonde up",
        .summary = "show a cluster and its jobs in a browser: everything on one machine",
        .description = description,
        .what = "What Slurm is doing",
        .address = "127.0.0.1:8080",
        .connections = "4096",
        .hooks = &hooks,
    };
    int status = exporter_main(&shape, argc, argv);

    up_place_clear(&up.place);
    arena_clear(&up.arena);
    return status;
}
