/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is kept of a run's facts for good: one JSON object, {"version":1,"total":{…},"nodes":[…],…},
 * whose members are those of the structs, and back. Of what there is no room for, "nodes_left_out"
 * and its like count how many. */
#include "report/summary_table.h"
#include "report/use_members.h"

#include <math.h>
#include <stdlib.h>

enum { VERSION = 1 };

/* Bytes of each list; what else there is takes less than the rest. */
enum {
    NODES_MAX = 11 * 1024,
    CORES_MAX = 6 * 1024,
    GPUS_MAX = 9 * 1024,
    PROCESSES_MAX = 3 * 1024,
    REST_MAX = 3 * 1024,
};
_Static_assert(NODES_MAX + CORES_MAX + GPUS_MAX + PROCESSES_MAX + REST_MAX <= SUMMARY_MAX,
               "the parts fit into the whole");

/* A list that is being written. */
struct writing {
    struct buf *to;
    struct buf item; /* has the list's ceiling, so that no name can pass it */
    size_t begin, most, n_left_out;
    const char *left_out;
};

static void list_begin(struct writing *list, struct buf *to, const char *name, const char *left_out,
                       size_t most)
{
    fact_put_name(to, name);
    buf_byte(to, '[');
    *list = (struct writing){ .to = to, .begin = to->n, .most = most, .left_out = left_out };
    buf_init(&list->item, most);
}

/* Takes what was written into list->item, if there is room. */
static void list_take(struct writing *list, size_t n)
{
    struct buf *to = list->to;

    if (list->item.over || to->n - list->begin + list->item.n + 1 > list->most) {
        list->n_left_out += n;
    } else {
        if (to->n > list->begin)
            buf_byte(to, ',');
        buf_put(to, buf_str(&list->item));
    }
    buf_reset(&list->item);
}

static void list_add(struct writing *list, const struct fact_table *table, const void *from)
{
    buf_byte(&list->item, '{');
    fact_put(&list->item, table, from);
    buf_byte(&list->item, '}');
    list_take(list, 1);
}

static void list_end(struct writing *list)
{
    buf_byte(list->to, ']');
    if (list->n_left_out) {
        fact_put_name(list->to, list->left_out);
        buf_u64(list->to, list->n_left_out);
    }
    buf_free(&list->item);
}

struct rank {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    const struct rank *left = a, *right = b;

    if (left->value != right->value)
        return left->value < right->value ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

/* What stands out: the least, the most, the second least, … */
static size_t from_both_ends(const struct rank *ranks, size_t n, size_t i)
{
    return ranks[i % 2 ? n - 1 - i / 2 : i / 2].at;
}

static double or_nothing(double value)
{
    return isnan(value) ? 0 : value;
}

static struct rank *rank_nodes(const struct job_facts *facts)
{
    struct rank *ranks = heap_array(facts->n_nodes + 1, sizeof(*ranks));

    for (size_t i = 0; i < facts->n_nodes; i++)
        ranks[i] = (struct rank){ or_nothing(facts->node[i].use.cpu_seconds), i };
    qsort(ranks, facts->n_nodes, sizeof(*ranks), by_value);
    return ranks;
}

static struct rank *rank_gpus(const struct job_facts *facts)
{
    struct rank *ranks = heap_array(facts->n_gpus + 1, sizeof(*ranks));

    for (size_t i = 0; i < facts->n_gpus; i++)
        ranks[i] = (struct rank){ or_nothing(facts->gpu[i].utilization_ratio.mean), i };
    qsort(ranks, facts->n_gpus, sizeof(*ranks), by_value);
    return ranks;
}

static struct rank *rank_processes(const struct job_facts *facts)
{
    struct rank *ranks = heap_array(facts->n_processes + 1, sizeof(*ranks));

    for (size_t i = 0; i < facts->n_processes; i++)
        ranks[i] = (struct rank){ -or_nothing(facts->process[i].cpu_seconds), i };
    qsort(ranks, facts->n_processes, sizeof(*ranks), by_value);
    return ranks;
}

/* All cores of a node, or none: a part of them would not be their share. */
static void add_cores(struct writing *list, const struct node_facts *node)
{
    for (size_t i = 0; i < node->n_cores && !list->item.over; i++) {
        const struct core_item item = { node->name, node->core[i].core, node->core[i].seconds };

        buf_text(&list->item, i ? ",{" : "{");
        fact_put(&list->item, &summary_core, &item);
        buf_byte(&list->item, '}');
    }
    if (node->n_cores)
        list_take(list, node->n_cores);
}

static void put_nodes(struct buf *to, const struct job_facts *facts)
{
    struct rank *ranks = rank_nodes(facts);
    struct writing nodes, cores;

    list_begin(&nodes, to, "nodes", "nodes_left_out", NODES_MAX);
    for (size_t i = 0; i < facts->n_nodes; i++)
        list_add(&nodes, &summary_node, &facts->node[from_both_ends(ranks, facts->n_nodes, i)]);
    list_end(&nodes);
    list_begin(&cores, to, "cores", "cores_left_out", CORES_MAX);
    for (size_t i = 0; i < facts->n_nodes; i++)
        add_cores(&cores, &facts->node[from_both_ends(ranks, facts->n_nodes, i)]);
    list_end(&cores);
    free(ranks);
}

static void put_gpus(struct buf *to, const struct job_facts *facts)
{
    struct rank *ranks = rank_gpus(facts);
    struct writing list;

    list_begin(&list, to, "gpus", "gpus_left_out", GPUS_MAX);
    for (size_t i = 0; i < facts->n_gpus; i++)
        list_add(&list, &summary_gpu, &facts->gpu[from_both_ends(ranks, facts->n_gpus, i)]);
    list_end(&list);
    free(ranks);
}

static void put_processes(struct buf *to, const struct job_facts *facts)
{
    struct rank *ranks = rank_processes(facts);
    struct writing list;

    list_begin(&list, to, "processes", "processes_left_out", PROCESSES_MAX);
    for (size_t i = 0; i < facts->n_processes; i++)
        list_add(&list, &summary_process, &facts->process[ranks[i].at]);
    list_end(&list);
    free(ranks);
}

/* A peak that is but one task's is the record's. */
static struct summary summary_of(const struct job_facts *facts)
{
    const struct earlier_facts *earlier = &facts->earlier;
    struct summary summary;

    summary_clear(&summary);
    summary.version = VERSION;
    summary.total = facts->total;
    if (facts->origin.has_task_peak)
        summary.total.memory_peak_bytes = NAN;
    summary.lustre = facts->lustre;
    if (earlier->n)
        summary.earlier =
            (struct earlier_item){ (double)earlier->n, earlier->cpus_used,
                                   earlier->memory_peak_bytes, earlier->elapsed_seconds };
    summary.gpu_ratio = facts->gpu_ratio;
    summary.gpu_memory_ratio = facts->gpu_memory_ratio;
    summary.cores_used = facts->cores_used;
    return summary;
}

void facts_put_summary(struct buf *to, const struct job_facts *facts)
{
    struct summary summary = summary_of(facts);

    buf_byte(to, '{');
    fact_put(to, &summary_table, &summary);
    put_nodes(to, facts);
    put_gpus(to, facts);
    put_processes(to, facts);
    buf_byte(to, '}');
}

static void raise_to(double *value, double by)
{
    *value = fmax(*value, by);
}

static void fill(double *value, double otherwise)
{
    if (isnan(*value))
        *value = otherwise;
}

/* What was given is as the record says, if it says so. */
static void take_total(struct use_facts *total, const struct use_facts *kept)
{
    for (size_t i = 0; i < USE_MEMBERS; i++) {
        double *place = use_place(total, &use_members[i]);

        if (use_members[i].sum == USE_GIVEN)
            fill(place, use_value(kept, &use_members[i]));
        else
            raise_to(place, use_value(kept, &use_members[i]));
    }
}

static void take_nodes(struct job_facts *facts, struct arena *arena, const struct summary *summary)
{
    for (size_t i = 0; i < summary->n_nodes; i++)
        if (summary->node[i].name.n)
            use_raise(&facts_node(facts, arena, summary->node[i].name)->use, &summary->node[i].use);
}

/* Of one node, from one place in the list on; returns where the next node's begin. */
static size_t take_cores_of_node(struct job_facts *facts, struct arena *arena,
                                 const struct summary *summary, size_t from)
{
    const struct core_item *first = &summary->core[from];
    struct core_facts *cores;
    struct node_facts *node;
    size_t n = 0;

    while (from + n < summary->n_cores && str_eq(first[n].node, first->node))
        n++;
    if (!first->node.n || (node = facts_node(facts, arena, first->node))->n_cores)
        return from + n;
    cores = ARENA_ARRAY(arena, struct core_facts, n);
    for (size_t i = 0; i < n; i++)
        if (first[i].core < UINT32_MAX && !isnan(first[i].seconds))
            cores[node->n_cores++] =
                (struct core_facts){ (uint32_t)first[i].core, first[i].seconds };
    node->core = cores;
    return from + n;
}

static void take_spread(struct spread *spread, const struct spread *kept)
{
    spread->min = fmin(spread->min, kept->min);
    fill(&spread->mean, kept->mean);
    raise_to(&spread->max, kept->max);
}

static void take_gpu(struct job_facts *facts, struct arena *arena, const struct gpu_facts *kept)
{
    struct gpu_facts *gpu;

    if (!kept->gpu.n)
        return;
    gpu = facts_gpu(facts, arena, kept->node, kept->gpu);
    if (!gpu->model.n)
        gpu->model = kept->model;
    take_spread(&gpu->utilization_ratio, &kept->utilization_ratio);
    take_spread(&gpu->memory_used_bytes, &kept->memory_used_bytes);
    take_spread(&gpu->power_watts, &kept->power_watts);
    take_spread(&gpu->temperature_celsius, &kept->temperature_celsius);
    raise_to(&gpu->memory_bytes, kept->memory_bytes);
    raise_to(&gpu->energy_joules, kept->energy_joules);
    raise_to(&gpu->processes_peak, kept->processes_peak);
}

static void take_process(struct job_facts *facts, struct arena *arena,
                         const struct process_facts *kept)
{
    struct process_facts *process;

    if (!kept->name.n)
        return;
    process = facts_process(facts, arena, kept->name);
    raise_to(&process->instances_peak, kept->instances_peak);
    raise_to(&process->threads_peak, kept->threads_peak);
    raise_to(&process->cpu_seconds, kept->cpu_seconds);
}

static void take_earlier(struct earlier_facts *earlier, const struct earlier_item *kept)
{
    if (earlier->n || !(kept->n >= 1) || kept->n > UINT32_MAX)
        return;
    *earlier = (struct earlier_facts){ (size_t)kept->n, kept->cpus_used, kept->memory_peak_bytes,
                                       kept->elapsed_seconds };
}

static void take_all(struct job_facts *facts, struct arena *arena, const struct summary *summary)
{
    take_total(&facts->total, &summary->total);
    raise_to(&facts->lustre.read_bytes, summary->lustre.read_bytes);
    raise_to(&facts->lustre.written_bytes, summary->lustre.written_bytes);
    raise_to(&facts->lustre.operations, summary->lustre.operations);
    raise_to(&facts->lustre.opens, summary->lustre.opens);
    take_earlier(&facts->earlier, &summary->earlier);
    fill(&facts->gpu_ratio, summary->gpu_ratio);
    fill(&facts->gpu_memory_ratio, summary->gpu_memory_ratio);
    fill(&facts->cores_used, summary->cores_used);
    take_nodes(facts, arena, summary);
    for (size_t i = 0; i < summary->n_cores;)
        i = take_cores_of_node(facts, arena, summary, i);
    for (size_t i = 0; i < summary->n_gpus; i++)
        take_gpu(facts, arena, &summary->gpu[i]);
    for (size_t i = 0; i < summary->n_processes; i++)
        take_process(facts, arena, &summary->process[i]);
    facts->origin.has_summary = true;
}

int facts_take_summary(struct job_facts *facts, struct arena *arena, struct str document,
                       struct err *err)
{
    struct summary summary;
    int code;

    summary_clear(&summary);
    code = fact_read(document, &summary_table, &summary, &summary, arena, err);
    if (code == 0 && summary.version != VERSION)
        code =
            err_set(err, EBADMSG, "it is not of version %d: another sonde has written it", VERSION);
    if (code == 0)
        take_all(facts, arena, &summary);
    summary_free(&summary);
    return code < 0 ? err_prefix(err, "what was kept of job %u", (unsigned)facts->row.record.id)
                    : 0;
}
