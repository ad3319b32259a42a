/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes tables of jobs. */
#include "web/job_rows.h"

#include "report/words.h"
#include "web/job_find.h"
#include "web/queue.h"

#include <ctype.h>
#include <math.h>

/* Columns: a name is what its user likes, and all of it is on the job's own page. */
enum { STATE_CLASS_MAX = 32, NAME_SHOWN = 40, REASON_SHOWN = 60, NODES_SHOWN = 60 };

double job_known_u32(uint32_t value)
{
    return value == MODEL_UNKNOWN_U32 ? NAN : value;
}

double job_known_u64(uint64_t value)
{
    return value == MODEL_UNKNOWN_U64 ? NAN : (double)value;
}

double job_known_span(int64_t seconds)
{
    return seconds < 0 ? NAN : (double)seconds;
}

void job_put_state(struct buf *to, struct job_state state)
{
    struct str word = job_state_word(state);

    buf_text(to, "<span class=\"state ");
    for (size_t i = 0; i < word.n && i < STATE_CLASS_MAX; i++)
        buf_byte(to, (char)tolower((unsigned char)word.p[i]));
    buf_text(to, "\">");
    html_text(to, word);
    buf_text(to, "</span>");
}

static void put_job(struct job_table *table, const struct job_row *row)
{
    struct buf *out = &table->call->out;

    job_put_link(out, table->call, row, table->kind == JOB_TABLE_KEPT);
    if (row->record.tasks > 1) {
        buf_text(out, " <small>");
        html_number(out, row->record.tasks);
        buf_text(out, " tasks</small>");
    }
}

static void put_cluster(struct job_table *table, const struct job_row *row)
{
    html_text(&table->call->out, row->key.cluster);
}

static void put_name(struct job_table *table, const struct job_row *row)
{
    html_cut(&table->call->out, row->record.name, NAME_SHOWN);
}

static void put_user(struct job_table *table, const struct job_row *row)
{
    html_link(&table->call->out, "/user/", row->record.user, STR(""));
}

static void put_account(struct job_table *table, const struct job_row *row)
{
    html_link(&table->call->out, "/account/", row->record.account, STR(""));
}

static void put_partition(struct job_table *table, const struct job_row *row)
{
    struct html_address address;

    if (!row->record.partition.n)
        return;
    address = html_begin_link(&table->call->out, "/jobs");
    html_argument(&address, "partition", row->record.partition);
    html_end_link(&address, row->record.partition);
}

static void put_state(struct job_table *table, const struct job_row *row)
{
    job_put_state(&table->call->out, row->record.state);
}

static void put_reason(struct job_table *table, const struct job_row *row)
{
    html_cut(&table->call->out, row->record.reason, REASON_SHOWN);
}

/* A node by itself is a link. */
static void put_nodes(struct job_table *table, const struct job_row *row)
{
    struct str nodes = row->record.nodes;

    if (row->record.node_count == 1)
        html_link(&table->call->out, "/node/", nodes, row->key.cluster);
    else
        html_cut(&table->call->out, nodes, NODES_SHOWN);
}

static void put_node_count(struct job_table *table, const struct job_row *row)
{
    html_number(&table->call->out, job_known_u32(row->record.node_count));
}

static void put_cpus(struct job_table *table, const struct job_row *row)
{
    html_number(&table->call->out, job_known_u32(row->record.cpus));
}

static void put_gpus(struct job_table *table, const struct job_row *row)
{
    html_number(&table->call->out, job_known_u64(row->gpus));
}

static void put_memory(struct job_table *table, const struct job_row *row)
{
    html_bytes(&table->call->out, job_known_u64(row->record.memory_bytes));
}

static void put_submit(struct job_table *table, const struct job_row *row)
{
    html_time(&table->call->out, row->record.submit_time);
}

static void put_start(struct job_table *table, const struct job_row *row)
{
    html_time(&table->call->out, row->record.start_time);
}

static void put_end(struct job_table *table, const struct job_row *row)
{
    html_time(&table->call->out, job_record_has_ended(&row->record) ? row->record.end_time : 0);
}

static void put_elapsed(struct job_table *table, const struct job_row *row)
{
    html_span(&table->call->out, job_known_span(row->elapsed_seconds));
}

static void put_limit(struct job_table *table, const struct job_row *row)
{
    html_span(&table->call->out, job_known_u32(row->record.time_limit_minutes) * 60);
}

static void put_priority(struct job_table *table, const struct job_row *row)
{
    html_number(&table->call->out, job_known_u64(row->record.priority));
}

static void put_efficiency(struct job_table *table, const struct job_row *row)
{
    struct buf words;

    if (!isfinite(row->cpu_efficiency)) {
        html_number(&table->call->out, NAN);
        return;
    }
    buf_init(&words, 64);
    words_percent(&words, row->cpu_efficiency);
    html_meter(&table->call->out, row->cpu_efficiency, NULL, buf_str(&words));
    buf_free(&words);
}

enum { OF_QUEUE = 1 << JOB_TABLE_QUEUE, OF_KEPT = 1 << JOB_TABLE_KEPT, OF_BOTH = 3 };

static const struct column {
    const char *title;
    int sort; /* enum queue_sort, or -1 */
    unsigned of;
    bool is_number, is_cluster;
    void (*put)(struct job_table *table, const struct job_row *row);
} columns[] = {
    { "Job", QUEUE_BY_ID, OF_BOTH, false, false, put_job },
    { "Cluster", -1, OF_BOTH, false, true, put_cluster },
    { "State", QUEUE_BY_STATE, OF_BOTH, false, false, put_state },
    { "Name", QUEUE_BY_NAME, OF_BOTH, false, false, put_name },
    { "User", QUEUE_BY_USER, OF_BOTH, false, false, put_user },
    { "Account", QUEUE_BY_ACCOUNT, OF_BOTH, false, false, put_account },
    { "Partition", QUEUE_BY_PARTITION, OF_BOTH, false, false, put_partition },
    { "Reason", QUEUE_BY_REASON, OF_QUEUE, false, false, put_reason },
    { "On", -1, OF_BOTH, false, false, put_nodes },
    { "Nodes", QUEUE_BY_NODES, OF_BOTH, true, false, put_node_count },
    { "CPUs", QUEUE_BY_CPUS, OF_BOTH, true, false, put_cpus },
    { "GPUs", QUEUE_BY_GPUS, OF_BOTH, true, false, put_gpus },
    { "Memory", QUEUE_BY_MEMORY, OF_BOTH, true, false, put_memory },
    { "Elapsed", QUEUE_BY_ELAPSED, OF_BOTH, true, false, put_elapsed },
    { "Limit", QUEUE_BY_LIMIT, OF_BOTH, true, false, put_limit },
    { "CPU use", -1, OF_KEPT, true, false, put_efficiency },
    { "Submitted", QUEUE_BY_SUBMIT, OF_BOTH, false, false, put_submit },
    { "Started", QUEUE_BY_START, OF_BOTH, false, false, put_start },
    { "Ended", -1, OF_KEPT, false, false, put_end },
    { "Priority", QUEUE_BY_PRIORITY, OF_QUEUE, true, false, put_priority },
};

static bool is_shown(const struct job_table *table, const struct column *column)
{
    return (column->of & 1u << table->kind) && (!column->is_cluster || table->with_cluster);
}

void job_table_begin(struct job_table *table, struct site_call *call, enum job_table_kind kind,
                     const char *caption, struct str sorted, bool is_descending, struct str address)
{
    size_t n = 0;

    *table = (struct job_table){
        .call = call,
        .kind = kind,
        .with_cluster = !call->cluster.n && (!call->board || call->board->n_clusters > 1),
    };
    table->column = ARENA_ARRAY(&call->arena, struct html_column, COUNT(columns));
    for (size_t i = 0; i < COUNT(columns); i++)
        if (is_shown(table, &columns[i]))
            table->column[n++] = (struct html_column){
                columns[i].title,
                sorted.n && columns[i].sort >= 0 ? queue_sort_words[columns[i].sort] : NULL,
                columns[i].is_number,
            };
    html_begin_table(&table->html, &call->out, caption, table->column, n, sorted, is_descending,
                     address);
}

void job_table_row(struct job_table *table, const struct job_row *row)
{
    size_t n = 0;

    html_begin_row(&table->html);
    for (size_t i = 0; i < COUNT(columns); i++)
        if (is_shown(table, &columns[i])) {
            html_begin_cell(&table->html, n++);
            columns[i].put(table, row);
        }
    html_end_row(&table->html);
}

void job_table_end(struct job_table *table)
{
    html_end_table(&table->html);
}
