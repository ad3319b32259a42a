/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What to write next time; docs/report.md says how it is found. */
#include "report/advice.h"

#include "report/idle.h"
#include "report/words.h"

#include <inttypes.h>
#include <math.h>

enum { LINE_MAX = 300 };

static const double worthwhile = 0.75;   /* of what was asked for; what saves less is not said */
static const double margin = 1.2;        /* above what was used */
static const double time_margin = 1.3;   /* runs differ more in time */
static const double not_enough = 1.5;    /* times what was too little */
static const double idle_ratio = 0.01;   /* of a node or GPU that did nothing */
static const double serial_cpus = 1.01;  /* on average, of one that does one thing at a time */
static const double sample_error = 0.05; /* CPUs, of the most in use between two samples */

struct adviser {
    const struct job_facts *facts;
    struct arena *arena;
    struct advice *advice;
    struct buf line, why; /* of the next line */
    size_t nodes;         /* that it should ask for */
};

static void add_line(struct adviser *adviser)
{
    struct advice *advice = adviser->advice;

    advice->line[advice->n_lines++] = (struct advice_line){
        arena_str(adviser->arena, buf_str(&adviser->line)),
        arena_str(adviser->arena, buf_str(&adviser->why)),
        false,
    };
    buf_reset(&adviser->line);
    buf_reset(&adviser->why);
}

/* How much it needs shows only when that was enough. */
static void add_guess(struct adviser *adviser)
{
    buf_text(&adviser->why, " were not enough; it may need more still");
    add_line(adviser);
    adviser->advice->line[adviser->advice->n_lines - 1].is_guess = true;
}

static bool has_ended_in(const struct adviser *adviser, enum job_base base)
{
    return adviser->facts->row.record.state.base == base;
}

/* Options that were given to sbatch itself; those in the script are not known. */
struct submitted {
    bool has_tasks, has_cpus_per_task;
};

static bool is_option(struct str word, struct str short_name, struct str long_name)
{
    if (!str_starts(word, STR("--")))
        return str_starts(word, short_name);
    return str_starts(str_skip(word, 2), long_name); /* --ntasks-per-node as well */
}

/* Up to the script, which is the first word that neither is an option nor follows one that may take
 * it as its value. */
static struct submitted read_submit_line(struct str line)
{
    struct submitted ret = { 0 };
    bool may_be_value = true; /* sbatch itself */

    for (struct str word, rest = line; rest.p;) {
        word = str_cut(&rest, ' ');
        if (!word.n)
            continue;
        if (word.p[0] != '-' && !may_be_value)
            break;
        ret.has_tasks |= is_option(word, STR("-n"), STR("ntasks"));
        ret.has_cpus_per_task |= is_option(word, STR("-c"), STR("cpus-per-task"));
        may_be_value =
            word.p[0] == '-' && (word.n == 2 || word.p[1] == '-') && str_find(word, '=') == word.n;
    }
    return ret;
}

static struct submitted find_submitted(const struct job_facts *facts)
{
    const struct job_record *record = &facts->row.record;

    for (size_t i = 0; i < record->n_extra; i++)
        if (str_eq(record->extra[i].name, STR("SubmitLine")))
            return read_submit_line(record->extra[i].value);
    return (struct submitted){ 0 };
}

/* CPUs for what was in use at most, or else for what was in use on average, when there may have
 * been more at times. */
static double cpus_for(double busiest, double mean)
{
    if (busiest >= mean)
        return fmax(1, ceil(busiest - sample_error));
    if (mean <= serial_cpus)
        return 1;
    return ceil(mean * margin);
}

static double cpus_needed(const struct job_facts *facts)
{
    double busiest = facts->total.busiest_cpus;

    if (isnan(facts->mean_cpus))
        return NAN;
    /* What feeds a GPU is idle between batches: the mean says little of it. */
    if (idle_gpu_count(facts) > 0 && !(busiest >= facts->mean_cpus))
        return NAN;
    return fmax(cpus_for(busiest, facts->mean_cpus), cpus_for(NAN, facts->earlier.cpus_used));
}

/* What decided, if it was not this job. */
static void put_earlier(struct adviser *adviser, void (*words)(struct buf *to, double number),
                        double number)
{
    buf_text(&adviser->why, ", ");
    words(&adviser->why, number);
    buf_text(&adviser->why, " by an earlier job");
}

static void put_cpus_why(struct adviser *adviser, double held)
{
    const struct job_facts *facts = adviser->facts;
    double busiest = facts->total.busiest_cpus;
    bool has_busiest = busiest >= facts->mean_cpus;
    double used = has_busiest ? busiest : facts->mean_cpus;

    if (words_are_none(used)) {
        buf_text(&adviser->why, "none");
    } else {
        buf_text(&adviser->why, has_busiest ? "at most " : "on average ");
        words_number(&adviser->why, used);
    }
    buf_text(&adviser->why, " of ");
    words_number(&adviser->why, held);
    /* 1 of 4 was, 0.9 of 4 were */
    buf_text(&adviser->why, words_are_none(used) || (used >= 0.95 && used < 1.05)
                                ? " CPUs was in use"
                                : " CPUs were in use");
    if (cpus_for(NAN, facts->earlier.cpus_used) > cpus_for(busiest, facts->mean_cpus))
        put_earlier(adviser, words_number, facts->earlier.cpus_used);
}

/* On several nodes tasks are what can be counted; on one it depends on the program. */
static bool put_cpus(struct adviser *adviser, double cpus)
{
    struct submitted submitted = find_submitted(adviser->facts);
    bool is_of_tasks = submitted.has_tasks && !submitted.has_cpus_per_task;

    if (adviser->nodes > 1 && !is_of_tasks)
        return false;
    if (is_of_tasks) {
        buf_printf(&adviser->line, "#SBATCH --ntasks=%.0f", cpus);
        return true;
    }
    buf_printf(&adviser->line, "#SBATCH --ntasks=1 --cpus-per-task=%.0f", cpus);
    if (cpus > 1)
        buf_printf(&adviser->why, "; of a program that runs as MPI ranks, --ntasks=%.0f instead",
                   cpus);
    return true;
}

static void advise_nodes(struct adviser *adviser)
{
    const struct job_facts *facts = adviser->facts;
    size_t held = idle_node_count(facts), idle = idle_nodes(facts, idle_ratio, NULL);

    adviser->nodes = held;
    if (!idle || idle >= held)
        return;
    adviser->nodes = held - idle;
    buf_printf(&adviser->line, "#SBATCH --nodes=%zu", adviser->nodes);
    buf_printf(&adviser->why, "%zu of %zu nodes did the work", adviser->nodes, held);
    if (adviser->nodes > 1)
        buf_text(&adviser->why, "; ask for fewer tasks in the same proportion");
    add_line(adviser);
}

/* What the nodes held that did nothing. */
static double cpus_of_idle_nodes(const struct job_facts *facts)
{
    double sum = 0;

    for (size_t i = 0; i < facts->n_nodes; i++)
        if (idle_node_ratio(facts, &facts->node[i]) < idle_ratio)
            sum += facts->node[i].use.cpus;
    return sum;
}

static void advise_cpus(struct adviser *adviser)
{
    const struct job_facts *facts = adviser->facts;
    bool has_fewer_nodes = adviser->nodes < idle_node_count(facts);
    double back = has_fewer_nodes ? cpus_of_idle_nodes(facts) : 0;
    double held = idle_cpus(facts), cpus = cpus_needed(facts);

    if (cpus > held - back) /* a margin is no ground for more than those had that worked */
        cpus = held - back;
    if (cpus <= held * worthwhile) {
        put_cpus_why(adviser, held);
        if (put_cpus(adviser, cpus)) {
            add_line(adviser);
            back = held - cpus;
        }
        buf_reset(&adviser->why);
    }
    adviser->advice->cores_back = back;
    adviser->advice->core_hours_back = back * idle_run_seconds(facts) / 3600;
}

static bool is_word(struct str text)
{
    static const struct str allowed =
        STR_INIT("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

    for (size_t i = 0; i < text.n; i++)
        if (!memchr(allowed.p, text.p[i], allowed.n))
            return false;
    return text.n > 0;
}

/* Of the type that it had, if that is one. */
static void put_gpus(struct adviser *adviser, double gpus)
{
    struct str type = adviser->facts->row.gpu_types;

    buf_text(&adviser->line, "#SBATCH --gpus=");
    if (is_word(type))
        buf_printf(&adviser->line, "%.*s:", STR_ARG(type));
    buf_printf(&adviser->line, "%.0f", gpus);
}

static void advise_gpus(struct adviser *adviser)
{
    const struct job_facts *facts = adviser->facts;
    double held = facts->total.gpus;
    size_t idle = 0;

    for (size_t i = 0; i < facts->n_gpus; i++)
        idle += idle_gpu_is_empty(&facts->gpu[i]) || idle_gpu_is_below(&facts->gpu[i], idle_ratio);
    if (!idle || !((double)idle <= held))
        return;
    if ((double)idle == held)
        buf_text(&adviser->line, "# no --gpus, --gpus-per-node or --gres=gpu");
    else
        put_gpus(adviser, held - (double)idle);
    buf_printf(&adviser->why, "%zu of %.0f GPUs did nothing", idle, held);
    add_line(adviser);
    adviser->advice->gpu_hours_back = (double)idle * idle_run_seconds(facts) / 3600;
}

/* Amounts that people would write: up to so much, in steps of so much. */
struct step {
    double up_to, step;
};

static double round_up(double value, const struct step *steps)
{
    while (value > steps->up_to)
        steps++;
    return ceil(value / steps->step) * steps->step;
}

static const double mib = 0x1p20, gib = 0x1p30;

static double round_memory(double bytes)
{
    static const struct step steps[] = {
        { 0x1p30, 0x1p28 }, { 0x1p34, 0x1p30 },   { 0x1p36, 0x1p31 },
        { 0x1p38, 0x1p32 }, { INFINITY, 0x1p34 },
    };

    return round_up(fmax(bytes, gib / 2), steps);
}

static void put_memory(struct buf *line, double bytes)
{
    if (fmod(bytes, gib) == 0)
        buf_printf(line, "#SBATCH --mem=%.0fG", bytes / gib);
    else
        buf_printf(line, "#SBATCH --mem=%.0fM", ceil(bytes / mib));
}

/* Of each node, as far as is known. */
static double earlier_memory(const struct job_facts *facts)
{
    return facts->earlier.memory_peak_bytes / (double)idle_node_count(facts);
}

/* The most of any node, of this job and earlier ones; NAN if this one has not shown all that it
 * needs. */
static double memory_needed(const struct adviser *adviser)
{
    const struct job_facts *facts = adviser->facts;
    double peak = idle_node_memory_peak(facts);

    if (!has_ended_in(adviser, JOB_COMPLETED) || isnan(peak))
        return NAN;
    return round_memory(fmax(peak, earlier_memory(facts)) * margin);
}

static void put_memory_why(struct adviser *adviser, double held)
{
    const struct job_facts *facts = adviser->facts;
    double peak = idle_node_memory_peak(facts);

    buf_text(&adviser->why, "at most ");
    words_bytes(&adviser->why, peak);
    buf_text(&adviser->why, " of ");
    words_bytes(&adviser->why, held);
    buf_text(&adviser->why, " were in use");
    if (idle_node_count(facts) > 1)
        buf_text(&adviser->why, " on any node");
    if (earlier_memory(facts) > peak)
        put_earlier(adviser, words_bytes, earlier_memory(facts));
}

/* --mem is of each node. */
static void advise_memory(struct adviser *adviser)
{
    const struct job_facts *facts = adviser->facts;
    double total = facts->total.memory_bytes, held = total / (double)idle_node_count(facts);
    double needed = memory_needed(adviser);

    if (!(held > 0 && isfinite(held)))
        return;
    if (has_ended_in(adviser, JOB_OUT_OF_MEMORY) || facts->total.oom_kills > 0) {
        put_memory(&adviser->line, round_memory(held * not_enough));
        words_bytes(&adviser->why, held);
        add_guess(adviser);
        return;
    } else if (needed <= held * worthwhile) {
        put_memory(&adviser->line, needed);
        put_memory_why(adviser, held);
        adviser->advice->memory_bytes_back = total - needed * (double)adviser->nodes;
    } else if (adviser->advice->n_lines) {
        put_memory(&adviser->line, held);
        buf_text(&adviser->why, "as before: with fewer CPUs or GPUs Slurm may give less");
        adviser->advice->memory_bytes_back = total - held * (double)adviser->nodes;
    } else {
        return;
    }
    add_line(adviser);
}

static double round_time(double seconds)
{
    static const struct step steps[] = {
        { 3600, 600 },
        { 6 * 3600, 1800 },
        { 86400, 3600 },
        { INFINITY, 6 * 3600 },
    };

    return round_up(seconds, steps);
}

static void put_time(struct buf *line, double seconds)
{
    uint64_t minutes = (uint64_t)(seconds / 60);

    buf_text(line, "#SBATCH --time=");
    if (minutes >= 24 * 60)
        buf_printf(line, "%" PRIu64 "-", minutes / (24 * 60));
    buf_printf(line, "%02u:%02u:00", (unsigned)(minutes / 60 % 24), (unsigned)(minutes % 60));
}

static void advise_time(struct adviser *adviser)
{
    const struct job_facts *facts = adviser->facts;
    uint32_t minutes = facts->row.record.time_limit_minutes;
    double limit = 60.0 * minutes, run = idle_run_seconds(facts);
    double longest = fmax(run, facts->earlier.elapsed_seconds);

    if (minutes == MODEL_UNKNOWN_U32 || !minutes)
        return;
    if (has_ended_in(adviser, JOB_TIMEOUT)) {
        put_time(&adviser->line, round_time(limit * not_enough));
        words_duration(&adviser->why, limit);
        add_guess(adviser);
        return;
    } else if (has_ended_in(adviser, JOB_COMPLETED) &&
               round_time(longest * time_margin) <= limit * worthwhile) {
        put_time(&adviser->line, round_time(longest * time_margin));
        buf_text(&adviser->why, "it took ");
        words_duration(&adviser->why, run);
        buf_text(&adviser->why, " of ");
        words_duration(&adviser->why, limit);
        if (longest > run)
            put_earlier(adviser, words_duration, longest);
    } else {
        return;
    }
    add_line(adviser);
}

void advice_make(const struct job_facts *facts, double least_seconds, struct arena *arena,
                 struct advice *ret)
{
    struct adviser adviser = { .facts = facts, .arena = arena, .advice = ret };

    *ret = (struct advice){ .n_jobs = 1 + facts->earlier.n };
    /* One that runs, or failed, has not shown all that it needs. */
    if (facts->is_running || isnan(idle_run_seconds(facts)))
        return;
    buf_init(&adviser.line, LINE_MAX);
    buf_init(&adviser.why, LINE_MAX);
    adviser.nodes = idle_node_count(facts);
    if (idle_run_seconds(facts) >= least_seconds &&
        (has_ended_in(&adviser, JOB_COMPLETED) || has_ended_in(&adviser, JOB_TIMEOUT))) {
        advise_nodes(&adviser);
        advise_cpus(&adviser);
        advise_gpus(&adviser);
    }
    advise_memory(&adviser);
    advise_time(&adviser);
    buf_free(&adviser.line);
    buf_free(&adviser.why);
}
