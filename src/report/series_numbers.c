/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run used, as numbers: of each node, by process name, by core, and on Lustre. Totals and
 * peaks alike are the highest value in the time of the run: what the kernel counts for a job begins
 * with it, and if an agent without cgroups began anew in between, the last value is too small.
 * docs/metrics.md has all names. */
#include "report/series.h"
#include "report/use_members.h"

#include "base/num.h"

#include <math.h>

enum {
    FINE_STEPS = 4000, /* of a sum of rates */
    CORES_MAX = 4096,  /* of a node */
};

#define MIB         "1048576"
#define USE(member) .offset = offsetof(struct use_facts, member)

/* A number of a node, and what agents and jobs_exporter call it; NULL: they do not tell. */
static const struct number {
    const char *fact;
    size_t offset; /* of a double in struct use_facts */
    const char *name, *old_name;
    const char *old_unit;  /* what the old one is to be multiplied by, or NULL */
    const char *otherwise; /* where agents have no such name, or NULL */
    const char *resource;  /* matched beside the job, or NULL */
    bool is_by_node;       /* however many nodes there are */
} numbers[] = {
    { "cpus", USE(cpus), "sonde_job_cpus_allocated", .is_by_node = true },
    { "memory_bytes", USE(memory_bytes), "sonde_job_memory_allocated_bytes", .is_by_node = true },
    { "gpus", USE(gpus), "sonde_job_gpus_allocated", .is_by_node = true },
    { "cpu_seconds", USE(cpu_seconds), "sonde_job_cpu_seconds_total", "jobs_cpu_time_total",
      .is_by_node = true },
    { "user_seconds", USE(user_seconds), "sonde_job_cpu_user_seconds_total", "jobs_user_time" },
    { "system_seconds", USE(system_seconds), "sonde_job_cpu_system_seconds_total",
      "jobs_system_time" },
    { "throttled_seconds", USE(throttled_seconds), "sonde_job_cpu_throttled_seconds_total" },
    { "memory_counted_bytes", USE(memory_counted_bytes), "sonde_job_memory_peak_bytes",
      .is_by_node = true },
    /* The highest sample; without cgroups, of processes. */
    { "memory_peak_bytes", USE(memory_peak_bytes), "sonde_job_memory_bytes", "jobs_rss", MIB,
      .otherwise = "sonde_job_resident_bytes", .is_by_node = true },
    { "swap_peak_bytes", USE(swap_peak_bytes), "sonde_job_memory_swap_bytes" },
    { "read_bytes", USE(read_bytes), "sonde_job_read_bytes_total", "jobs_read_mb", MIB },
    { "written_bytes", USE(written_bytes), "sonde_job_written_bytes_total", "jobs_write_mb", MIB },
    { "read_calls", USE(read_calls), "sonde_job_read_calls_total", "jobs_read_count" },
    { "write_calls", USE(write_calls), "sonde_job_write_calls_total", "jobs_write_count" },
    { "files_peak", USE(files_peak), "sonde_job_open_files", "jobs_opened_files" },
    { "processes_peak", USE(processes_peak), "sonde_job_processes", "jobs_spawned_processes" },
    { "threads_peak", USE(threads_peak), "sonde_job_threads" },
    { "oom_kills", USE(oom_kills), "sonde_job_oom_kills_total" },
    { "limit_hits", USE(limit_hits), "sonde_job_memory_limit_hits_total" },
    { "cpu_waiting_seconds", USE(cpu_waiting_seconds), "sonde_job_pressure_waiting_seconds_total",
      .resource = "cpu" },
    { "memory_waiting_seconds", USE(memory_waiting_seconds),
      "sonde_job_pressure_waiting_seconds_total", .resource = "memory" },
    { "io_waiting_seconds", USE(io_waiting_seconds), "sonde_job_pressure_waiting_seconds_total",
      .resource = "io" },
    { "uses_scratch", USE(uses_scratch), NULL, "jobs_uses_scratch" },
    { "busiest_cpus", USE(busiest_cpus) }, /* from rates: put_busiest */
};

/* Other numbers, each with a text of its own, in the letters of series_put. */
enum subject { OF_PROCESS, OF_CORE, OF_LUSTRE };

#define NAMED(member)     .subject = OF_PROCESS, .offset = offsetof(struct process_facts, member)
#define ON_LUSTRE(member) .subject = OF_LUSTRE, .offset = offsetof(struct lustre_facts, member)
#define OF_NAMES(family)                                                                           \
    "topk(100,sum by(process)(max by(node,process)(max_over_time(" family "{$}@))))"

/* What an exporter attributed to the job, of two the larger; else Lustre's own counters, where they
 * bear its id. Those that were there before have what an earlier run of the job did. */
#define MOVED(rate, counter)                                                                       \
    "sum_over_time(max(" rate "{$});)*! or sum(((max_over_time(" counter "@) and resets(" counter  \
    "@)==0) unless " counter "<) or increase(" counter "@))"

static const struct term {
    const char *fact;
    enum { ALWAYS, WITH_AGENTS, WITHOUT_AGENTS, WITH_OLD_NAMES } when;
    enum subject subject;
    size_t offset; /* of a double in process_facts or lustre_facts */
    const char *text;
} terms[] = {
    { "process_instances", WITH_AGENTS, NAMED(instances_peak),
      .text = OF_NAMES("sonde_job_process_instances") },
    { "process_threads", WITH_AGENTS, NAMED(threads_peak),
      .text = OF_NAMES("sonde_job_process_threads") },
    { "process_cpu_seconds", WITH_AGENTS, NAMED(cpu_seconds),
      .text = OF_NAMES("sonde_job_process_cpu_seconds_total") },
    { "process_threads", WITHOUT_AGENTS, NAMED(threads_peak),
      .text = "topk(100,sum by(proc_name)(max by(instance,exported_instance,proc_name)("
              "max_over_time(jobs_thread_count{&}@))))" },
    { "core_seconds", WITH_OLD_NAMES, .subject = OF_CORE,
      .text = "max by(instance,exported_instance,core)(max_over_time(jobs_cpu_time_core{&}@))" },
    { "lustre_read_bytes", ALWAYS, ON_LUSTRE(read_bytes),
      .text = MOVED("sonde_job_lustre_read_bytes_per_second", "lustre_job_read_bytes_total{?}") },
    { "lustre_written_bytes", ALWAYS, ON_LUSTRE(written_bytes),
      .text = MOVED("sonde_job_lustre_write_bytes_per_second", "lustre_job_write_bytes_total{?}") },
    { "lustre_operations", ALWAYS, ON_LUSTRE(operations),
      .text = MOVED("sonde_job_lustre_operations_per_second", "lustre_job_stats_total{?}") },
    { "lustre_opens", ALWAYS, ON_LUSTRE(opens),
      .text = MOVED("sonde_job_lustre_opens_per_second",
                    "lustre_job_stats_total{operation=\"open\",?}") },
};

static bool has_many_nodes(const struct series *series)
{
    return series->n_nodes > SERIES_MANY_NODES;
}

static const struct use_member *member_of(const struct number *number)
{
    size_t i = 0;

    while (use_members[i].offset != number->offset)
        i++;
    return &use_members[i];
}

static void put_highest(const struct number *number, const char *name, bool is_old, struct buf *to)
{
    buf_printf(to, "max by(%s)(max_over_time(%s{%s", is_old ? "instance,exported_instance" : "node",
               name, is_old ? "&" : "$");
    if (number->resource)
        buf_printf(to, ",resource=\"%s\"", number->resource);
    buf_text(to, "}@))");
}

/* Its text, ready for series_put. */
static void put_number(const struct series *series, const struct number *number, struct buf *to)
{
    bool is_old = !series->has_agents || !number->name;
    bool is_sum = has_many_nodes(series) && !number->is_by_node;

    if (is_sum)
        buf_text(to, member_of(number)->sum == USE_LARGEST ? "max(" : "sum(");
    put_highest(number, is_old ? number->old_name : number->name, is_old, to);
    if (!is_old && number->otherwise) {
        buf_text(to, " or ");
        put_highest(number, number->otherwise, is_old, to);
    }
    if (is_sum)
        buf_byte(to, ')');
    if (is_old && number->old_unit)
        buf_printf(to, "*%s", number->old_unit);
}

/* One of several answers of a query, marked by the word for it. */
static void put_answer(const struct series *series, const struct series_times *times,
                       struct buf *to, const char *fact, const char *text)
{
    if (to->n)
        buf_text(to, " or ");
    buf_text(to, "label_replace(");
    series_put(series, times, to, text);
    buf_printf(to, ",\"fact\",\"%s\",\"\",\"\")", fact);
}

/* The plot of CPU use tells it too, if it is asked for. */
static void put_busiest(const struct series *series, const struct series_times *times,
                        struct buf *to)
{
    const char *by_node = series->has_agents
                              ? "max by(node)(rate(sonde_job_cpu_seconds_total{$}^))"
                              : "max by(instance,exported_instance)(rate(jobs_cpu_time_total{&}^))";
    struct series_times own = *times;
    char text[200];

    if (series->question->wants_plots)
        return;
    if (series_is_requeued(series)) /* a rate looks back, into the run before */
        own.range_seconds -= own.rate_seconds < own.range_seconds ? own.rate_seconds : 0;
    snprintf(text, sizeof(text), "max_over_time(sum(%s);)", by_node);
    put_answer(series, &own, to, "busiest_cpus", text);
    snprintf(text, sizeof(text), "max_over_time(%s;)", by_node);
    if (!has_many_nodes(series))
        put_answer(series, &own, to, "busiest_cpus", text);
}

static int ask_nodes(struct series *series, struct err *err)
{
    const int64_t step = series_step(series, series->n_nodes);
    const struct series_times times = {
        .range_seconds = series->last - series->clean,
        .rate_seconds = series_rate_seconds(series, step),
        .step_seconds = step,
    };
    struct buf text, number;
    int code;

    buf_init(&text, SERIES_QUERY);
    buf_init(&number, SERIES_QUERY);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        bool is_told = series->has_agents && numbers[i].name;

        if (!is_told && !(series->has_old_names && numbers[i].old_name))
            continue;
        buf_reset(&number);
        put_number(series, &numbers[i], &number);
        put_answer(series, &times, &text, numbers[i].fact, number.p);
    }
    put_busiest(series, &times, &text);
    code = series_ask(
        series,
        &(struct series_query){ .text = &text,
                                .time = series->last,
                                .labels = { "fact", "node", "instance", "exported_instance" } },
        err);
    buf_free(&text);
    buf_free(&number);
    return code;
}

static bool is_wanted(const struct series *series, const struct term *term)
{
    switch (term->when) {
    case WITH_AGENTS:
        return series->has_agents;
    case WITHOUT_AGENTS:
        return series->has_old_names && !series->has_agents;
    case WITH_OLD_NAMES:
        return series->has_old_names && !has_many_nodes(series);
    case ALWAYS:
        break;
    }
    return true;
}

static int ask_terms(struct series *series, struct err *err)
{
    const int64_t range = series->last - series->begin;
    const struct series_times of_agents = { .range_seconds = series->last - series->clean };
    const struct series_times of_lustre = {
        .range_seconds = range,
        .step_seconds = series->interval_seconds > range / FINE_STEPS ? series->interval_seconds
                                                                      : range / FINE_STEPS + 1,
    };
    struct buf text;
    int code;

    buf_init(&text, SERIES_QUERY);
    for (size_t i = 0; i < COUNT(terms); i++)
        if (is_wanted(series, &terms[i]))
            put_answer(series, terms[i].subject == OF_LUSTRE ? &of_lustre : &of_agents, &text,
                       terms[i].fact, terms[i].text);
    code = series_ask(series,
                      &(struct series_query){ .text = &text,
                                              .time = series->last,
                                              .labels = { "fact", "process", "proc_name", "core",
                                                          "instance", "exported_instance" } },
                      err);
    buf_free(&text);
    return code;
}

int series_ask_numbers(struct series *series, struct err *err)
{
    int code = series->n_nodes ? ask_nodes(series, err) : 0;

    return code < 0 ? code : ask_terms(series, err);
}

/* A Prometheus that does not leave labels as they are calls the node's own name so. */
static struct str node_of(struct str node, struct str instance, struct str exported_instance)
{
    if (node.n)
        return node;
    return series_host(exported_instance.n ? exported_instance : instance);
}

static struct node_facts *find_node(struct series *series, struct str name)
{
    if (series->facts->n_nodes >= SERIES_NODES_MAX)
        return NULL;
    return facts_node(series->facts, series->arena, name);
}

static void raise(double *place, double value)
{
    *place = fmax(*place, value);
}

/* A sum over nodes is not the whole if not all of them tell. */
static bool may_be_total(const struct series *series, const struct use_member *member)
{
    uint32_t n = series->facts->row.record.node_count;

    return member->sum != USE_WHOLE_SUM || n == MODEL_UNKNOWN_U32 || series->n_nodes >= n;
}

/* It was asked for all nodes together. */
static bool is_of_all(const struct series *series, const struct number *number)
{
    bool is_from_rates = !number->name && !number->old_name;

    return is_from_rates || (has_many_nodes(series) && !number->is_by_node);
}

static void take_number(struct series *series, const struct number *number,
                        const struct series_reading *reading)
{
    const struct use_member *member = member_of(number);
    struct str name = node_of(reading->label[1], reading->label[2], reading->label[3]);
    struct node_facts *node = name.n ? find_node(series, name) : NULL;

    if (node)
        raise(use_place(&node->use, member), reading->value);
    else if (!name.n && is_of_all(series, number) && may_be_total(series, member))
        raise(use_place(&series->facts->total, member), reading->value);
}

static void take_process(struct series *series, const struct term *term,
                         const struct series_reading *reading)
{
    struct str name = reading->label[1].n ? reading->label[1] : reading->label[2];
    struct process_facts *process;

    if (!name.n || series->facts->n_processes >= SERIES_NAMES_MAX)
        return;
    process = facts_process(series->facts, series->arena, name);
    raise((double *)(void *)((char *)process + term->offset), reading->value);
}

static struct core_facts *find_core(struct node_facts *node, struct arena *arena, uint32_t core)
{
    struct core_facts *more;
    size_t n = node->n_cores;

    for (size_t i = 0; i < n; i++)
        if (node->core[i].core == core)
            return &node->core[i];
    if ((n & (n - 1)) == 0) { /* full: it has room for a power of two */
        more = ARENA_ARRAY(arena, struct core_facts, n ? 2 * n : 1);
        if (n)
            memcpy(more, node->core, n * sizeof(*more));
        node->core = more;
    }
    node->core[n] = (struct core_facts){ core, NAN };
    node->n_cores++;
    return &node->core[n];
}

static void take_core(struct series *series, const struct series_reading *reading)
{
    struct str name = node_of(STR(""), reading->label[4], reading->label[5]);
    struct node_facts *node = name.n ? find_node(series, name) : NULL;
    uint64_t core;

    if (node && node->n_cores < CORES_MAX && num_get_u64(reading->label[3], &core) &&
        core <= UINT32_MAX)
        raise(&find_core(node, series->arena, (uint32_t)core)->seconds, reading->value);
}

static void take_term(struct series *series, const struct term *term,
                      const struct series_reading *reading)
{
    switch (term->subject) {
    case OF_PROCESS:
        take_process(series, term, reading);
        break;
    case OF_CORE:
        take_core(series, reading);
        break;
    case OF_LUSTRE:
        raise((double *)(void *)((char *)&series->facts->lustre + term->offset), reading->value);
        break;
    }
}

static void take_reading(struct series *series, const struct series_reading *reading)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (str_eq(reading->label[0], str_of(numbers[i].fact))) {
            take_number(series, &numbers[i], reading);
            return;
        }
    }
    for (size_t i = 0; i < COUNT(terms); i++) {
        if (str_eq(reading->label[0], str_of(terms[i].fact))) {
            take_term(series, &terms[i], reading);
            return;
        }
    }
}

static int by_core(const void *a, const void *b)
{
    uint32_t left = ((const struct core_facts *)a)->core,
             right = ((const struct core_facts *)b)->core;

    return (left > right) - (left < right);
}

/* The first jobs_exporter counts user and system time in clock ticks. */
static void drop_ticks(struct use_facts *use)
{
    if (use->user_seconds + use->system_seconds > 2 * use->cpu_seconds + 10)
        use->user_seconds = use->system_seconds = NAN;
}

void series_take_numbers(struct series *series)
{
    struct job_facts *facts = series->facts;

    for (size_t i = 0; i < series->n_readings; i++)
        take_reading(series, &series->reading[i]);
    for (size_t i = 0; i < facts->n_nodes; i++) {
        struct node_facts *node = &facts->node[i];

        if (node->n_cores)
            qsort(node->core, node->n_cores, sizeof(*node->core), by_core);
        if (!series->has_agents)
            drop_ticks(&node->use);
    }
}
