/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes what the pages of users and accounts share. */
#include "web/job_people.h"

#include "base/num.h"
#include "report/words.h"
#include "web/html.h"
#include "web/job_asked.h"
#include "web/job_find.h"
#include "web/job_rows.h"
#include "web/recent_usage.h"
#include "web/show_cluster.h"
#include "web/show_more.h"

#include <math.h>

enum { TITLE_BYTES = 1024 };

void people_filter(const struct job_people *people, struct job_filter *ret)
{
    struct words own = { &people->name, 1 };

    job_filter_clear(ret);
    if (people->is_account)
        ret->accounts = own;
    else
        ret->users = own;
    if (people->call->cluster.n)
        ret->clusters = (struct words){ &people->call->cluster, 1 };
    api_filter_limit(ret, &people->call->viewer);
}

/* A link to /jobs with them as its filter. */
static void put_link(const struct job_people *people, bool is_kept, const char *words)
{
    struct html_address link =
        html_begin_link(&people->call->out, is_kept ? "/jobs?kept=1" : "/jobs");

    html_argument(&link, people->is_account ? "account" : "user", people->name);
    html_argument(&link, "cluster", people->call->cluster);
    html_end_link(&link, str_of(words));
}

static void put_all_link(const struct job_people *people, uint64_t n_jobs)
{
    struct buf words;

    buf_init(&words, 100);
    buf_text(&words, "All ");
    words_number(&words, (double)n_jobs);
    buf_text(&words, " jobs in the queue");
    buf_text(&people->call->out, "<p class=\"note\">");
    put_link(people, false, words.p);
    buf_text(&people->call->out, "</p>\n");
    buf_free(&words);
}

static const struct sums_group *find_group(const struct job_people *people,
                                           const struct board_cluster *cluster)
{
    const struct cluster_sums *sums = &cluster->sums;
    const struct sums_group *group = people->is_account ? sums->account : sums->user;
    size_t n = people->is_account ? sums->n_accounts : sums->n_users;

    for (size_t i = 0; i < n; i++)
        if (str_eq(group[i].name, people->name))
            return &group[i];
    return NULL;
}

/* What they hold and wait for, cluster by cluster. */
static void put_groups(const struct job_people *people)
{
    static const struct html_column columns[] = {
        { "Cluster", NULL, false },   { "Jobs that run", NULL, true },
        { "CPUs", NULL, true },       { "GPUs", NULL, true },
        { "Memory", NULL, true },     { "Jobs that wait", NULL, true },
        { "for CPUs", NULL, true },   { "for GPUs", NULL, true },
        { "for memory", NULL, true },
    };
    const struct board *board = people->call->board;
    struct html_table table;

    html_begin_table(&table, &people->call->out, "What they hold and wait for", columns,
                     COUNT(columns), STR(""), false, STR(""));
    for (size_t i = 0; i < board->n_clusters; i++) {
        const struct board_cluster *cluster = &board->cluster[i];
        const struct sums_group *group = find_group(people, cluster);
        const struct str none = STR(""), name = people->name;
        const struct which_jobs holding = { people->is_account ? none : name,
                                            people->is_account ? name : none, STR(SHOW_HOLDING),
                                            none };
        struct which_jobs pending = holding;

        pending.state = STR("PENDING");
        if (!group || !site_shows(people->call, cluster))
            continue;
        html_begin_row(&table);
        html_begin_cell(&table, 0);
        html_text(table.to, cluster->name.n ? cluster->name : STR("–"));
        show_jobs_cells(people->call, cluster, &table, 1, &holding, &group->holding);
        show_jobs_cells(people->call, cluster, &table, 1 + SHOW_JOBS_CELLS, &pending,
                        &group->pending);
        html_end_row(&table);
    }
    html_end_table(&table);
}

static void put_queue(const struct job_people *people, const struct queue_page *page)
{
    struct site_call *call = people->call;
    struct job_table table;
    struct job_row row;

    job_table_begin(&table, call, JOB_TABLE_QUEUE, "Jobs in the queue", STR(""), false, STR(""));
    for (size_t i = 0; i < page->n; i++) {
        job_row_of_board(page->row[i].cluster, page->row[i].job, call->now, &call->arena, &row);
        row.elapsed_seconds = page->row[i].elapsed_seconds;
        job_table_row(&table, &row);
    }
    job_table_end(&table);
    if (page->matches > page->n)
        put_all_link(people, page->jobs);
}

static void put_now(const struct job_people *people)
{
    struct site_call *call = people->call;
    struct job_filter filter;
    struct queue_question question = {
        .filter = &filter,
        .sort = QUEUE_BY_SUBMIT,
        .is_descending = true,
        .limit = SHOW_FEW,
        .viewer = &call->viewer,
        .now = call->now,
    };
    struct queue_page page = { 0 };

    people_filter(people, &filter);
    buf_text(&call->out, "<section id=\"people-now\" data-live><h2>Now</h2>\n");
    if (!call->board)
        html_empty(&call->out, "Nobody tells what is in the queue at the moment.");
    else if (queue_find(call->board, &question, &call->arena, &page, &call->err) < 0)
        html_empty(&call->out, "What is in the queue cannot be told.");
    else if (!page.n)
        html_empty(&call->out, board_has_told(call->board, &question.filter->clusters, KIND_JOBS)
                                   ? "No jobs in the queue."
                                   : "What is in the queue is not known: Slurm has not told it.");
    if (page.n) {
        put_groups(people);
        put_queue(people, &page);
    }
    buf_text(&call->out, "</section>\n");
}

enum { USAGE_COLUMNS = 7 };

static void begin_usage(const struct job_people *people, const char *caption, const char *first,
                        struct html_table *ret)
{
    const struct html_column columns[USAGE_COLUMNS] = {
        { first, NULL, false },
        { "Jobs", NULL, true },
        { "CPU-hours", NULL, true },
        { "GPU-hours", NULL, true },
        { "Memory, GiB-hours", NULL, true },
        { "CPU use", NULL, true },
        { "Waited, on average", NULL, true },
    };
    struct html_column *kept = ARENA_ARRAY(&people->call->arena, struct html_column, USAGE_COLUMNS);

    memcpy(kept, columns, sizeof(columns));
    html_begin_table(ret, &people->call->out, caption, kept, USAGE_COLUMNS, STR(""), false,
                     STR(""));
}

/* How many there are, as a link to these jobs of so many days; `name` is one more argument. */
static void put_usage_jobs(const struct job_people *people, uint64_t n, int days, const char *name,
                           struct str value)
{
    char from[NUM_U64_MAX];
    size_t n_from = num_put_u64(from, (uint64_t)recent_from(people->call->now, days));
    struct html_address link = html_begin_link(&people->call->out, "/jobs?kept=1");

    html_argument(&link, people->is_account ? "account" : "user", people->name);
    if (name)
        html_argument(&link, name, value);
    html_argument(&link, "from", (struct str){ from, n_from });
    html_argument(&link, "cluster", people->call->cluster);
    html_end_number(&link, (double)n);
}

static void put_usage_cells(struct html_table *table, const struct usage_row *row)
{
    html_begin_cell(table, 2);
    html_number(table->to, (double)row->cpu_seconds / 3600);
    html_begin_cell(table, 3);
    html_number(table->to, (double)row->gpu_seconds / 3600);
    html_begin_cell(table, 4);
    html_number(table->to, row->memory_byte_seconds / 0x1p30 / 3600);
    html_begin_cell(table, 5);
    if (row->of_cpu_seconds > 0) {
        struct buf words;
        double ratio = row->used_cpu_seconds / row->of_cpu_seconds;

        buf_init(&words, 64);
        words_percent(&words, ratio);
        html_meter(table->to, ratio, NULL, buf_str(&words));
        buf_free(&words);
    } else {
        html_number(table->to, NAN);
    }
    html_begin_cell(table, 6);
    html_span(table->to, row->waited ? (double)row->wait_seconds / (double)row->waited : NAN);
}

static void put_days(const struct job_people *people, const struct recent_usage *usage)
{
    static const char *const words[RECENT_PERIODS] = { "Last day", "Last 7 days", "Last 30 days" };
    struct buf *out = &people->call->out;
    struct html_table table;

    begin_usage(people, "What was used lately, and how well", "When", &table);
    for (size_t i = 0; i < RECENT_PERIODS; i++) {
        html_begin_row(&table);
        html_begin_cell(&table, 0);
        html_textz(out, words[i]);
        html_begin_cell(&table, 1);
        put_usage_jobs(people, usage->total[i].jobs, recent_days[i], NULL, STR(""));
        put_usage_cells(&table, &usage->total[i]);
        html_end_row(&table);
    }
    html_end_table(&table);
    if (people->is_account)
        buf_text(out,
                 "<p class=\"note\">Idle time of reservations is not included; sreport adds it "
                 "to their accounts.</p>\n");
}

/* Those that used most first: rows come in the order of their names. */
static int by_use(const void *a, const void *b)
{
    const struct usage_row *left = a, *right = b;

    if (left->cpu_seconds != right->cpu_seconds)
        return left->cpu_seconds > right->cpu_seconds ? -1 : 1;
    return 0;
}

struct usage_list {
    struct show_list list;
    enum usage_key key;
    const char *title, *column, *argument; /* of what a row is named by; and in an address */
    const char *path;                      /* of its page; or NULL */
};

static void put_grouped(const struct job_people *people, const struct usage_list *by,
                        const struct usage_sum *usage)
{
    size_t most = show_most(people->call, &by->list);
    struct buf *out = &people->call->out;
    struct usage_row *rows = usage->row;
    struct html_table table;
    size_t n = usage->n;

    if (!n || (n == 1 && !rows[0].keys[0].n))
        return;
    qsort(rows, n, sizeof(*rows), by_use);
    buf_printf(out, "<section%s><h2>", show_list_id(people->call, &by->list));
    html_textz(out, by->title);
    buf_text(out, "</h2>\n");
    begin_usage(people, by->title, by->column, &table);
    for (size_t i = 0; i < n && i < most; i++) {
        html_begin_row(&table);
        html_begin_cell(&table, 0);
        if (by->path && rows[i].keys[0].n)
            html_link(out, by->path, rows[i].keys[0], STR(""));
        else
            html_text(out, rows[i].keys[0].n ? rows[i].keys[0] : STR("none"));
        html_begin_cell(&table, 1);
        if (rows[i].keys[0].n)
            put_usage_jobs(people, rows[i].jobs, 30, by->argument, rows[i].keys[0]);
        else
            html_number(out, (double)rows[i].jobs);
        put_usage_cells(&table, &rows[i]);
        html_end_row(&table);
    }
    html_end_table(&table);
    show_rest(people->call, &by->list, n, STR(""));
    buf_text(out, "</section>\n");
}

/* Half of the time that is left: the rest of the page is worth more than a page that says that it
 * took too long. */
static int ask_usage(const struct job_people *people, const enum usage_key *keys, size_t n_keys,
                     struct recent_usage *ret)
{
    struct site_call *call = people->call;
    int64_t now = clock_mono(&clock_real), left = call->deadline_ns - now;
    struct job_filter filter;
    int code;

    people_filter(people, &filter);
    store_reader_deadline(call->reader, left > 0 ? now + left / 2 : call->deadline_ns);
    code = recent_usage_ask(call->reader, &filter, call->now, keys, n_keys, &call->arena, ret,
                            &call->err);
    store_reader_deadline(call->reader, call->deadline_ns);
    return code;
}

static int put_usage(const struct job_people *people)
{
    static const struct usage_list by_user = { { "users", "users", SHOW_FEW },
                                               USAGE_USER,
                                               "By user, last 30 days",
                                               "User",
                                               "user",
                                               "/user/" };
    static const struct usage_list by_account = { { "accounts", "accounts", SHOW_FEW },
                                                  USAGE_ACCOUNT,
                                                  "By account, last 30 days",
                                                  "Account",
                                                  "account",
                                                  "/account/" };
    static const struct usage_list by_type = { { "gpus", "types of GPU", SHOW_FEW },
                                               USAGE_GPU_TYPE,
                                               "By type of GPU, last 30 days",
                                               "Type",
                                               "gpu_type",
                                               NULL };
    const struct usage_list *lists[RECENT_GROUPS_MAX] = {
        people->is_account ? &by_user : &by_account,
        &by_type,
    };
    const enum usage_key keys[RECENT_GROUPS_MAX] = { lists[0]->key, lists[1]->key };
    struct buf *out = &people->call->out;
    struct recent_usage usage;
    int code = ask_usage(people, keys, COUNT(keys), &usage);

    if (code < 0 && code != -ETIMEDOUT)
        return code;
    buf_text(out, "<section><h2>Lately</h2>\n");
    if (code == 0)
        put_days(people, &usage);
    else
        html_empty(out, "There are so many jobs that it took too long to add up what was used: try "
                        "again later.");
    buf_text(out, "<p>");
    put_link(people, true, "All jobs that are kept");
    buf_text(out, "</p></section>\n");
    for (size_t i = 0; i < COUNT(lists) && code == 0; i++)
        put_grouped(people, lists[i], &usage.by[i]);
    return 0;
}

static bool has_association(const struct job_people *people, const struct board_cluster *cluster)
{
    const struct section *section = cluster->section[KIND_ASSOCIATIONS];

    for (size_t i = 0; section && i < section->associations.n; i++) {
        const struct association *association = &section->associations.association[i];

        if (str_eq(section_text(section,
                                people->is_account ? association->account : association->user),
                   people->name))
            return true;
    }
    return false;
}

static int see_any(void *ctx, const struct job_row *row)
{
    (void)row;
    *(bool *)ctx = true;
    return -ECANCELED;
}

/* Whether anybody knows that name. */
static int look_for(const struct job_people *people, bool *ret)
{
    struct site_call *call = people->call;
    const struct job_order order = { .limit = 1 };
    struct job_filter filter;
    int code = 0;

    *ret = false;
    for (size_t i = 0; call->board && i < call->board->n_clusters && !*ret; i++)
        *ret = find_group(people, &call->board->cluster[i]) ||
               has_association(people, &call->board->cluster[i]);
    if (*ret || !call->reader)
        return 0;
    people_filter(people, &filter);
    code = store_jobs(call->reader, &filter, &order, call->now, see_any, ret, &call->err);
    return code == -ECANCELED ? 0 : code;
}

static void put_title(const struct job_people *people)
{
    struct buf title;

    buf_init(&title, TITLE_BYTES);
    buf_text(&title, people->is_account ? "Account " : "User ");
    buf_put(&title, people->name);
    job_put_title(people->call, arena_str(&people->call->arena, buf_str(&title)));
    buf_free(&title);
}

static int show_all(const struct job_people *people)
{
    struct site_call *call = people->call;
    int code = 0;

    put_title(people);
    put_now(people);
    if (call->reader) {
        code = put_usage(people);
    } else {
        buf_text(&call->out, "<section><h2>Lately</h2>\n");
        html_empty(&call->out, call->why_no_store.p);
        buf_text(&call->out, "</section>\n");
    }
    people_put_shares(people);
    people_put_limits(people);
    return code == 0 && call->reader ? people_put_waste(people) : code;
}

int people_show(struct site_call *call, bool is_account)
{
    const struct job_people people = { call, call->rest, is_account };
    bool may_see = is_account ? viewer_may_see_account(&call->viewer, call->rest)
                              : viewer_may_see_user(&call->viewer, call->rest);
    bool exists;
    int code;

    if (!may_see)
        return site_refuse(call, 403,
                           is_account ? "this account is for its coordinators and for staff to see"
                                      : "this is another user: you can see your own page");
    code = look_for(&people, &exists);
    if (code < 0)
        return code;
    if (!exists)
        return site_not_found(call, is_account ? "account" : "user", call->rest);
    return show_all(&people);
}
