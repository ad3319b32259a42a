/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a refresh costs through each door into one real Slurm, and what Slurm's daemons pay for it:
 * tests/bench/doors/run makes the cluster and starts this. The doors take turns, round after round,
 * so that a slow moment of the machine falls on each alike; medians are shown. */
#include "base/option.h"
#include "base/spawn.h"
#include "snapshot/publish.h"
#include "source/cli.h"

#include "../bench.h"
#include "usage.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
    ROUNDS_MAX = 50,
    ANSWER_MAX = 1 << 30,
    DEADLINE_SECONDS = 300,
    SETTLE_SECONDS = 7, /* five after a change slurmctld saves its state */
    IDLE_SECONDS = 3,
};

struct settings {
    struct str bin, rest, helpers, table;
    uint64_t slurmctld, slurmrestd, rounds;
};

static const struct option options[] = {
    { "bin", OPTION_STRING, offsetof(struct settings, bin), "DIRECTORY", NULL, NULL, NULL,
      "Cluster", "Slurm's commands, and a wrapped true." },
    { "rest", OPTION_STRING, offsetof(struct settings, rest), "URL", NULL, NULL, NULL, "Cluster",
      "slurmrestd." },
    { "helpers", OPTION_STRING, offsetof(struct settings, helpers), "DIRECTORY", NULL, NULL, NULL,
      "Cluster", "The helpers of the door libslurm." },
    { "slurmctld", OPTION_UINT, offsetof(struct settings, slurmctld), "PID", NULL, NULL, NULL,
      "Cluster", "Its process." },
    { "slurmrestd", OPTION_UINT, offsetof(struct settings, slurmrestd), "PID", NULL, NULL, NULL,
      "Cluster", "Its process." },
    { "rounds", OPTION_UINT, offsetof(struct settings, rounds), "N", "5", NULL, NULL, "Measuring",
      "How often everything is measured." },
    { "table", OPTION_STRING, offsetof(struct settings, table), "FILE", NULL, NULL, NULL,
      "Measuring", "Where to write the table of docs/performance.md." },
    { 0 },
};

/* Something that is measured in every round. */
struct series {
    struct usage rounds[ROUNDS_MAX];
    size_t n;
};

static const enum kind kinds[] = { KIND_NODES, KIND_JOBS, KIND_DIAG };

/* The doors; refresh[i] and again[i] are those of kinds[i]. */
struct door {
    const char *name;
    bool remembers; /* it may be told that nothing has changed */
    struct source *source;
    struct series refresh[COUNT(kinds)], again[COUNT(kinds)];
    uint64_t bytes;      /* that were read for the jobs */
    uint64_t peak_bytes; /* of the largest process beside sonde's own */
};

enum { LIBSLURM, REST, JSON, CLI, DOORS };

static struct door doors[DOORS] = {
    [LIBSLURM] = { .name = "libslurm", .remembers = true },
    [REST] = { .name = "rest", .remembers = true },
    [JSON] = { .name = "json" },
    [CLI] = { .name = "cli" },
};

/* What doors are compared with. */
struct floors {
    struct series wrapper; /* a command that does nothing */
    struct series squeue;  /* sonde's format, thrown away */
    struct series piped;   /* the same through a pipe, and counted */
    struct series json;
    struct series render; /* of what was read, to /metrics */
    struct series idle;   /* while nobody asks */
    size_t jobs, nodes;
};

static pid_t daemons[DAEMONS];

static void pause_seconds(time_t seconds)
{
    nanosleep(&(struct timespec){ .tv_sec = seconds }, NULL);
}

static struct usage begin(void)
{
    return usage_now(daemons);
}

/* A daemon or a helper that has answered may have to clear up: that belongs to the answer. */
static struct usage usage_when_quiet(void)
{
    const struct timespec moment = { .tv_nsec = 100 * NS_PER_MS };
    struct usage before, now = usage_now(daemons);

    do {
        before = now;
        nanosleep(&moment, NULL);
        now = usage_now(daemons);
    } while (now.cpu - before.cpu + now.daemons[SLURMRESTD] - before.daemons[SLURMRESTD] > 0.002);
    return now;
}

static void end(struct series *series, const struct usage *begun)
{
    double wall = bench_wall_seconds();
    struct usage now = usage_when_quiet();

    now.wall = wall;
    series->rounds[series->n++] = usage_between(begun, &now);
}

/* Runs one of Slurm's commands with what it prints thrown away, and returns the most memory of it.
 */
static uint64_t run_command(const struct settings *settings, const char *const *flags,
                            const char *format)
{
    char path[4096], *argv[8] = { path };
    char *env[] = { (char *)"SLURM_TIME_FORMAT=%s", (char *)format, NULL };
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    int status;
    pid_t pid;

    snprintf(path, sizeof(path), "%.*s/%s", STR_ARG(settings->bin), flags[0]);
    for (size_t i = 1; flags[i]; i++)
        argv[i] = (char *)flags[i];
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid, path, &actions, NULL, argv, env) != 0)
        bench_give_up("%s cannot be started", path);
    posix_spawn_file_actions_destroy(&actions);
    if (wait4(pid, &status, 0, &usage) != pid || status != 0)
        bench_give_up("%s has failed", path);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* As the door cli asks: the format is told by the environment. */
static const char *const squeue_flags[] = { "squeue",       "--noheader", "--all", "--local",
                                            "--states=all", "--array",    NULL };
static const char *const json_flags[] = { "squeue",       "--all",  "--local",
                                          "--states=all", "--json", NULL };
static const char *const true_flags[] = { "true", NULL };

static void make_format(struct buf *to)
{
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_squeue, section, SIZE_MAX);

    buf_init(to, 65536);
    buf_put(to, STR("SQUEUE_FORMAT2="));
    answer_squeue.put_format(answer, to);
    buf_put(to, (struct str){ "", 1 });
    answer_free(answer);
    section_unref(section);
}

static int count_piece(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    *(size_t *)ctx += piece.n;
    return 0;
}

static size_t run_piped(const struct settings *settings, const char *format)
{
    char path[4096];
    const char *argv[8] = { path }, *env[] = { "SLURM_TIME_FORMAT=%s", format, NULL };
    size_t bytes = 0;
    struct spawn_result result;
    struct err err;

    snprintf(path, sizeof(path), "%.*s/squeue", STR_ARG(settings->bin));
    for (size_t i = 1; squeue_flags[i]; i++)
        argv[i] = squeue_flags[i];
    if (spawn_run(
            &(struct spawn){ .argv = argv,
                             .env = env,
                             .deadline_ns = clock_mono(&clock_real) + DEADLINE_SECONDS * NS_PER_SEC,
                             .max_output = ANSWER_MAX,
                             .sink = count_piece,
                             .ctx = &bytes },
            &result, &err) < 0)
        bench_give_up("%s", err.text);
    return bytes;
}

/* What the daemons do unasked. */
static void measure_idle(struct series *to)
{
    struct usage begun = begin();

    pause_seconds(IDLE_SECONDS);
    end(to, &begun);
}

static void measure_floors(const struct settings *settings, struct floors *floors,
                           const char *format)
{
    struct usage begun = begin();

    run_command(settings, true_flags, NULL);
    end(&floors->wrapper, &begun);

    begun = begin();
    doors[CLI].peak_bytes = run_command(settings, squeue_flags, format);
    end(&floors->squeue, &begun);

    begun = begin();
    if (run_piped(settings, format) == 0)
        bench_give_up("squeue has printed nothing");
    end(&floors->piped, &begun);

    begun = begin();
    doors[JSON].peak_bytes = run_command(settings, json_flags, NULL);
    end(&floors->json, &begun);
}

/* So that Slurm cannot say that nothing is new. */
static void change_something(const struct settings *settings)
{
    unsigned now = (unsigned)time(NULL) % 1000000;
    char job[64], node[64];

    snprintf(job, sizeof(job), "comment=at%u", now);
    snprintf(node, sizeof(node), "weight=%u", now);
    run_command(settings, (const char *[]){ "scontrol", "update", "jobid=1", job, NULL }, NULL);
    run_command(settings, (const char *[]){ "scontrol", "update", "nodename=n2000", node, NULL },
                NULL);
}

static struct section *look(struct door *door, enum kind kind)
{
    char warning[SOURCE_WARNING] = "";
    struct section *section;
    struct err err;
    int code = door->source->class->read(door->source, kind,
                                         clock_mono(&clock_real) + DEADLINE_SECONDS * NS_PER_SEC,
                                         &section, warning, &err);

    if (code < 0)
        bench_give_up("%s: %s: %s", door->name, kind_name(kind), err.text);
    if (section->skipped)
        bench_give_up("%s: %s: %llu records were left out", door->name, kind_name(kind),
                      (unsigned long long)section->skipped);
    return section;
}

/* Every door must have seen the same. */
static void compare(const char *name, const char *what, size_t seen, size_t *first)
{
    if (!*first)
        *first = seen;
    if (seen != *first)
        bench_give_up("%s: %zu %s, and %zu through another door", name, seen, what, *first);
}

static void refresh(struct door *door, struct series to[], struct section *sections[])
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct usage begun = begin();

        sections[i] = look(door, kinds[i]);
        end(&to[i], &begun);
    }
}

static void release(struct section *sections[])
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        section_unref(sections[i]);
}

static void measure_render(struct series *to, struct section *sections[])
{
    static const struct publish_config config = {
        .collectors = (collector_set)-1,
        .max_segment = 64 << 20,
        .clock = &clock_real,
    };
    struct usage begun = begin();

    for (size_t i = 0; i < COUNT(kinds); i++)
        edition_unref(edition_new(&config, sections[i], FORMAT_BIT(METRIC_TEXT)));
    end(to, &begun);
}

static void measure_door(struct door *door, struct floors *floors)
{
    struct section *sections[COUNT(kinds)];

    refresh(door, door->refresh, sections);
    compare(door->name, "nodes", sections[0]->nodes.n, &floors->nodes);
    compare(door->name, "jobs", sections[1]->jobs.n, &floors->jobs);
    if (sections[1]->same_as)
        bench_give_up("%s: it was told that no job has changed, but one has", door->name);
    door->bytes = sections[1]->bytes_read;
    if (door == &doors[CLI])
        measure_render(&floors->render, sections);
    release(sections);
}

/* Nothing has changed since the last look, and that was long enough after a change: Slurm counts in
 * whole seconds. A door that could not know so in the first round is not tried in the others. */
static void measure_again(struct door *door)
{
    struct section *sections[COUNT(kinds)];

    refresh(door, door->again, sections);
    door->remembers = sections[1]->same_as != NULL;
    release(sections);
}

static void open_doors(const struct settings *settings)
{
    for (size_t i = 0; i < DOORS; i++) {
        struct source_settings source = {
            .spec = str_of(doors[i].name),
            .bin_path = settings->bin,
            .rest_url = settings->rest,
            .helper_dir = settings->helpers,
            .max_answer = ANSWER_MAX,
        };
        struct err err;

        if (source_open(&source, &clock_real, &doors[i].source, &err) < 0)
            bench_give_up("%s: %s", doors[i].name, err.text);
    }
}

/* Every door has looked before the change, and so must be told everything anew. */
static void measure(const struct settings *settings, struct floors *floors)
{
    struct buf format;

    make_format(&format);
    for (size_t round = 0; round < settings->rounds; round++) {
        fprintf(stderr, "doors: round %zu of %zu\n", round + 1, (size_t)settings->rounds);
        change_something(settings);
        pause_seconds(SETTLE_SECONDS);
        measure_idle(&floors->idle);
        measure_floors(settings, floors, format.p);
        for (size_t i = 0; i < DOORS; i++) {
            measure_door(&doors[i], floors);
            if (doors[i].remembers)
                measure_again(&doors[i]);
        }
    }
    doors[LIBSLURM].peak_bytes = usage_peak_bytes(usage_child()); /* the helper, which stays */
    doors[REST].peak_bytes = usage_peak_bytes(daemons[SLURMRESTD]);
    buf_free(&format);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const struct series *series, size_t member_offset)
{
    double values[ROUNDS_MAX] = { 0 };

    for (size_t i = 0; i < series->n; i++)
        values[i] = *(const double *)((const char *)&series->rounds[i] + member_offset);
    qsort(values, series->n, sizeof(values[0]), compare_doubles);
    return values[series->n / 2];
}

static double cpu_ms(const struct series *series)
{
    return median(series, offsetof(struct usage, cpu)) * 1e3;
}

static double wall_ms(const struct series *series)
{
    return median(series, offsetof(struct usage, wall)) * 1e3;
}

static double total(const struct series *series, size_t member_offset)
{
    double sum = 0;

    for (size_t i = 0; i < series->n; i++)
        sum += *(const double *)((const char *)&series->rounds[i] + member_offset);
    return sum;
}

/* Beyond what the daemon does when nobody asks. */
static double daemon_ms(const struct floors *floors, const struct series *series,
                        enum daemon daemon)
{
    size_t member = offsetof(struct usage, daemons) + daemon * sizeof(double);
    double idle = total(&floors->idle, member) / total(&floors->idle, offsetof(struct usage, wall));
    double used = median(series, member) * 1e3 - idle * wall_ms(series);

    return used > 0 ? used : 0;
}

/* All kinds together, round by round. */
static struct series sum(const struct series parts[])
{
    struct series all = { .n = parts[0].n };

    for (size_t round = 0; round < all.n; round++)
        for (size_t i = 0; i < COUNT(kinds); i++) {
            all.rounds[round].cpu += parts[i].rounds[round].cpu;
            all.rounds[round].wall += parts[i].rounds[round].wall;
            for (int d = 0; d < DAEMONS; d++)
                all.rounds[round].daemons[d] += parts[i].rounds[round].daemons[d];
        }
    return all;
}

static void row(const char *door, const char *what, double ms, double reference, double limit)
{
    char name[64];

    snprintf(name, sizeof(name), "%s: %s", door, what);
    bench_row(&(struct bench_row){ name, "ms", ms, reference,
                                   limit > 0 ? BENCH_RATIO_AT_MOST : BENCH_NO_GOAL, limit });
}

/* The goal of libslurm: squeue and reading what it prints. */
static void print_rows(const struct floors *floors)
{
    struct series cli = sum(doors[CLI].refresh);

    row("squeue", "jobs, thrown away", cpu_ms(&floors->squeue), 0, 0);
    row("squeue", "jobs, through a pipe", cpu_ms(&floors->piped), 0, 0);
    row("squeue", "jobs, --json, thrown away", cpu_ms(&floors->json), 0, 0);
    for (size_t i = 0; i < DOORS; i++) {
        const struct door *door = &doors[i];
        struct series refresh = sum(door->refresh), again = sum(door->again);
        double limit = i == LIBSLURM ? 0.6 : 0;

        row(door->name, "jobs, CPU", cpu_ms(&door->refresh[1]), cpu_ms(&doors[CLI].refresh[1]),
            limit);
        row(door->name, "refresh, CPU", cpu_ms(&refresh), cpu_ms(&cli), limit);
        if (door->remembers)
            row(door->name, "refresh, CPU, no job changed", cpu_ms(&again), cpu_ms(&cli), 0);
        row(door->name, "refresh, wall time", wall_ms(&refresh), wall_ms(&cli), 0);
        row(door->name, "refresh, slurmctld's CPU", daemon_ms(floors, &refresh, SLURMCTLD),
            daemon_ms(floors, &cli, SLURMCTLD), 0);
        if (i == REST)
            row(door->name, "refresh, slurmrestd's CPU", daemon_ms(floors, &refresh, SLURMRESTD), 0,
                0);
    }
    row("all", "rendering what was read", cpu_ms(&floors->render), 0, 0);
    row("sandbox", "entering it for one command", cpu_ms(&floors->wrapper), 0, 0);
}

static void put_cell(FILE *to, double value)
{
    if (value < 0)
        fputs(" - |", to);
    else
        fprintf(to, " %.*f |", value < 10 ? 1 : 0, value);
}

/* A row of milliseconds and megabytes; what is negative is not there. */
static void put_row(FILE *to, const char *name, const double *cells, size_t n)
{
    fprintf(to, "| %s |", name);
    for (size_t i = 0; i < n; i++)
        put_cell(to, cells[i]);
    fputc('\n', to);
}

static void put_door(FILE *to, const struct floors *floors, const struct door *door)
{
    struct series refresh = sum(door->refresh), again = sum(door->again);
    char name[32];
    double cells[] = {
        cpu_ms(&door->refresh[1]),
        cpu_ms(&refresh),
        door->remembers ? cpu_ms(&again) : -1,
        daemon_ms(floors, &refresh, SLURMCTLD),
        door == &doors[REST] ? daemon_ms(floors, &refresh, SLURMRESTD) : -1,
        wall_ms(&refresh),
        (double)door->bytes / 1e6,
        (double)door->peak_bytes / 1e6,
    };

    snprintf(name, sizeof(name), "`%s`", door->name);
    put_row(to, name, cells, COUNT(cells));
}

static void put_floor(FILE *to, const struct floors *floors, const char *name,
                      const struct series *series)
{
    double cells[] = {
        cpu_ms(series), -1, -1, daemon_ms(floors, series, SLURMCTLD), -1, wall_ms(series), -1, -1,
    };

    put_row(to, name, cells, COUNT(cells));
}

static void write_table(const struct floors *floors, struct str path)
{
    struct source_about about;
    char name[4096];
    FILE *to;

    snprintf(name, sizeof(name), "%.*s", STR_ARG(path));
    to = fopen(name, "we");
    if (!to)
        bench_give_up("%s cannot be written", name);
    fputs("| door | CPU, jobs | CPU, refresh | CPU, no job changed | slurmctld | slurmrestd | "
          "wall time | read, MB | memory, MB |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
          to);
    for (size_t i = 0; i < DOORS; i++)
        put_door(to, floors, &doors[i]);
    put_floor(to, floors, "squeue alone, in the format of `cli`", &floors->squeue);
    put_floor(to, floors, "squeue alone, `--json`", &floors->json);
    source_tell(doors[LIBSLURM].source, &about);
    fprintf(
        to,
        "\nSlurm %s, %zu jobs, %zu nodes; %ld cores; medians of %zu rounds.\nRendering what was "
        "read takes another %.0f ms of CPU, whatever the door.\n",
        about.interface, floors->jobs, floors->nodes, sysconf(_SC_NPROCESSORS_ONLN),
        floors->squeue.n, cpu_ms(&floors->render));
    if (fclose(to) != 0)
        bench_give_up("%s cannot be written", name);
}

static void parse(int argc, char **argv, struct arena *arena, struct settings *settings)
{
    static const struct option_command command = {
        .name = "doors",
        .summary = "measure what a refresh costs through each door into Slurm",
        .description = "tests/bench/doors/run starts this.",
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
}

int main(int argc, char **argv)
{
    static struct floors floors;
    struct settings settings = { 0 };
    struct arena arena = { 0 };

    parse(argc, argv, &arena, &settings);
    bench_begin(1, argv);
    daemons[SLURMCTLD] = (pid_t)settings.slurmctld;
    daemons[SLURMRESTD] = (pid_t)settings.slurmrestd;
    open_doors(&settings);
    measure(&settings, &floors);
    print_rows(&floors);
    if (settings.table.n)
        write_table(&floors, settings.table);
    for (size_t i = 0; i < DOORS; i++)
        source_close(doors[i].source);
    arena_clear(&arena);
    return 0;
}
