/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin reconcile: compares a store with slurmdbd. */
#include "base/clock.h"
#include "base/fetch.h"
#include "base/moment.h"
#include "base/quote.h"
#include "cmd/admin.h"
#include "cmd/source_options.h"
#include "metric/reader.h"
#include "record/reconcile_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    METRICS_MAX = 256 << 20,
    STATES_MAX = 64,
    JSON_MAX = 1 << 20,
    EXPORTER_TIMEOUT_MS = 30000,
};

struct settings {
    struct source_options source;
    struct str store, cluster, since, exporter_url;
    struct option_list accounts, users;
    int64_t timeout_ns;
    bool is_json;
};

#define PLACE(member) offsetof(struct settings, member)

static const struct option own_options[] = {
    { "since", OPTION_STRING, PLACE(since), "TIME", "now-2days", NULL, NULL, "Audit",
      "Compare what ended since then: 2026-11-01, now-7days. From before the store's beginning, "
      "counters of ended jobs are compared with sacct too." },
    { "json", OPTION_BOOL, PLACE(is_json), NULL, NULL, NULL, NULL, "Audit",
      "Print the result as JSON." },
    { "exporter.url", OPTION_STRING, PLACE(exporter_url), "URL", NULL, NULL, NULL, "Audit",
      "Also compare slurm_jobs_ended_total of this exporter: http://HOST:8080/metrics." },
    { "store", OPTION_STRING, PLACE(store), "URL", "sqlite:/var/lib/sonde/sonde.db", "SONDE_STORE",
      NULL, "Store",
      "The store: sqlite:/path. Only read; the result is written to a file beside "
      "it." },
    { "cluster", OPTION_STRING, PLACE(cluster), "NAME", NULL, NULL, NULL, "Store",
      "Which cluster of the store, if it has several." },
    { "jobs.accounts", OPTION_LIST, PLACE(accounts), "PATTERN", NULL, NULL, NULL, "Store",
      "As the exporter has it: jobs of other accounts are not recorded." },
    { "jobs.users", OPTION_LIST, PLACE(users), "PATTERN", NULL, NULL, NULL, "Store",
      "As the exporter has it: jobs of other users are not recorded." },
    { "store.history-timeout", OPTION_DURATION, PLACE(timeout_ns), "DURATION", "2m", NULL, NULL,
      "Store", "slurmdbd has this long to answer one query." },
};

static atomic_bool is_cancelled;

static void cancel(int number)
{
    (void)number;
    atomic_store(&is_cancelled, true);
}

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 struct err *err)
{
    struct option rows[COUNT(own_options) + SOURCE_OPTIONS + 1] = { 0 };
    const struct option_command command = {
        .name = "sonde admin reconcile",
        .summary = "compare a store of jobs with slurmdbd",
        .description =
            "Compares a store with Slurm's own commands, on the cluster of slurm.conf: its runs "
            "with sacct, its usage with sreport for the hours that slurmdbd has rolled up, and its "
            "counters of ended jobs with its runs, sacct and the exporter. Prints each kind of "
            "difference with its count, the reason if one can be shown, and a few job ids.\n\n"
            "The result is also written to a file beside the store; the exporter serves it as "
            "sonde_reconcile_differences. sonde-reconcile.timer runs it daily. Run it as a user "
            "who may read the store and whom slurmdbd shows all jobs.\n\n"
            "Examples:\n\n"
            "sonde admin reconcile\n\n"
            "sonde admin reconcile --since=now-30days --json\n\n"
            "sonde admin reconcile --store=sqlite:/srv/sonde.db --cluster=blue "
            "--exporter.url=http://127.0.0.1:8080/metrics",
        .shares_file = true,
        .exit_status =
            "0 if all agrees or every difference has a reason; 1 if a difference is "
            "unexplained; 2 if a flag is wrong, or the store or slurmdbd cannot be read.",
        .options = rows,
    };
    char **rest;
    int outcome;

    memcpy(rows, own_options, sizeof(own_options));
    source_options_rows(PLACE(source), rows + COUNT(own_options));
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    if (outcome != OPTION_GO_ON)
        return outcome;
    if (rest[0])
        return err_set(err, EINVAL, "\"%s\" is not a flag; see --help",
                       quote(str_of(rest[0])).text);
    if (settings->timeout_ns <= 0)
        return err_set(err, EINVAL, "--store.history-timeout must be more than 0");
    return source_options_check(&settings->source, err);
}

/* What slurm_jobs_ended_total has of this cluster. */
struct scraping {
    struct str cluster;
    struct arena *arena;
    struct buf text;
    struct reconcile_counter counters[STATES_MAX];
    size_t n;
};

static void see_sample(void *ctx, const struct metric_sample *sample)
{
    struct scraping *scraping = ctx;
    struct str cluster = metric_label(sample, "cluster"), state = metric_label(sample, "state");
    size_t i = 0;

    if (!str_eq(sample->name, STR("slurm_jobs_ended_total")) || !(sample->value >= 0) ||
        (cluster.n && !str_eq(cluster, scraping->cluster)))
        return;
    while (i < scraping->n && !str_eq(scraping->counters[i].state, state))
        i++;
    if (i == STATES_MAX)
        return;
    if (i == scraping->n)
        scraping->counters[scraping->n++].state = arena_str(scraping->arena, state);
    scraping->counters[i].count += (uint64_t)sample->value;
}

static int collect(void *ctx, struct str piece, struct err *err)
{
    struct buf *text = ctx;

    buf_put(text, piece);
    return text->over ? err_set(err, EFBIG, "the exporter's metrics do not end") : 0;
}

static int scrape(const char *url, struct scraping *scraping, struct err *err)
{
    struct fetch fetch = {
        .url = url,
        .timeout_ms = EXPORTER_TIMEOUT_MS,
        .max_answer = METRICS_MAX,
        .cancelled = &is_cancelled,
        .sink = collect,
        .ctx = &scraping->text,
    };
    struct fetch_result result;
    int r;

    buf_init(&scraping->text, METRICS_MAX);
    r = fetch_run(&fetch, &result, err);
    if (r == 0 && result.status != 200)
        r = err_set(err, EREMOTEIO, "the exporter replied with status %ld (check --exporter.url)",
                    result.status);
    if (r == 0)
        metric_read(buf_str(&scraping->text), see_sample, scraping);
    buf_free(&scraping->text);
    return r;
}

/* The only one of the store, if none is named. */
static int choose_cluster(const struct settings *settings, struct store_reader *reader,
                          struct arena *arena, struct str *ret, struct err *err)
{
    struct cluster_row *rows;
    size_t n;
    int r = store_clusters(reader, arena, &rows, &n, err);

    if (r < 0)
        return r;
    *ret = settings->cluster;
    if (ret->n)
        return 0;
    if (!n)
        return err_set(err, ENOENT, "the store has no cluster: start the exporter that writes it");
    if (n != 1)
        return err_set(err, EINVAL, "the store has %zu clusters: name one with --cluster", n);
    *ret = rows[0].name;
    return 0;
}

static void print_row(const struct reconcile_row *row)
{
    printf("  %-38s %8" PRIu64 "  %s\n", row->what, row->count,
           reconcile_reasons[row->reason].sentence);
    for (size_t i = 0; i < RECONCILE_EXAMPLES && i < row->count; i++)
        printf("      %s\n", quote(str_of(row->examples[i])).text);
    if (row->count > RECONCILE_EXAMPLES)
        puts("      ...");
}

static void print_period(const char *title, uint64_t n, int64_t from, int64_t to)
{
    struct buf line;

    buf_init(&line, 256);
    buf_printf(&line, "%s: %" PRIu64 " compared, ", title, n);
    moment_put_zoned(&line, from);
    buf_text(&line, " to ");
    moment_put_zoned(&line, to);
    puts(line.p);
    buf_free(&line);
}

static void print_text(const struct reconcile_result *result)
{
    static const char *const titles[] = { "Runs", "Usage of users in accounts",
                                          "Counters of ended jobs" };
    uint64_t explained = 0, unexplained = 0;

    for (int i = 0; i < RECONCILE_COMPARISONS; i++) {
        bool is_usage = i == RECONCILE_USAGE;

        print_period(titles[i], result->compared[i], is_usage ? result->usage_from : result->from,
                     is_usage ? result->usage_to : result->to);
        for (size_t k = 0; k < result->n; k++)
            if ((int)result->row[k].comparison == i)
                print_row(&result->row[k]);
        explained += reconcile_count(result, (enum reconcile_comparison)i, true);
        unexplained += reconcile_count(result, (enum reconcile_comparison)i, false);
    }
    printf("%" PRIu64 " differences explained, %" PRIu64 " unexplained%s.\n", explained,
           unexplained, result->is_over ? " or more" : "");
}

static void put_json_row(struct buf *out, const struct reconcile_row *row)
{
    buf_printf(out,
               "{\"comparison\":\"%s\",\"difference\":\"%s\",\"reason\":\"%s\",\"count\":%" PRIu64
               ",\"examples\":[",
               reconcile_words[row->comparison].p, row->what, reconcile_reasons[row->reason].word.p,
               row->count);
    for (size_t i = 0; i < RECONCILE_EXAMPLES && i < row->count; i++) {
        buf_text(out, i ? "," : "");
        buf_json(out, str_of(row->examples[i]));
    }
    buf_text(out, "]}");
}

static void print_json(const struct reconcile_result *result, struct str cluster)
{
    struct buf out;

    buf_init(&out, JSON_MAX);
    buf_text(&out, "{\"cluster\":");
    buf_json(&out, cluster);
    buf_printf(&out,
               ",\"from\":%lld,\"to\":%lld,\"usage_from\":%lld,\"usage_to\":%lld,\"compared\":{",
               (long long)result->from, (long long)result->to, (long long)result->usage_from,
               (long long)result->usage_to);
    for (int i = 0; i < RECONCILE_COMPARISONS; i++)
        buf_printf(&out, "%s\"%s\":%" PRIu64, i ? "," : "", reconcile_words[i].p,
                   result->compared[i]);
    buf_text(&out, "},\"differences\":[");
    for (size_t i = 0; i < result->n; i++) {
        buf_text(&out, i ? "," : "");
        put_json_row(&out, &result->row[i]);
    }
    buf_text(&out, "]}\n");
    fwrite(out.p, 1, out.n, stdout);
    buf_free(&out);
}

/* 1 if something is unexplained. */
static int finish(const struct settings *settings, const struct reconcile_config *config,
                  const struct reconcile_result *result, struct err *err)
{
    struct reconcile_summary summary = { .time = config->now };
    uint64_t unexplained = result->is_over;
    int r;

    for (int i = 0; i < RECONCILE_COMPARISONS; i++) {
        summary.explained[i] = reconcile_count(result, (enum reconcile_comparison)i, true);
        summary.unexplained[i] = reconcile_count(result, (enum reconcile_comparison)i, false);
        unexplained += summary.unexplained[i];
    }
    if (settings->is_json)
        print_json(result, config->cluster);
    else
        print_text(result);
    r = reconcile_file_write(settings->store, config->cluster, &summary, err);
    return r < 0 ? r : unexplained > 0;
}

static int compare(const struct settings *settings, struct reconcile_config *config,
                   struct arena *arena, struct err *err)
{
    struct scraping scraping = { .cluster = config->cluster, .arena = arena };
    struct reconcile_result result;
    int r = settings->exporter_url.n ? scrape(settings->exporter_url.p, &scraping, err) : 0;

    if (settings->exporter_url.n) {
        config->exported = scraping.counters;
        config->n_exported = scraping.n;
    }
    if (r == 0)
        r = reconcile_run(config, arena, &result, err);
    return r < 0 ? r : finish(settings, config, &result, err);
}

static int run(const struct settings *settings, struct arena *arena, struct err *err)
{
    const struct audit_config audit = {
        .source = source_options_settings(&settings->source),
        .timeout_ns = settings->timeout_ns,
        .cancelled = &is_cancelled,
    };
    struct reconcile_config config = { .now = clock_wall(&clock_real) / NS_PER_SEC };
    struct keep *keep = NULL;
    int r = moment_parse(settings->since, config.now, &config.from, err);

    if (r == 0 && config.from >= config.now)
        r = err_set(err, EINVAL, "--since lies in the future");
    if (r == 0)
        r = keep_new(settings->accounts.items, settings->accounts.n, settings->users.items,
                     settings->users.n, &keep, err);
    if (r == 0)
        r = store_reader_open(settings->store, &config.reader, err);
    if (r == 0)
        r = choose_cluster(settings, config.reader, arena, &config.cluster, err);
    if (r == 0)
        r = audit_new(&audit, &config.audit, err);
    config.keep = keep;
    if (r == 0)
        r = compare(settings, &config, arena, err);
    audit_free(config.audit);
    store_reader_close(config.reader);
    keep_free(keep);
    return r;
}

int admin_reconcile(int argc, char **argv)
{
    const struct sigaction action = { .sa_handler = cancel };
    struct settings settings;
    struct arena arena = { 0 };
    struct err err = { 0 };
    int outcome = parse(argc, argv, &arena, &settings, &err), status;

    if (outcome == OPTION_GO_ON) {
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        outcome = run(&settings, &arena, &err);
    } else if (outcome == OPTION_EXIT_OK) {
        outcome = 0;
    }
    status = outcome < 0 ? 2 : outcome;
    if (outcome < 0)
        fprintf(stderr, "sonde admin reconcile: %s\n", err.text);
    arena_clear(&arena);
    return status;
}
