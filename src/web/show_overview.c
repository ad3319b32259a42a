/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first page: what clusters have, what is free and why the rest is not, who waits for what, and
 * what is broken. */
#include "report/words.h"
#include "web/cluster_pages.h"
#include "web/show_cluster.h"
#include "web/show_more.h"

#include <math.h>

enum { MOST_REASONS = 12, MOST_GROUPS = 10, MOST_STATES = 24 };

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
    return show_address(part->call, part->cluster, path, SHOW_ARGUMENTS({ name, value }));
}

/* Where the numbers stand that it is the sum of. */
static const char *nodes_address(const struct part *part, const char *state, struct str gpu,
                                 const char *sort)
{
    return show_address(part->call, part->cluster, "/nodes",
                        SHOW_ARGUMENTS({ "state", str_of(state) }, { "gpu", gpu },
                                       { "view", STR("table") }, { "sort", str_of(sort) }));
}

/* What a cluster has of something, and where the nodes and the jobs are that have it. */
struct amount {
    const char *title;
    const struct sums_amount *sums;
    void (*put)(struct buf *to, double value);
    const char *sort, *free; /* of the nodes: "-cpus", and those that have any of it free */
    struct str gpu;          /* of GPUs: their type, or "any" */
};

/* Of GPUs jobs need not say which type they were given: nodes do. */
static void put_amount(const struct part *part, const struct amount *amount)
{
    const struct html_bar bar = { amount->title, amount->sums->total,
                                  nodes_address(part, "", amount->gpu, amount->sort), amount->put };
    const struct html_part_of parts[] = {
        { "allocated", "allocated", amount->sums->allocated,
          amount->gpu.n ? bar.href
                        : show_address(part->call, part->cluster, "/jobs",
                                       SHOW_ARGUMENTS({ "state", STR(SHOW_HOLDING) },
                                                      { "sort", str_of(amount->sort) })) },
        { "idle", "idle", amount->sums->idle,
          nodes_address(part, amount->free, amount->gpu, amount->sort) },
        { "unusable", "down", amount->sums->unusable,
          nodes_address(part, "unusable", amount->gpu, amount->sort) },
    };

    html_bar(part->out, &bar, parts, COUNT(parts));
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
        put_amount(part, &(struct amount){ title.p, &gpu->amount, words_number, "-gpus",
                                           "free-gpus", gpu->type.n ? gpu->type : STR("any") });
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
    html_bar(part->out,
             &(struct html_bar){ "Nodes", total, address_of(part, "/nodes", "state", STR("")),
                                 words_number },
             parts, n);
}

/* "1 GPU is" or "3 GPUs are", and what about them. */
static void put_stranded_of(const struct part *part, double n, const char *state, const char *thing,
                            const char *words)
{
    if (!(n > 0))
        return;
    buf_text(part->out, "<li>");
    show_count(part->out, nodes_address(part, state, STR(""), ""), n);
    buf_printf(part->out, " %s%s %s</li>\n", thing, n == 1 ? " is" : "s are", words);
}

static void put_stranded(const struct part *part)
{
    const struct cluster_sums *sums = part->sums;

    if (!(sums->stranded_gpus > 0) && !(sums->stranded_cpus > 0))
        return;
    buf_text(part->out, "<ul class=\"notes\">\n");
    put_stranded_of(part, sums->stranded_gpus, "stranded-gpus", "GPU",
                    "free, but no CPU or memory is left beside.");
    put_stranded_of(part, sums->stranded_cpus, "stranded-cpus", "CPU",
                    "free on nodes whose GPUs are all taken.");
    buf_text(part->out, "</ul>\n");
}

static void put_capacity(const struct part *part)
{
    if (!part->cluster->section[KIND_NODES]) {
        html_empty(part->out, "Nothing is known of the nodes at present.");
        return;
    }
    buf_text(part->out, "<div class=\"cards\"><div class=\"card\">\n");
    put_amount(part, &(struct amount){ "CPUs", &part->sums->cpus, words_number, "-cpus", "free",
                                       STR("") });
    put_gpus(part);
    buf_text(part->out, "</div><div class=\"card\">\n");
    put_amount(part, &(struct amount){ "Memory", &part->sums->memory_bytes, words_bytes, "-memory",
                                       "free-memory", STR("") });
    put_nodes(part);
    buf_text(part->out, "</div></div>\n");
    put_stranded(part);
}

static void put_states(const struct part *part)
{
    static const struct html_column columns[] = { { "state", NULL, false }, SHOW_JOBS_COLUMNS };
    const struct cluster_sums *sums = part->sums;
    struct html_table table;

    html_begin_table(&table, part->out, "Jobs by state", columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < sums->n_job_states; i++) {
        const struct sums_by_word *row = &sums->job_state[i];
        const struct which_jobs which = { .state = row->word };

        html_begin_row(&table);
        html_begin_cell(&table, 0);
        show_link(part->out, show_jobs_address(part->call, part->cluster, &which), row->word);
        show_jobs_cells(part->call, part->cluster, &table, 1, &which, &row->jobs);
        html_end_row(&table);
    }
    html_end_table(&table);
}

static const struct show_list reasons = { "reasons", "reasons", MOST_REASONS };

static void put_reasons(const struct part *part)
{
    static const struct html_column columns[] = { { "waits because of", NULL, false },
                                                  SHOW_JOBS_COLUMNS };
    const struct cluster_sums *sums = part->sums;
    size_t most = show_most(part->call, &reasons);
    struct html_table table;

    if (!sums->n_reasons) {
        html_empty(part->out, "No job waits.");
        return;
    }
    html_begin_table(&table, part->out, "Why jobs wait", columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < sums->n_reasons && i < most; i++) {
        const struct sums_by_word *row = &sums->reason[i];
        const struct which_jobs which = { .state = STR("PENDING"), .reason = row->word };

        html_begin_row(&table);
        html_begin_cell(&table, 0);
        show_link(part->out, show_jobs_address(part->call, part->cluster, &which),
                  row->word.n ? row->word : STR("no reason yet"));
        show_jobs_cells(part->call, part->cluster, &table, 1, &which, &row->jobs);
        html_end_row(&table);
    }
    html_end_table(&table);
    show_rest(part->call, &reasons, sums->n_reasons, show_word(part->call, part->cluster));
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
        buf_printf(part->out, "</div><div class=\"card\"%s>\n", show_list_id(part->call, &reasons));
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

static void put_all_broken(const struct part *part)
{
    struct buf words;

    buf_init(&words, 100);
    buf_text(&words, "All ");
    words_number(&words, (double)part->sums->n_broken);
    buf_text(&words, " nodes that take no jobs");
    buf_text(part->out, "<p class=\"note\">");
    show_link(part->out, nodes_address(part, "unusable", STR(""), "-since"), buf_str(&words));
    buf_text(part->out, "</p>\n");
    buf_free(&words);
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
        show_private(part->call, part->cluster, "Nodes");
        return;
    }
    if (!part->cluster->section[KIND_NODES]) {
        html_empty(part->out, "Nothing is known of the nodes at present.");
        return;
    }
    if (!sums->n_broken) {
        html_empty(part->out, "There are none: every node takes jobs.");
        return;
    }
    html_begin_table(&table, part->out, "Nodes that take no jobs", columns, COUNT(columns), STR(""),
                     false, STR(""));
    for (size_t i = 0; i < sums->n_broken && i < SHOW_FEW; i++)
        put_broken_row(part, &table, sums->broken[i]);
    html_end_table(&table);
    if (sums->n_broken > SHOW_FEW)
        put_all_broken(part);
}

/* A table of users or of accounts: those of them that may be seen, the greatest first. */
struct groups {
    struct show_list list;
    const char *caption, *word, *path;
    const struct sums_group *group;
    size_t n;
    bool (*may_see)(const struct viewer *viewer, struct str name);
};

static void put_group(const struct part *part, const struct groups *groups,
                      struct html_table *table, const struct sums_group *group)
{
    bool is_account = groups->group == part->sums->account;
    const struct which_jobs all = { .user = is_account ? STR("") : group->name,
                                    .account = is_account ? group->name : STR("") };
    struct which_jobs holding = all, pending = all;

    holding.state = STR(SHOW_HOLDING);
    pending.state = STR("PENDING");
    html_begin_row(table);
    html_begin_cell(table, 0);
    html_link(part->out, groups->path, group->name, show_word(part->call, part->cluster));
    show_jobs_cells(part->call, part->cluster, table, 1, &holding, &group->holding);
    html_begin_cell(table, 1 + SHOW_JOBS_CELLS);
    show_count(part->out, show_jobs_address(part->call, part->cluster, &pending),
               group->pending.jobs);
    html_end_row(table);
}

static void put_groups(const struct part *part, const struct groups *groups)
{
    const struct html_column columns[] = { { groups->word, NULL, false },
                                           SHOW_JOBS_COLUMNS,
                                           { "waiting", NULL, true } };
    size_t n = 0, most = show_most(part->call, &groups->list);
    struct html_table table;

    buf_printf(part->out, "<div class=\"card\"%s>\n", show_list_id(part->call, &groups->list));
    html_begin_table(&table, part->out, groups->caption, columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < groups->n; i++)
        if (groups->may_see(&part->call->viewer, groups->group[i].name) && n++ < most)
            put_group(part, groups, &table, &groups->group[i]);
    html_end_table(&table);
    show_rest(part->call, &groups->list, n, show_word(part->call, part->cluster));
    buf_text(part->out, "</div>\n");
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
        { { "users", "users", MOST_GROUPS },
          "Users",
          "user",
          "/user/",
          part->sums->user,
          part->sums->n_users,
          viewer_may_see_user },
        { { "accounts", "accounts", MOST_GROUPS },
          "Accounts",
          "account",
          "/account/",
          part->sums->account,
          part->sums->n_accounts,
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
        put_groups(part, &both[i]);
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
