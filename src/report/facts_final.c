/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an agent counted of a job on its node until its end: agent/final.h has the document. */
#include "report/facts_json.h"
#include "report/use_members.h"

#include "base/quote.h"

#include <math.h>

enum { NAMES_MAX = 32, GPUS_MAX = 64 }; /* of one document; an agent writes fewer */

struct final_name {
    struct str name;
    double cpu_seconds;
};

struct final_gpu {
    struct str id, model;
    double memory_peak_bytes, energy_joules;
};

/* One document. */
struct final {
    struct use_facts use;
    struct final_name name[NAMES_MAX];
    size_t n_names;
    struct final_gpu gpu[GPUS_MAX];
    size_t n_gpus;
};

static void *begin_name(void *ctx)
{
    struct final *final = ctx;

    if (final->n_names == NAMES_MAX)
        return NULL;
    final->name[final->n_names] = (struct final_name){ .cpu_seconds = NAN };
    return &final->name[final->n_names++];
}

static void *begin_gpu(void *ctx)
{
    struct final *final = ctx;

    if (final->n_gpus == GPUS_MAX)
        return NULL;
    final->gpu[final->n_gpus] =
        (struct final_gpu){ .memory_peak_bytes = NAN, .energy_joules = NAN };
    return &final->gpu[final->n_gpus++];
}

#define USED(name, field) FACT(struct use_facts, name, FACT_AMOUNT, field)

static const struct fact_member allocated_members[] = {
    USED("cpus", cpus),
    USED("memory_bytes", memory_bytes),
    USED("gpus", gpus),
};
static const struct fact_table allocated = FACT_TABLE(allocated_members);

static const struct fact_member pressure_members[] = {
    USED("cpu_some", cpu_waiting_seconds),
    USED("memory_some", memory_waiting_seconds),
    USED("io_some", io_waiting_seconds),
};
static const struct fact_table pressure = FACT_TABLE(pressure_members);

static const struct fact_member io_members[] = {
    USED("read_bytes", read_bytes),
    USED("write_bytes", written_bytes),
    USED("reads", read_calls),
    USED("writes", write_calls),
};
static const struct fact_table io = FACT_TABLE(io_members);

static const struct fact_member name_members[] = {
    FACT(struct final_name, "name", FACT_TEXT, name),
    FACT(struct final_name, "cpu_seconds", FACT_AMOUNT, cpu_seconds),
};
static const struct fact_table names = FACT_TABLE(name_members);

static const struct fact_member gpu_members[] = {
    FACT(struct final_gpu, "id", FACT_TEXT, id),
    FACT(struct final_gpu, "model", FACT_TEXT, model),
    FACT(struct final_gpu, "memory_peak_bytes", FACT_AMOUNT, memory_peak_bytes),
    FACT(struct final_gpu, "energy_joules", FACT_AMOUNT, energy_joules),
};
static const struct fact_table gpus = FACT_TABLE(gpu_members);

static const struct fact_member document_members[] = {
    FACT_OF(struct final, "allocated", use, &allocated),
    USED("cpu_seconds", cpu_seconds),
    USED("user_seconds", user_seconds),
    USED("system_seconds", system_seconds),
    USED("throttled_seconds", throttled_seconds),
    USED("memory_peak_bytes", memory_counted_bytes),
    USED("limit_hits", limit_hits),
    USED("oom_kills", oom_kills),
    FACT_OF(struct final, "pressure_seconds", use, &pressure),
    FACT_OF(struct final, "io", use, &io),
    USED("processes_peak", processes_peak),
    USED("threads_peak", threads_peak),
    USED("files_peak", files_peak),
    FACT(struct use_facts, "uses_scratch", FACT_TRUTH, uses_scratch),
    FACTS("names", &names, begin_name),
    FACTS("gpus", &gpus, begin_gpu),
};
static const struct fact_table document = FACT_TABLE(document_members);
_Static_assert(offsetof(struct final, use) == 0, "what was used is told of the document itself");

/* The node's own place for a name, as its agent may tell of it more than once. */
static struct process_facts *name_on_node(struct node_facts *node, struct arena *arena,
                                          struct str name)
{
    struct process_facts *more;

    for (size_t i = 0; i < node->n_processes; i++)
        if (str_eq(node->process[i].name, name))
            return &node->process[i];
    more = ARENA_ARRAY(arena, struct process_facts, node->n_processes + 1);
    if (node->n_processes)
        memcpy(more, node->process, node->n_processes * sizeof(*more));
    more[node->n_processes] = (struct process_facts){ name, NAN, NAN, NAN };
    node->process = more;
    return &more[node->n_processes++];
}

/* The whole job's time rises by what the node's does. */
static void take_name(struct job_facts *facts, struct arena *arena, struct node_facts *node,
                      const struct final_name *told)
{
    struct process_facts *own, *whole;
    double before, rise;

    if (!told->name.n || isnan(told->cpu_seconds))
        return;
    own = name_on_node(node, arena, told->name);
    before = isnan(own->cpu_seconds) ? 0 : own->cpu_seconds;
    own->cpu_seconds = fmax(before, told->cpu_seconds);
    rise = own->cpu_seconds - before;
    whole = facts_process(facts, arena, told->name);
    whole->cpu_seconds = isnan(whole->cpu_seconds) ? rise : whole->cpu_seconds + rise;
}

static void take_gpu(struct job_facts *facts, struct arena *arena, struct str node,
                     const struct final_gpu *told)
{
    struct gpu_facts *gpu;

    if (!told->id.n)
        return;
    gpu = facts_gpu(facts, arena, node, told->id);
    if (!gpu->model.n)
        gpu->model = told->model;
    gpu->memory_used_bytes.max = fmax(gpu->memory_used_bytes.max, told->memory_peak_bytes);
    gpu->energy_joules = fmax(gpu->energy_joules, told->energy_joules);
}

/* An agent that was restarted tells a second time of the same job: the kernel's counters go on, so
 * that the larger is the whole. */
int facts_take_final(struct job_facts *facts, struct arena *arena, const struct final_record *final,
                     struct err *err)
{
    struct final told = { .use = use_facts_unknown };
    struct node_facts *node;

    if (fact_read(final->document, &document, &told, &told, arena, err) < 0)
        return err_prefix(err, "what the agent of %s counted of job %u", quote(final->node).text,
                          (unsigned) final->job_id);
    node = facts_node(facts, arena, final->node);
    use_raise(&node->use, &told.use);
    for (size_t i = 0; i < told.n_names; i++)
        take_name(facts, arena, node, &told.name[i]);
    for (size_t i = 0; i < told.n_gpus; i++)
        take_gpu(facts, arena, final->node, &told.gpu[i]);
    facts->origin.has_agents = true;
    return 0;
}
