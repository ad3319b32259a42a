/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GPUs that a run held. What drivers tell of a GPU bears its node and number only: it is asked
 * for the nodes that had some of the job's, and joined with those. */
#include "report/series.h"

#include "base/map.h"

#include <math.h>

#define GPU_LABELS "node,gpu,gpu_instance"

/* Lowest, mean and highest. What is told of the job's own part stands first or last: a driver tells
 * of its utilization only while something runs there, of its memory always. */
static const struct gauge {
    const char *fact;
    size_t offset; /* of a struct spread in gpu_facts */
    const char *first,
        *other; /* in the letters of series_put; other: where there is no first; NULL */
} gauges[] = {
    { "gpu_utilization_ratio", offsetof(struct gpu_facts, utilization_ratio),
      "sonde_gpu_utilization_ratio{#}", "sonde_job_gpu_utilization_ratio{$}" },
    { "gpu_memory_used_bytes", offsetof(struct gpu_facts, memory_used_bytes),
      "sonde_job_gpu_memory_used_bytes{$}", "sonde_gpu_memory_used_bytes{#}" },
    { "gpu_power_watts", offsetof(struct gpu_facts, power_watts), "sonde_gpu_power_watts{#}",
      NULL },
    { "gpu_temperature_celsius", offsetof(struct gpu_facts, temperature_celsius),
      "sonde_gpu_temperature_celsius{#}", NULL },
};

static const struct part {
    const char *suffix, *function;
    size_t offset; /* in struct spread */
} parts[] = {
    { "_min", "min", offsetof(struct spread, min) },
    { "_mean", "avg", offsetof(struct spread, mean) },
    { "_max", "max", offsetof(struct spread, max) },
};

static const struct single {
    const char *fact;
    size_t offset; /* of a double in gpu_facts */
    const char *text;
} singles[] = {
    { "gpu_memory_bytes", offsetof(struct gpu_facts, memory_bytes),
      "max by(" GPU_LABELS ")(max_over_time(sonde_gpu_memory_total_bytes{#}@))" },
    { "gpu_energy_joules", offsetof(struct gpu_facts, energy_joules),
      "max by(" GPU_LABELS ")(increase(sonde_gpu_energy_joules_total{#}@))" },
    { "gpu_processes_peak", offsetof(struct gpu_facts, processes_peak),
      "max by(" GPU_LABELS ")(max_over_time(sonde_job_gpu_processes{$}@))" },
};

static const char info_fact[] = "gpu_info";

static void begin_answer(struct buf *to)
{
    buf_text(to, to->n > 1 ? " or label_replace(" : "label_replace(");
}

static void end_answer(struct buf *to, const char *fact, const char *suffix)
{
    buf_printf(to, ",\"fact\",\"%s%s\",\"\",\"\")", fact, suffix);
}

static void put_gauge(const struct series *series, const struct series_times *times, struct buf *to,
                      const struct gauge *gauge, const struct part *part)
{
    const char *const selectors[] = { gauge->first, gauge->other };

    begin_answer(to);
    for (size_t i = 0; i < COUNT(selectors) && selectors[i]; i++) {
        buf_printf(to, "%s%s by(" GPU_LABELS ")(%s_over_time(", i ? " or " : "", part->function,
                   part->function);
        series_put(series, times, to, selectors[i]);
        series_put(series, times, to, "@))");
    }
    end_answer(to, gauge->fact, part->suffix);
}

static void put_text(const struct series *series, struct buf *to)
{
    const struct series_times times = { .range_seconds = series->end - series->begin };

    buf_byte(to, '(');
    for (size_t i = 0; i < COUNT(gauges); i++)
        for (size_t k = 0; k < COUNT(parts); k++)
            put_gauge(series, &times, to, &gauges[i], &parts[k]);
    for (size_t i = 0; i < COUNT(singles); i++) {
        begin_answer(to);
        series_put(series, &times, to, singles[i].text);
        end_answer(to, singles[i].fact, "");
    }
    begin_answer(to);
    series_put(series, &times, to,
               "max by(" GPU_LABELS ",uuid,model)(last_over_time(sonde_gpu_info{#}@))");
    end_answer(to, info_fact, "");
    series_put(series, &times, to,
               ") and on(" GPU_LABELS ") last_over_time(sonde_job_gpu_info{$}@)");
}

int series_ask_gpus(struct series *series, struct err *err)
{
    struct buf text;
    int code;

    buf_init(&text, SERIES_QUERY);
    put_text(series, &text);
    code = series_ask(series,
                      &(struct series_query){
                          .text = &text,
                          .time = series->end,
                          .labels = { "fact", "node", "gpu", "gpu_instance", "uuid", "model" } },
                      err);
    buf_free(&text);
    return code;
}

/* By the labels of each GPU, its place in the facts + 1. */
struct places {
    struct map map;
    struct buf key;
};

static size_t *find_place(struct places *places, struct arena *arena, struct str node,
                          struct str gpu, struct str instance)
{
    void **value;

    buf_reset(&places->key);
    buf_put(&places->key, node);
    buf_byte(&places->key, '\0');
    buf_put(&places->key, gpu);
    buf_byte(&places->key, '\0');
    buf_put(&places->key, instance);
    value = map_put(&places->map, buf_str(&places->key));
    if (!*value)
        *value = ARENA_NEW(arena, size_t);
    return *value;
}

void series_put_gpu(struct buf *to, struct str gpu, struct str instance)
{
    buf_put(to, gpu);
    if (instance.n) {
        buf_byte(to, ':');
        buf_put(to, instance);
    }
}

/* A part of a GPU (MIG) is called by its UUID, as its agent does, where that is known. */
static void name_gpu(struct buf *to, const struct series_gpu *gpu, struct str uuid)
{
    buf_reset(to);
    if (gpu->instance.n && uuid.n)
        buf_put(to, uuid);
    else
        series_put_gpu(to, gpu->gpu, gpu->instance);
}

static struct gpu_facts *find_gpu(struct series *series, struct places *places,
                                  const struct series_gpu *gpu, struct str uuid)
{
    struct job_facts *facts = series->facts;
    size_t *place = find_place(places, &series->scratch, gpu->node, gpu->gpu, gpu->instance);
    struct buf name;

    if (*place)
        return &facts->gpu[*place - 1];
    if (facts->n_gpus >= SERIES_NODES_MAX || !gpu->gpu.n)
        return NULL;
    buf_init(&name, 1000);
    name_gpu(&name, gpu, uuid);
    *place = (size_t)(facts_gpu(facts, series->arena, gpu->node, buf_str(&name)) - facts->gpu) + 1;
    buf_free(&name);
    return &facts->gpu[*place - 1];
}

static double *spread_place(struct gpu_facts *gpu, const struct gauge *gauge,
                            const struct part *part)
{
    return (double *)(void *)((char *)gpu + gauge->offset + part->offset);
}

static bool take_gauge(struct gpu_facts *gpu, const struct series_reading *reading)
{
    for (size_t i = 0; i < COUNT(gauges); i++) {
        struct str rest = reading->label[0];

        if (!str_starts(rest, str_of(gauges[i].fact)))
            continue;
        rest = str_skip(rest, strlen(gauges[i].fact));
        for (size_t k = 0; k < COUNT(parts); k++) {
            if (!str_eq(rest, str_of(parts[k].suffix)))
                continue;
            *spread_place(gpu, &gauges[i], &parts[k]) = reading->value;
            return true;
        }
    }
    return false;
}

static void take_number(struct gpu_facts *gpu, const struct series_reading *reading)
{
    double before = gpu->memory_used_bytes.max;

    if (take_gauge(gpu, reading)) {
        /* An agent has seen more of it than scrapes have. */
        gpu->memory_used_bytes.max = fmax(before, gpu->memory_used_bytes.max);
        return;
    }
    for (size_t i = 0; i < COUNT(singles); i++) {
        double *place = (double *)(void *)((char *)gpu + singles[i].offset);

        if (str_eq(reading->label[0], str_of(singles[i].fact)))
            *place = fmax(*place, reading->value);
    }
}

static struct series_gpu gpu_of(const struct series_reading *reading)
{
    return (struct series_gpu){ reading->label[1], reading->label[2], reading->label[3] };
}

/* What they are called comes first. */
static void take_infos(struct series *series, struct places *places)
{
    for (size_t i = 0; i < series->n_readings; i++) {
        const struct series_reading *reading = &series->reading[i];
        const struct series_gpu of = gpu_of(reading);
        struct gpu_facts *gpu;

        if (!str_eq(reading->label[0], str_of(info_fact)))
            continue;
        gpu = find_gpu(series, places, &of, reading->label[4]);
        if (gpu && !gpu->model.n)
            gpu->model = arena_str(series->arena, reading->label[5]);
    }
    for (size_t i = 0; i < series->n_gpus; i++)
        find_gpu(series, places, &series->gpu[i], STR(""));
}

void series_take_gpus(struct series *series)
{
    struct places places;

    map_init(&places.map, &series->scratch);
    buf_init(&places.key, 1 << 20);
    take_infos(series, &places);
    for (size_t i = 0; i < series->n_readings; i++) {
        const struct series_gpu of = gpu_of(&series->reading[i]);
        struct gpu_facts *gpu;

        if (!str_starts(series->reading[i].label[0], STR("gpu_")))
            continue;
        gpu = find_gpu(series, &places, &of, STR(""));
        if (gpu)
            take_number(gpu, &series->reading[i]);
    }
    map_free(&places.map);
    buf_free(&places.key);
}
