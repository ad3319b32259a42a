/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What recording adds to a refresh of 100,000 jobs of which one in a hundred has changed since the
 * last, and how fast a million jobs as slurmdbd has them are put into a store. */
#include "record/recorder.h"
#include "snapshot/publish.h"
#include "source/cli.h"
#include "sim_print.h"

#include "bench.h"

enum {
    JOBS = 100000,
    NODES = 10000,
    CHANGED = JOBS / 100,
    PIECE = 65536,
    ROUNDS = 7,
    ROOM = 512 << 20,
    INGESTED = 1000000,
    BATCH = 2000,
    USED_BYTES = 700,
};

static const int64_t now = 1767225600;
static const char token[FRAME_TOKEN + 1] = "@0123456789abcdef@";
static const atomic_bool never;

/* A minute can be skipped, after which nodes are due again. */
static _Atomic int64_t skipped_ns;

static int64_t bench_wall(const struct clock *clock)
{
    (void)clock;
    return clock_wall(&clock_real);
}

static int64_t bench_mono(const struct clock *clock)
{
    (void)clock;
    return clock_mono(&clock_real) + skipped_ns;
}

static bool bench_wait(const struct clock *clock, pthread_cond_t *cond, pthread_mutex_t *lock,
                       int64_t until_mono_ns)
{
    (void)clock;
    return clock_wait(&clock_real, cond, lock, until_mono_ns - skipped_ns);
}

static const struct clock bench_clock = { bench_wall, bench_mono, bench_wait };

struct recording {
    char directory[32], path[64];
    struct log *log;
    struct recorder *recorder;
};

static void begin_recording(struct recording *recording)
{
    const struct recorded_cluster cluster = { .name = STR("bench") };
    struct recorder_config config = { .clusters = &cluster,
                                      .n_clusters = 1,
                                      .clock = &bench_clock };
    struct err err;

    *recording = (struct recording){ .directory = "/var/tmp/sonde-bench-XXXXXX" };
    if (!mkdtemp(recording->directory))
        bench_give_up("cannot make a directory in /var/tmp");
    snprintf(recording->path, sizeof(recording->path), "%s/store.db", recording->directory);
    recording->log = log_new(STDERR_FILENO, LOG_WARN, &clock_real);
    config.url = str_of(recording->path);
    config.log = recording->log;
    if (recorder_start(&config, &recording->recorder, &err) < 0)
        bench_give_up("%s", err.text);
}

static void end_recording(struct recording *recording)
{
    static const char *const ends[] = { "", "-wal", "-shm" };

    recorder_stop(recording->recorder);
    log_free(recording->log);
    for (size_t i = 0; i < COUNT(ends); i++) {
        char path[80];

        snprintf(path, sizeof(path), "%s%s", recording->path, ends[i]);
        unlink(path);
    }
    rmdir(recording->directory);
}

/* Returns when all that was noted before is written. */
static void flush(struct recording *recording)
{
    const char *name = "any";
    int64_t value;
    struct err err;

    if (recorder_get_marks(recording->recorder, 0, &name, &value, 1, INT64_MAX, &never, &err) < 0)
        bench_give_up("%s", err.text);
}

static int append(void *ctx, struct str piece)
{
    buf_put(ctx, piece);
    return 0;
}

static struct buf print(enum sim_format format)
{
    struct sim sim = { .nodes = NODES, .jobs = JOBS, .seed = 1 };
    struct buf text;

    buf_init(&text, ROOM);
    if (sim_print(&sim, format, str_of(token), now, append, &text) < 0 || text.over)
        bench_give_up("the simulation has printed too much");
    return text;
}

static struct section *read_all(enum kind kind, const struct answer_class *class, struct str text)
{
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(class, section, SIZE_MAX);
    struct err err;

    memcpy(((struct framed *)answer)->frame.token, token, sizeof(token));
    for (; text.n; text = str_skip(text, PIECE))
        if (class->feed(answer, str_head(text, PIECE), &err) < 0)
            bench_give_up("%s", err.text);
    if (class->end(answer, &err) < 0)
        bench_give_up("%s", err.text);
    answer_free(answer);
    if (section->skipped)
        bench_give_up("%llu records were left out", (unsigned long long)section->skipped);
    section->wall_ns = now * NS_PER_SEC;
    return section;
}

struct bench {
    struct buf squeue, sinfo;
    struct recording recording;
    struct section *jobs, *nodes; /* that are to be noted */
    unsigned round;
};

static void render(struct section *section)
{
    static const struct publish_config config = {
        .collectors = (collector_set)-1,
        .max_segment = 64 << 20,
        .clock = &clock_real,
    };

    edition_unref(edition_new(&config, section, FORMAT_BIT(METRIC_TEXT)));
    section_unref(section);
}

static void run_refresh(void *ctx)
{
    struct bench *bench = ctx;

    render(read_all(KIND_NODES, &answer_sinfo, buf_str(&bench->sinfo)));
    render(read_all(KIND_JOBS, &answer_squeue, buf_str(&bench->squeue)));
}

/* Not measured: what comes next. Of the jobs of the last look, other ones are completing now. */
static void run_preparation(void *ctx)
{
    struct bench *bench = ctx;
    struct jobs *jobs;

    section_unref(bench->jobs);
    section_unref(bench->nodes);
    bench->jobs = read_all(KIND_JOBS, &answer_squeue, buf_str(&bench->squeue));
    bench->nodes = read_all(KIND_NODES, &answer_sinfo, buf_str(&bench->sinfo));
    bench->round++;
    bench->jobs->wall_ns += 10 * NS_PER_SEC * bench->round;
    jobs = &bench->jobs->jobs;
    for (size_t i = bench->round; i < jobs->n; i += jobs->n / CHANGED * 2)
        jobs->job[i].state.flags ^= JOB_COMPLETING;
    for (size_t i = 0; i < bench->nodes->nodes.n; i++)
        bench->nodes->nodes.node[i].cpu_load += bench->round;
}

/* Likewise, but what ten seconds change in the simulated cluster. */
static void run_ten_seconds(void *ctx)
{
    struct bench *bench = ctx;
    struct sim sim = { .nodes = NODES, .jobs = JOBS, .seed = 1 };
    int64_t time = now + 10 * ++bench->round;

    section_unref(bench->jobs);
    bench->jobs = sim_section(&sim, KIND_JOBS, time);
    bench->jobs->wall_ns = time * NS_PER_SEC;
}

static void run_jobs(void *ctx)
{
    struct bench *bench = ctx;

    recorder_note(bench->recording.recorder, 0, bench->jobs);
    flush(&bench->recording);
}

static void run_nodes(void *ctx)
{
    struct bench *bench = ctx;

    skipped_ns += 60 * NS_PER_SEC;
    recorder_note(bench->recording.recorder, 0, bench->nodes);
    flush(&bench->recording);
}

static uint64_t jobs_written(const struct bench *bench)
{
    struct recorder_stats stats;

    recorder_stats(bench->recording.recorder, &stats);
    if (!stats.is_up)
        bench_give_up("the store cannot be written");
    return stats.jobs;
}

static void write_all(struct bench *bench)
{
    double began = bench_wall_seconds();

    run_preparation(bench);
    do
        run_jobs(bench);
    while (jobs_written(bench) < bench->jobs->jobs.n);
    bench_row(&(struct bench_row){ "record 100,000 new jobs", "jobs/s",
                                   (double)bench->jobs->jobs.n / (bench_wall_seconds() - began), 0,
                                   BENCH_NO_GOAL, 0 });
}

static void measure_ten_seconds(struct bench *bench, double refresh_seconds)
{
    struct bench_run runs[] = {
        { .run = run_ten_seconds, .ctx = bench },
        { .run = run_jobs, .ctx = bench },
    };

    bench_measure(runs, COUNT(runs), ROUNDS);
    bench_row(&(struct bench_row){ "record 100,000 jobs, 10 s later", "ms",
                                   runs[1].median_seconds * 1e3, refresh_seconds * 1e3,
                                   BENCH_RATIO_AT_MOST, 0.1 });
}

static void measure_recording(void)
{
    struct bench bench = { .squeue = print(SIM_SQUEUE_TEXT), .sinfo = print(SIM_SINFO_TEXT) };
    struct bench_run runs[] = {
        { .run = run_refresh, .ctx = &bench },
        { .run = run_preparation, .ctx = &bench },
        { .run = run_jobs, .ctx = &bench },
        { .run = run_nodes, .ctx = &bench },
    };
    uint64_t before;
    double changed;

    begin_recording(&bench.recording);
    write_all(&bench);
    before = jobs_written(&bench);
    bench_measure(runs, COUNT(runs), ROUNDS);
    changed = (double)(jobs_written(&bench) - before) / ROUNDS;
    if (changed < CHANGED * 0.8 || changed > CHANGED * 1.2)
        bench_give_up("%g jobs have changed at each look instead of %d", changed, CHANGED);
    bench_row(&(struct bench_row){ "record 100,000 jobs, 1 % changed", "ms",
                                   runs[2].median_seconds * 1e3, runs[0].median_seconds * 1e3,
                                   BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "record 10,000 nodes", "ms", runs[3].median_seconds * 1e3,
                                   runs[0].median_seconds * 1e3, BENCH_NO_GOAL, 0 });
    /* Nodes are written once a minute, which has six looks. */
    bench_row(&(struct bench_row){ "record a look, beside the refresh", "ms",
                                   (runs[2].median_seconds + runs[3].median_seconds / 6) * 1e3,
                                   runs[0].median_seconds * 1e3, BENCH_RATIO_AT_MOST, 0.1 });
    measure_ten_seconds(&bench, runs[0].median_seconds);
    end_recording(&bench.recording);
    section_unref(bench.jobs);
    section_unref(bench.nodes);
    buf_free(&bench.squeue);
    buf_free(&bench.sinfo);
}

/* A job as sacct tells it, of some 2,000 users on 5,000 nodes. */
struct made_job {
    char user[16], account[16], name[32], nodes[32], tres[96], requested[96], line[64], place[64];
    struct record_extra extra[4];
};

static void make_job(uint32_t i, struct made_job *to, struct job_record *record)
{
    uint32_t dice = i * 2654435761u, cpus = 1u << dice % 7, gpus = dice % 4 ? 0 : 1 + dice / 4 % 4;

    job_record_clear(record);
    record->id = i + 1;
    record->submit_time = now - INGESTED * 30L + (int64_t)i * 30;
    record->origin = RECORD_ACCOUNTED;
    record->as_of = now;
    record->tasks = 1;
    record->user_id = 10000 + dice % 2000;
    record->restarts = 0;
    record->state = (struct job_state){ dice % 16 ? JOB_COMPLETED : JOB_FAILED, 0 };
    record->user = (struct str){ to->user, (size_t)snprintf(to->user, sizeof(to->user), "user%04u",
                                                            dice % 2000) };
    record->account = (struct str){ to->account, (size_t)snprintf(to->account, sizeof(to->account),
                                                                  "group%03u", dice % 200) };
    record->qos = STR("normal");
    record->name = (struct str){ to->name, (size_t)snprintf(to->name, sizeof(to->name),
                                                            "experiment-%u", dice % 20000) };
    record->partition = dice % 3 ? STR("long") : STR("main-gpu");
    record->nodes = (struct str){ to->nodes, (size_t)snprintf(to->nodes, sizeof(to->nodes),
                                                              "node%04u", dice % 5000) };
    record->tres = (struct str){
        to->tres, (size_t)snprintf(to->tres, sizeof(to->tres),
                                   "billing=%u,cpu=%u,gres/gpu:a100=%u,gres/gpu=%u,mem=%uG,node=1",
                                   cpus, cpus, gpus, gpus, 4 * cpus)
    };
    record->tres_requested =
        (struct str){ to->requested,
                      (size_t)snprintf(to->requested, sizeof(to->requested),
                                       "billing=%u,cpu=%u,gres/gpu=%u,mem=%uG,node=1", cpus, cpus,
                                       gpus, 4 * cpus) };
    record->cpus = cpus;
    record->node_count = 1;
    record->memory_bytes = (uint64_t)cpus << 32;
    record->time_limit_minutes = 60 * (1 + dice % 48);
    record->priority = dice % 100000;
    record->eligible_time = record->submit_time;
    record->start_time = record->submit_time + dice % 5000;
    record->end_time = record->start_time + dice % 40000;
    record->suspended_seconds = 0;
    record->exit_code = dice % 16 ? 0 : 1;
    record->exit_signal = 0;
    record->cpu_seconds = (double)(dice % 100000000) / 1000;
    record->user_seconds = record->cpu_seconds * 0.9;
    record->system_seconds = record->cpu_seconds * 0.1;
    record->memory_peak_bytes = (uint64_t)dice << 4;
    record->read_bytes = dice;
    record->write_bytes = dice / 3;
    to->extra[0] = (struct record_extra){ STR("SubmitLine"),
                                          { to->line, (size_t)snprintf(to->line, sizeof(to->line),
                                                                       "sbatch --time=%u run-%u.sh",
                                                                       dice % 48, dice % 20000) } };
    to->extra[1] = (struct record_extra){
        STR("WorkDir"),
        { to->place, (size_t)snprintf(to->place, sizeof(to->place), "/home/user%04u/project-%u",
                                      dice % 2000, dice % 50) }
    };
    to->extra[2] = (struct record_extra){ STR("Flags"), STR("SchedBackfill") };
    to->extra[3] = (struct record_extra){ STR("Group"), record->account };
    record->extra = to->extra;
    record->n_extra = COUNT(to->extra);
}

static void ingest(struct recording *recording)
{
    static struct made_job made[BATCH];
    static struct job_record records[BATCH];
    const struct record_batch batch = { .jobs = records, .n_jobs = BATCH };
    struct err err;

    for (uint32_t first = 0; first < INGESTED; first += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++)
            make_job(first + i, &made[i], &records[i]);
        if (recorder_put(recording->recorder, &batch, INT64_MAX, &never, &err) < 0)
            bench_give_up("%s", err.text);
    }
}

/* The file, once its log is part of it. */
static double file_bytes(const char *path)
{
    FILE *file = fopen(path, "re");
    double bytes = 0;

    if (file && fseek(file, 0, SEEK_END) == 0)
        bytes = (double)ftell(file);
    if (file)
        fclose(file);
    return bytes;
}

static void measure_ingest(void)
{
    struct recording recording;
    double began, seconds, cpu;

    begin_recording(&recording);
    began = bench_wall_seconds();
    cpu = bench_cpu_seconds();
    ingest(&recording);
    seconds = bench_wall_seconds() - began;
    cpu = bench_cpu_seconds() - cpu;
    recording.recorder = recorder_stop(recording.recorder);
    bench_row(&(struct bench_row){ "put 1,000,000 jobs, 2,000 at a time", "jobs/s",
                                   INGESTED / seconds, 0, BENCH_AT_LEAST, 20000 });
    bench_row(&(struct bench_row){ "put 1,000,000 jobs: CPU of each", "us", cpu / INGESTED * 1e6, 0,
                                   BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "put 1,000,000 jobs: file of each", "bytes",
                                   file_bytes(recording.path) / INGESTED, 0, BENCH_AT_MOST,
                                   USED_BYTES });
    end_recording(&recording);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    measure_recording();
    measure_ingest();
    return 0;
}
