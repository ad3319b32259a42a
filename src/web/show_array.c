/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An array, or a heterogeneous job: its tasks by state, how what they used is spread, those that
 * stand out, those that failed and where, and all of them, page by page. */
#include "base/num.h"
#include "report/array_sums.h"
#include "report/exits.h"
#include "report/gather.h"
#include "report/words.h"
#include "web/html.h"
#include "web/job_pages.h"
#include "web/job_parts.h"
#include "web/job_rows.h"

#include <math.h>

enum { TASKS_MAX = 20000, TASKS_SHOWN = 100, NAME_BYTES = 600 };

/* What is shown of it. */
struct view {
    struct site_call *call;
    struct buf *out;
    const struct job_facts *task;
    size_t n_tasks;
    struct array_sums sums;
    bool is_kept;
};

static const struct {
    const char *label;
    void (*put)(struct buf *to, double value);
} measures[ARRAY_MEASURES] = {
    [ARRAY_CPU] = { "CPU use", words_percent },
    [ARRAY_MEMORY_RATIO] = { "Memory use", words_percent },
    [ARRAY_MEMORY] = { "Memory, at most", words_bytes },
    [ARRAY_GPU] = { "GPU use", words_percent },
    [ARRAY_ELAPSED] = { "Elapsed", words_duration },
    [ARRAY_WAIT] = { "Waited", words_duration },
};

static void put_states(struct view *view)
{
    buf_text(view->out, "<section id=\"array-states\" data-live><h2>By state</h2>\n"
                        "<ul class=\"legend\">\n");
    for (size_t i = 0; i < view->sums.n_states; i++) {
        struct job_state state = JOB_STATE_NONE;

        job_state_add(&state, view->sums.state[i].word);
        buf_text(view->out, "<li>");
        job_put_state(view->out, state);
        buf_byte(view->out, ' ');
        words_number(view->out, (double)view->sums.state[i].tasks);
        buf_text(view->out, "</li>\n");
    }
    buf_text(view->out, "</ul></section>\n");
}

static void put_use(struct view *view)
{
    double held = view->sums.cpu_seconds_held;
    struct buf words;

    if (!(held > 0))
        return;
    buf_init(&words, 200);
    words_percent(&words, view->sums.cpu_seconds / held);
    buf_text(&words, ": ");
    words_duration(&words, view->sums.cpu_seconds);
    buf_text(&words, " of ");
    words_duration(&words, held);
    buf_text(view->out, "<dl class=\"facts\"><dt>CPU time</dt><dd>");
    html_meter(view->out, view->sums.cpu_seconds / held, NULL, buf_str(&words));
    buf_text(view->out, "</dd></dl>\n");
    buf_free(&words);
}

static void put_findings(struct view *view)
{
    struct buf sentence;

    if (!view->sums.n_findings)
        return;
    buf_text(view->out, "<section><h2>What was found</h2>\n<ul class=\"notes\">\n");
    buf_init(&sentence, 4096);
    for (size_t i = 0; i < view->sums.n_findings; i++) {
        const struct array_finding *finding = &view->sums.finding[i];

        buf_reset(&sentence);
        words_number(&sentence, (double)finding->tasks);
        buf_text(&sentence, finding->tasks == 1 ? " task, " : " tasks, such as ");
        outline_put_id(&sentence, &finding->first->row.record);
        buf_text(&sentence, ": ");
        buf_put(&sentence, finding->sentence);
        job_put_finding(view->call, finding->severity, buf_str(&sentence), finding->link);
    }
    buf_free(&sentence);
    buf_text(view->out, "</ul></section>\n");
}

static void put_spread_row(struct html_table *table, size_t measure,
                           const struct array_spread *spread)
{
    html_begin_row(table);
    html_begin_cell(table, 0);
    html_textz(table->to, measures[measure].label);
    for (size_t i = 0; i < ARRAY_QUANTILES; i++) {
        html_begin_cell(table, i + 1);
        measures[measure].put(table->to, spread->quantile[i]);
    }
    html_end_row(table);
}

static void put_spread(struct view *view)
{
    static const struct html_column columns[] = {
        { "Of a task", NULL, false }, { "Least", NULL, true },       { "1st quarter", NULL, true },
        { "Median", NULL, true },     { "3rd quarter", NULL, true }, { "Most", NULL, true },
    };
    struct html_table table;
    bool has_any = false;

    for (size_t i = 0; i < ARRAY_MEASURES; i++)
        has_any |= view->sums.spread[i].n > 0;
    if (!has_any)
        return;
    buf_text(view->out, "<section><h2>How they are spread</h2>\n");
    html_begin_table(&table, view->out, "How what tasks used is spread", columns, COUNT(columns),
                     STR(""), false, STR(""));
    for (size_t i = 0; i < ARRAY_MEASURES; i++)
        if (view->sums.spread[i].n)
            put_spread_row(&table, i, &view->sums.spread[i]);
    html_end_table(&table);
    buf_text(view->out, "</section>\n");
}

/* The cells of a task, in the order of their columns. */
static const struct html_column task_columns[] = {
    { "Task", NULL, false },    { "State", NULL, false },  { "Ended with", NULL, false },
    { "Started", NULL, false }, { "Elapsed", NULL, true }, { "Memory, at most", NULL, true },
    { "CPU use", NULL, true },  { "Node", NULL, false },
};

static void put_task(struct view *view, struct html_table *table, const struct job_facts *task)
{
    const struct job_record *record = &task->row.record;

    html_begin_row(table);
    html_begin_cell(table, 0);
    if (record->tasks > 1) {
        html_number(view->out, record->tasks);
        buf_text(view->out, " that wait");
    } else {
        job_put_link(view->out, view->call, &task->row, view->is_kept);
    }
    html_begin_cell(table, 1);
    job_put_state(view->out, record->state);
    html_begin_cell(table, 2);
    if (job_record_has_ended(record))
        exit_put(view->out, record);
    html_begin_cell(table, 3);
    html_time(view->out, record->start_time);
    html_begin_cell(table, 4);
    html_span(view->out, job_known_span(task->row.elapsed_seconds));
    html_begin_cell(table, 5);
    html_bytes(view->out, task->total.memory_peak_bytes);
    html_begin_cell(table, 6);
    if (isfinite(task->cpu_ratio))
        words_percent(view->out, task->cpu_ratio);
    else
        html_number(view->out, NAN);
    html_begin_cell(table, 7);
    if (record->node_count == 1)
        html_link(view->out, "/node/", record->nodes, task->row.key.cluster);
    else
        html_text(view->out, record->nodes);
    html_end_row(table);
}

static void put_some_tasks(struct view *view, const char *title,
                           const struct job_facts *const *task, size_t n, size_t n_all)
{
    struct html_table table;

    if (!n)
        return;
    buf_text(view->out, "<section><h2>");
    html_textz(view->out, title);
    buf_text(view->out, "</h2>\n");
    html_begin_table(&table, view->out, title, task_columns, COUNT(task_columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < n; i++)
        put_task(view, &table, task[i]);
    html_end_table(&table);
    if (n_all > n) {
        buf_text(view->out, "<p class=\"note\">");
        words_number(view->out, (double)(n_all - n));
        buf_text(view->out, " more failed; these are the first ones.</p>\n");
    }
    buf_text(view->out, "</section>\n");
}

static void put_nodes(struct view *view)
{
    static const struct html_column columns[] = { { "Node", NULL, false },
                                                  { "Failed", NULL, true },
                                                  { "Of tasks there", NULL, true } };
    struct html_table table;

    if (!view->sums.n_nodes)
        return;
    buf_text(view->out, "<section><h2>Where tasks failed</h2>\n");
    html_begin_table(&table, view->out, "Nodes on which tasks failed", columns, COUNT(columns),
                     STR(""), false, STR(""));
    for (size_t i = 0; i < view->sums.n_nodes; i++) {
        html_begin_row(&table);
        html_begin_cell(&table, 0);
        html_link(view->out, "/node/", view->sums.node[i].name, view->task[0].row.key.cluster);
        html_begin_cell(&table, 1);
        html_number(view->out, (double)view->sums.node[i].failed);
        html_begin_cell(&table, 2);
        html_number(view->out, (double)view->sums.node[i].tasks);
        html_end_row(&table);
    }
    html_end_table(&table);
    if (view->sums.n_nodes_left_out) {
        buf_text(view->out, "<p class=\"note\">");
        words_number(view->out, (double)view->sums.n_nodes_left_out);
        buf_text(view->out, " more; on these failed most.</p>\n");
    }
    buf_text(view->out, "</section>\n");
}

static void put_page_link(struct view *view, size_t offset, const char *words)
{
    char text[32];
    struct html_address link;

    snprintf(text, sizeof(text), "%zu", offset);
    link = html_begin_link(view->out,
                           site_address(view->call, "offset", offset ? str_of(text) : STR("")).p);
    html_end_link(&link, str_of(words));
    buf_byte(view->out, ' ');
}

/* All of them, as many as fit on a page. */
static void put_all_tasks(struct view *view)
{
    struct str given = site_argument(view->call, "offset");
    struct html_table table;
    uint64_t offset = 0;
    size_t end;

    if (given.n && !num_get_u64(given, &offset))
        offset = 0;
    buf_text(view->out, "<section id=\"array-tasks\" data-live><h2>All tasks</h2>\n");
    if (offset >= view->n_tasks) {
        html_empty(view->out, "There are fewer tasks than that: this is past the last page.");
        put_page_link(view, 0, "Back to the first page");
        buf_text(view->out, "</section>\n");
        return;
    }
    end = view->n_tasks - offset < TASKS_SHOWN ? view->n_tasks : offset + TASKS_SHOWN;
    html_begin_table(&table, view->out, "All tasks", task_columns, COUNT(task_columns), STR(""),
                     false, STR(""));
    for (size_t i = offset; i < end; i++)
        put_task(view, &table, &view->task[i]);
    html_end_table(&table);
    buf_text(view->out, "<nav class=\"pages\" aria-label=\"Rows\">");
    if (offset)
        put_page_link(view, offset > TASKS_SHOWN ? offset - TASKS_SHOWN : 0, "Previous");
    if (end < view->n_tasks)
        put_page_link(view, end, "Next");
    buf_text(view->out, "</nav></section>\n");
}

/* Those that are in the queue only. */
struct board_tasks {
    struct site_call *call;
    struct job_facts *task;
    size_t n;
};

static void add_task(void *ctx, const struct board_cluster *cluster, const struct job *job)
{
    struct board_tasks *tasks = ctx;
    struct job_facts *facts;
    struct job_row row;

    if (tasks->n == TASKS_MAX)
        return;
    facts = &tasks->task[tasks->n++];
    job_row_of_board(cluster, job, tasks->call->now, &tasks->call->arena, &row);
    job_facts_clear(facts);
    facts_take_row(facts, &tasks->call->arena, &row, tasks->call->now);
    facts_finish(facts);
}

static void count_task(void *ctx, const struct board_cluster *cluster, const struct job *job)
{
    (void)cluster;
    (void)job;
    ++*(size_t *)ctx;
}

static void gather_from_board(struct site_call *call, const struct job_name *name,
                              struct view *view)
{
    struct board_tasks tasks = { .call = call };
    size_t n = 0;

    job_each_on_board(call, name, count_task, &n);
    tasks.task = ARENA_ARRAY(&call->arena, struct job_facts, n < TASKS_MAX ? n : TASKS_MAX);
    job_each_on_board(call, name, add_task, &tasks);
    view->task = tasks.task;
    view->n_tasks = tasks.n;
}

static int gather_tasks(struct site_call *call, const struct job_found *found, struct view *view)
{
    struct gather gather;
    struct job_facts *task;
    int code;

    if (!found->is_kept) {
        gather_from_board(call, &found->name, view);
        return 0;
    }
    code = site_gather(call, &gather);
    if (code)
        return code;
    gather.deadline_ns = job_deadline(call);
    code = gather_array(&gather, &found->name, TASKS_MAX, &call->arena, &task, &view->n_tasks,
                        &call->err);
    if (code == -ENOENT)
        return job_refused(call, 404);
    if (code == -E2BIG)
        return job_refused(call, 400);
    view->task = task;
    return code;
}

/* One of before was looked for by its key, and its id may be another's now. */
static int check_owners(struct site_call *call, const struct view *view)
{
    int code = 0;

    for (size_t i = 0; i < view->n_tasks && code == 0; i++)
        code = job_allow(call, view->task[i].row.record.user, view->task[i].row.record.account);
    return code;
}

static void put_title(struct view *view)
{
    const struct job_record *any = view->sums.any;
    struct buf title;

    buf_init(&title, NAME_BYTES);
    buf_printf(&title, "%s %u", any->array_job_id ? "Array" : "Heterogeneous job",
               any->array_job_id ? any->array_job_id
               : any->het_job_id ? any->het_job_id
                                 : any->id);
    if (any->name.n)
        buf_printf(&title, ": %.*s", STR_ARG(str_head(any->name, 200)));
    job_put_title(view->call, arena_str(&view->call->arena, buf_str(&title)));
    buf_free(&title);
    buf_text(view->out, "<p>");
    words_number(view->out, (double)view->sums.tasks);
    buf_text(view->out, view->sums.tasks == 1 ? " task" : " tasks");
    if (any->user.n) {
        buf_text(view->out, " of ");
        html_link(view->out, "/user/", any->user, STR(""));
    }
    if (any->account.n) {
        buf_text(view->out, " in account ");
        html_link(view->out, "/account/", any->account, STR(""));
    }
    buf_text(view->out, ".</p>\n");
}

/* Several clusters have one: that which may be seen is meant, if it is the only one. */
static int choose(struct site_call *call, const struct job_found *found)
{
    struct job_name only = found->name;

    if (!found->seen.n)
        return job_allow(call, found->row.record.user, found->row.record.account);
    if (found->seen.n > 1)
        return job_show_choice(call, &found->name, &found->seen, "Several clusters have this array",
                               "/array/");
    only.cluster = found->seen.name[0];
    return job_go_to_array(call, &only);
}

static int show(struct site_call *call)
{
    struct job_found found;
    struct view view = { .call = call, .out = &call->out };
    struct array_report report;
    size_t n_failed;
    int code = job_find(call, call->rest, &found);

    if (code)
        return code;
    if (found.clusters.n > 1)
        return choose(call, &found);
    view.is_kept = found.is_kept;
    code = gather_tasks(call, &found, &view);
    if (code == 0)
        code = check_owners(call, &view);
    if (code)
        return code;
    report = (struct array_report){ view.task, view.n_tasks, site_checks(call) };
    array_sums_make(&view.sums, &call->arena, &report);
    n_failed = view.sums.n_failed < ARRAY_FAILED ? view.sums.n_failed : ARRAY_FAILED;
    put_title(&view);
    put_states(&view);
    put_use(&view);
    put_findings(&view);
    put_spread(&view);
    put_some_tasks(&view, "Failed", view.sums.failed, n_failed, view.sums.n_failed);
    put_nodes(&view);
    put_some_tasks(&view, "Far slower than the others", view.sums.slowest, view.sums.n_slowest,
                   view.sums.n_slowest);
    put_some_tasks(&view, "With far more memory than the others", view.sums.hungriest,
                   view.sums.n_hungriest, view.sums.n_hungriest);
    put_all_tasks(&view);
    return 0;
}

const struct site_page show_array = {
    .path = "/array/*",
    .needs = SITE_MAY_STORE,
    .show = show,
};
