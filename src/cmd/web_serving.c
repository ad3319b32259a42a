/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts pages and API, for `sonde web` and `sonde up`. */
#include "cmd/web_serving.h"

#include "cmd/beside.h"
#include "http/webconfig.h"
#include "web/api_host.h"

enum { REPORT_FLAGS_MAX = 64 };

struct web_serving {
    struct arena arena; /* of all texts below */
    struct web_options options;
    struct viewer_config viewer;
    struct str web_config;
    struct prometheus_settings prometheus;
    struct series_matcher *matcher;
    char *report_program;
    char *report_flags[REPORT_FLAGS_MAX + 1];
    size_t n_report_flags;
    struct api *api;
    struct site *site;
    bool is_host_checked; /* as api_set_access */
};

bool web_serving_has_users(struct str web_config)
{
    struct webconfig_files files = { 0 };
    struct webconfig *config = NULL;
    struct err err;
    bool has = webconfig_load(web_config.n ? web_config.p : NULL, &files, &config, &err) == 0 &&
               config->n_users;

    webconfig_unref(config);
    webconfig_files_clear(&files);
    return has;
}

/* NULL for what is empty, as the libraries want it. */
static const char *copy(struct web_serving *serving, struct str text)
{
    return text.n ? arena_str(&serving->arena, text).p : NULL;
}

static void add_flag(struct web_serving *serving, const char *name, struct str value)
{
    struct buf flag;

    if (!value.n || serving->n_report_flags == REPORT_FLAGS_MAX)
        return;
    buf_init(&flag, 64 + value.n);
    buf_printf(&flag, "--%s=%.*s", name, STR_ARG(value));
    serving->report_flags[serving->n_report_flags++] =
        (char *)arena_str(&serving->arena, buf_str(&flag)).p;
    buf_free(&flag);
}

/* sonde-report reads what we read. */
static void make_report_flags(struct web_serving *serving, const struct web_serving_config *config)
{
    const struct prometheus_options *prometheus = config->prometheus;

    add_flag(serving, "store", config->store);
    add_flag(serving, "series.path", config->series_path);
    add_flag(serving, "checks.file", config->options->checks_file);
    add_flag(serving, "prometheus.url", prometheus->url);
    add_flag(serving, "prometheus.user", prometheus->user);
    add_flag(serving, "prometheus.password-file", prometheus->password_file);
    add_flag(serving, "prometheus.bearer-file", prometheus->bearer_file);
    add_flag(serving, "prometheus.ca-file", prometheus->ca_file);
    for (size_t i = 0; i < config->matchers->n; i++)
        add_flag(serving, "prometheus.match", config->matchers->items[i]);
    serving->report_program = program_beside_us("sonde-report");
}

static int copy_prometheus(struct web_serving *serving, const struct web_serving_config *config,
                           struct err *err)
{
    struct option_list matchers = { .items = ARENA_ARRAY(&serving->arena, struct str,
                                                         config->matchers->n),
                                    .n = config->matchers->n };
    struct prometheus_settings *settings = &serving->prometheus;

    *settings = prometheus_options_settings(config->prometheus);
    settings->url = arena_str(&serving->arena, settings->url);
    settings->user = arena_str(&serving->arena, settings->user);
    settings->password_file = arena_str(&serving->arena, settings->password_file);
    settings->bearer_file = arena_str(&serving->arena, settings->bearer_file);
    settings->ca_file = arena_str(&serving->arena, settings->ca_file);
    for (size_t i = 0; i < matchers.n; i++)
        matchers.items[i] = arena_str(&serving->arena, config->matchers->items[i]);
    return prometheus_matchers_read(&matchers, &serving->arena, &serving->matcher, err);
}

static void make_api(struct web_serving *serving, const struct web_serving_config *config)
{
    const struct api_config api = {
        .store = copy(serving, config->store),
        .boards = config->boards,
        .allocations_file = copy(serving, config->allocations_file),
        .hosts = serving->options.hosts.items,
        .n_hosts = serving->options.hosts.n,
        .viewer = serving->viewer,
        .health = config->health,
        .health_ctx = config->health_ctx,
        .timeout_ns = serving->options.timeout_ns,
        .clock = config->clock,
        .log = config->log,
    };

    serving->api = api_new(&api);
}

static int make_site(struct web_serving *serving, const struct web_serving_config *config,
                     struct err *err)
{
    const struct site_config site = {
        .boards = config->boards,
        .store = copy(serving, config->store),
        .series_path = copy(serving, config->series_path),
        .prometheus = serving->prometheus.url.n ? &serving->prometheus : NULL,
        .matcher = serving->matcher,
        .n_matchers = config->matchers->n,
        .allocations_file = copy(serving, config->allocations_file),
        .checks_file = copy(serving, config->options->checks_file),
        .report_program = serving->report_program,
        .report_flags = serving->report_flags,
        .viewer = serving->viewer,
        .hosts = serving->options.hosts.items,
        .n_hosts = serving->options.hosts.n,
        .motd = config->motd ? arena_str(&serving->arena, str_of(config->motd)).p : NULL,
        .is_up = config->is_up,
        .health = config->health,
        .notice = config->notice,
        .health_ctx = config->health_ctx,
        .timeout_ns = serving->options.timeout_ns,
        .clock = config->clock,
        .log = config->log,
    };

    return site_new(&site, &serving->site, err);
}

int web_serving_new(const struct web_serving_config *config, struct web_serving **ret,
                    struct err *err)
{
    struct web_serving *serving = heap_alloc(sizeof(*serving));
    bool has_users = web_serving_has_users(config->web_config);
    int code;

    serving->options = web_options_copy(config->options, &serving->arena);
    serving->viewer = web_options_viewer(&serving->options, has_users);
    serving->web_config = arena_str(&serving->arena, config->web_config);
    make_report_flags(serving, config);
    code = web_options_check(&serving->options, has_users, err);
    if (code == 0)
        code = copy_prometheus(serving, config, err);
    if (code == 0) {
        make_api(serving, config);
        code = make_site(serving, config, err);
    }
    if (code < 0) {
        web_serving_free(serving);
        return code;
    }
    *ret = serving;
    return 0;
}

struct web_serving *web_serving_free(struct web_serving *serving)
{
    if (serving) {
        site_free(serving->site);
        api_free(serving->api);
        free(serving->report_program);
        arena_clear(&serving->arena);
        free(serving);
    }
    return NULL;
}

size_t web_serving_routes(struct web_serving *serving, struct http_route to[WEB_SERVING_ROUTES])
{
    api_routes(serving->api, to);
    return API_ROUTES + site_routes(serving->site, to + API_ROUTES);
}

/* They know no unix sockets. */
static bool is_reached_by_browsers(const struct http_server *server)
{
    const char *address;

    for (size_t i = 0; (address = http_address(server, i)); i++)
        if (!str_starts(str_of(address), STR("unix:")))
            return true;
    return false;
}

int web_serving_open(struct web_serving *serving, const struct http_server *server, struct err *err)
{
    bool is_local = http_is_local(server);
    bool is_open = serving->options.allows_anonymous || is_local;
    bool is_host_checked = is_local && is_reached_by_browsers(server);

    if (serving->viewer.auth == VIEWER_NONE && !is_open)
        return err_set(err, EINVAL,
                       "whoever reaches this address would see the jobs of all: say "
                       "--web.auth=proxy, give users in --web.config.file, listen on 127.0.0.1, or "
                       "say --web.allow-anonymous");
    serving->is_host_checked = is_host_checked;
    api_set_access(serving->api, is_open, is_host_checked);
    site_set_access(serving->site, is_open, is_host_checked);
    return 0;
}

int web_serving_check_store(struct web_serving *serving, struct err *err)
{
    return api_check_store(serving->api, err);
}

bool web_serving_is_for_staff(const struct web_serving *serving, const struct http_exchange *x)
{
    struct arena arena = { 0 };
    struct viewer viewer;
    struct err err;
    bool is = (!serving->is_host_checked ||
               api_host_is_ours(http_header(x, "Host"), serving->options.hosts.items,
                                serving->options.hosts.n)) &&
              viewer_of(&serving->viewer, x, &arena, &viewer, &err) == 0 && viewer.is_staff;

    arena_clear(&arena);
    return is;
}
