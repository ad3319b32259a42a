/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent costs on a node with many jobs, beside what only reading the same files costs and
 * what another exporter takes: tests/bench/agent/run makes the surroundings and starts this. They
 * take turns, round after round, so that a slow moment of the machine falls on each alike; an agent
 * whose turn it is not stands still. */
#include "base/option.h"

#include "../bench.h"
#include "daemon.h"
#include "floor.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

enum {
    ROUNDS_MAX = 50,
    TICKS = FLOOR_TURNS, /* in a round: the costly ones as often as they come */
    TICK_SECONDS = 2,
    SETTLE_TICKS = 8, /* before the first round: looks at young jobs are over */
    IDLE_TICK_SECONDS = 15,
    IDLE_TICKS = 4,
    FEW_PASS = 2000, /* jobs that come and go */
    MANY_PASS = 10000,
};

/* Taken on a machine like ours at 256 jobs of 16 processes, in milliseconds of CPU per scrape:
 * neither program is in Debian. floor_of_peers took so long there. */
static const double cgroup_exporter_ms = 650, slurm_job_exporter_ms = 3110, peers_floor_ms = 72;

/* Anonymous memory goes up and down by so much with where the holes are; 40 bytes lost with each
 * job would be more. */
static const double flat = 1.1;

struct settings {
    struct str agent, exporter, work, root, table;
    uint64_t rounds, jobs, processes, pass;
};

static const struct option options[] = {
    { "agent", OPTION_STRING, offsetof(struct settings, agent), "FILE", NULL, NULL, NULL,
      "Programs", "sonde-agent." },
    { "exporter", OPTION_STRING, offsetof(struct settings, exporter), "FILE", NULL, NULL, NULL,
      "Programs", "process-exporter; without it, it is left out." },
    { "work", OPTION_STRING, offsetof(struct settings, work), "DIRECTORY", NULL, NULL, NULL,
      "Programs", "Has slurmstepd and simulate; logs go there." },
    { "root", OPTION_STRING, offsetof(struct settings, root), "DIRECTORY", "/sys/fs/cgroup", NULL,
      NULL, "Jobs", "Where the hierarchies are." },
    { "jobs", OPTION_UINT, offsetof(struct settings, jobs), "N", "256", NULL, NULL, "Jobs",
      "Jobs." },
    { "processes", OPTION_UINT, offsetof(struct settings, processes), "N", "16", NULL, NULL, "Jobs",
      "Processes of each." },
    { "pass", OPTION_UINT, offsetof(struct settings, pass), "N", "10000", NULL, NULL, "Jobs",
      "Jobs that come and go." },
    { "rounds", OPTION_UINT, offsetof(struct settings, rounds), "N", "5", NULL, NULL, "Measuring",
      "How often everything is measured." },
    { "table", OPTION_STRING, offsetof(struct settings, table), "FILE", NULL, NULL, NULL,
      "Measuring", "Where to write the table of docs/performance.md." },
    { 0 },
};

/* Something that is measured in every round. */
struct series {
    double ms[ROUNDS_MAX];
    size_t n;
};

static void add(struct series *series, double seconds)
{
    series->ms[series->n++] = seconds * 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double best(struct series *series)
{
    qsort(series->ms, series->n, sizeof(series->ms[0]), compare);
    return series->n ? series->ms[0] : 0;
}

static double median(struct series *series)
{
    qsort(series->ms, series->n, sizeof(series->ms[0]), compare);
    return series->n ? series->ms[series->n / 2] : 0;
}

/* What the agent is asked for, and the floor of it. */
struct setting {
    const char *name, *log;
    const char *flags[4];
    enum floor_kind floor_kind;
    struct daemon agent;
    struct floor *floor;
    struct series agent_ms, floor_ms;
};

enum { ONLY_CGROUPS, ALL, STEPS, SETTINGS };

struct results {
    struct setting settings[SETTINGS];
    struct series exporter_ms, peers_ms;
    struct daemon_memory memory, idle_memory, few, many;
    double idle_percent;
    bool has_started, has_exporter;
    size_t answer_bytes;
};

static void say(const char *what)
{
    fprintf(stderr, "agent: %s\n", what);
}

static struct daemon start_agent(const struct settings *settings, const char *name, const char *log,
                                 const char *tick, const char *const *flags)
{
    char address[64], path[512], user[16];
    uint16_t port = daemon_port();
    const char *argv[16] = {
        settings->agent.p, "--web.listen-address", address, "-t", tick, "--slurmd.user", user
    };
    size_t n = 7;

    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    snprintf(path, sizeof(path), "%s/%s", settings->work.p, log);
    snprintf(user, sizeof(user), "%d", STEPD_UID);
    while (*flags)
        argv[n++] = *flags++;
    argv[n] = NULL;
    return daemon_start(name, argv, port, path);
}

/* Until so long after the next tick, which is at a multiple of the interval by the wall clock. */
static void wait_past_tick(int tick_seconds)
{
    struct timespec now;
    int64_t ms;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    poll(NULL, 0, (int)(tick_seconds * 1000 - ms % (tick_seconds * 1000) + tick_seconds * 500));
}

static const char samples[] = "sonde_agent_samples_total{cause=\"tick\"}";

/* Past the tick that is under way; then for so many of them the CPU time of one with its scrape. */
static double watch(const struct daemon *agent, int ticks, int tick_seconds, size_t *ret_bytes)
{
    double before, cpu;

    wait_past_tick(tick_seconds);
    before = daemon_sample(agent, samples);
    cpu = daemon_cpu_seconds(agent);
    for (int i = 0; i < ticks; i++) {
        wait_past_tick(tick_seconds);
        *ret_bytes = daemon_scrape(agent);
    }
    cpu = daemon_cpu_seconds(agent) - cpu;
    return cpu / (daemon_sample(agent, samples) - before);
}

static void measure_idle(const struct settings *settings, struct results *results)
{
    static const char *const flags[] = { NULL };
    struct daemon agent = start_agent(settings, "the idle agent", "idle.log", "15s", flags);
    size_t bytes;

    say("one agent without jobs, 75 seconds");
    results->idle_percent =
        watch(&agent, IDLE_TICKS, IDLE_TICK_SECONDS, &bytes) / IDLE_TICK_SECONDS * 100;
    results->idle_memory = daemon_memory(&agent);
    daemon_stop(&agent);
}

/* Its numbers are those of a whole look. */
static void check_jobs(const struct daemon *agent, const struct jobs *jobs)
{
    double seen = daemon_sample(agent, "sonde_agent_jobs{state=\"running\"}");

    if (seen != jobs->n)
        bench_give_up("%s sees %.0f jobs of %u", agent->name, seen, jobs->n);
}

static void start_agents(const struct settings *settings, const struct jobs *jobs,
                         struct results *results)
{
    for (int i = 0; i < SETTINGS; i++) {
        struct setting *setting = &results->settings[i];
        size_t bytes;

        setting->floor = floor_new(setting->floor_kind, jobs);
        setting->agent = start_agent(settings, setting->name, setting->log, "2s", setting->flags);
        watch(&setting->agent, SETTLE_TICKS, TICK_SECONDS, &bytes);
        check_jobs(&setting->agent, jobs);
        kill(setting->agent.pid, SIGSTOP);
    }
}

static struct daemon start_exporter(const struct settings *settings)
{
    char address[64], config[512], path[512];
    uint16_t port = daemon_port();
    const char *argv[] = { settings->exporter.p,  "-config.path", config,
                           "-web.listen-address", address,        NULL };
    FILE *file;

    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    snprintf(config, sizeof(config), "%s/process-exporter.yml", settings->work.p);
    snprintf(path, sizeof(path), "%s/process-exporter.log", settings->work.p);
    file = fopen(config, "we");
    if (!file)
        bench_give_up("%s cannot be written", config);
    fputs("process_names:\n  - name: \"{{.Comm}}\"\n    cmdline:\n      - '.+'\n", file);
    fclose(file);
    return daemon_start("process-exporter", argv, port, path);
}

static double floor_seconds(const struct floor *floor)
{
    double began = bench_cpu_seconds();

    for (unsigned turn = 0; turn < FLOOR_TURNS; turn++)
        floor_pass(floor, turn);
    return (bench_cpu_seconds() - began) / FLOOR_TURNS;
}

static void measure_setting(struct setting *setting, struct results *results)
{
    add(&setting->floor_ms, floor_seconds(setting->floor));
    kill(setting->agent.pid, SIGCONT);
    add(&setting->agent_ms, watch(&setting->agent, TICKS, TICK_SECONDS, &results->answer_bytes));
    kill(setting->agent.pid, SIGSTOP);
}

static void measure_peers(const struct jobs *jobs, const struct daemon *exporter,
                          struct results *results)
{
    double began = bench_cpu_seconds();

    floor_of_peers(jobs);
    add(&results->peers_ms, bench_cpu_seconds() - began);
    if (!exporter->pid)
        return;
    began = daemon_cpu_seconds(exporter);
    daemon_scrape(exporter);
    add(&results->exporter_ms, daemon_cpu_seconds(exporter) - began);
}

static void measure_jobs(const struct settings *settings, struct jobs *jobs,
                         struct results *results)
{
    struct daemon exporter = { 0 };

    say("jobs come up");
    jobs_start(jobs);
    say("agents settle");
    start_agents(settings, jobs, results);
    if (settings->exporter.n) {
        results->has_exporter = true;
        exporter = start_exporter(settings);
        daemon_scrape(&exporter);
    }
    for (uint64_t round = 0; round < settings->rounds; round++) {
        fprintf(stderr, "agent: round %d of %d\n", (int)round + 1, (int)settings->rounds);
        for (int i = SETTINGS - 1; i >= 0; i--)
            measure_setting(&results->settings[i], results);
        measure_peers(jobs, &exporter, results);
    }
    results->memory = daemon_memory(&results->settings[ALL].agent);
    for (int i = 0; i < SETTINGS; i++) {
        results->has_started |= daemon_has_started(&results->settings[i].agent);
        daemon_stop(&results->settings[i].agent);
    }
    if (exporter.pid)
        daemon_stop(&exporter);
    jobs_end(jobs);
}

/* When what was kept of ended jobs has gone. */
static struct daemon_memory memory_at_rest(struct daemon *agent)
{
    for (int i = 0; i < 3; i++)
        wait_past_tick(TICK_SECONDS);
    daemon_scrape(agent);
    return daemon_memory(agent);
}

static void measure_passing(const struct settings *settings, struct jobs *jobs,
                            struct results *results)
{
    /* The last counters of those that are gone are not what is measured. */
    static const char *const flags[] = { "--job.linger=2s", NULL };
    struct daemon agent = start_agent(settings, "the agent", "passing.log", "2s", flags);
    unsigned first = FIRST_JOB + (unsigned)settings->jobs;
    unsigned few = (unsigned)(settings->pass / (MANY_PASS / FEW_PASS));

    fprintf(stderr, "agent: %d jobs come and go\n", (int)settings->pass);
    jobs_pass(jobs, first, few);
    results->few = memory_at_rest(&agent);
    jobs_pass(jobs, first + few, (unsigned)settings->pass - few);
    results->many = memory_at_rest(&agent);
    results->has_started |= daemon_has_started(&agent);
    daemon_stop(&agent);
}

static void row(const char *name, const char *unit, double measured, double reference,
                enum bench_goal goal, double limit)
{
    bench_row(&(struct bench_row){ name, unit, measured, reference, goal, limit });
}

/* The machine where the peers were measured, against this one. */
static double scale(struct results *results)
{
    return best(&results->peers_ms) / peers_floor_ms;
}

static void print_rows(struct results *results)
{
    struct setting *settings = results->settings;
    double cgroups = best(&settings[ONLY_CGROUPS].agent_ms), all = best(&settings[ALL].agent_ms);

    row("cgroup metrics, to reading the same files", "ms", cgroups,
        best(&settings[ONLY_CGROUPS].floor_ms), BENCH_RATIO_AT_MOST, 1.2);
    row("cgroup metrics, to cgroup_exporter (scaled)", "ms", cgroups,
        cgroup_exporter_ms * scale(results), BENCH_RATIO_AT_MOST, 1 / 6.0);
    row("all metrics, to reading the same files", "ms", all, best(&settings[ALL].floor_ms),
        BENCH_RATIO_AT_MOST, 1.2);
    row("all metrics, to slurm-job-exporter (scaled)", "ms", all,
        slurm_job_exporter_ms * scale(results), BENCH_RATIO_AT_MOST, 1 / 10.0);
    if (results->has_exporter)
        row("all metrics, to process-exporter", "ms", all, best(&results->exporter_ms),
            BENCH_RATIO_AT_MOST, 1 / 15.0);
    row("steps and tasks too, to the same files", "ms", best(&settings[STEPS].agent_ms),
        best(&settings[STEPS].floor_ms), BENCH_NO_GOAL, 0);
    row("memory, resident", "MB", results->memory.resident_bytes / 1e6, 0, BENCH_AT_MOST, 10);
    row("memory, anonymous", "MB", results->memory.anonymous_bytes / 1e6, 0, BENCH_AT_MOST, 4);
    row("anonymous, 10,000 jobs later to 2,000", "MB", results->many.anonymous_bytes / 1e6,
        results->few.anonymous_bytes / 1e6, BENCH_RATIO_AT_MOST, flat);
    row("without jobs, resident", "MB", results->idle_memory.resident_bytes / 1e6, 0, BENCH_AT_MOST,
        6);
    row("without jobs, of a core at 15 s", "%", results->idle_percent, 0, BENCH_AT_MOST, 0.05);
    row("processes started", "", results->has_started, 0, BENCH_AT_MOST, 0);
}

static void put_series(FILE *to, const char *name, struct series *of, struct series *floor)
{
    fprintf(to, "| %s | %.0f | %.0f | %.0f | %.2f |\n", name, median(of), best(of), best(floor),
            best(of) / best(floor));
}

static void put_peer(FILE *to, const char *name, double ms, double ours)
{
    fprintf(to, "| %s | %.0f | - | - | 1/%.0f of it |\n", name, ms, ms / ours);
}

static void write_table(const struct settings *settings, struct results *results)
{
    struct setting *of = results->settings;
    struct floor_counts counts = floor_counts(of[ALL].floor);
    FILE *to = fopen(settings->table.p, "we");

    if (!to)
        bench_give_up("%s cannot be written", settings->table.p);
    fputs("| CPU of a sample and a scrape, ms | median | best | only reading the files | ratio |\n"
          "|---|--:|--:|--:|--:|\n",
          to);
    put_series(to, "cgroups alone", &of[ONLY_CGROUPS].agent_ms, &of[ONLY_CGROUPS].floor_ms);
    put_series(to, "everything, as it comes", &of[ALL].agent_ms, &of[ALL].floor_ms);
    put_series(to, "with `steps` and `tasks`", &of[STEPS].agent_ms, &of[STEPS].floor_ms);
    if (results->has_exporter)
        put_peer(to, "process-exporter, all its metrics", best(&results->exporter_ms),
                 best(&of[ALL].agent_ms));
    put_peer(to, "slurm-job-exporter, elsewhere", slurm_job_exporter_ms * scale(results),
             best(&of[ALL].agent_ms));
    put_peer(to, "cgroup_exporter, elsewhere; to cgroups alone",
             cgroup_exporter_ms * scale(results), best(&of[ONLY_CGROUPS].agent_ms));
    fprintf(to,
            "\n| memory, MB | resident | anonymous |\n|---|--:|--:|\n"
            "| with all these jobs | %.1f | %.1f |\n| after %d jobs that came and went | %.1f | "
            "%.1f |\n| after %d | %.1f | %.1f |\n| without jobs | %.1f | %.1f |\n",
            results->memory.resident_bytes / 1e6, results->memory.anonymous_bytes / 1e6, FEW_PASS,
            results->few.resident_bytes / 1e6, results->few.anonymous_bytes / 1e6, MANY_PASS,
            results->many.resident_bytes / 1e6, results->many.anonymous_bytes / 1e6,
            results->idle_memory.resident_bytes / 1e6, results->idle_memory.anonymous_bytes / 1e6);
    fprintf(
        to,
        "\n%d jobs, %d processes; cgroup v1; %ld cores; %zu rounds of %d samples. Without jobs, "
        "at 15 s: %.3f %% of\none core. Read in each sample: %zu files; in every fourth %zu "
        "more and the descriptors of %zu processes; in every\neighth %zu more.\n",
        (int)settings->jobs, (int)(settings->jobs * settings->processes),
        sysconf(_SC_NPROCESSORS_ONLN), of[ALL].agent_ms.n, TICKS, results->idle_percent,
        counts.each, counts.fourth, counts.descriptors, counts.eighth);
    if (fclose(to) != 0)
        bench_give_up("%s cannot be written", settings->table.p);
}

static void parse(int argc, char **argv, struct arena *arena, struct settings *settings)
{
    static const struct option_command command = {
        .name = "agent",
        .summary = "measure what the agent costs on a node with many jobs",
        .description = "tests/bench/agent/run starts this.",
        .options = options,
    };
    struct err err;
    char **rest;
    int outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, &err);

    if (outcome == OPTION_EXIT_OK)
        exit(0);
    if (outcome < 0)
        bench_give_up("%s", err.text);
    if (settings->rounds < 1 || settings->rounds > ROUNDS_MAX)
        bench_give_up("--rounds must be from 1 to %d", ROUNDS_MAX);
    if (!settings->agent.n || !settings->work.n)
        bench_give_up("--agent and --work are needed");
}

int main(int argc, char **argv)
{
    static struct results results = {
        .settings = {
            [ONLY_CGROUPS] = { .name = "the agent of cgroups", .log = "cgroups.log",
                               .flags = { "--collector.disable-defaults", "--collector.cgroup",
                                          "--collector.allocation" },
                               .floor_kind = FLOOR_CGROUPS },
            [ALL] = { .name = "the agent", .log = "all.log", .floor_kind = FLOOR_ALL },
            [STEPS] = { .name = "the agent with steps", .log = "steps.log",
                        .flags = { "--collector.steps", "--collector.tasks" },
                        .floor_kind = FLOOR_STEPS },
        },
    };
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct jobs jobs;

    parse(argc, argv, &arena, &settings);
    bench_begin(1, argv);
    jobs = (struct jobs){ .root = settings.root.p,
                          .work = settings.work.p,
                          .n = (unsigned)settings.jobs,
                          .processes = (unsigned)settings.processes };
    measure_idle(&settings, &results);
    measure_jobs(&settings, &jobs, &results);
    measure_passing(&settings, &jobs, &results);
    print_rows(&results);
    if (settings.table.n)
        write_table(&settings, &results);
    arena_clear(&arena);
    return 0;
}
