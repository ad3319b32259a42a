/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes what the pages of clusters, nodes and partitions share. */
#include "web/show_cluster.h"

#include <math.h>

enum { ADDRESS_MAX = 8192 };

bool show_is_private(const struct site_call *call, const struct board_cluster *cluster,
                     enum private_data what)
{
    return viewer_is_denied(&call->viewer, cluster, what);
}

const char *show_why_private(const struct board_cluster *cluster)
{
    return cluster->section[KIND_CONFIG] ? "are private: PrivateData of slurm.conf says so"
                                         : "are not shown until Slurm has told whether they are "
                                           "private (PrivateData of slurm.conf)";
}

void show_private(struct site_call *call, const struct board_cluster *cluster, const char *what)
{
    buf_printf(&call->out, "<p class=\"empty\">%s of this cluster %s.</p>\n", what,
               show_why_private(cluster));
}

struct str show_word(const struct site_call *call, const struct board_cluster *cluster)
{
    return call->board->n_clusters > 1 ? cluster->name : STR("");
}

static void put_argument(struct buf *to, bool *has_query, const char *name, struct str value)
{
    if (!value.n)
        return;
    buf_byte(to, *has_query ? '&' : '?');
    buf_text(to, name);
    buf_byte(to, '=');
    buf_url(to, value);
    *has_query = true;
}

const char *show_address(struct site_call *call, const struct board_cluster *cluster,
                         const char *path, const struct show_argument *arguments)
{
    bool has_query = false;
    struct str address;
    struct buf text;

    buf_init(&text, ADDRESS_MAX);
    buf_text(&text, path);
    for (const struct show_argument *argument = arguments; argument->name; argument++)
        put_argument(&text, &has_query, argument->name, argument->value);
    put_argument(&text, &has_query, "cluster", show_word(call, cluster));
    address = arena_str(&call->arena, buf_str(&text));
    buf_free(&text);
    return address.p;
}

static void begin_link(struct buf *to, const char *address)
{
    buf_text(to, "<a href=\"");
    html_textz(to, address);
    buf_text(to, "\">");
}

void show_link(struct buf *to, const char *address, struct str words)
{
    begin_link(to, address);
    html_text(to, words);
    buf_text(to, "</a>");
}

void show_amount(struct buf *to, const char *address, double amount,
                 void (*put)(struct buf *to, double amount))
{
    bool is_link = isfinite(amount) && amount > 0;

    if (is_link)
        begin_link(to, address);
    put(to, amount);
    buf_text(to, is_link ? "</a>" : "");
}

void show_count(struct buf *to, const char *address, double number)
{
    show_amount(to, address, number, html_number);
}

static const char *sorted_jobs(struct site_call *call, const struct board_cluster *cluster,
                               const struct which_jobs *which, struct str sort, bool has_gpus)
{
    return show_address(call, cluster, "/jobs",
                        SHOW_ARGUMENTS({ "user", which->user }, { "account", which->account },
                                       { "state", which->state }, { "reason", which->reason },
                                       { "min_gpus", has_gpus ? STR("1") : STR("") },
                                       { "sort", sort }));
}

const char *show_jobs_address(struct site_call *call, const struct board_cluster *cluster,
                              const struct which_jobs *which)
{
    return sorted_jobs(call, cluster, which, STR(""), false);
}

void show_jobs_cells(struct site_call *call, const struct board_cluster *cluster,
                     struct html_table *table, size_t column, const struct which_jobs *which,
                     const struct sums_jobs *jobs)
{
    const struct {
        double amount;
        struct str sort;
        bool has_gpus;
        void (*put)(struct buf *to, double amount);
    } cells[SHOW_JOBS_CELLS] = {
        { jobs->jobs, STR(""), false, html_number },
        { jobs->cpus, STR("-cpus"), false, html_number },
        { jobs->gpus, STR("-gpus"), true, html_number },
        { jobs->memory_bytes, STR("-memory"), false, html_bytes },
    };

    for (size_t i = 0; i < COUNT(cells); i++) {
        html_begin_cell(table, column + i);
        show_amount(table->to, sorted_jobs(call, cluster, which, cells[i].sort, cells[i].has_gpus),
                    cells[i].amount, cells[i].put);
    }
}

void show_begin_cluster(struct site_call *call, const struct board_cluster *cluster)
{
    struct buf *out = &call->out;

    buf_printf(out, "<section id=\"cluster-%td\" data-live>\n", cluster - call->board->cluster);
    if (call->board->n_clusters > 1) {
        buf_text(out, "<h2>");
        show_link(out, show_address(call, cluster, "/", &(struct show_argument){ 0 }),
                  cluster->name.n ? cluster->name : STR("without a name"));
        buf_text(out, "</h2>\n");
    }
}

void show_end_cluster(struct site_call *call)
{
    buf_text(&call->out, "</section>\n");
}

void show_heading(struct site_call *call, const char *words)
{
    int level = call->board->n_clusters > 1 ? 3 : 2;

    buf_printf(&call->out, "<h%d>%s</h%d>\n", level, words, level);
}

static struct str trend_address(struct site_call *call, const char *before, const char *after,
                                const struct board_cluster *cluster, enum trend trend,
                                struct str node, unsigned hours)
{
    bool has_query = false;
    struct str address;
    struct buf text;

    buf_init(&text, ADDRESS_MAX);
    buf_printf(&text, "%s%s%s", before, trend_rows[trend].name, after);
    put_argument(&text, &has_query, "cluster", cluster->name);
    put_argument(&text, &has_query, "node", node);
    buf_printf(&text, "%chours=%u", has_query ? '&' : '?', hours);
    address = arena_str(&call->arena, buf_str(&text));
    buf_free(&text);
    return address;
}

void show_trend(struct site_call *call, const struct board_cluster *cluster, enum trend trend,
                struct str node, unsigned hours)
{
    char words[100];

    snprintf(words, sizeof(words), "%s over the last %u hours", trend_rows[trend].title, hours);
    html_chart(&call->out,
               &(struct html_chart){
                   trend_address(call, "/chart/", ".svg", cluster, trend, node, hours),
                   trend_address(call, "/api/v1/trends/", "", cluster, trend, node, hours),
                   str_of(words),
                   true,
               });
}

const char *const show_node_classes[] = { "idle", "mixed",  "allocated", "drain",
                                          "down", "asleep", "unknown",   NULL };

/* By the word that stands beside it; a state of any other word takes jobs or does not. */
const char *show_node_class(struct node_state state)
{
    static const struct {
        struct str word;
        const char *class;
    } classes[] = {
        { STR_INIT("idle"), "idle" },
        { STR_INIT("planned"), "idle" },
        { STR_INIT("reserved"), "idle" },
        { STR_INIT("mixed"), "mixed" },
        { STR_INIT("allocated"), "allocated" },
        { STR_INIT("completing"), "allocated" },
        { STR_INIT("down"), "down" },
        { STR_INIT("fail"), "down" },
        { STR_INIT("error"), "down" },
        { STR_INIT("powered_down"), "asleep" },
        { STR_INIT("powering_down"), "asleep" },
        { STR_INIT("powering_up"), "asleep" },
        { STR_INIT("cloud"), "asleep" },
        { STR_INIT("unknown"), "unknown" },
    };
    struct str word = node_state_word(state);

    for (size_t i = 0; i < COUNT(classes); i++)
        if (str_eq(word, classes[i].word))
            return classes[i].class;
    return node_takes_jobs(state) ? "unknown" : "drain";
}

void show_node_state(struct buf *to, struct node_state state)
{
    struct buf words;

    buf_init(&words, 1024);
    node_state_put(&words, state);
    buf_printf(to, "<span class=\"state %s\" title=\"", show_node_class(state));
    html_text(to, buf_str(&words));
    buf_text(to, "\">");
    html_text(to, node_state_word(state));
    buf_text(to, "</span>");
    buf_free(&words);
}
