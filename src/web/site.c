/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request from its route to its page: who looks, what the page needs, and how long it may take.
 */
#include "web/site_inside.h"

#include "base/arena.h"
#include "report/gather.h"
#include "store/ticks.h"
#include "web/api_host.h"
#include "web/api_readers.h"
#include "web/report_child.h"

/* A page waits so long for news from Slurm; then it shows what was known before. */
#define BOARD_WAIT_NS (2 * NS_PER_SEC)

static struct str matcher_of(void *ctx, struct str cluster)
{
    const struct site_config *config = ctx;
    struct str any = { 0 };

    for (size_t i = 0; i < config->n_matchers; i++) {
        if (str_eq(config->matcher[i].cluster, cluster))
            return config->matcher[i].matcher;
        if (!config->matcher[i].cluster.n)
            any = config->matcher[i].matcher;
    }
    return any;
}

static int open_trends(struct site *site, struct err *err)
{
    const struct trends_config config = {
        .series_path = site->config.series_path,
        .prometheus = site->config.prometheus,
        .matcher = matcher_of,
        .ctx = &site->config,
    };

    return config.series_path || config.prometheus ? trends_open(&config, &site->trends, err) : 0;
}

static int read_settings(struct site *site, struct err *err)
{
    int code = viewer_config_check(&site->config.viewer, err);

    if (code == 0 && site->config.checks_file)
        return check_settings_read(site->config.checks_file, &site->arena, &site->checks, err);
    if (code == 0)
        check_settings_default(&site->arena, &site->checks);
    return code;
}

int site_new(const struct site_config *config, struct site **ret, struct err *err)
{
    struct site *site = heap_alloc(sizeof(*site));
    int code;

    site->config = *config;
    code = read_settings(site, err);
    if (code == 0)
        code = open_trends(site, err);
    if (code == 0 && config->report_program)
        code = report_child_new(config->report_program, config->report_flags, &site->report_child,
                                err);
    if (code < 0) {
        site_free(site);
        return code;
    }
    if (config->store)
        site->readers = api_readers_new(config->store);
    site->assets = assets_new();
    *ret = site;
    return 0;
}

struct site *site_free(struct site *site)
{
    if (!site)
        return NULL;
    api_readers_free(site->readers);
    trends_close(site->trends);
    report_child_free(site->report_child);
    assets_free(site->assets);
    arena_clear(&site->arena);
    free(site);
    return NULL;
}

void site_set_access(struct site *site, bool is_anonymous_allowed, bool is_host_checked)
{
    atomic_store(&site->is_host_checked, is_host_checked);
    atomic_store(&site->is_anonymous_allowed, is_anonymous_allowed);
}

/* What the star of the pattern stands for. */
static struct str star_of(const char *pattern, struct str path)
{
    struct str after = str_of(pattern), before = str_cut(&after, '*');

    return after.p ? str_head(str_skip(path, before.n), path.n - before.n - after.n)
                   : (struct str){ "", 0 };
}

static void begin_call(struct site_call *call, struct site *site, const struct site_page *page,
                       struct http_exchange *x)
{
    *call = (struct site_call){
        .site = site,
        .config = &site->config,
        .x = x,
        .now = clock_wall(site->config.clock) / NS_PER_SEC,
        .deadline_ns = http_started(x) + site->config.timeout_ns,
        .cluster = str_trim(http_query(x, "cluster", 0)),
        .title = STR("sonde"),
    };
    if (page)
        call->rest = star_of(page->path, http_path(x));
    buf_init(&call->out, SITE_ANSWER_BYTES);
}

static void end_call(struct site_call *call)
{
    prometheus_close(call->prometheus);
    ticks_reader_close(call->kept);
    board_unref((struct board *)call->board);
    buf_free(&call->out);
    arena_clear(&call->arena);
}

/* It names files and hosts, which is for staff. */
static void hide_cause(struct site_call *call)
{
    LOG(call->config->log, LOG_WARN, "there is no board", LOG_STR("error", call->err.text));
    if (!call->viewer.is_staff)
        err_set(&call->err, EIO, "it cannot be read at the moment: sonde's log says why");
}

static int take_board(struct site_call *call, const struct site_page *page)
{
    const struct board_source *boards = &call->config->boards;
    int64_t until = clock_mono(call->config->clock) + BOARD_WAIT_NS;

    if (page->make && !(page->needs & SITE_BOARD))
        return 0;
    call->board = boards->take(boards->ctx, until < call->deadline_ns ? until : call->deadline_ns,
                               &call->err);
    if (!call->board)
        hide_cause(call);
    if (!call->board && page->needs & SITE_BOARD)
        return site_refuse(call, 503, "nothing is known of the cluster yet: %s",
                           arena_str(&call->arena, str_of(call->err.text)).p);
    if (call->board && call->cluster.n && !board_find(call->board, call->cluster))
        return site_not_found(call, "cluster", call->cluster);
    return 0;
}

/* Where the store is, and why it cannot be read, is nothing for whoever asks. */
static int take_store(struct site_call *call, const struct site_page *page, struct api_reader **ret)
{
    struct err err = { 0 };

    if (!(page->needs & (SITE_STORE | SITE_MAY_STORE)))
        return 0;
    if (!call->site->readers) {
        call->why_no_store = STR("no store is kept here: --store says where");
    } else if (api_readers_take(call->site->readers, call->deadline_ns, ret, &err) < 0) {
        LOG(call->config->log, LOG_WARN, "the store cannot be read", LOG_STR("error", err.text));
        call->why_no_store = STR("the store cannot be read at the moment: sonde's log says why");
    } else {
        call->reader = (*ret)->store;
    }
    return !call->reader && page->needs & SITE_STORE
               ? site_refuse(call, 503, "%s", call->why_no_store.p)
               : 0;
}

static int show(struct site_call *call, const struct site_page *page, const char **ret_type)
{
    struct api_reader *reader = NULL;
    int code;

    if (clock_mono(call->config->clock) >= call->deadline_ns)
        return -ETIMEDOUT; /* it waited all that time for a worker */
    code = viewer_of(&call->config->viewer, call->x, &call->arena, &call->viewer, &call->err);
    if (code < 0)
        return 403;
    code = take_board(call, page);
    if (code == 0)
        code = take_store(call, page, &reader);
    if (code == 0)
        code = page->make ? page->make(call, ret_type) : page->show(call);
    if (code == 0 && call->out.over)
        code = -EFBIG;
    api_readers_give(call->site->readers, reader, code >= 0);
    call->reader = NULL;
    return code;
}

static void work(void *ctx, struct http_exchange *x)
{
    const struct site_route *route = ctx;
    const char *type = SITE_HTML;
    struct site_call call;
    int code;

    begin_call(&call, route->site, route->page, x);
    code = show(&call, route->page, &type);
    if (code < 0)
        site_reply_failure(&call, route->page, code);
    else if (code > 0)
        site_reply_refusal(&call, route->page, (unsigned)code);
    else
        site_reply(&call, route->page, type);
    end_call(&call);
}

static unsigned refusal_of_stranger(const struct site *site, struct http_exchange *x,
                                    struct err *err)
{
    if (site->config.viewer.auth == VIEWER_NONE && !http_user(x).n &&
        !atomic_load(&site->is_anonymous_allowed)) {
        err_set(err, EACCES,
                "this is not for everybody: sonde wants users in --web.config.file, or "
                "--web.allow-anonymous");
        return 403;
    }
    if (atomic_load(&site->is_host_checked) &&
        !api_host_is_ours(http_header(x, "Host"), site->config.hosts, site->config.n_hosts)) {
        err_set(err, EACCES,
                "sonde is not known by this name: call it localhost, or say the name with "
                "--web.host");
        return 421;
    }
    return 0;
}

static void refuse(void *ctx, struct http_exchange *x)
{
    const struct site_route *route = ctx;
    struct site_call call;

    begin_call(&call, route->site, route->page, x);
    site_refuse(&call, 503, "too much is asked for at once: try again in a moment");
    site_reply_refusal(&call, route->page, 503);
    end_call(&call);
}

/* Who looks is found out before there is a worker for it: each gets a share of them. */
static enum http_verdict begin(void *ctx, struct http_exchange *x)
{
    const struct site_route *route = ctx;
    struct site_call call;
    unsigned status;

    begin_call(&call, route->site, route->page, x);
    status = refusal_of_stranger(route->site, x, &call.err);
    if (!status && viewer_of(&call.config->viewer, x, &call.arena, &call.viewer, &call.err) < 0)
        status = 403;
    if (status)
        site_reply_refusal(&call, route->page, status);
    else
        http_share(x, call.viewer.user, refuse);
    end_call(&call);
    return status ? HTTP_DONE : HTTP_WORK;
}

static enum http_verdict serve_asset(void *ctx, struct http_exchange *x)
{
    const struct site_route *route = ctx;

    assets_serve(route->site->assets, x);
    return HTTP_DONE;
}

static int show_nothing(struct site_call *call)
{
    return site_refuse(call, 404,
                       "there is nothing at this address: see whether it is spelled right, or "
                       "search for a job, user, account, node or partition above");
}

static const struct site_page nothing = { .path = "/*", .show = show_nothing };

static void add_route(struct site *site, struct http_route *to, const struct site_page *page,
                      size_t i)
{
    site->route[i] = (struct site_route){ site, page };
    to[i] = (struct http_route){
        .method = "GET", .path = page->path, .handle = begin, .work = work, .ctx = &site->route[i]
    };
}

size_t site_routes(struct site *site, struct http_route to[SITE_ROUTES])
{
    size_t n = 0;

    while (site_pages[n] && n + 2 < SITE_ROUTES) {
        add_route(site, to, site_pages[n], n);
        n++;
    }
    site->route[n] = (struct site_route){ site, NULL };
    to[n] = (struct http_route){
        .method = "GET", .path = "/static/*", .handle = serve_asset, .ctx = &site->route[n]
    };
    n++;
    add_route(site, to, &nothing, n);
    return n + 1;
}

/* What was measured of a job can be missing: the rest of its page is there without. */
static void open_kept(struct site_call *call)
{
    struct err err = { 0 };

    if (!call->config->series_path || call->config->prometheus || call->kept)
        return;
    if (ticks_reader_open(call->config->series_path, &call->kept, &err) < 0)
        LOG(call->config->log, LOG_WARN, "the embedded series cannot be read",
            LOG_STR("error", err.text));
    else
        ticks_reader_deadline(call->kept, call->deadline_ns);
}

/* Of the time of a page, to look for earlier runs of a job: they are of use, but nobody waits for
 * them. */
enum { EARLIER_PART = 200 };

int site_gather(struct site_call *call, struct gather *ret)
{
    const struct site_config *config = call->config;
    int64_t left_ns = call->deadline_ns - clock_mono(&clock_real);
    int code = 0;

    if (config->prometheus && !call->prometheus)
        code = prometheus_open(config->prometheus, &call->prometheus, &call->err);
    open_kept(call);
    *ret = (struct gather){
        .store = call->reader,
        .prometheus = call->prometheus,
        .kept = call->kept,
        .matcher = config->matcher,
        .n_matchers = config->n_matchers,
        .wants_plots = true,
        .now = call->now,
        .deadline_ns = call->deadline_ns,
        .earlier_ns = left_ns > EARLIER_PART ? left_ns / EARLIER_PART : 1,
    };
    return code;
}
