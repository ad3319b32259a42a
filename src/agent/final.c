/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the record of an ended job as one JSON object. */
#include "agent/final.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/num.h"

#include <stdlib.h>

enum { MOST_NAMES = 10 };

/* Behind a value comes a comma; nothing but a bracket or a colon is no value. */
static void put_comma(struct buf *to)
{
    if (to->n && !strchr("{[:", to->p[to->n - 1]))
        buf_byte(to, ',');
}

static void put_key(struct buf *to, const char *key)
{
    put_comma(to);
    buf_json(to, str_of(key));
    buf_byte(to, ':');
}

static void put_u64(struct buf *to, const char *key, uint64_t value)
{
    if (value == MODEL_UNKNOWN_U64)
        return;
    put_key(to, key);
    buf_u64(to, value);
}

static void put_seconds(struct buf *to, const char *key, uint64_t ns)
{
    if (ns == MODEL_UNKNOWN_U64)
        return;
    put_key(to, key);
    buf_double(to, (double)ns / NS_PER_SEC);
}

static void put_text(struct buf *to, const char *key, const char *text)
{
    if (!text[0])
        return;
    put_key(to, key);
    buf_json(to, str_of(text));
}

/* Begins an object or an array; if nothing comes into it, it is taken back. */
static size_t begin(struct buf *to, const char *key, char bracket)
{
    size_t before = to->n;

    put_key(to, key);
    buf_byte(to, bracket);
    return before;
}

static void end(struct buf *to, size_t before, char bracket)
{
    if (to->over)
        return;
    if (to->p[to->n - 1] != '{' && to->p[to->n - 1] != '[') {
        buf_byte(to, bracket);
        return;
    }
    to->n = before;
    buf_end(to);
}

static void begin_item(struct buf *to)
{
    put_comma(to);
    buf_byte(to, '{');
}

enum unit { UNIT_AS_IT_IS, UNIT_NS };

struct row {
    const char *key;
    size_t offset;
    enum unit unit;
};

static const struct row cgroup_rows[] = {
    { "cpu_seconds", offsetof(struct cgroup_use, cpu_ns), UNIT_NS },
    { "user_seconds", offsetof(struct cgroup_use, cpu_user_ns), UNIT_NS },
    { "system_seconds", offsetof(struct cgroup_use, cpu_system_ns), UNIT_NS },
    { "throttled_seconds", offsetof(struct cgroup_use, throttled_ns), UNIT_NS },
    { "periods", offsetof(struct cgroup_use, periods), UNIT_AS_IT_IS },
    { "throttled_periods", offsetof(struct cgroup_use, throttled_periods), UNIT_AS_IT_IS },
    { "memory_peak_bytes", offsetof(struct cgroup_use, memory_peak_bytes), UNIT_AS_IT_IS },
    { "limit_hits", offsetof(struct cgroup_use, limit_hits), UNIT_AS_IT_IS },
    { "oom_kills", offsetof(struct cgroup_use, oom_kills), UNIT_AS_IT_IS },
    { "page_faults", offsetof(struct cgroup_use, page_faults), UNIT_AS_IT_IS },
    { "major_page_faults", offsetof(struct cgroup_use, major_page_faults), UNIT_AS_IT_IS },
    { "pids_peak", offsetof(struct cgroup_use, pids_peak), UNIT_AS_IT_IS },
};

#define PRESSURE(which) (offsetof(struct cgroup_use, pressure_ns) + (which) * sizeof(uint64_t))

static const struct row pressure_rows[] = {
    { "cpu_some", PRESSURE(PRESSURE_CPU_SOME), UNIT_NS },
    { "cpu_full", PRESSURE(PRESSURE_CPU_FULL), UNIT_NS },
    { "memory_some", PRESSURE(PRESSURE_MEMORY_SOME), UNIT_NS },
    { "memory_full", PRESSURE(PRESSURE_MEMORY_FULL), UNIT_NS },
    { "io_some", PRESSURE(PRESSURE_IO_SOME), UNIT_NS },
    { "io_full", PRESSURE(PRESSURE_IO_FULL), UNIT_NS },
};

static const struct row io_rows[] = {
    { "read_bytes", offsetof(struct io_use, read_bytes), UNIT_AS_IT_IS },
    { "write_bytes", offsetof(struct io_use, write_bytes), UNIT_AS_IT_IS },
    { "read_chars", offsetof(struct io_use, read_chars), UNIT_AS_IT_IS },
    { "write_chars", offsetof(struct io_use, write_chars), UNIT_AS_IT_IS },
    { "reads", offsetof(struct io_use, reads), UNIT_AS_IT_IS },
    { "writes", offsetof(struct io_use, writes), UNIT_AS_IT_IS },
};

static const struct row allocation_rows[] = {
    { "cpus", offsetof(struct job_use, allocated_cpus), UNIT_AS_IT_IS },
    { "memory_bytes", offsetof(struct job_use, allocated_memory_bytes), UNIT_AS_IT_IS },
    { "gpus", offsetof(struct job_use, allocated_gpus), UNIT_AS_IT_IS },
};

static const struct row peak_rows[] = {
    { "processes_peak", offsetof(struct job_use, processes_peak), UNIT_AS_IT_IS },
    { "threads_peak", offsetof(struct job_use, threads_peak), UNIT_AS_IT_IS },
    { "files_peak", offsetof(struct job_use, files_peak), UNIT_AS_IT_IS },
};

static void put_rows(struct buf *to, const struct row *rows, size_t n, const void *from)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = *(const uint64_t *)(const void *)((const char *)from + rows[i].offset);

        if (rows[i].unit == UNIT_NS)
            put_seconds(to, rows[i].key, value);
        else
            put_u64(to, rows[i].key, value);
    }
}

static void put_object(struct buf *to, const char *key, const struct row *rows, size_t n,
                       const void *from)
{
    size_t before = begin(to, key, '{');

    put_rows(to, rows, n, from);
    end(to, before, '}');
}

static void put_cgroup(struct buf *to, const struct cgroup_use *use, const struct io_use *io)
{
    put_rows(to, cgroup_rows, COUNT(cgroup_rows), use);
    put_object(to, "pressure_seconds", pressure_rows, COUNT(pressure_rows), use);
    put_object(to, "io", io_rows, COUNT(io_rows), io);
}

static void put_devices(struct buf *to, const struct cgroup_use *use)
{
    size_t before = begin(to, "devices", '[');

    for (size_t i = 0; i < use->n_devices; i++) {
        const struct device_use *device = &use->devices[i];

        begin_item(to);
        put_text(to, "name", device->name);
        put_u64(to, "read_bytes", device->read_bytes);
        put_u64(to, "write_bytes", device->write_bytes);
        put_u64(to, "reads", device->reads);
        put_u64(to, "writes", device->writes);
        buf_byte(to, '}');
    }
    end(to, before, ']');
}

static int by_cpu(const void *a, const void *b)
{
    const struct name_use *left = *(const struct name_use *const *)a;
    const struct name_use *right = *(const struct name_use *const *)b;

    return (left->cpu_ns < right->cpu_ns) - (left->cpu_ns > right->cpu_ns);
}

static void put_names(struct buf *to, const struct job_use *use)
{
    const struct name_use **names = heap_array(use->n_names + 1, sizeof(*names));
    size_t before = begin(to, "names", '['), n = 0;

    for (size_t i = 0; i < use->n_names; i++)
        if (use->names[i].cpu_ns)
            names[n++] = &use->names[i];
    qsort(names, n, sizeof(*names), by_cpu);
    for (size_t i = 0; i < n && i < MOST_NAMES; i++) {
        begin_item(to);
        put_text(to, "name", names[i]->name);
        put_seconds(to, "cpu_seconds", names[i]->cpu_ns);
        buf_byte(to, '}');
    }
    end(to, before, ']');
    free(names);
}

static void put_gpu(struct buf *to, const struct job_gpu *gpu)
{
    begin_item(to);
    put_text(to, "id", gpu->id);
    put_text(to, "model", gpu->model);
    put_u64(to, "memory_peak_bytes", gpu->memory_peak_bytes);
    if (gpu->energy_begin_mj != MODEL_UNKNOWN_U64 && gpu->energy_mj > gpu->energy_begin_mj) {
        put_key(to, "energy_joules");
        buf_double(to, (double)(gpu->energy_mj - gpu->energy_begin_mj) / 1000);
    }
    buf_byte(to, '}');
}

static void put_gpus(struct buf *to, const struct job_use *use)
{
    size_t before = begin(to, "gpus", '[');

    for (size_t i = 0; i < use->n_gpus; i++)
        put_gpu(to, &use->gpus[i]);
    end(to, before, ']');
}

static void put_steps(struct buf *to, const struct job_use *use)
{
    size_t before = begin(to, "steps", '[');

    for (size_t i = 0; i < use->n_steps; i++) {
        begin_item(to);
        put_text(to, "id", use->steps[i].id);
        put_cgroup(to, &use->steps[i].cgroup, &use->steps[i].io);
        buf_byte(to, '}');
    }
    end(to, before, ']');
}

static void put_owner(struct buf *to, const struct job_use *use)
{
    uint64_t number;

    if (use->uid != MODEL_UNKNOWN_U32)
        put_u64(to, "uid", use->uid);
    if (!num_get_u64(str_of(use->user), &number))
        put_text(to, "user", use->user);
    put_text(to, "account", use->account);
}

/* A clock that was put back must not make it end before it begins. */
static void put_which(struct buf *to, const struct job_use *use, uint64_t id, int64_t end_time)
{
    int64_t begin_time = use->seen_wall_ns / NS_PER_SEC;

    put_u64(to, "job_id", id);
    put_text(to, "node", use->node);
    put_u64(to, "begin_time", (uint64_t)begin_time);
    put_u64(to, "end_time", (uint64_t)(end_time > begin_time ? end_time : begin_time));
}

static void put_all(struct buf *to, const struct job_use *use, uint64_t id, size_t steps_left_out,
                    int64_t end_time)
{
    buf_byte(to, '{');
    put_which(to, use, id, end_time);
    put_owner(to, use);
    put_object(to, "allocated", allocation_rows, COUNT(allocation_rows), use);
    put_cgroup(to, &use->cgroup, &use->io);
    put_devices(to, &use->cgroup);
    put_rows(to, peak_rows, COUNT(peak_rows), use);
    if (use->uses_scratch != MODEL_UNKNOWN_U64) {
        put_key(to, "uses_scratch");
        buf_text(to, use->uses_scratch ? "true" : "false");
    }
    put_names(to, use);
    put_gpus(to, use);
    put_steps(to, use);
    if (steps_left_out)
        put_u64(to, "steps_left_out", steps_left_out);
    buf_byte(to, '}');
}

bool final_put(struct buf *to, const struct job_use *use, size_t steps_left_out, int64_t end_time)
{
    struct job_use less = *use;
    uint64_t id;

    if (!num_get_u64(str_of(use->id), &id) || !id || id >= UINT32_MAX - 1 || use->seen_wall_ns <= 0)
        return false;
    buf_reset(to);
    put_all(to, use, id, steps_left_out, end_time);
    if (!to->over)
        return true;
    less.n_steps = 0;
    buf_reset(to);
    put_all(to, &less, id, steps_left_out + use->n_steps, end_time);
    return !to->over;
}
