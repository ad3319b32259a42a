/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole array, or all components of a heterogeneous job, at once. */
#include "base/shown.h"
#include "report/array_sums.h"
#include "report/exits.h"
#include "report/members.h"
#include "report/page.h"
#include "report/words.h"

#include <math.h>

enum { INDENT = 2, WORDS_MAX = 4096, NAME_COLUMNS = 60 };

static const struct {
    const char *label, *name;
    void (*put)(struct buf *to, double value);
} measures[ARRAY_MEASURES] = {
    [ARRAY_CPU] = { "CPU use", "cpu_ratio", words_percent },
    [ARRAY_MEMORY_RATIO] = { "Memory use", "memory_ratio", words_percent },
    [ARRAY_MEMORY] = { "Memory, at most", "memory_peak_bytes", words_bytes },
    [ARRAY_GPU] = { "GPU use", "gpu_ratio", words_percent },
    [ARRAY_ELAPSED] = { "Elapsed", "elapsed_seconds", words_duration },
    [ARRAY_WAIT] = { "Waited", "wait_seconds", words_duration },
};

struct view {
    struct page page;
    struct array_sums sums;
    struct arena arena;
    struct buf words;
    bool is_simulated;
};

static struct str take_words(struct view *view)
{
    struct str words = arena_str(&view->arena, buf_str(&view->words));

    buf_reset(&view->words);
    return words;
}

static bool is_array(const struct array_sums *sums)
{
    return sums->any->array_job_id != 0;
}

static void put_things(struct view *view, uint64_t n)
{
    words_number(&view->words, (double)n);
    buf_text(&view->words, is_array(&view->sums) ? " task" : " component");
    buf_text(&view->words, n == 1 ? "" : "s");
}

static uint32_t whole_id(const struct job_record *record)
{
    return record->array_job_id ? record->array_job_id
           : record->het_job_id ? record->het_job_id
                                : record->id;
}

/* "Array 4711: train.sh", then "1,000 tasks of alice: 990 COMPLETED, 10 FAILED." */
static void put_top(struct view *view)
{
    const struct array_sums *sums = &view->sums;

    buf_printf(&view->words, "%s %u", is_array(sums) ? "Array" : "Heterogeneous job",
               whole_id(sums->any));
    if (sums->any->name.n) {
        buf_text(&view->words, ": ");
        shown_put_cut(&view->words, sums->any->name, NAME_COLUMNS);
    }
    page_heading(&view->page, take_words(view));
    if (view->is_simulated)
        page_paragraph(&view->page, 0, STR(OUTLINE_SIMULATED_ARRAY));
    put_things(view, sums->tasks);
    if (sums->any->user.n) {
        buf_text(&view->words, " of ");
        shown_put_cut(&view->words, sums->any->user, NAME_COLUMNS);
    }
    for (size_t i = 0; i < sums->n_states; i++) {
        buf_text(&view->words, i ? ", " : ": ");
        words_number(&view->words, (double)sums->state[i].tasks);
        buf_byte(&view->words, ' ');
        buf_put(&view->words, sums->state[i].word);
    }
    buf_byte(&view->words, '.');
    page_paragraph(&view->page, 0, take_words(view));
}

static void put_meter(struct view *view)
{
    const struct array_sums *sums = &view->sums;
    struct outline_meter meter = { .title = "CPU" };

    if (!(sums->cpu_seconds_held > 0))
        return;
    words_duration(&view->words, sums->cpu_seconds);
    buf_text(&view->words, " of ");
    words_duration(&view->words, sums->cpu_seconds_held);
    meter.ratio = sums->cpu_seconds / sums->cpu_seconds_held;
    meter.words = take_words(view);
    buf_byte(view->page.to, '\n');
    page_meter(&view->page, &meter);
}

/* "950 tasks, such as 4711_3: Only 3 of 32 CPUs …" */
static void put_findings(struct view *view)
{
    const struct array_sums *sums = &view->sums;

    if (sums->n_findings)
        page_heading(&view->page, STR("What was found"));
    for (size_t i = 0; i < sums->n_findings; i++) {
        const struct array_finding *finding = &sums->finding[i];

        put_things(view, finding->tasks);
        buf_text(&view->words, ", such as ");
        outline_put_id(&view->words, &finding->first->row.record);
        buf_text(&view->words, ": ");
        buf_put(&view->words, finding->sentence);
        page_finding(&view->page, finding->severity, take_words(view), finding->link);
    }
}

/* A table that is filled cell by cell. */
static void begin_table(struct view *view, struct outline_table *table, const char *const *title,
                        size_t n_columns, size_t most)
{
    *table = (struct outline_table){ .title = title, .n_columns = n_columns };
    table->cell = ARENA_ARRAY(&view->arena, struct str, n_columns * most);
}

static void put_spread(struct view *view)
{
    static const char *const titles[] = { "",       "Least",       "1st quarter",
                                          "Median", "3rd quarter", "Most" };
    struct outline_table table;
    size_t n = 0;

    begin_table(view, &table, titles, COUNT(titles), ARRAY_MEASURES);
    for (size_t i = 0; i < ARRAY_MEASURES; i++) {
        const struct array_spread *spread = &view->sums.spread[i];

        if (!spread->n)
            continue;
        table.cell[n++] = str_of(measures[i].label);
        for (size_t j = 0; j < ARRAY_QUANTILES; j++) {
            measures[i].put(&view->words, spread->quantile[j]);
            table.cell[n++] = take_words(view);
        }
        table.n_rows++;
    }
    if (!table.n_rows)
        return;
    page_heading(&view->page, STR("How they are spread"));
    page_table(&view->page, &table);
}

static const char *const task_titles[] = { "Task",   "State",   "Ended with", "Elapsed",
                                           "Memory", "CPU use", "Node" };

static void put_task(struct view *view, struct str *cell, const struct job_facts *task)
{
    const struct job_record *record = &task->row.record;
    struct buf *words = &view->words;

    outline_put_id(words, record);
    cell[0] = take_words(view);
    buf_put(words, job_state_word(record->state));
    cell[1] = take_words(view);
    exit_put(words, record);
    cell[2] = take_words(view);
    words_duration(words, task->row.elapsed_seconds < 0 ? NAN : (double)task->row.elapsed_seconds);
    cell[3] = take_words(view);
    words_bytes(words, task->total.memory_peak_bytes);
    cell[4] = take_words(view);
    words_percent(words, task->cpu_ratio);
    cell[5] = take_words(view);
    shown_put_cut(words, record->nodes, 20);
    cell[6] = take_words(view);
}

static void put_tasks(struct view *view, const char *title, const struct job_facts *const *task,
                      size_t n, size_t n_left_out)
{
    struct outline_table table;

    if (!n)
        return;
    begin_table(view, &table, task_titles, COUNT(task_titles), n);
    for (size_t i = 0; i < n; i++)
        put_task(view, &table.cell[i * table.n_columns], task[i]);
    table.n_rows = n;
    table.is_text = true;
    table.n_left_out = n_left_out;
    table.which = "the first ones";
    page_heading(&view->page, str_of(title));
    page_table(&view->page, &table);
}

static void put_nodes(struct view *view)
{
    static const char *const titles[] = { "Node", "Failed", "of tasks there" };
    const struct array_sums *sums = &view->sums;
    struct outline_table table;

    if (!sums->n_nodes)
        return;
    begin_table(view, &table, titles, COUNT(titles), sums->n_nodes);
    for (size_t i = 0; i < sums->n_nodes; i++) {
        struct str *cell = &table.cell[i * COUNT(titles)];

        shown_put_cut(&view->words, sums->node[i].name, NAME_COLUMNS);
        cell[0] = take_words(view);
        words_number(&view->words, (double)sums->node[i].failed);
        cell[1] = take_words(view);
        words_number(&view->words, (double)sums->node[i].tasks);
        cell[2] = take_words(view);
    }
    table.n_rows = sums->n_nodes;
    table.n_left_out = sums->n_nodes_left_out;
    table.which = "those where most tasks failed";
    page_heading(&view->page, STR("Where tasks failed"));
    page_table(&view->page, &table);
}

void report_array_text(struct buf *to, const struct array_report *report,
                       const struct text_look *look)
{
    struct view view = { 0 };
    const struct array_sums *sums = &view.sums;
    size_t n_failed;

    if (!report->n_tasks)
        return;
    view.is_simulated = report->task[0].origin.is_simulated;
    array_sums_make(&view.sums, &view.arena, report);
    n_failed = sums->n_failed < ARRAY_FAILED ? sums->n_failed : ARRAY_FAILED;
    buf_init(&view.words, WORDS_MAX);
    page_begin(&view.page, to, look);
    put_top(&view);
    put_meter(&view);
    put_findings(&view);
    put_spread(&view);
    put_tasks(&view, "Failed", sums->failed, n_failed, sums->n_failed - n_failed);
    put_nodes(&view);
    put_tasks(&view, "Far slower than the others", sums->slowest, sums->n_slowest, 0);
    put_tasks(&view, "With far more memory than the others", sums->hungriest, sums->n_hungriest, 0);
    page_end(&view.page);
    buf_free(&view.words);
    arena_clear(&view.arena);
}

static void put_json_task(struct buf *to, const struct job_facts *task)
{
    const struct job_record *record = &task->row.record;

    member_u64(to, "job_id", record->id);
    if (record->array_job_id)
        member_u32(to, "array_task_id", record->array_task_id);
    if (record->het_job_id)
        member_u64(to, "het_offset", record->het_offset);
    member_text(to, "state", job_state_word(record->state));
    member_u32(to, "exit_code", record->exit_code);
    member_u32(to, "exit_signal", record->exit_signal);
    member_text(to, "nodes", record->nodes);
    member_span(to, "elapsed_seconds", task->row.elapsed_seconds);
    member_number(to, "memory_peak_bytes", task->total.memory_peak_bytes);
    member_number(to, "cpu_ratio", task->cpu_ratio);
}

static void put_json_tasks(struct buf *to, const char *name, const struct job_facts *const *task,
                           size_t n)
{
    member_begin(to, name, '[');
    for (size_t i = 0; i < n; i++) {
        member_item(to, i);
        put_json_task(to, task[i]);
        buf_byte(to, '}');
    }
    buf_byte(to, ']');
}

static void put_json_spread(struct buf *to, const struct array_sums *sums)
{
    member_begin(to, "spread", '{');
    for (size_t i = 0; i < ARRAY_MEASURES; i++) {
        if (!sums->spread[i].n)
            continue;
        member_begin(to, measures[i].name, '{');
        member_u64(to, "tasks", sums->spread[i].n);
        for (size_t j = 0; j < ARRAY_QUANTILES; j++)
            member_number(to, array_quantile_words[j], sums->spread[i].quantile[j]);
        buf_byte(to, '}');
    }
    buf_byte(to, '}');
}

static void put_json_nodes(struct buf *to, const struct array_sums *sums)
{
    member_begin(to, "failed_on", '[');
    for (size_t i = 0; i < sums->n_nodes; i++) {
        member_item(to, i);
        member_text(to, "node", sums->node[i].name);
        member_u64(to, "failed", sums->node[i].failed);
        member_u64(to, "tasks", sums->node[i].tasks);
        buf_byte(to, '}');
    }
    buf_byte(to, ']');
    if (sums->n_nodes_left_out)
        member_u64(to, "failed_on_left_out", sums->n_nodes_left_out);
}

static void put_json_findings(struct buf *to, const struct array_sums *sums)
{
    member_begin(to, "findings", '[');
    for (size_t i = 0; i < sums->n_findings; i++) {
        const struct array_finding *finding = &sums->finding[i];

        member_item(to, i);
        member_text(to, "check", str_of(finding->check->name));
        member_text(to, "severity", str_of(severity_words[finding->severity]));
        member_u64(to, "tasks", finding->tasks);
        member_u64(to, "first_job_id", finding->first->row.record.id);
        member_text(to, "sentence", finding->sentence);
        member_text(to, "link", finding->link);
        buf_byte(to, '}');
    }
    buf_byte(to, ']');
}

static void put_json_top(struct buf *to, const struct array_sums *sums, struct str cluster)
{
    member_text(to, "cluster", cluster);
    member_u64(to, is_array(sums) ? "array_job_id" : "het_job_id", whole_id(sums->any));
    member_text(to, "name", sums->any->name);
    member_text(to, "user", sums->any->user);
    member_text(to, "account", sums->any->account);
    member_u64(to, "tasks", sums->tasks);
    member_begin(to, "states", '{');
    for (size_t i = 0; i < sums->n_states; i++)
        member_u64(to, sums->state[i].word.p, sums->state[i].tasks);
    buf_byte(to, '}');
}

void report_array_json(struct buf *to, const struct array_report *report)
{
    struct arena arena = { 0 };
    struct array_sums sums;
    size_t n_failed;

    buf_byte(to, '{');
    if (report->n_tasks) {
        array_sums_make(&sums, &arena, report);
        n_failed = sums.n_failed < ARRAY_FAILED ? sums.n_failed : ARRAY_FAILED;
        if (report->task[0].origin.is_simulated)
            member_truth(to, "simulated", true);
        put_json_top(to, &sums, report->task[0].row.key.cluster);
        member_number(to, "cpu_seconds", sums.cpu_seconds_held > 0 ? sums.cpu_seconds : NAN);
        member_number(to, "cpu_seconds_held",
                      sums.cpu_seconds_held > 0 ? sums.cpu_seconds_held : NAN);
        put_json_spread(to, &sums);
        put_json_findings(to, &sums);
        put_json_tasks(to, "failed", sums.failed, n_failed);
        member_u64(to, "failed_tasks", sums.n_failed);
        put_json_nodes(to, &sums);
        put_json_tasks(to, "slowest", sums.slowest, sums.n_slowest);
        put_json_tasks(to, "hungriest", sums.hungriest, sums.n_hungriest);
    }
    buf_text(to, "}\n");
    arena_clear(&arena);
}
