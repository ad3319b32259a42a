/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first page: what clusters have, what is free and why the rest is not, who waits for what, and
 * what is broken. */
#include "report/words.h"
#include "web/cluster_pages.h"
#include "web/show_cluster.h"

#include <math.h>

enum { MOST_BROKEN = 20, MOST_REASONS = 12, MOST_GROUPS = 10, MOST_STATES = 24 };

/* One cluster of the page. */
struct part {
    struct site_call *call;
    const struct board_cluster *cluster;
    const struct cluster_sums *sums;
    struct buf *out;
};

static const char *address_of(const struct part *part, const char *path, const char *name,
                              struct str value)
{
    return show_address(part->call, part->cluster, path, (struct show_argument){ name, value },
                        (struct show_argument){ 0 });
}

static void put_amount(const struct part *part, const char *title, const struct sums_amount *amount,
                       void (*put)(struct buf *to, double value))
{
    const struct html_part_of parts[] = {
        { "allocated", "allocated", amount->allocated,
          address_of(part, "/jobs", "state", STR(SHOW_HOLDING)) },
        { "idle", "idle", amount->idle, address_of(part, "/nodes", "state", STR("free")) },
        { "unusable", "down", amount->unusable,
          address_of(part, "/nodes", "state", STR("unusable")) },
    };

    html_bar(part->out, title, parts, COUNT(parts), amount->total, put);
}

static void put_gpus(const struct part *part)
{
    for (size_t i = 0; i < part->sums->n_gpus; i++) {
        const struct sums_gpu *gpu = &part->sums->gpu[i];
        struct buf title;

        buf_init(&title, 1024);
        buf_text(&title, "GPUs");
        if (gpu->type.n)
            buf_printf(&title, " %.*s", STR_ARG(gpu->type));
        put_amount(part, title.p, &gpu->amount, words_number);
        buf_free(&title);
    }
}

static void put_nodes(const struct part *part)
{
    const struct cluster_sums *sums = part->sums;
    size_t n = sums->n_states < MOST_STATES ? sums->n_states : MOST_STATES;
    struct html_part_of parts[MOST_STATES];
    double total = 0;

    for (size_t i = 0; i < sums->n_states; i++)
        total += (double)sums->state[i].nodes;
    for (size_t i = 0; i < n; i++) {
        struct node_state state;

        node_state_parse(sums->state[i].word, &state);
        parts[i] = (struct html_part_of){
            .word = arena_str(&part->call->arena, sums->state[i].word).p,
            .class = show_node_class(state),
            .value = (double)sums->state[i].nodes,
            .href = address_of(part, "/nodes", "state", sums->state[i].word),
        };
    }
    html_bar(part->out, "Nodes", parts, n, total, words_number);
}

static void put_stranded(const struct part *part)
{
    const struct cluster_sums *sums = part->sums;
    const char *address = address_of(part, "/nodes", "colour", STR("gpu"));

    if (!(sums->stranded_gpus > 0) && !(sums->stranded_cpus > 0))
        return;
    buf_text(part->out, "<ul class=\"notes\">\n");
    if (sums->stranded_gpus > 0) {
        buf_text(part->out, "<li>");
        show_count(part->out, address, sums->stranded_gpus);
        buf_text(part->out, sums->stranded_gpus == 1 ? " GPU is" : " GPUs are");
        buf_text(part->out, " free, but no CPU or memory is left beside.</li>\n");
    }
    if (sums->stranded_cpus > 0) {
        buf_text(part->out, "<li>");
        show_count(part->out, address, sums->stranded_cpus);
        buf_text(part->out, sums->stranded_cpus == 1 ? " CPU is" : " CPUs are");
        buf_text(part->out, " free on nodes with GPUs, of which none is.</li>\n");
    }
    buf_text(part->out, "</ul>\n");
}

static void put_capacity(const struct part *part)
{
    if (!part->cluster->section[KIND_NODES]) {
        html_empty(part->out, "Nothing is known of the nodes at present.");
        return;
    }
    buf_text(part->out, "<div class=\"cards\"><div class=\"card\">\n");
    put_amount(part, "CPUs", &part->sums->cpus, words_number);
    put_gpus(part);
    buf_text(part->out, "</div><div class=\"card\">\n");
    put_amount(part, "Memory", &part->sums->memory_bytes, words_bytes);
    put_nodes(part);
    buf_text(part->out, "</div></div>\n");
    put_stranded(part);
}

/* Cells of what jobs hold or ask for, from that column on. */
static void put_jobs_cells(struct html_table *table, size_t column, const char *address,
                           const struct sums_jobs *jobs)
{
    html_begin_cell(table, column);
    show_count(table->to, address, jobs->jobs);
    html_begin_cell(table, column + 1);
    html_number(table->to, jobs->cpus);
    html_begin_cell(table, column + 2);
    html_number(table->to, jobs->gpus);
    html_begin_cell(table, column + 3);
    html_bytes(table->to, jobs->memory_bytes);
}

#define JOBS_COLUMNS                                                                               \
    { "jobs", NULL, true }, { "CPUs", NULL, true }, { "GPUs", NULL, true },                        \
    {                                                                                              \
        "memory", NULL, true                                                                       \
    }

static void put_states(const struct part *part)
{
    static const struct html_column columns[] = { { "state", NULL, false }, JOBS_COLUMNS };
    const struct cluster_sums *sums = part->sums;
    struct html_table table;

    html_begin_table(&table, part->out, "Jobs by state", columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < sums->n_job_states; i++) {
        const struct sums_by_word *row = &sums->job_state[i];
        const char *address = address_of(part, "/jobs", "state", row->word);

        html_begin_row(&table);
        html_begin_cell(&table, 0);
        show_link(part->out, address, row->word);
        put_jobs_cells(&table, 1, address, &row->jobs);
        html_end_row(&table);
    }
    html_end_table(&table);
}

static const char *reason_address(const struct part *part, struct str reason)
{
    return show_address(part->call, part->cluster, "/jobs",
                        (struct show_argument){ "state", STR("PENDING") },
                        (struct show_argument){ "reason", reason });
}

static void put_reasons(const struct part *part)
{
    static const struct html_column columns[] = { { "waits because of", NULL, false },
                                                  JOBS_COLUMNS };
    const struct cluster_sums *sums = part->sums;
    struct html_table table;

    if (!sums->n_reasons)
        return;
    html_begin_table(&table, part->out, "Why jobs wait", columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < sums->n_reasons && i < MOST_REASONS; i++) {
        const struct sums_by_word *row = &sums->reason[i];
        const char *address = reason_address(part, row->word);

        html_begin_row(&table);
        html_begin_cell(&table, 0);
        show_link(part->out, address, row->word.n ? row->word : STR("no reason yet"));
        put_jobs_cells(&table, 1, address, &row->jobs);
        html_end_row(&table);
    }
    html_end_table(&table);
    if (sums->n_reasons > MOST_REASONS)
        buf_printf(part->out, "<p>and %zu more.</p>\n", sums->n_reasons - MOST_REASONS);
}

static void put_queue(const struct part *part)
{
    show_heading(part->call, "Queue");
    if (!part->cluster->section[KIND_JOBS]) {
        html_empty(part->out, "Nothing is known of the queue at present.");
    } else if (!part->sums->n_job_states) {
        html_empty(part->out, "The queue is empty.");
    } else {
        buf_text(part->out, "<div class=\"cards\"><div class=\"card\">\n");
        put_states(part);
        buf_text(part->out, "</div><div class=\"card\">\n");
        put_reasons(part);
        buf_text(part->out, "</div></div>\n");
    }
}

static void put_broken_row(const struct part *part, struct html_table *table,
                           const struct node *node)
{
    const struct section *section = part->cluster->section[KIND_NODES];
    struct str user = section_text(section, node->reason_user);

    html_begin_row(table);
    html_begin_cell(table, 0);
    html_link(part->out, "/node/", section_text(section, node->name),
              show_word(part->call, part->cluster));
    html_begin_cell(table, 1);
    show_node_state(part->out, node->state);
    html_begin_cell(table, 2);
    html_text(part->out,
              node->reason ? section_text(section, node->reason) : STR("no reason told"));
    html_begin_cell(table, 3);
    html_time(part->out, node->reason_time);
    html_begin_cell(table, 4);
    if (viewer_may_see_user(&part->call->viewer, user))
        html_text(part->out, user);
    html_end_row(table);
}

static void put_broken(const struct part *part)
{
    static const struct html_column columns[] = {
        { "node", NULL, false },  { "state", NULL, false }, { "reason", NULL, false },
        { "since", NULL, false }, { "by", NULL, false },
    };
    const struct cluster_sums *sums = part->sums;
    struct html_table table;

    show_heading(part->call, "Nodes that take no jobs");
    if (show_is_private(part->call, part->cluster, PRIVATE_NODES)) {
        show_private(part->call, "Nodes");
        return;
    }
    if (!sums->n_broken) {
        html_empty(part->out, "There are none: every node takes jobs.");
        return;
    }
    html_begin_table(&table, part->out, "Nodes that take no jobs", columns, COUNT(columns), STR(""),
                     false, STR(""));
    for (size_t i = 0; i < sums->n_broken && i < MOST_BROKEN; i++)
        put_broken_row(part, &table, sums->broken[i]);
    html_end_table(&table);
    if (sums->n_broken <= MOST_BROKEN)
        return;
    buf_text(part->out, "<p>");
    show_link(part->out,
              show_address(part->call, part->cluster, "/nodes",
                           (struct show_argument){ "state", STR("unusable") },
                           (struct show_argument){ "view", STR("table") }),
              STR("All nodes that take no jobs"));
    buf_printf(part->out, ": %zu.</p>\n", sums->n_broken);
}

/* A table of users or of accounts: those of them that may be seen, the greatest first. */
struct groups {
    const char *caption, *path;
    const struct sums_group *group;
    size_t n;
    bool (*may_see)(const struct viewer *viewer, struct str name);
};

static void put_group(const struct part *part, const struct groups *groups,
                      struct html_table *table, const struct sums_group *group)
{
    html_begin_row(table);
    html_begin_cell(table, 0);
    html_link(part->out, groups->path, group->name, show_word(part->call, part->cluster));
    html_begin_cell(table, 1);
    html_number(part->out, group->holding.jobs);
    html_begin_cell(table, 2);
    html_number(part->out, group->holding.cpus);
    html_begin_cell(table, 3);
    html_number(part->out, group->holding.gpus);
    html_begin_cell(table, 4);
    html_bytes(part->out, group->holding.memory_bytes);
    html_begin_cell(table, 5);
    html_number(part->out, group->pending.jobs);
    html_end_row(table);
}

static void put_groups(const struct part *part, const struct groups *groups)
{
    static const struct html_column columns[] = {
        { "name", NULL, false }, { "jobs", NULL, true },   { "CPUs", NULL, true },
        { "GPUs", NULL, true },  { "memory", NULL, true }, { "waiting", NULL, true },
    };
    struct html_table table;
    size_t n_shown = 0;

    html_begin_table(&table, part->out, groups->caption, columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < groups->n && n_shown < MOST_GROUPS; i++) {
        if (!groups->may_see(&part->call->viewer, groups->group[i].name))
            continue;
        put_group(part, groups, &table, &groups->group[i]);
        n_shown++;
    }
    html_end_table(&table);
}

static bool sees_any(const struct part *part, const struct groups *groups)
{
    for (size_t i = 0; i < groups->n; i++)
        if (groups->may_see(&part->call->viewer, groups->group[i].name))
            return true;
    return false;
}

static void put_most(const struct part *part)
{
    const struct groups both[] = {
        { "Users", "/user/", part->sums->user, part->sums->n_users, viewer_may_see_user },
        { "Accounts", "/account/", part->sums->account, part->sums->n_accounts,
          viewer_may_see_account },
    };
    bool is_any = false;

    show_heading(part->call,
                 part->call->viewer.is_staff ? "Who uses most now" : "What you use now");
    buf_text(part->out, "<div class=\"cards\">\n");
    for (size_t i = 0; i < COUNT(both); i++) {
        if (!sees_any(part, &both[i]))
            continue;
        is_any = true;
        buf_text(part->out, "<div class=\"card\">\n");
        put_groups(part, &both[i]);
        buf_text(part->out, "</div>\n");
    }
    buf_text(part->out, "</div>\n");
    if (!is_any)
        html_empty(part->out, part->call->viewer.is_staff ? "Nobody uses anything."
                                                          : "You have no jobs in the queue.");
}

static void put_trends(const struct part *part)
{
    static const enum trend trends[] = { TREND_CPUS, TREND_GPUS, TREND_MEMORY, TREND_JOBS,
                                         TREND_NODES };

    show_heading(part->call, "The last hours");
    buf_text(part->out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < COUNT(trends); i++)
        if (trends[i] != TREND_GPUS || part->sums->n_gpus)
            show_trend(part->call, part->cluster, trends[i], STR(""), SHOW_HOURS);
    buf_text(part->out, "</div>\n");
}

/* The charts stand outside of what is renewed: they renew themselves. */
static void put_cluster(struct site_call *call, const struct board_cluster *cluster)
{
    const struct part part = { call, cluster, &cluster->sums, &call->out };

    show_begin_cluster(call, cluster);
    put_capacity(&part);
    put_queue(&part);
    show_end_cluster(call);
    put_trends(&part);
    buf_printf(&call->out, "<section id=\"use-%td\" data-live>\n", cluster - call->board->cluster);
    put_broken(&part);
    if (cluster->section[KIND_JOBS])
        put_most(&part);
    show_end_cluster(call);
}

static int show(struct site_call *call)
{
    size_t n = 0;

    call->title = STR("Overview");
    buf_text(&call->out, "<h1>Overview</h1>\n");
    for (size_t i = 0; i < call->board->n_clusters; i++) {
        if (!site_shows(call, &call->board->cluster[i]))
            continue;
        put_cluster(call, &call->board->cluster[i]);
        n++;
    }
    return n ? 0 : site_not_found(call, "cluster", call->cluster);
}

const struct site_page show_overview = {
    .path = "/",
    .nav = "Overview",
    .needs = SITE_BOARD,
    .show = show,
};
