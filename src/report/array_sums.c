/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up the tasks of a job array. */
#include "report/array_sums.h"

#include "base/map.h"
#include "model/hostlist.h"
#include "report/choose.h"

#include <math.h>
#include <stdlib.h>

/* Of a task on more nodes than this nobody can say which one it failed on. */
enum { NODES_OF_TASK = 64 };

const char *const array_quantile_words[ARRAY_QUANTILES] = { "least", "quarter", "median",
                                                            "three_quarters", "most" };

static double measure_of(const struct job_facts *task, enum array_measure measure)
{
    int64_t elapsed = task->row.elapsed_seconds, wait = task->row.wait_seconds;

    switch (measure) {
    case ARRAY_CPU:
        return task->cpu_ratio;
    case ARRAY_MEMORY_RATIO:
        return task->memory_ratio;
    case ARRAY_MEMORY:
        return task->total.memory_peak_bytes;
    case ARRAY_GPU:
        return task->gpu_ratio;
    case ARRAY_ELAPSED:
        return elapsed < 0 || task->row.record.start_time == 0 ? NAN : (double)elapsed;
    case ARRAY_WAIT:
        return wait < 0 ? NAN : (double)wait;
    case ARRAY_MEASURES:
        break;
    }
    return NAN;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void make_spread(struct array_spread *to, const struct array_report *report,
                        enum array_measure measure)
{
    double *value = heap_array(report->n_tasks, sizeof(*value));
    size_t n = 0;

    for (size_t i = 0; i < report->n_tasks; i++) {
        value[n] = measure_of(&report->task[i], measure);
        n += isfinite(value[n]);
    }
    if (n)
        qsort(value, n, sizeof(*value), by_value);
    for (size_t i = 0; i < ARRAY_QUANTILES && n; i++) {
        double place = (double)((n - 1) * i) / (ARRAY_QUANTILES - 1);
        size_t below = (size_t)place, above = below + 1 < n ? below + 1 : below;

        to->quantile[i] = value[below] + (value[above] - value[below]) * (place - (double)below);
    }
    to->n = n;
    free(value);
}

/* Those that stand far above the rest: not all of an array whose tasks are alike, nor the one that
 * took a second more. */
static size_t choose_outliers(const struct array_report *report, const struct array_spread *spread,
                              enum array_measure measure, const struct job_facts **to)
{
    double *value = heap_array(report->n_tasks, sizeof(*value));
    double quarter = spread->quantile[1], three = spread->quantile[3];
    double fence = three + 1.5 * (three - quarter); /* Tukey's */
    double far = fmax(fence, 1.5 * spread->quantile[2]);
    struct arena arena = { 0 };
    size_t n, *place, n_kept = 0;

    for (size_t i = 0; i < report->n_tasks; i++)
        value[i] = measure_of(&report->task[i], measure);
    n = choose_highest(&arena, value, report->n_tasks, ARRAY_OUTLIERS, &place);
    for (size_t i = 0; i < n; i++)
        if (value[place[i]] > far)
            to[n_kept++] = &report->task[place[i]];
    arena_clear(&arena);
    free(value);
    return n_kept;
}

static void count_state(struct array_sums *sums, const struct job_record *record)
{
    struct str word = job_state_word(record->state);
    size_t i = 0;

    while (i < sums->n_states && !str_eq(sums->state[i].word, word))
        i++;
    if (i == ARRAY_STATES) {
        i--;
        sums->state[i].word = STR("others");
    } else if (i == sums->n_states) {
        sums->state[sums->n_states++] = (struct array_state){ word, 0 };
    }
    sums->state[i].tasks += record->tasks ? record->tasks : 1;
    sums->tasks += record->tasks ? record->tasks : 1;
}

static int by_tasks(const void *a, const void *b)
{
    const struct array_state *x = a, *y = b;

    return x->tasks > y->tasks ? -1 : x->tasks < y->tasks;
}

static bool has_failed(const struct job_record *record)
{
    static const bool is_failure[JOB_BASES] = {
        [JOB_FAILED] = true,    [JOB_TIMEOUT] = true,  [JOB_NODE_FAIL] = true,
        [JOB_BOOT_FAIL] = true, [JOB_DEADLINE] = true, [JOB_OUT_OF_MEMORY] = true,
    };

    return is_failure[record->state.base];
}

/* By node; the map tells its place. */
struct node_counts {
    struct map map;
    struct array_node *node;
    size_t room;
};

static void count_nodes(struct node_counts *counts, const struct job_record *record)
{
    struct arena arena = { 0 };
    struct hostlist hosts;
    struct err err = { 0 };

    if (hostlist_expand(record->nodes, &arena, NODES_OF_TASK, &hosts, &err) == 0)
        for (size_t i = 0; i < hosts.n; i++) {
            size_t n_known = counts->map.n, at;

            counts->node = heap_grow(counts->node, n_known, &counts->room, sizeof(*counts->node));
            at = map_index(&counts->map, hosts.hosts[i]);
            if (counts->map.n > n_known)
                counts->node[at] = (struct array_node){ counts->map.entries[at].key, 0, 0 };
            counts->node[at].tasks++;
            counts->node[at].failed += has_failed(record);
        }
    arena_clear(&arena);
}

static void make_nodes(struct array_sums *sums, struct arena *arena,
                       const struct array_report *report)
{
    struct node_counts counts = { 0 };
    double *failed;
    size_t *place, n_hit = 0;

    map_init(&counts.map, arena);
    for (size_t i = 0; i < report->n_tasks; i++)
        count_nodes(&counts, &report->task[i].row.record);
    failed = heap_array(counts.map.n, sizeof(*failed));
    for (size_t i = 0; i < counts.map.n; i++) {
        failed[i] = counts.node[i].failed ? (double)counts.node[i].failed : NAN;
        n_hit += counts.node[i].failed > 0;
    }
    sums->n_nodes = choose_highest(arena, failed, counts.map.n, ARRAY_NODES, &place);
    sums->n_nodes_left_out = n_hit - sums->n_nodes;
    for (size_t i = 0; i < sums->n_nodes; i++)
        sums->node[i] = counts.node[place[i]];
    free(failed);
    free(counts.node);
    map_free(&counts.map);
}

static void count_finding(struct array_finding *by_check, struct arena *arena,
                          const struct job_facts *task, const struct finding *finding)
{
    struct array_finding *sum = &by_check[finding->check - checks];

    if (sum->tasks++ == 0)
        *sum = (struct array_finding){ finding->check,
                                       finding->severity,
                                       1,
                                       task,
                                       arena_str(arena, finding->sentence),
                                       arena_str(arena, finding->link) };
}

static int by_gravity(const void *a, const void *b)
{
    const struct array_finding *x = a, *y = b;

    if (x->severity != y->severity)
        return x->severity > y->severity ? -1 : 1;
    if (x->tasks != y->tasks)
        return x->tasks > y->tasks ? -1 : 1;
    return x->check < y->check ? -1 : x->check > y->check;
}

static void make_findings(struct array_sums *sums, struct arena *arena,
                          const struct array_report *report)
{
    sums->finding = ARENA_ARRAY(arena, struct array_finding, n_checks + 1);
    for (size_t i = 0; i < report->n_tasks && report->settings; i++) {
        struct arena scratch = { 0 };
        struct finding *finding;
        size_t n;

        checks_run(report->settings, &report->task[i], &scratch, &finding, &n);
        for (size_t j = 0; j < n; j++)
            count_finding(sums->finding, arena, &report->task[i], &finding[j]);
        arena_clear(&scratch);
    }
    for (size_t i = 0; i < n_checks; i++)
        if (sums->finding[i].tasks)
            sums->finding[sums->n_findings++] = sums->finding[i];
    if (sums->n_findings)
        qsort(sums->finding, sums->n_findings, sizeof(*sums->finding), by_gravity);
}

static void add_task(struct array_sums *sums, const struct job_facts *task)
{
    count_state(sums, &task->row.record);
    if (has_failed(&task->row.record)) {
        if (sums->n_failed < ARRAY_FAILED)
            sums->failed[sums->n_failed] = task;
        sums->n_failed++;
    }
    if (isfinite(task->cpu_ratio) && isfinite(task->cpu_seconds_held)) {
        sums->cpu_seconds += task->cpu_ratio * task->cpu_seconds_held;
        sums->cpu_seconds_held += task->cpu_seconds_held;
    }
}

void array_sums_make(struct array_sums *to, struct arena *arena, const struct array_report *report)
{
    *to = (struct array_sums){ .any = report->n_tasks ? &report->task[0].row.record : NULL };
    for (size_t i = 0; i < report->n_tasks; i++)
        add_task(to, &report->task[i]);
    if (to->n_states)
        qsort(to->state, to->n_states, sizeof(*to->state), by_tasks);
    for (size_t i = 0; i < ARRAY_MEASURES; i++)
        make_spread(&to->spread[i], report, (enum array_measure)i);
    to->n_slowest = choose_outliers(report, &to->spread[ARRAY_ELAPSED], ARRAY_ELAPSED, to->slowest);
    to->n_hungriest =
        choose_outliers(report, &to->spread[ARRAY_MEMORY], ARRAY_MEMORY, to->hungriest);
    make_nodes(to, arena, report);
    make_findings(to, arena, report);
}
