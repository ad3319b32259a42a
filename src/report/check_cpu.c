/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks on CPUs: how many were in use, on which nodes and cores, by how many threads. The use of a
 * job with GPUs is judged by these instead, as its CPUs feed them; unless no GPU was measured and
 * the CPUs did nothing. */
#include "base/quote.h"
#include "report/check_conditions.h"
#include "report/idle.h"
#include "report/words.h"

#include <math.h>

/* From here on CPUs are in good use, as petricore and jobstats have it. */
static const double good_ratio = 0.8;

bool check_node_idle(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    const struct node_facts *first = NULL;
    size_t n = idle_nodes(facts, threshold / 100, &first);

    if (!n || facts->n_gpus) /* the GPUs of such a node are told as idle */
        return false;
    buf_printf(sentence, "%zu of its %zu nodes did next to nothing (%s", n, idle_node_count(facts),
               quote(first->name).text);
    if (n > 1)
        buf_printf(sentence, " and %zu more", n - 1);
    buf_text(sentence, "). Start the program on all nodes (srun, mpirun), or ask for fewer.");
    return true;
}

struct extremes {
    const struct node_facts *lowest, *highest;
    double low, high;
    size_t n;
};

static struct extremes find_extremes(const struct job_facts *facts)
{
    struct extremes ret = { .low = INFINITY, .high = -INFINITY };

    for (size_t i = 0; i < facts->n_nodes; i++) {
        const struct node_facts *node = &facts->node[i];
        double ratio = idle_node_ratio(facts, node);

        if (!isfinite(ratio))
            continue;
        ret.n++;
        if (ratio < ret.low) {
            ret.low = ratio;
            ret.lowest = node;
        }
        if (ratio > ret.high) {
            ret.high = ratio;
            ret.highest = node;
        }
    }
    return ret;
}

bool check_nodes_uneven(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    static const double least_ratio = 0.1; /* below, there is no work to spread */
    struct extremes of = find_extremes(facts);

    if (idle_gpu_count(facts) > 0 || of.n < 2 || of.high < least_ratio ||
        of.low >= of.high * threshold / 100 || !idle_knows_nodes(facts))
        return false;
    buf_printf(sentence, "The work was uneven over its %zu nodes: %s used ", idle_node_count(facts),
               quote(of.highest->name).text);
    words_percent(sentence, of.high);
    buf_printf(sentence, " of its CPUs, %s ", quote(of.lowest->name).text);
    words_percent(sentence, of.low);
    buf_text(sentence, ". Spread it evenly, or ask for fewer nodes.");
    return true;
}

bool check_serial_code(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    static const double least_cpus = 0.85; /* below, not even one was busy */
    double used = facts->mean_cpus, held = idle_cpus(facts);

    if (idle_gpu_count(facts) > 0 || !(used >= least_cpus && used <= threshold && held >= 2))
        return false;
    buf_text(sentence, "The job had ");
    words_number(sentence, used);
    buf_text(sentence, " of its ");
    words_number(sentence, held);
    buf_text(sentence, " CPUs busy on average: the program seems to do one thing at a time. Ask "
                       "for one CPU, or tell the program how many it may use.");
    return true;
}

bool check_cpu_uneven(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double used = facts->mean_cpus, held = idle_cpus(facts);
    double busiest = facts->total.busiest_cpus;

    /* One that never used its CPUs well has no uneven use, but a low one; so has one CPU. */
    if (idle_gpu_count(facts) > 0 || !(held >= 2) || !(busiest >= held * good_ratio) ||
        !(used < busiest * threshold / 100))
        return false;
    buf_text(sentence, "The job had ");
    words_number(sentence, busiest);
    buf_text(sentence, " CPUs busy at its best, but ");
    words_number(sentence, used);
    buf_text(sentence, " of ");
    words_number(sentence, held);
    buf_text(sentence, " on average. If only a part of it works in parallel, run that part as a "
                       "job of its own.");
    return true;
}

/* Then fewer CPUs are no cure. */
static void put_nothing_done(const struct job_facts *facts, struct buf *sentence, double held)
{
    double cpu_seconds = facts->total.cpu_seconds;
    bool has_gpus = idle_gpu_count(facts) > 0;

    buf_text(sentence, has_gpus ? "" : "The job did nothing: ");
    if (held == 1) {
        buf_text(sentence, has_gpus ? "Its CPU was" : "its CPU was");
    } else {
        buf_text(sentence, has_gpus ? "Its " : "its ");
        words_number(sentence, held);
        buf_text(sentence, " CPUs were");
    }
    buf_text(sentence, cpu_seconds > 0 ? " idle but for " : " idle all the time");
    words_duration(sentence, cpu_seconds > 0 ? cpu_seconds : NAN);
    buf_text(sentence, has_gpus ? "; GPU use was not measured" : "");
    buf_text(sentence, ". Look into its output for whether the program was "
                       "started, and what it waits for.");
}

bool check_cpu_low(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double used = facts->mean_cpus, held = idle_cpus(facts);
    bool has_gpus = idle_gpu_count(facts) > 0;

    if (!(used < held * threshold / 100))
        return false;
    /* CPUs feed GPUs: where none did anything, neither did the GPUs, but measured ones are judged
     */
    if (words_are_none(used) && (!has_gpus || !idle_gpus_measured(facts))) {
        put_nothing_done(facts, sentence, held);
        return true;
    }
    if (has_gpus)
        return false;
    buf_text(sentence, "The job had ");
    words_number(sentence, used);
    buf_text(sentence, " of ");
    words_number(sentence, held);
    buf_text(sentence, held == 1 ? " CPU busy on average (" : " CPUs busy on average (");
    words_percent(sentence, used / held);
    if (held == 1) {
        buf_text(sentence, "). Look at what it waits for: storage, the network, or a pause.");
        return true;
    }
    buf_text(sentence, "). Ask for fewer, or let the program use all of them.");
    return true;
}

struct lazy_core {
    const struct node_facts *node;
    uint32_t core;
    double share; /* of an even one */
    size_t n, n_all;
};

static void look_at_core(struct lazy_core *lazy, const struct node_facts *node,
                         const struct core_facts *core, double even, double threshold)
{
    double share = core->seconds / even;

    lazy->n_all++;
    if (!(share < threshold))
        return;
    if (!lazy->n++ || share < lazy->share) {
        lazy->node = node;
        lazy->core = core->core;
        lazy->share = share;
    }
}

static double even_share(const struct job_facts *facts)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < facts->n_nodes; i++) {
        for (size_t j = 0; j < facts->node[i].n_cores; j++) {
            double seconds = facts->node[i].core[j].seconds;

            if (isfinite(seconds)) {
                sum += seconds;
                n++;
            }
        }
    }
    return n > 1 && sum > 0 ? sum / (double)n : NAN;
}

bool check_core_uneven(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double even = even_share(facts);
    struct lazy_core lazy = { 0 };

    if (idle_gpu_count(facts) > 0 || isnan(even))
        return false;
    for (size_t i = 0; i < facts->n_nodes; i++)
        for (size_t j = 0; j < facts->node[i].n_cores; j++)
            look_at_core(&lazy, &facts->node[i], &facts->node[i].core[j], even, threshold / 100);
    if (!lazy.n)
        return false;
    buf_printf(sentence, "%zu of its %zu cores had less to do than the others: core %u of %s did ",
               lazy.n, lazy.n_all, (unsigned)lazy.core, quote(lazy.node->name).text);
    words_percent(sentence, lazy.share);
    buf_text(sentence, " of an even share. Smaller pieces of work are easier to spread.");
    return true;
}

/* What Slurm itself starts in a job has threads that do no work. So have helpers beside the program
 * proper: they are known by using next to no CPU time. What agents call other has many names. */
static bool is_judged_by_threads(const struct job_facts *facts, const struct process_facts *process)
{
    static const double least_share = 0.05;
    static const struct str left_out[] = { STR_INIT("srun"), STR_INIT("slurmstepd"),
                                           STR_INIT("other") };

    for (size_t i = 0; i < COUNT(left_out); i++)
        if (str_eq(process->name, left_out[i]))
            return false;
    return !(process->cpu_seconds < facts->total.cpu_seconds * least_share);
}

bool check_threads_many(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double cpus = facts->total.cpus;
    const struct process_facts *most = NULL;

    for (size_t i = 0; i < facts->n_processes; i++) {
        const struct process_facts *process = &facts->process[i];

        if (process->threads_peak > cpus * threshold && is_judged_by_threads(facts, process) &&
            (!most || process->threads_peak > most->threads_peak))
            most = process;
    }
    if (!most || !(cpus > 0))
        return false;
    buf_printf(sentence, "%s had ", quote(most->name).text);
    words_number(sentence, most->threads_peak);
    buf_text(sentence, " threads on ");
    words_number(sentence, cpus);
    buf_printf(sentence,
               " CPU%s, where they get in each other's way. Tell the program how many to start: "
               "many take OMP_NUM_THREADS, or an option.",
               cpus == 1 ? "" : "s");
    return true;
}

bool check_throttled(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double held = facts->cpu_seconds_held, throttled = facts->total.throttled_seconds;

    if (!(held > 0 && throttled > held * threshold / 100))
        return false;
    buf_text(sentence, "The job wanted more CPUs than its quota allows and was held back for ");
    words_duration(sentence, throttled);
    buf_text(sentence, " in all. Ask for more CPUs, or start fewer threads.");
    return true;
}

bool check_cpu_scattered(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    size_t n = idle_node_count(facts);
    double cpus = facts->total.cpus;

    if (idle_gpu_count(facts) > 0 || n < 2 || !(cpus > 0 && cpus < (double)n * threshold))
        return false;
    buf_text(sentence, "Its ");
    words_number(sentence, cpus);
    buf_printf(sentence,
               " CPUs were spread over %zu nodes. On fewer nodes (--nodes) it has less to send "
               "over the network.",
               n);
    return true;
}
