/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes reports from the store, sacct and Prometheus, which it opens once. */
#include "cmd/report_maker.h"

enum { URL_MAX = 4096 };

/* For who makes many reports: each would wait for a Prometheus that hangs. */
static const int64_t pause_ns = 60 * NS_PER_SEC;

void report_maker_look_for_store(struct report_maker *maker)
{
    maker->store_trouble = (struct err){ 0 };
    if (!maker->store && maker->settings->store.n)
        store_reader_open(maker->settings->store, &maker->store, &maker->store_trouble);
}

static int open_checks(struct report_maker *maker, struct err *err)
{
    struct str file = maker->settings->checks_file;

    if (file.n)
        return check_settings_read(file.p, &maker->arena, &maker->checks, err);
    check_settings_default(&maker->arena, &maker->checks);
    return 0;
}

static int open_prometheus(struct report_maker *maker, struct err *err)
{
    const struct prometheus_settings settings =
        prometheus_options_settings(&maker->settings->prometheus);

    if (settings.url.n && prometheus_open(&settings, &maker->prometheus, err) < 0)
        return err_prefix(err, "--prometheus.url");
    return 0;
}

static int open_series(struct report_maker *maker, struct err *err)
{
    struct str path = maker->settings->series_path;

    if (path.n && ticks_reader_open(path.p, &maker->series, err) < 0)
        return err_prefix(err, "--series.path");
    return 0;
}

int report_maker_open(struct report_maker *maker, const struct report_settings *settings,
                      const atomic_bool *cancelled, struct err *err)
{
    const struct source_settings source = source_options_settings(&settings->source);
    int code;

    *maker = (struct report_maker){
        .settings = settings,
        .clock = clock_of_environment(),
        .cancelled = cancelled,
    };
    code = open_checks(maker, err);
    if (code == 0)
        code = open_prometheus(maker, err);
    if (code == 0)
        code = open_series(maker, err);
    if (code == 0)
        code = sacct_new(&source, &maker->sacct, err);
    if (code == 0)
        report_maker_look_for_store(maker);
    if (code == 0 && maker->store_trouble.code == EINVAL) {
        *err = maker->store_trouble;
        code = -EINVAL;
    }
    if (code < 0)
        report_maker_close(maker);
    return code;
}

void report_maker_close(struct report_maker *maker)
{
    store_reader_close(maker->store);
    ticks_reader_close(maker->series);
    sacct_free(maker->sacct);
    prometheus_close(maker->prometheus);
    free(maker->why_no_series);
    arena_clear(&maker->arena);
}

static bool is_paused(const struct report_maker *maker)
{
    return maker->prometheus_at > clock_mono(&clock_real);
}

static struct gather gather_of(const struct report_maker *maker, bool wants_plots)
{
    const struct report_settings *settings = maker->settings;

    return (struct gather){
        .store = maker->store,
        .sacct = maker->sacct,
        .sacct_cluster = settings->cluster,
        .prometheus = is_paused(maker) ? NULL : maker->prometheus,
        .kept = maker->series,
        .matcher = settings->matcher,
        .n_matchers = settings->matchers.n,
        .wants_plots = wants_plots,
        .now = clock_wall(maker->clock) / NS_PER_SEC,
        .deadline_ns = clock_mono(&clock_real) + settings->timeout_ns,
        .cancelled = maker->cancelled,
    };
}

/* One that names no cluster is of ours, if that is known. */
static struct job_name name_of(const struct report_maker *maker, const struct job_name *name)
{
    struct job_name meant = *name;

    if (!meant.cluster.n)
        meant.cluster = maker->settings->cluster;
    return meant;
}

static struct str url_of(const struct report_maker *maker, const struct job_facts *facts,
                         struct arena *arena)
{
    struct buf url;
    struct str copy;

    buf_init(&url, URL_MAX);
    report_url_put(&url, maker->settings->url, facts->row.key.cluster, facts->row.key.job_id);
    copy = url.over ? STR("") : arena_str(arena, buf_str(&url));
    buf_free(&url);
    return copy;
}

/* It is left alone for a while if it has used up all the time there was. */
static void note_series(struct report_maker *maker, const struct gather *gather,
                        struct arena *arena, struct facts_origin *origin)
{
    if (maker->prometheus && !gather->prometheus) {
        origin->why_no_series = arena_str(arena, str_of(maker->why_no_series));
        return;
    }
    if (!origin->has_failed_series || clock_mono(&clock_real) < gather->deadline_ns)
        return;
    free(maker->why_no_series);
    maker->why_no_series = heap_str(origin->why_no_series);
    maker->prometheus_at = clock_mono(&clock_real) + pause_ns;
}

int report_make(struct report_maker *maker, const struct job_name *name, bool wants_plots,
                struct arena *arena, struct job_report *ret, struct err *err)
{
    const struct gather gather = gather_of(maker, wants_plots);
    const struct job_name meant = name_of(maker, name);
    int code = gather_job(&gather, &meant, arena, &ret->facts, err);

    if (code < 0)
        return code;
    note_series(maker, &gather, arena, &ret->facts.origin);
    checks_run(&maker->checks, &ret->facts, arena, &ret->finding, &ret->n_findings);
    ret->least_seconds = maker->checks.least_seconds;
    advice_make(&ret->facts, (double)maker->checks.least_seconds, arena, &ret->advice);
    ret->more_url = url_of(maker, &ret->facts, arena);
    return 0;
}

int report_make_array(struct report_maker *maker, const struct job_name *name, struct arena *arena,
                      struct array_report *ret, struct err *err)
{
    const struct gather gather = gather_of(maker, false);
    const struct job_name meant = name_of(maker, name);
    struct job_facts *tasks;
    int code = gather_array(&gather, &meant, ARRAY_TASKS_MAX, arena, &tasks, &ret->n_tasks, err);

    ret->task = tasks;
    ret->settings = &maker->checks;
    return code;
}
