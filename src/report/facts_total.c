/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What follows from what is known of a run: totals of its nodes, ratios, and an order for views. */
#include "report/use_members.h"

#include <math.h>
#include <stdlib.h>

/* A core counts as used that has at least so much of its share of all CPU time. */
static const double used_core_share = 0.8;

static double ratio_of(double part, double whole)
{
    double ratio = whole > 0 && part >= 0 ? part / whole : NAN;

    return isfinite(ratio) ? ratio : NAN;
}

static double known(uint64_t value)
{
    return value == MODEL_UNKNOWN_U64 ? NAN : (double)value;
}

/* Something is known of each node that the job had. */
static bool has_all_nodes(const struct job_facts *facts)
{
    uint32_t n = facts->row.record.node_count;

    return facts->n_nodes && (n == MODEL_UNKNOWN_U32 || facts->n_nodes >= n);
}

/* What nodes tell of one number. */
struct told {
    double sum, largest; /* NAN: none did */
    bool is_whole;       /* all did */
};

static struct told ask_nodes(const struct job_facts *facts, const struct use_member *member)
{
    struct told told = { NAN, NAN, has_all_nodes(facts) };

    for (size_t i = 0; i < facts->n_nodes; i++) {
        double value = use_value(&facts->node[i].use, member);

        if (isnan(value)) {
            told.is_whole = false;
            continue;
        }
        told.sum = isnan(told.sum) ? value : told.sum + value;
        told.largest = fmax(told.largest, value);
    }
    if (!isfinite(told.sum))
        told.sum = NAN;
    return told;
}

/* What follows for all of them; `total` is what was told of the whole job itself. */
static double total_of(const struct job_facts *facts, const struct use_member *member, double total)
{
    struct told told = ask_nodes(facts, member);

    switch (member->sum) {
    case USE_SUM:
        return fmax(total, told.sum);
    case USE_WHOLE_SUM:
        return told.is_whole ? fmax(total, told.sum) : total;
    case USE_LARGEST:
        return fmax(total, told.largest);
    case USE_LONE:
        return told.is_whole && facts->n_nodes == 1 ? fmax(total, told.sum) : total;
    case USE_GIVEN:
        return isnan(total) && told.is_whole ? told.sum : total;
    }
    return total;
}

static void total_up(struct job_facts *facts)
{
    for (size_t i = 0; i < USE_MEMBERS; i++) {
        double *total = use_place(&facts->total, &use_members[i]);

        *total = total_of(facts, &use_members[i], *total);
    }
}

/* Of a job's only node, what was given there is what was given at all. */
static void give_to_lone_node(struct job_facts *facts)
{
    if (facts->n_nodes != 1 || facts->row.record.node_count != 1)
        return;
    for (size_t i = 0; i < USE_MEMBERS; i++) {
        double *own = use_place(&facts->node[0].use, &use_members[i]);

        if (use_members[i].sum == USE_GIVEN && isnan(*own))
            *own = use_value(&facts->total, &use_members[i]);
    }
}

static double or_else(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static bool may_have_tasks(const struct job_record *record)
{
    return record->cpus != 1 || record->node_count != 1;
}

static const struct {
    size_t use, record; /* offsets of doubles */
} accounted_cpu[] = {
    { offsetof(struct use_facts, cpu_seconds), offsetof(struct job_record, cpu_seconds) },
    { offsetof(struct use_facts, user_seconds), offsetof(struct job_record, user_seconds) },
    { offsetof(struct use_facts, system_seconds), offsetof(struct job_record, system_seconds) },
};

/* All that is told is the least that it was: not all nodes may have, nor each to the end. */
static void fill_cpu_seconds(struct job_facts *facts, size_t use, size_t record)
{
    const struct use_member member = { .offset = use };
    double *total = use_place(&facts->total, &member);
    double accounted = *(const double *)(const void *)((const char *)&facts->row.record + record);

    if (!isnan(accounted))
        *total = fmax(fmax(*total, accounted), ask_nodes(facts, &member).sum);
}

static bool has_run_out_of_memory(const struct job_facts *facts)
{
    return facts->row.record.state.base == JOB_OUT_OF_MEMORY || facts->total.oom_kills > 0;
}

/* The kernel misses nothing, and counts what processes share once. But of a job that ran out of
 * memory it may have been read before that. */
static void count_peak(struct use_facts *use, bool has_run_out)
{
    if (has_run_out)
        use->memory_peak_bytes = fmax(use->memory_peak_bytes, use->memory_counted_bytes);
    else if (!isnan(use->memory_counted_bytes))
        use->memory_peak_bytes = use->memory_counted_bytes;
}

static void count_peaks(struct job_facts *facts)
{
    bool has_run_out = has_run_out_of_memory(facts);

    for (size_t i = 0; i < facts->n_nodes; i++)
        count_peak(&facts->node[i].use, has_run_out || facts->node[i].use.oom_kills > 0);
}

/* Slurm samples the largest resident set of any task: the job used as much, or more. */
static void fill_peak(struct job_facts *facts)
{
    const struct job_record *record = &facts->row.record;
    struct use_facts *total = &facts->total;
    double accounted = known(record->memory_peak_bytes);

    if (isnan(total->memory_peak_bytes)) {
        total->memory_peak_bytes = accounted;
        facts->origin.has_task_peak = !isnan(accounted) && may_have_tasks(record);
    } else if (facts_has_sampled_peak(facts)) {
        total->memory_peak_bytes = fmax(total->memory_peak_bytes, accounted);
    }
}

bool facts_has_sampled_peak(const struct job_facts *facts)
{
    const struct use_facts *total = &facts->total;

    if (isnan(total->memory_counted_bytes))
        return !isnan(total->memory_peak_bytes);
    return has_run_out_of_memory(facts) && total->memory_counted_bytes < total->memory_bytes;
}

/* Accounting's own numbers, where there are no better ones. What it has for reads and writes are
 * bytes of system calls, whether or not storage was touched for them. */
static void fill_from_accounting(struct job_facts *facts)
{
    const struct job_record *record = &facts->row.record;
    struct use_facts *total = &facts->total;

    for (size_t i = 0; i < COUNT(accounted_cpu); i++)
        fill_cpu_seconds(facts, accounted_cpu[i].use, accounted_cpu[i].record);
    total->read_bytes = or_else(total->read_bytes, known(record->read_bytes));
    total->written_bytes = or_else(total->written_bytes, known(record->write_bytes));
    fill_peak(facts);
}

/* NAN unless the kernel told it of all nodes. */
static double count_used_cores(const struct job_facts *facts)
{
    double sum = 0, n = 0, share;

    for (size_t i = 0; i < facts->n_nodes; i++) {
        if (!facts->node[i].n_cores)
            return NAN;
        for (size_t k = 0; k < facts->node[i].n_cores; k++)
            sum += facts->node[i].core[k].seconds;
    }
    if (!has_all_nodes(facts) || !(facts->total.cpus > 0))
        return NAN;
    share = sum / facts->total.cpus;
    for (size_t i = 0; i < facts->n_nodes; i++)
        for (size_t k = 0; k < facts->node[i].n_cores; k++)
            n += facts->node[i].core[k].seconds > 0 &&
                 facts->node[i].core[k].seconds >= used_core_share * share;
    return n;
}

/* All, or all that are known of if it is not known how many it had. */
static bool are_all_gpus(const struct job_facts *facts, size_t n)
{
    return n && n == facts->n_gpus && !((double)n < facts->total.gpus);
}

static double mean_of_gpus(const struct job_facts *facts)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < facts->n_gpus; i++) {
        if (!isnan(facts->gpu[i].utilization_ratio.mean)) {
            sum += facts->gpu[i].utilization_ratio.mean;
            n++;
        }
    }
    return are_all_gpus(facts, n) ? sum / (double)n : NAN;
}

static double memory_ratio_of_gpus(const struct job_facts *facts)
{
    double used = 0, of = 0;
    size_t n = 0;

    for (size_t i = 0; i < facts->n_gpus; i++) {
        const struct gpu_facts *gpu = &facts->gpu[i];

        if (!isnan(gpu->memory_used_bytes.max) && gpu->memory_bytes > 0) {
            used += gpu->memory_used_bytes.max;
            of += gpu->memory_bytes;
            n++;
        }
    }
    return are_all_gpus(facts, n) ? ratio_of(used, of) : NAN;
}

/* What a kept summary said stands where the rest no longer tells. */
static void derive(struct job_facts *facts)
{
    const struct use_facts *total = &facts->total;
    const struct job_row *row = &facts->row;
    double elapsed = row->elapsed_seconds < 0 ? NAN : (double)row->elapsed_seconds;
    double limit = row->record.time_limit_minutes == MODEL_UNKNOWN_U32
                       ? NAN
                       : (double)row->record.time_limit_minutes * 60;

    facts->cpu_seconds_held = total->cpus * elapsed;
    facts->cpu_ratio = ratio_of(total->cpu_seconds, facts->cpu_seconds_held);
    facts->mean_cpus = ratio_of(total->cpu_seconds, elapsed);
    facts->memory_ratio =
        facts->origin.has_task_peak ? NAN : ratio_of(total->memory_peak_bytes, total->memory_bytes);
    facts->time_ratio = ratio_of(elapsed, limit);
    facts->gpu_ratio = or_else(mean_of_gpus(facts), facts->gpu_ratio);
    facts->gpu_memory_ratio = or_else(memory_ratio_of_gpus(facts), facts->gpu_memory_ratio);
    facts->cores_used = or_else(count_used_cores(facts), facts->cores_used);
}

static bool is_digit(struct str text)
{
    return text.n && text.p[0] >= '0' && text.p[0] <= '9';
}

static struct str cut_number(struct str *text)
{
    size_t n = 0;
    struct str number;

    while (is_digit(*text) && text->p[0] == '0')
        *text = str_skip(*text, 1);
    while (is_digit(str_skip(*text, n)))
        n++;
    number = str_head(*text, n);
    *text = str_skip(*text, n);
    return number;
}

static int compare_numbers(struct str a, struct str b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return a.n ? memcmp(a.p, b.p, a.n) : 0;
}

/* n2 before n10. */
static int compare_names(struct str a, struct str b)
{
    while (a.n && b.n) {
        int order;

        if (is_digit(a) && is_digit(b)) {
            order = compare_numbers(cut_number(&a), cut_number(&b));
        } else {
            order = (unsigned char)a.p[0] - (unsigned char)b.p[0];
            a = str_skip(a, 1);
            b = str_skip(b, 1);
        }
        if (order)
            return order;
    }
    return (a.n > 0) - (b.n > 0);
}

static int by_node(const void *a, const void *b)
{
    return compare_names(((const struct node_facts *)a)->name,
                         ((const struct node_facts *)b)->name);
}

static int by_gpu(const void *a, const void *b)
{
    const struct gpu_facts *left = a, *right = b;
    int order = compare_names(left->node, right->node);

    return order ? order : compare_names(left->gpu, right->gpu);
}

static int by_cpu_time(const void *a, const void *b)
{
    double left = or_else(((const struct process_facts *)a)->cpu_seconds, -1);
    double right = or_else(((const struct process_facts *)b)->cpu_seconds, -1);

    if (left != right)
        return left < right ? 1 : -1;
    return compare_names(((const struct process_facts *)a)->name,
                         ((const struct process_facts *)b)->name);
}

static void sort(void *items, size_t n, size_t size, int (*compare)(const void *a, const void *b),
                 struct facts_index *index)
{
    if (n < 2)
        return;
    qsort(items, n, size, compare);
    *index = (struct facts_index){ 0 };
}

void facts_finish(struct job_facts *facts)
{
    if (facts->origin.has_task_peak) {
        facts->origin.has_task_peak = false;
        facts->total.memory_peak_bytes = NAN;
    }
    count_peaks(facts);
    total_up(facts);
    count_peak(&facts->total, has_run_out_of_memory(facts));
    give_to_lone_node(facts);
    fill_from_accounting(facts);
    derive(facts);
    sort(facts->node, facts->n_nodes, sizeof(*facts->node), by_node, &facts->node_index);
    sort(facts->gpu, facts->n_gpus, sizeof(*facts->gpu), by_gpu, &facts->gpu_index);
    sort(facts->process, facts->n_processes, sizeof(*facts->process), by_cpu_time,
         &facts->process_index);
}
