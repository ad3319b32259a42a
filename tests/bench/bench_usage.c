/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent renders after each sample of a full node: 256 jobs of 16 processes, with all that
 * cgroup v1 tells, against a floor that only writes the same text again. */
#include "bench.h"

#include "base/arena.h"
#include "collector/usage.h"
#include "metric/segment.h"

enum { JOBS = 256, CORES = 2, NAMES = 4, GPUS = 8, ROOM = 8 << 20 };

struct input {
    struct usage usage;
    struct job_use job[JOBS];
    struct job_use *jobs[JOBS];
    struct name_use names[NAMES];
    struct gpu_use gpus[GPUS];
    struct job_gpu job_gpu;
    struct device_use device;
    uint64_t core_ns[CORES];
    size_t samples, compressed;
    struct buf out, copy;
};

static void fill_job(struct input *input, uint64_t i)
{
    struct job_use *job = &input->job[i];
    uint64_t *numbers = &job->cgroup.cpu_ns;

    job_use_clear(job);
    input->jobs[i] = job;
    snprintf(job->id, sizeof(job->id), "%d", (int)(1234500 + i));
    snprintf(job->node, sizeof(job->node), "node0042");
    snprintf(job->user, sizeof(job->user), "user%d", (int)i % 40);
    snprintf(job->account, sizeof(job->account), "account%d", (int)i % 10);
    job->seen_wall_ns = (int64_t)(1800000000123456789 + i * 987654321);
    for (size_t k = 0; k < offsetof(struct cgroup_use, core_ns) / sizeof(*numbers); k++)
        numbers[k] = 987654321098 + i * 7654321 * (k + 1);
    job->cgroup.core_ns = input->core_ns;
    job->cgroup.n_cores = CORES;
    job->cgroup.devices = &input->device;
    job->cgroup.n_devices = 1;
    job->cpu_ratio = 1.9375 + (double)i / 1000;
    job->allocated_cpus = CORES;
    job->allocated_memory_bytes = 4 << 20;
    job->allocated_gpus = i < GPUS;
    job->processes = 16;
    job->threads = 64;
    job->resident_bytes = 312345600 + i * 4096;
    job->descriptors = 128;
    job->files = 40;
    job->uses_scratch = i & 1;
    job->io = (struct io_use){ i * 123456, i * 654321, i * 234567, i * 765432, i * 345, i * 543 };
    job->names = input->names;
    job->n_names = NAMES;
    job->gpus = &input->job_gpu;
    job->n_gpus = i < GPUS;
}

static void fill(struct input *input)
{
    static const char *const names[NAMES] = { "slurm_script", "python3", "mpirun", "sleep" };

    for (size_t i = 0; i < NAMES; i++) {
        input->names[i] = (struct name_use){ "", 4, 16, 78086400, 24691358027 };
        snprintf(input->names[i].name, USAGE_COMM, "%s", names[i]);
    }
    for (unsigned i = 0; i < GPUS; i++)
        input->gpus[i] = (struct gpu_use){ i, -1, "GPU-1", "NVIDIA A100", "", .utilization = 0.5 };
    input->device = (struct device_use){ "sda", 123456789, 987654321, 12345, 54321 };
    for (size_t i = 0; i < CORES; i++)
        input->core_ns[i] = 493827160549;
    for (uint64_t i = 0; i < JOBS; i++)
        fill_job(input, i);
    input->usage = (struct usage){ .jobs = input->jobs,
                                   .n_jobs = JOBS,
                                   .gpus = input->gpus,
                                   .n_gpus = GPUS,
                                   .gpu_up = 1,
                                   .lustre_up = -1,
                                   .host = "node0042" };
}

static void render(void *ctx)
{
    struct input *input = ctx;

    input->samples = 0;
    buf_reset(&input->out);
    for (size_t i = 0; usage_collectors[i]; i++) {
        const struct usage_collector *collector = usage_collectors[i];
        struct metric_writer writer;

        metric_writer_init(&writer, &input->out, METRIC_TEXT, STR(""), collector->families,
                           collector->n_families);
        collector->collect(&input->usage, &writer);
        input->samples += writer.samples;
        metric_writer_free(&writer);
    }
}

static void copy_lines(void *ctx)
{
    struct input *input = ctx;

    buf_reset(&input->copy);
    for (struct str rest = buf_str(&input->out); rest.n;) {
        buf_put(&input->copy, str_cut(&rest, '\n'));
        buf_byte(&input->copy, '\n');
    }
}

static void compress(void *ctx)
{
    struct input *input = ctx;
    struct segment *segment;
    struct buf text;

    buf_init(&text, ROOM);
    buf_put(&text, buf_str(&input->out));
    segment = segment_new(&text);
    input->compressed = segment->deflated.n;
    segment_unref(segment);
}

int main(int argc, char **argv)
{
    struct input *input = heap_alloc(sizeof(*input));
    struct bench_run runs[] = {
        { .run = render, .ctx = input },
        { .run = copy_lines, .ctx = input },
        { .run = compress, .ctx = input },
    };

    bench_begin(argc, argv);
    fill(input);
    buf_init(&input->out, ROOM);
    buf_init(&input->copy, ROOM);
    bench_measure(runs, COUNT(runs), 50);
    if (input->out.over)
        bench_give_up("there is more text than room for it");
    bench_row(&(struct bench_row){ "agent: render 256 jobs", "ms", runs[0].median_seconds * 1e3,
                                   runs[1].median_seconds * 1e3, BENCH_AT_MOST, 3 });
    bench_row(&(struct bench_row){ "agent: samples of a job", "", (double)input->samples / JOBS, 0,
                                   BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "agent: text of a job", "bytes", (double)input->out.n / JOBS, 0,
                                   BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "agent: compressed text of a job", "bytes",
                                   (double)input->compressed / JOBS, 0, BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "agent: compress that, once per sample", "ms",
                                   runs[2].median_seconds * 1e3, 0, BENCH_NO_GOAL, 0 });
    buf_free(&input->out);
    buf_free(&input->copy);
    free(input);
    return 0;
}
