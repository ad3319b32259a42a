/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the present of a large cluster costs: adding it up once, and a page of its jobs. */
#include "record/recorder.h"
#include "source/sim.h"
#include "web/board_store.h"
#include "web/queue.h"

#include "bench.h"

#include <math.h>

enum { JOBS = 100000, NODES = 10000, ROUNDS = 15, ROWS = 100 };

static const int64_t now = 1767225600;
static const atomic_bool never;
static const struct sim sim = { .nodes = NODES, .jobs = JOBS, .seed = 1 };

static struct board *make_board(struct section *nodes, struct section *jobs)
{
    struct board *board = board_new(1, now);

    board->cluster[0].name = STR("bench");
    board->cluster[0].section[KIND_NODES] = section_ref(nodes);
    board->cluster[0].section[KIND_JOBS] = section_ref(jobs);
    return board;
}

struct summing {
    struct section *nodes, *jobs;
};

static void run_sum(void *ctx)
{
    const struct summing *summing = ctx;
    struct board *board = make_board(summing->nodes, summing->jobs);

    board_sum(board);
    board_unref(board);
}

struct asking {
    const struct board *board;
    struct job_filter filter;
    struct viewer viewer;
    struct queue_question question;
    uint64_t matches;
};

static void run_find(void *ctx)
{
    struct asking *asking = ctx;
    struct arena arena = { 0 };
    struct queue_page page;
    struct err err;

    if (queue_find(asking->board, &asking->question, &arena, &page, &err) < 0)
        bench_give_up("%s", err.text);
    asking->matches = page.matches;
    arena_clear(&arena);
}

static void begin_asking(struct asking *asking, const struct board *board)
{
    *asking = (struct asking){ .board = board, .viewer = { .is_staff = true } };
    job_filter_clear(&asking->filter);
    asking->question = (struct queue_question){
        .filter = &asking->filter,
        .sort = QUEUE_BY_SUBMIT,
        .is_descending = true,
        .limit = ROWS,
        .viewer = &asking->viewer,
        .now = now,
    };
}

/* What each question has beside the first, which has nothing. */
static void ask_by_name(struct asking *asking)
{
    asking->question.sort = QUEUE_BY_NAME;
}

static void ask_by_elapsed(struct asking *asking)
{
    asking->question.sort = QUEUE_BY_ELAPSED;
}

static void ask_far_behind(struct asking *asking)
{
    asking->question.sort = QUEUE_BY_USER;
    asking->question.offset = JOBS / 2;
    asking->question.limit = QUEUE_ROWS_MAX;
}

static void ask_for_text(struct asking *asking)
{
    asking->question.text = STR("TRAIN");
}

static void ask_for_id(struct asking *asking)
{
    asking->question.text = STR("17");
    asking->question.sort = QUEUE_BY_ID;
}

static void ask_for_node(struct asking *asking)
{
    static struct str node;
    const struct section *nodes = asking->board->cluster[0].section[KIND_NODES];

    node = section_text(nodes, nodes->nodes.node[NODES / 2].name);
    asking->filter.nodes = (struct words){ &node, 1 };
}

static void ask_as_user(struct asking *asking)
{
    asking->viewer = (struct viewer){ .user = asking->board->cluster[0].sums.user[0].name };
    asking->question.sort = QUEUE_BY_MEMORY;
}

static void ask_for_all_at_once(struct asking *asking)
{
    static const struct str states[] = { STR_INIT("RUNNING"), STR_INIT("PENDING") };

    asking->filter.partitions =
        (struct words){ &asking->board->cluster[0].sums.partition[0].jobs.name, 1 };
    asking->filter.states = (struct words){ states, COUNT(states) };
    asking->filter.min_cpus = 2;
    asking->question.text = STR("e");
    asking->question.sort = QUEUE_BY_PRIORITY;
}

static const struct {
    const char *name;
    void (*set)(struct asking *asking);
    double goal_ms;
} questions[] = {
    { "100,000 jobs: a page of all", NULL, 1.5 },
    { "100,000 jobs: by name", ask_by_name, 15 },
    { "100,000 jobs: by elapsed time", ask_by_elapsed, 15 },
    { "100,000 jobs: by user, page of the middle", ask_far_behind, 15 },
    { "100,000 jobs: with a text", ask_for_text, 15 },
    { "100,000 jobs: with a text of their id", ask_for_id, 15 },
    { "100,000 jobs: on a node", ask_for_node, 15 },
    { "100,000 jobs: of a user, who may see no other", ask_as_user, 15 },
    { "100,000 jobs: several filters at once", ask_for_all_at_once, 15 },
};

static void measure_finding(const struct board *board)
{
    struct asking askings[COUNT(questions)];
    struct bench_run runs[COUNT(questions)];

    for (size_t i = 0; i < COUNT(questions); i++) {
        begin_asking(&askings[i], board);
        if (questions[i].set)
            questions[i].set(&askings[i]);
        runs[i] = (struct bench_run){ .run = run_find, .ctx = &askings[i] };
    }
    bench_measure(runs, COUNT(runs), ROUNDS);
    for (size_t i = 0; i < COUNT(questions); i++) {
        if (!askings[i].matches)
            bench_give_up("%s: there are none", questions[i].name);
        bench_row(&(struct bench_row){ questions[i].name, "ms", runs[i].median_seconds * 1e3, 0,
                                       BENCH_AT_MOST, questions[i].goal_ms });
    }
}

/* The worst for what is found out once for each text: no two jobs are called alike. */
static struct section *jobs_with_names_of_their_own(void)
{
    struct section *jobs = sim_section(&sim, KIND_JOBS, now);

    for (uint32_t i = 0; i < jobs->jobs.n; i++) {
        char name[40];
        int n = snprintf(name, sizeof(name), "experiment-%u", i * 2654435761u);

        jobs->jobs.job[i].name = symbols_put(&jobs->symbols, (struct str){ name, (size_t)n });
    }
    return jobs;
}

static void measure_names(struct section *nodes)
{
    struct summing summing = { nodes, jobs_with_names_of_their_own() };
    struct board *board = make_board(nodes, summing.jobs);
    struct asking asking;
    struct bench_run runs[] = { { .run = run_sum, .ctx = &summing },
                                { .run = run_find, .ctx = &asking } };

    board_sum(board);
    begin_asking(&asking, board);
    asking.question.text = STR("777");
    asking.question.sort = QUEUE_BY_NAME;
    bench_measure(runs, COUNT(runs), ROUNDS);
    bench_row(&(struct bench_row){ "add up, each job with a name of its own", "ms",
                                   runs[0].median_seconds * 1e3, 0, BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "100,000 names: with a text, by name", "ms",
                                   runs[1].median_seconds * 1e3, 0, BENCH_AT_MOST, 15 });
    board_unref(board);
    section_unref(summing.jobs);
}

/* A store as an exporter writes it. */
static void fill_store(const char *path, const struct summing *seen, struct log *log)
{
    const struct recorded_cluster cluster = { .name = STR("bench") };
    const struct recorder_config config = { .url = str_of(path),
                                            .is_simulated = true,
                                            .clusters = &cluster,
                                            .n_clusters = 1,
                                            .clock = &clock_real,
                                            .log = log };
    struct recorder *recorder;
    struct recorder_stats stats;
    struct err err;

    if (recorder_start(&config, &recorder, &err) < 0)
        bench_give_up("%s", err.text);
    seen->jobs->wall_ns = seen->nodes->wall_ns = clock_wall(&clock_real);
    recorder_note(recorder, 0, seen->nodes);
    recorder_note(recorder, 0, seen->jobs);
    do {
        const char *name = "any";
        int64_t value;

        if (recorder_get_marks(recorder, 0, &name, &value, 1, INT64_MAX, &never, &err) < 0)
            bench_give_up("%s", err.text);
        recorder_stats(recorder, &stats);
    } while (stats.jobs + stats.skipped < seen->jobs->jobs.n);
    recorder_stop(recorder);
}

static void take_board(const char *path)
{
    double began = bench_cpu_seconds();
    struct board_store *boards;
    struct board_source source;
    struct board *board;
    struct err err;

    if (board_store_open(path, &clock_real, &boards, &err) < 0)
        bench_give_up("%s", err.text);
    source = board_store_source(boards);
    board = source.take(source.ctx, INT64_MAX, &err);
    if (!board)
        bench_give_up("%s", err.text);
    bench_row(&(struct bench_row){ "a board from a store", "ms",
                                   (bench_cpu_seconds() - began) * 1e3, 0, BENCH_NO_GOAL, 0 });
    if (!board->cluster[0].section[KIND_JOBS] || !board->cluster[0].section[KIND_NODES])
        bench_give_up("the board of the store is not complete");
    board_unref(board);
    board_store_close(boards);
}

static void measure_store(const struct summing *seen)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    char directory[] = "/var/tmp/sonde-bench-XXXXXX", path[64], file[80];
    struct log *log = log_new(STDERR_FILENO, LOG_WARN, &clock_real);

    if (!mkdtemp(directory))
        bench_give_up("cannot make a directory in /var/tmp");
    snprintf(path, sizeof(path), "%s/store.db", directory);
    fill_store(path, seen, log);
    take_board(path);
    for (size_t i = 0; i < COUNT(ends); i++) {
        snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        unlink(file);
    }
    rmdir(directory);
    log_free(log);
}

int main(int argc, char **argv)
{
    struct summing summing = { .nodes = sim_section(&sim, KIND_NODES, now),
                               .jobs = sim_section(&sim, KIND_JOBS, now) };
    struct bench_run run = { .run = run_sum, .ctx = &summing };
    struct board *board = make_board(summing.nodes, summing.jobs);

    bench_begin(argc, argv);
    bench_measure(&run, 1, ROUNDS);
    bench_row(&(struct bench_row){ "add up 100,000 jobs and 10,000 nodes", "ms",
                                   run.median_seconds * 1e3, 0, BENCH_AT_MOST, 30 });
    board_sum(board);
    bench_row(&(struct bench_row){ "add up: what is kept beside the sections", "MB",
                                   (double)board->arena.total_bytes / 1e6, 0, BENCH_NO_GOAL, 0 });
    measure_finding(board);
    measure_names(summing.nodes);
    measure_store(&summing);
    board_unref(board);
    section_unref(summing.nodes);
    section_unref(summing.jobs);
    return 0;
}
