/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the outline of a report: headings, facts, findings and tables. */
#include "report/outline.h"

#include "base/shown.h"
#include "report/exits.h"
#include "report/idle.h"
#include "report/outline_maker.h"
#include "report/outline_tables.h"
#include "report/waiting.h"
#include "report/words.h"

#include <math.h>

enum { WORDS_MAX = 4096 };

struct str maker_take(struct maker *maker)
{
    struct str words = arena_str(maker->arena, buf_str(&maker->words));

    buf_reset(&maker->words);
    return words;
}

void maker_put_text(struct maker *maker, struct str text)
{
    shown_put_cut(&maker->words, text, OUTLINE_TEXT_MAX);
}

void maker_put_part(struct maker *maker, void (*put)(struct buf *to, double value), double part,
                    double whole)
{
    if (!isfinite(part))
        return;
    put(&maker->words, part);
    if (!(whole > 0) || isinf(whole))
        return;
    buf_text(&maker->words, " of ");
    put(&maker->words, whole);
}

void maker_put_things(struct maker *maker, double count, const char *thing)
{
    if (!isfinite(count))
        return;
    words_number(&maker->words, count);
    buf_printf(&maker->words, " %s%s", thing, count == 1 ? "" : "s");
}

void outline_put_id(struct buf *to, const struct job_record *record)
{
    if (record->array_job_id && record->array_task_id != MODEL_UNKNOWN_U32)
        buf_printf(to, "%u_%u", record->array_job_id, record->array_task_id);
    else if (record->het_job_id)
        buf_printf(to, "%u+%u", record->het_job_id, record->het_offset);
    else
        buf_u64(to, record->id);
}

static void make_title(struct maker *maker)
{
    buf_text(&maker->words, "Job ");
    outline_put_id(&maker->words, maker->record);
    if (maker->facts->row.key.cluster.n) {
        buf_text(&maker->words, " on ");
        shown_put_cut(&maker->words, maker->facts->row.key.cluster, 40);
    }
    if (maker->facts->origin.is_simulated) {
        buf_text(&maker->words, " (simulated)");
        maker->to->simulated = STR(OUTLINE_SIMULATED);
    }
    if (maker->record->name.n) {
        buf_text(&maker->words, ": ");
        shown_put_cut(&maker->words, maker->record->name, 60);
    }
    maker->to->title = maker_take(maker);
}

/* What became of it. */
static const char *const outcomes[JOB_BASES] = {
    [JOB_PENDING] = "is waiting",
    [JOB_RUNNING] = "is running",
    [JOB_SUSPENDED] = "is suspended",
    [JOB_COMPLETED] = "completed",
    [JOB_CANCELLED] = "was cancelled",
    [JOB_FAILED] = "failed",
    [JOB_TIMEOUT] = "reached its time limit",
    [JOB_NODE_FAIL] = "ended because a node failed",
    [JOB_PREEMPTED] = "was preempted",
    [JOB_BOOT_FAIL] = "did not start because a node did not boot",
    [JOB_DEADLINE] = "reached its deadline",
    [JOB_OUT_OF_MEMORY] = "ran out of memory",
    [JOB_BASE_UNKNOWN] = "is in an unknown state",
};

static void put_outcome(struct maker *maker)
{
    const struct job_row *row = &maker->facts->row;
    struct job_state state = row->record.state;
    bool is_waiting = state.base == JOB_PENDING;
    int64_t seconds = is_waiting ? row->wait_seconds : row->elapsed_seconds;
    bool goes_on = is_waiting || maker->facts->is_running;

    /* of a job that is about to end, squeue shows only that */
    if (state.base == JOB_BASE_UNKNOWN && (state.flags & JOB_COMPLETING))
        buf_text(&maker->words, "is about to end");
    else if (state.base == JOB_FAILED && exit_is_out_of_memory(&row->record))
        buf_text(&maker->words, outcomes[JOB_OUT_OF_MEMORY]);
    else
        buf_text(&maker->words, outcomes[state.base]);
    if (state.base == JOB_FAILED && row->record.exit_code != MODEL_UNKNOWN_U32 &&
        !exit_is_out_of_memory(&row->record)) {
        buf_text(&maker->words, " with ");
        exit_put(&maker->words, &row->record);
    }
    if (job_record_never_ran(&row->record))
        buf_text(&maker->words, " before it started");
    if (seconds <= 0)
        return;
    buf_text(&maker->words, goes_on ? ", for " : " after ");
    words_duration(&maker->words, (double)seconds);
    buf_text(&maker->words, goes_on ? " so far" : "");
}

static bool has_run_out(const struct maker *maker)
{
    return maker->record->state.base == JOB_OUT_OF_MEMORY || exit_is_out_of_memory(maker->record);
}

/* ", and used 10 % of its CPU time and 15 % of its memory" */
static void put_uses(struct maker *maker)
{
    const struct {
        double ratio;
        const char *of;
    } uses[] = {
        { maker->facts->cpu_ratio, "its CPU time" },
        { maker->facts->gpu_ratio, "its GPU time" },
        /* what it used of it between the last sample and the end is not known */
        { has_run_out(maker) ? NAN : maker->facts->memory_ratio, "its memory" },
    };
    size_t n = 0, n_put = 0;

    for (size_t i = 0; i < COUNT(uses); i++)
        n += isfinite(uses[i].ratio);
    for (size_t i = 0; i < COUNT(uses); i++) {
        if (!isfinite(uses[i].ratio))
            continue;
        buf_text(&maker->words, n_put == 0 ? ", and used " : n_put + 1 < n ? ", " : " and ");
        words_percent(&maker->words, uses[i].ratio);
        buf_printf(&maker->words, " of %s", uses[i].of);
        n_put++;
    }
}

static void make_headline(struct maker *maker)
{
    buf_text(&maker->words, "Job ");
    outline_put_id(&maker->words, maker->record);
    if (maker->record->user.n) {
        buf_text(&maker->words, " of ");
        shown_put_cut(&maker->words, maker->record->user, 40);
    }
    buf_byte(&maker->words, ' ');
    put_outcome(maker);
    put_uses(maker);
    buf_byte(&maker->words, '.');
    maker->to->headline = maker_take(maker);
}

static void make_note(struct maker *maker)
{
    const struct facts_origin *origin = &maker->facts->origin;

    /* a job that has not run has no measurements */
    if (job_record_never_ran(maker->record))
        return;
    if (waiting_is(maker->record)) {
        waiting_put(&maker->words, maker->record);
        maker->to->note = maker_take(maker);
        return;
    }
    if (facts_are_measured(origin))
        return;
    buf_text(&maker->words, "No measurements were found");
    if (origin->why_no_series.n) {
        buf_text(&maker->words, ": ");
        maker_put_text(maker, origin->why_no_series);
    }
    if (!strchr(".?!", maker->words.p[maker->words.n - 1]))
        buf_byte(&maker->words, '.');
    if (origin->has_accounting)
        buf_text(&maker->words, " What follows is what Slurm's accounting knows.");
    maker->to->note = maker_take(maker);
}

static enum severity severity_about(const struct job_report *report, enum check_subject subject)
{
    enum severity gravest = SEVERITY_OFF;

    for (size_t i = 0; i < report->n_findings; i++)
        if (report->finding[i].check->subject == subject && report->finding[i].severity > gravest)
            gravest = report->finding[i].severity;
    return gravest;
}

static void add_meter(struct maker *maker, const char *title, double ratio,
                      enum check_subject subject)
{
    struct str words = maker_take(maker);

    if (isfinite(ratio))
        maker->to->meter[maker->to->n_meters++] =
            (struct outline_meter){ title, ratio, words, severity_about(maker->report, subject) };
}

static void make_meters(struct maker *maker)
{
    const struct job_facts *facts = maker->facts;
    const struct use_facts *total = &facts->total;

    maker_put_part(maker, words_number, facts->mean_cpus, total->cpus);
    if (maker->words.n)
        buf_text(&maker->words, total->cpus == 1 ? " CPU, on average" : " CPUs, on average");
    add_meter(maker, "CPU", facts->cpu_ratio, SUBJECT_CPU);
    maker_put_part(maker, words_bytes, total->memory_peak_bytes, total->memory_bytes);
    if (maker->words.n)
        buf_text(&maker->words, facts_has_sampled_peak(facts) ? ", sampled peak" : ", at most");
    add_meter(maker, "Memory", facts->memory_ratio, SUBJECT_MEMORY);
    if (total->gpus > 0) {
        buf_text(&maker->words, "of ");
        maker_put_things(maker, total->gpus, "GPU");
        buf_text(&maker->words, ", on average");
    }
    add_meter(maker, "GPU", facts->gpu_ratio, SUBJECT_GPU);
    add_meter(maker, "GPU memory", facts->gpu_memory_ratio, SUBJECTS);
    maker_put_part(maker, words_duration, known_span(facts->row.elapsed_seconds),
                   known_u32(maker->record->time_limit_minutes) * 60);
    add_meter(maker, "Time", facts->time_ratio, SUBJECT_TIME);
}

/* "28 CPUs", "26 GiB of memory": what would have been free for others. */
static void put_gain(struct maker *maker, size_t *n, double amount,
                     void (*put)(struct buf *to, double value), const char *unit)
{
    if (!(amount > 0) || isinf(amount))
        return;
    buf_text(&maker->words, (*n)++ ? ", " : " It gives back ");
    put(&maker->words, amount);
    buf_text(&maker->words, unit);
}

/* What a line of the advice is after a failure fits nothing that was seen. */
static size_t count_guesses(const struct advice *advice)
{
    size_t n = 0;

    for (size_t i = 0; i < advice->n_lines; i++)
        n += advice->line[i].is_guess;
    return n;
}

static void make_gain(struct maker *maker)
{
    const struct advice *advice = &maker->report->advice;
    size_t n = 0, n_guesses = count_guesses(advice);

    if (n_guesses == advice->n_lines)
        return;
    buf_text(&maker->words, n_guesses ? "The rest fits what this job" : "This fits what this job");
    if (advice->n_jobs > 1)
        buf_printf(&maker->words, " and %zu earlier one%s of its name", advice->n_jobs - 1,
                   advice->n_jobs == 2 ? "" : "s");
    buf_text(&maker->words, " used, with some margin.");
    put_gain(maker, &n, advice->cores_back, words_number, " CPUs");
    put_gain(maker, &n, advice->memory_bytes_back, words_bytes, " of memory");
    put_gain(maker, &n, advice->core_hours_back, words_number, " CPU-hours");
    put_gain(maker, &n, advice->gpu_hours_back, words_number, " GPU-hours");
    buf_text(&maker->words, n ? "." : "");
    maker->to->gain = maker_take(maker);
}

/* "GPU use was not measured. ", "The use of 1 of 4 GPUs was measured. " */
static bool put_unmeasured_gpus(struct maker *maker)
{
    double gpus = maker->facts->total.gpus;
    size_t n = idle_gpus_measured(maker->facts);

    if (!(gpus > (double)n))
        return false;
    if (n) {
        buf_printf(&maker->words, "The use of %zu of ", n);
        maker_put_things(maker, gpus, "GPU");
        buf_text(&maker->words, " was measured. ");
    } else {
        buf_text(&maker->words, "GPU use was not measured. ");
    }
    return true;
}

static void put_nothing_found(struct maker *maker)
{
    bool is_partial = put_unmeasured_gpus(maker);

    buf_text(&maker->words, "Nothing to improve");
    if (maker->record->state.base == JOB_FAILED)
        buf_text(&maker->words, " in what it used; why it failed, its output may tell");
    else if (is_partial)
        buf_text(&maker->words, " in what was measured");
    buf_byte(&maker->words, '.');
}

static void make_verdict(struct maker *maker)
{
    const struct job_report *report = maker->report;

    if (!maker->to->n_meters || report->n_findings || !facts_are_measured(&maker->facts->origin))
        return;
    if (idle_run_seconds(maker->facts) < (double)report->least_seconds) {
        buf_text(&maker->words, "What it used is judged when it has run for ");
        words_duration(&maker->words, (double)report->least_seconds);
        if (job_record_has_ended(maker->record))
            buf_text(&maker->words, ": it was too short");
        buf_byte(&maker->words, '.');
    } else {
        put_nothing_found(maker);
    }
    maker->to->verdict = maker_take(maker);
}

void outline_make(const struct job_report *report, struct arena *arena, struct outline *ret)
{
    struct maker maker = { .report = report,
                           .facts = &report->facts,
                           .record = &report->facts.row.record,
                           .arena = arena,
                           .to = ret };

    *ret = (struct outline){ 0 };
    buf_init(&maker.words, WORDS_MAX);
    make_title(&maker);
    make_headline(&maker);
    make_note(&maker);
    make_meters(&maker);
    make_verdict(&maker);
    make_gain(&maker);
    maker_add_sections(&maker);
    buf_free(&maker.words);
}
