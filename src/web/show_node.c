/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A node: its state in words and why, what it has, what runs there and what ran there before. */
#include "collector/node_gres.h"
#include "report/words.h"
#include "web/job_asked.h"
#include "web/job_find.h"
#include "web/job_rows.h"
#include "web/queue.h"
#include "web/cluster_pages.h"
#include "web/show_cluster.h"
#include "web/show_more.h"

#include <math.h>

enum { HOURS = 24, STATES_MAX = 8 };

struct part {
    struct site_call *call;
    const struct board_cluster *cluster;
    const struct section *section;
    const struct node *node;
    struct str name;
    struct buf *out;
};

static void begin_fact(const struct part *part, const char *word)
{
    buf_printf(part->out, "<dt>%s</dt><dd>", word);
}

static void end_fact(const struct part *part)
{
    buf_text(part->out, "</dd>\n");
}

static void put_text(const struct part *part, const char *word, symbol text)
{
    if (!text)
        return;
    begin_fact(part, word);
    html_text(part->out, section_text(part->section, text));
    end_fact(part);
}

static void put_state(const struct part *part)
{
    struct node_state state = part->node->state;

    struct buf whole;

    buf_init(&whole, 1024);
    node_state_put(&whole, state);
    begin_fact(part, "State");
    show_node_state(part->out, state);
    if (!str_eq(buf_str(&whole), node_state_word(state))) {
        buf_text(part->out, " (");
        html_text(part->out, buf_str(&whole));
        buf_byte(part->out, ')');
    }
    buf_text(part->out, node_takes_jobs(state) ? ": takes jobs" : ": takes no jobs");
    end_fact(part);
    buf_free(&whole);
}

static void put_reason(const struct part *part)
{
    const struct node *node = part->node;
    struct str user = section_text(part->section, node->reason_user);

    if (!node->reason)
        return;
    begin_fact(part, "Reason");
    html_text(part->out, section_text(part->section, node->reason));
    if (user.n && viewer_may_see_user(&part->call->viewer, user)) {
        buf_text(part->out, ", says ");
        html_text(part->out, user);
    }
    if (node->reason_time) {
        buf_text(part->out, ", since ");
        html_time(part->out, node->reason_time);
    }
    end_fact(part);
}

/* "32 of 64" behind a meter; "unknown of 64" without one. */
static void put_meter(const struct part *part, const char *word, double used, double all,
                      void (*put)(struct buf *to, double value))
{
    struct buf text;

    if (isnan(all))
        return;
    buf_init(&text, 200);
    if (isnan(used))
        buf_text(&text, "unknown");
    else
        put(&text, used);
    buf_text(&text, " of ");
    put(&text, all);
    begin_fact(part, word);
    html_meter(part->out, used / all, NULL, buf_str(&text));
    end_fact(part);
    buf_free(&text);
}

/* "GPUs allocated, a100", "tpu allocated, v4" */
static void put_gres_word(struct buf *to, struct str name, struct str type)
{
    html_text(to, str_eq(name, STR("gpu")) ? STR("GPUs") : name);
    buf_text(to, type.n ? " allocated, " : " allocated");
    html_text(to, type);
}

static void put_gres(const struct part *part)
{
    struct gres_reader reader;
    struct node_gres gres;

    gres_reader_init(&reader, part->section, STR(""));
    node_gres_read(&reader, part->node, &gres);
    for (size_t i = 0; i < gres.n; i++) {
        const struct node_gres_item *item = &gres.item[i];
        struct buf word;

        buf_init(&word, 1024);
        put_gres_word(&word, gres_name(&reader, item->type), gres_type_name(&reader, item->type));
        put_meter(part, word.p, job_known_u64(item->allocated), job_known_u64(item->count),
                  words_number);
        buf_free(&word);
    }
    gres_reader_free(&reader);
}

static void put_partitions(const struct part *part)
{
    const struct nodes *nodes = &part->section->nodes;
    const uint32_t *partition = nodes->membership + part->node->first_partition;

    begin_fact(part, part->node->n_partitions == 1 ? "Partition" : "Partitions");
    for (uint32_t i = 0; i < part->node->n_partitions; i++) {
        struct str name = section_text(part->section, nodes->partition[partition[i]].name);

        buf_text(part->out, i ? ", " : "");
        show_link(part->out,
                  show_address(part->call, part->cluster, "/nodes",
                               SHOW_ARGUMENTS({ "partition", name })),
                  name);
    }
    if (!part->node->n_partitions)
        buf_text(part->out, "none");
    end_fact(part);
}

static void put_facts(const struct part *part)
{
    const struct node *node = part->node;

    buf_printf(part->out, "<dl class=\"facts\" id=\"facts-%td\" data-live>\n",
               part->cluster - part->call->board->cluster);
    put_state(part);
    put_reason(part);
    put_meter(part, "CPUs allocated", job_known_u32(node->cpus_alloc), job_known_u32(node->cpus),
              words_number);
    put_meter(part, "Load", node->cpu_load, job_known_u32(node->cpus), words_number);
    put_meter(part, "Memory allocated", job_known_u64(node->memory_alloc_bytes),
              job_known_u64(node->memory_bytes), words_bytes);
    put_gres(part);
    if (!show_is_private(part->call, part->cluster, PRIVATE_PARTITIONS))
        put_partitions(part);
    put_text(part, "Features", node->features);
    if (!show_is_private(part->call, part->cluster, PRIVATE_RESERVATIONS))
        put_text(part, "Reservation", node->reservation);
    put_text(part, "slurmd", node->version);
    buf_text(part->out, "</dl>\n");
}

static int find_jobs(const struct part *part, const struct viewer *viewer, size_t limit,
                     struct queue_page *ret)
{
    struct str states[STATES_MAX], rest = STR(SHOW_HOLDING);
    size_t n_states = 0;
    struct job_filter filter;
    const struct queue_question question = {
        .filter = &filter, .limit = limit, .viewer = viewer, .now = part->call->now
    };

    while (rest.p && n_states < STATES_MAX)
        states[n_states++] = str_cut(&rest, ',');
    job_filter_clear(&filter);
    filter.clusters = (struct words){ &part->cluster->name, part->cluster->name.n ? 1 : 0 };
    filter.nodes = (struct words){ &part->name, 1 };
    filter.states = (struct words){ states, n_states };
    return queue_find(part->call->board, &question, &part->call->arena, ret, &part->call->err);
}

static void put_jobs_now(const struct part *part, const struct queue_page *page)
{
    struct job_table table;
    struct job_row row;

    job_table_begin(&table, part->call, JOB_TABLE_QUEUE, "Jobs that run there now", STR(""), false,
                    STR(""));
    for (size_t i = 0; i < page->n; i++) {
        job_row_of_board(page->row[i].cluster, page->row[i].job, part->call->now,
                         &part->call->arena, &row);
        row.elapsed_seconds = page->row[i].elapsed_seconds;
        job_table_row(&table, &row);
    }
    job_table_end(&table);
}

/* "1 job of others runs there too." */
static void put_others(const struct part *part, uint64_t n, bool is_too)
{
    buf_text(part->out, "<p>");
    words_number(part->out, (double)n);
    buf_text(part->out, n == 1 ? " job of others runs there" : " jobs of others run there");
    buf_text(part->out, is_too ? " too.</p>\n" : ".</p>\n");
}

static void put_all_now(const struct part *part, uint64_t n)
{
    struct buf words;

    buf_init(&words, 100);
    buf_text(&words, "All ");
    words_number(&words, (double)n);
    buf_text(&words, " jobs that run there");
    buf_text(part->out, "<p class=\"note\">");
    show_link(part->out,
              show_address(part->call, part->cluster, "/jobs",
                           SHOW_ARGUMENTS({ "node", part->name }, { "state", STR(SHOW_HOLDING) })),
              buf_str(&words));
    buf_text(part->out, "</p>\n");
    buf_free(&words);
}

/* Whoever is not staff sees their own, and how many others there are. */
static int put_now(const struct part *part)
{
    const struct viewer all = { .is_staff = true };
    struct queue_page page, everybody;
    int code = find_jobs(part, &part->call->viewer, SHOW_FEW, &page);

    if (code == 0)
        code = find_jobs(part, &all, 1, &everybody);
    if (code < 0)
        return code;
    buf_printf(part->out, "<section id=\"now-%td\" data-live>\n<h2>Now</h2>\n",
               part->cluster - part->call->board->cluster);
    if (!part->cluster->section[KIND_JOBS])
        html_empty(part->out, "What runs there is not known: Slurm has not told its jobs.");
    else if (page.n)
        put_jobs_now(part, &page);
    else if (!everybody.matches)
        html_empty(part->out, "No job runs there.");
    if (everybody.matches > page.matches)
        put_others(part, everybody.matches - page.matches, page.n > 0);
    if (page.matches > page.n)
        put_all_now(part, page.matches);
    buf_text(part->out, "</section>\n");
    return 0;
}

/* A table that begins with its first row. */
struct before {
    struct site_call *call;
    struct job_table table;
    size_t n;
    bool has_more;
};

static int put_before_row(void *ctx, const struct job_row *row)
{
    struct before *before = ctx;

    if (!job_record_has_ended(&row->record))
        return 0;
    if (before->n == SHOW_FEW) {
        before->has_more = true;
        return -ECANCELED;
    }
    if (!before->n++)
        job_table_begin(&before->table, before->call, JOB_TABLE_KEPT,
                        before->call->viewer.is_staff ? "Jobs that ran there"
                                                      : "Your jobs that ran there",
                        STR(""), false, STR(""));
    job_table_row(&before->table, row);
    return 0;
}

static void end_before(const struct part *part, struct before *before)
{
    if (before->n)
        job_table_end(&before->table);
    if (!before->has_more)
        return;
    buf_text(part->out, "<p class=\"note\">");
    show_link(part->out,
              show_address(part->call, part->cluster, "/jobs",
                           SHOW_ARGUMENTS({ "kept", STR("1") }, { "node", part->name })),
              STR("All jobs that ran there"));
    buf_text(part->out, "</p>\n");
}

static int put_before(const struct part *part)
{
    struct site_call *call = part->call;
    const struct job_order order = { .limit = 2 * SHOW_FEW }; /* some of them may not have ended */
    struct before before = { .call = call };
    struct job_filter filter;
    int code;

    buf_text(part->out, "<h2>Before</h2>\n");
    if (!call->reader) {
        html_empty(part->out, call->why_no_store.p);
        return 0;
    }
    job_filter_clear(&filter);
    filter.clusters = (struct words){ &part->cluster->name, part->cluster->name.n ? 1 : 0 };
    filter.nodes = (struct words){ &part->name, 1 };
    filter.to = call->now;
    filter.by_end = true;
    api_filter_limit(&filter, &call->viewer);
    store_reader_deadline(call->reader, job_deadline(call));
    code =
        store_jobs(call->reader, &filter, &order, call->now, put_before_row, &before, &call->err);
    end_before(part, &before);
    if (code == -ETIMEDOUT)
        html_empty(part->out, "It took too long to find all of them.");
    else if (code == 0 && !before.n)
        html_empty(part->out, "No job that ran there is kept.");
    return code == -ETIMEDOUT || code == -ECANCELED ? 0 : code;
}

static int put_node(struct site_call *call, const struct board_cluster *cluster,
                    const struct node *node)
{
    const struct section *section = cluster->section[KIND_NODES];
    const struct part part = {
        call, cluster, section, node, section_text(section, node->name), &call->out,
    };
    int code;

    buf_text(part.out, "<h1>");
    html_text(part.out, part.name);
    if (show_word(call, cluster).n) {
        buf_text(part.out, " of ");
        html_text(part.out, cluster->name);
    }
    buf_text(part.out, "</h1>\n");
    put_facts(&part);
    show_trend(call, cluster, TREND_NODE_CPUS, part.name, HOURS);
    code = put_now(&part);
    return code < 0 ? code : put_before(&part);
}

/* A name that two clusters have is shown of each. */
static int show(struct site_call *call)
{
    const struct board_cluster *private = NULL; /* one that keeps its nodes so */
    size_t n = 0;
    int code = 0;

    call->title = call->rest;
    for (size_t i = 0; i < call->board->n_clusters && code == 0; i++) {
        const struct board_cluster *cluster = &call->board->cluster[i];
        const struct node *node =
            site_shows(call, cluster) ? board_node(cluster, call->rest) : NULL;

        if (site_shows(call, cluster) && show_is_private(call, cluster, PRIVATE_NODES))
        private = cluster;
        if (!node || private == cluster)
            continue;
        code = put_node(call, cluster, node);
        n++;
    }
    if (code || n)
        return code;
    return private ? site_refuse(call, 403, "nodes %s", show_why_private(private))
                   : site_not_found(call, "node", call->rest);
}

const struct site_page show_node = {
    .path = "/node/*",
    .needs = SITE_BOARD | SITE_MAY_STORE,
    .show = show,
};
