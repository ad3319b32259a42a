/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All clusters: what each has and does, how old that is, and what is kept of it. */
#include "web/cluster_pages.h"
#include "web/show_cluster.h"

#include <math.h>

enum column { NAME, VERSION, NODES, CPUS, GPUS, RUNNING, PENDING, TOLD };

static const struct html_column columns[] = {
    [NAME] = { "cluster", NULL, false },     [VERSION] = { "Slurm", NULL, false },
    [NODES] = { "nodes", NULL, true },       [CPUS] = { "CPUs", NULL, true },
    [GPUS] = { "GPUs", NULL, true },         [RUNNING] = { "jobs run", NULL, true },
    [PENDING] = { "jobs wait", NULL, true }, [TOLD] = { "told", NULL, false },
};

static const char *address_of(struct site_call *call, const struct board_cluster *cluster,
                              const char *path, const char *state)
{
    return show_address(call, cluster, path, SHOW_ARGUMENTS({ "state", str_of(state) }));
}

/* The table of nodes: it has the numbers. */
static const char *nodes_address(struct site_call *call, const struct board_cluster *cluster,
                                 const char *gpu, const char *sort)
{
    return show_address(
        call, cluster, "/nodes",
        SHOW_ARGUMENTS({ "gpu", str_of(gpu) }, { "view", STR("table") }, { "sort", str_of(sort) }));
}

/* Of any of these states, which are separated by commas. */
static double jobs_in(const struct board_cluster *cluster, struct str states)
{
    double sum = cluster->section[KIND_JOBS] ? 0 : NAN;

    while (states.p) {
        struct str state = str_cut(&states, ',');

        for (size_t i = 0; i < cluster->sums.n_job_states; i++)
            if (str_eq(cluster->sums.job_state[i].word, state))
                sum += cluster->sums.job_state[i].jobs.jobs;
    }
    return sum;
}

static double gpus_of(const struct board_cluster *cluster)
{
    double sum = cluster->section[KIND_NODES] ? 0 : NAN;

    for (size_t i = 0; i < cluster->sums.n_gpus; i++)
        sum += cluster->sums.gpu[i].amount.total;
    return sum;
}

/* When jobs and nodes were last told of, the older of the two. */
static void put_told(struct buf *out, const struct board_cluster *cluster)
{
    const struct section *nodes = cluster->section[KIND_NODES], *jobs = cluster->section[KIND_JOBS];
    const struct section *older = !nodes                           ? jobs
                                  : !jobs                          ? nodes
                                  : jobs->wall_ns < nodes->wall_ns ? jobs
                                                                   : nodes;

    if (older)
        html_time(out, older->wall_ns / NS_PER_SEC);
    else
        buf_text(out, "no data");
    if (cluster->trouble.n) {
        buf_text(out, ": ");
        html_text(out, cluster->trouble); /* the banner has the reason */
    }
}

static void put_row(struct site_call *call, struct html_table *table,
                    const struct board_cluster *cluster)
{
    const struct section *config = cluster->section[KIND_CONFIG];
    const struct section *nodes = cluster->section[KIND_NODES];
    const struct {
        enum column column;
        const char *address;
        double value;
    } cells[] = {
        { NODES, address_of(call, cluster, "/nodes", ""), nodes ? (double)nodes->nodes.n : NAN },
        { CPUS, nodes_address(call, cluster, "", "-cpus"), cluster->sums.cpus.total },
        { GPUS, nodes_address(call, cluster, "any", "-gpus"), gpus_of(cluster) },
        { RUNNING, address_of(call, cluster, "/jobs", SHOW_HOLDING),
          jobs_in(cluster, STR(SHOW_HOLDING)) },
        { PENDING, address_of(call, cluster, "/jobs", "PENDING"),
          jobs_in(cluster, STR("PENDING")) },
    };

    html_begin_row(table);
    html_begin_cell(table, NAME);
    show_link(table->to, address_of(call, cluster, "/", ""),
              cluster->name.n ? cluster->name : STR("without a name"));
    html_begin_cell(table, VERSION);
    if (config)
        html_text(table->to, section_text(config, config->config.version));
    buf_text(table->to, cluster->is_simulated ? " simulated" : "");
    for (size_t i = 0; i < COUNT(cells); i++) {
        html_begin_cell(table, cells[i].column);
        show_count(table->to, cells[i].address, cells[i].value);
    }
    html_begin_cell(table, TOLD);
    put_told(table->to, cluster);
    html_end_row(table);
}

static void put_kept_rows(struct site_call *call, const struct cluster_row *row, size_t n)
{
    static const struct html_column kept[] = {
        { "cluster", NULL, false },          { "runs", NULL, true },
        { "oldest submitted", NULL, false }, { "last seen", NULL, false },
        { "accounting since", NULL, false }, { "accounting until", NULL, false },
    };
    struct html_table table;

    html_begin_table(&table, &call->out, "What is kept", kept, COUNT(kept), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < n; i++) {
        const int64_t times[] = { row[i].first_submit_time, row[i].last_seen_time,
                                  row[i].accounted_since, row[i].accounted_until };
        struct html_address link;

        if (call->cluster.n && !str_eq(call->cluster, row[i].name))
            continue;
        html_begin_row(&table);
        html_begin_cell(&table, 0);
        link = html_begin_link(table.to, "/jobs?kept=1");
        html_argument(&link, "cluster", row[i].name);
        html_end_link(&link, row[i].name);
        html_begin_cell(&table, 1);
        link = html_begin_link(table.to, "/jobs?kept=1");
        html_argument(&link, "cluster", row[i].name);
        html_end_number(&link, (double)row[i].runs);
        for (size_t k = 0; k < COUNT(times); k++) {
            html_begin_cell(&table, 2 + k);
            html_time(table.to, times[k]);
        }
        html_end_row(&table);
    }
    html_end_table(&table);
}

static int put_kept(struct site_call *call)
{
    struct cluster_row *row;
    size_t n;
    int code;

    buf_text(&call->out, "<h2>What is kept</h2>\n");
    if (!call->reader) {
        html_empty(&call->out, call->why_no_store.p);
        return 0;
    }
    code = store_clusters(call->reader, &call->arena, &row, &n, &call->err);
    if (code == 0 && n)
        put_kept_rows(call, row, n);
    else if (code == 0)
        html_empty(&call->out, "Nothing is kept yet.");
    return code;
}

static int show(struct site_call *call)
{
    struct html_table table;

    call->title = STR("Clusters");
    buf_text(&call->out, "<h1>Clusters</h1>\n<div id=\"clusters\" data-live>\n");
    html_begin_table(&table, &call->out, "Clusters", columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (site_shows(call, &call->board->cluster[i]))
            put_row(call, &table, &call->board->cluster[i]);
    html_end_table(&table);
    buf_text(&call->out, "</div>\n");
    return put_kept(call);
}

const struct site_page show_clusters = {
    .path = "/clusters",
    .nav = "Clusters",
    .needs = SITE_BOARD | SITE_MAY_STORE,
    .show = show,
};
