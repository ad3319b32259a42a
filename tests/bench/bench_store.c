/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs with all fields that accounting gives, put into a store in batches: how many a second of
 * CPU, and what each takes of the file, with its indexes, its life and its texts. The reference is
 * one bare table without an index, into which the same values are inserted as they are. */
#include "store/store.h"

#include "bench.h"

#include <inttypes.h>
#include <sqlite3.h>

enum { JOBS = 200000, BATCH = 10000, USERS = 500, NODES = 1000, EXTRAS = 16 };

struct generated {
    struct job_record record;
    struct record_extra extra[EXTRAS];
    char user[32], account[32], name[64], nodes[96], tres[128], tres_requested[128];
    char association[16], index[24], wait[16];
    char work_dir[160], submit_line[256], std_out[200], std_err[200];
};

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static void make_texts(struct generated *to, uint32_t id, uint64_t *random)
{
    static const char *const programs[] = { "train", "relax", "sweep", "eval", "namd", "blast" };
    static const char *const types[] = { "a100", "v100", "h100", "rtx8000" };
    unsigned user = (unsigned)(next_random(random) % USERS);
    unsigned node = (unsigned)(next_random(random) % NODES);
    unsigned project = (unsigned)(next_random(random) % 12);
    unsigned run = (unsigned)(next_random(random) % 400);
    unsigned gpus = (unsigned)(next_random(random) % 3);
    const char *program = programs[next_random(random) % COUNT(programs)];
    const char *type = types[next_random(random) % COUNT(types)];

    snprintf(to->user, sizeof(to->user), "user%04u", user);
    snprintf(to->account, sizeof(to->account), "project%03u", user % 90);
    snprintf(to->name, sizeof(to->name), "%s-%u-%u", program, project, run);
    if (next_random(random) % 8)
        snprintf(to->nodes, sizeof(to->nodes), "cn%04u", node);
    else
        snprintf(to->nodes, sizeof(to->nodes), "cn[%04u-%04u]", node, node + 3);
    snprintf(to->tres, sizeof(to->tres),
             gpus ? "billing=%u,cpu=%u,gres/gpu:%s=%u,gres/gpu=%u,mem=%uG,node=1"
                  : "billing=%u,cpu=%u,mem=32G,node=1",
             8 + gpus, 8 + gpus, type, gpus, gpus, 32 * gpus);
    snprintf(to->tres_requested, sizeof(to->tres_requested), "%s", to->tres);
    snprintf(to->association, sizeof(to->association), "%u", 1000 + user);
    snprintf(to->index, sizeof(to->index), "87748%014" PRIu64,
             (next_random(random) << 16) % UINT64_C(100000000000000));
    snprintf(to->wait, sizeof(to->wait), "%02u:%02u:%02u", run % 24, node % 60, run % 60);
    snprintf(to->work_dir, sizeof(to->work_dir), "/home/%s/projects/p%u/runs/%s-%u", to->user,
             project, program, run);
    snprintf(to->submit_line, sizeof(to->submit_line),
             "sbatch --job-name=%s --partition=long --gres=gpu:%s:%u --cpus-per-task=8 "
             "--mem=%uG --time=2-00:00:00 %s.sh --seed %u --lr 0.%04u",
             to->name, type, gpus, 32 * gpus, program, id % 1000, run);
    snprintf(to->std_out, sizeof(to->std_out), "%s/logs/slurm-%u.out", to->work_dir, id);
    snprintf(to->std_err, sizeof(to->std_err), "%s/logs/slurm-%u.err", to->work_dir, id);
}

static void make_extras(struct generated *to)
{
    const struct record_extra extra[EXTRAS] = {
        { STR("AllocNode"), STR("login2") },
        { STR("AssocID"), str_of(to->association) },
        { STR("Constraints"), STR("x86_64&(turing|volta)") },
        { STR("DBIndex"), str_of(to->index) },
        { STR("DerivedExitCode"), STR("0:0") },
        { STR("Flags"), STR("SchedBackfill,StartReceived") },
        { STR("GID"), str_of(to->association) },
        { STR("Group"), str_of(to->account) },
        { STR("Planned"), str_of(to->wait) },
        { STR("ReqCPUFreqMax"), STR("Unknown") },
        { STR("ReqCPUFreqMin"), STR("Unknown") },
        { STR("StdErr"), str_of(to->std_err) },
        { STR("StdIn"), STR("/dev/null") },
        { STR("StdOut"), str_of(to->std_out) },
        { STR("SubmitLine"), str_of(to->submit_line) },
        { STR("WorkDir"), str_of(to->work_dir) },
    };

    memcpy(to->extra, extra, sizeof(extra));
    to->record.extra = to->extra;
    to->record.n_extra = EXTRAS;
}

/* The same for the same index. */
static void make_job(struct generated *to, uint32_t index)
{
    static const enum job_base ends[] = { JOB_COMPLETED, JOB_COMPLETED, JOB_COMPLETED,
                                          JOB_FAILED,    JOB_CANCELLED, JOB_TIMEOUT };
    static const char *const partitions[] = { "long", "main", "short", "gpu" };
    uint64_t random = index;
    struct job_record *record = &to->record;
    uint32_t id = 4000000 + index;
    int64_t wait, seconds;

    make_texts(to, id, &random);
    wait = (int64_t)(next_random(&random) % 20000);
    seconds = (int64_t)(next_random(&random) % 90000);
    job_record_clear(record);
    make_extras(to);
    record->id = id;
    record->submit_time = 1700000000 + index * 3;
    record->eligible_time = record->submit_time;
    record->start_time = record->submit_time + wait;
    record->end_time = record->start_time + seconds;
    record->as_of = record->end_time + 600;
    record->origin = RECORD_ACCOUNTED;
    record->state.base = (uint8_t)ends[next_random(&random) % COUNT(ends)];
    record->user = str_of(to->user);
    record->account = str_of(to->account);
    record->partition = str_of(partitions[index % COUNT(partitions)]);
    record->qos = STR("normal");
    record->name = str_of(to->name);
    record->nodes = str_of(to->nodes);
    record->tres = str_of(to->tres);
    record->tres_requested = str_of(to->tres_requested);
    record->user_id = 10000 + (uint32_t)(next_random(&random) % USERS);
    record->restarts = 0;
    record->cpus = 8;
    record->node_count = 1;
    record->memory_bytes = UINT64_C(32) << 30;
    record->time_limit_minutes = 2880;
    record->priority = 4294000000 - index;
    record->suspended_seconds = 0;
    record->exit_code = record->state.base == JOB_FAILED;
    record->exit_signal = 0;
    record->cpu_seconds = (double)seconds * 6.3;
    record->user_seconds = (double)seconds * 6.1;
    record->system_seconds = (double)seconds * 0.2;
    record->memory_peak_bytes = next_random(&random) << 10;
    record->read_bytes = next_random(&random) * 100;
    record->write_bytes = next_random(&random);
    if (index % 3 == 0) {
        record->array_job_id = id - id % 100;
        record->array_task_id = id % 100;
    }
}

static struct generated batch[BATCH];

static void make_batch(uint32_t first)
{
    for (uint32_t i = 0; i < BATCH; i++)
        make_job(&batch[i], first + i);
}

static void put_batch(struct store *store)
{
    struct err err;

    if (store_begin(store, &err) < 0)
        bench_give_up("%s", err.text);
    for (uint32_t i = 0; i < BATCH; i++)
        if (store_put_job(store, STR("cluster"), &batch[i].record, &err) < 0)
            bench_give_up("%s", err.text);
    if (store_commit(store, &err) < 0)
        bench_give_up("%s", err.text);
}

/* The seconds that it took, without the making. */
static double put_all(const char *path)
{
    struct store *store;
    struct err err;
    double seconds = 0;

    if (store_open(str_of(path), false, &store, &err) < 0)
        bench_give_up("%s", err.text);
    for (uint32_t i = 0; i < JOBS; i += BATCH) {
        make_batch(i);
        seconds -= bench_cpu_seconds();
        put_batch(store);
        seconds += bench_cpu_seconds();
    }
    store_close(store);
    return seconds;
}

static void check(int code, int expected, sqlite3 *db)
{
    if (code != expected)
        bench_give_up("the bare table: %s", sqlite3_errmsg(db));
}

static void insert_bare(sqlite3 *db, sqlite3_stmt *statement, const struct generated *job)
{
    const struct job_record *record = &job->record;
    const int64_t numbers[] = {
        record->id,
        record->submit_time,
        record->eligible_time,
        record->start_time,
        record->end_time,
        (int64_t)record->cpu_seconds,
        record->cpus,
        (int64_t)record->memory_bytes,
        (int64_t)record->priority,
        record->user_id,
        record->time_limit_minutes,
        (int64_t)record->memory_peak_bytes,
        record->array_job_id,
        record->array_task_id,
        (int64_t)record->read_bytes,
        record->exit_code,
        record->node_count,
        (int64_t)record->write_bytes,
    };
    const char *const texts[] = {
        job->user,           job->account,  job->name,        job->nodes,   job->tres,
        job->tres_requested, job->work_dir, job->submit_line, job->std_out, job->std_err,
    };
    int at = 1;

    for (size_t i = 0; i < COUNT(numbers); i++)
        sqlite3_bind_int64(statement, at++, numbers[i]);
    for (size_t i = 0; i < COUNT(texts); i++)
        sqlite3_bind_text(statement, at++, texts[i], -1, SQLITE_STATIC);
    check(sqlite3_step(statement), SQLITE_DONE, db);
    sqlite3_reset(statement);
}

static double put_all_bare(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    double seconds = 0;

    check(sqlite3_open(path, &db), SQLITE_OK, db);
    check(sqlite3_exec(db,
                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE job("
                       "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y,"
                       " z, aa, bb)",
                       NULL, NULL, NULL),
          SQLITE_OK, db);
    check(sqlite3_prepare_v2(db,
                             "INSERT INTO job VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                             "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             -1, &statement, NULL),
          SQLITE_OK, db);
    for (uint32_t i = 0; i < JOBS; i += BATCH) {
        make_batch(i);
        seconds -= bench_cpu_seconds();
        check(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK, db);
        for (uint32_t k = 0; k < BATCH; k++)
            insert_bare(db, statement, &batch[k]);
        check(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK, db);
        seconds += bench_cpu_seconds();
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return seconds;
}

static double file_bytes(const char *path)
{
    FILE *file = fopen(path, "re");
    long bytes;

    if (!file || fseek(file, 0, SEEK_END) < 0 || (bytes = ftell(file)) < 0)
        bench_give_up("cannot look at %s", path);
    fclose(file);
    return (double)bytes;
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/bench_store.XXXXXX", path[64], bare[64], log[80];
    double store_seconds, bare_seconds;

    bench_begin(argc, argv);
    if (!mkdtemp(directory))
        bench_give_up("cannot make a directory in /tmp");
    snprintf(path, sizeof(path), "%s/store.db", directory);
    snprintf(bare, sizeof(bare), "%s/bare.db", directory);
    bare_seconds = put_all_bare(bare);
    store_seconds = put_all(path);
    bench_row(&(struct bench_row){ .name = "store: put jobs, batches of 10,000",
                                   .unit = "jobs/s",
                                   .measured = JOBS / store_seconds,
                                   .reference = JOBS / bare_seconds,
                                   .goal = BENCH_AT_LEAST,
                                   .limit = 30000 });
    bench_row(&(struct bench_row){ .name = "store: a job with all fields",
                                   .unit = "bytes",
                                   .measured = file_bytes(path) / JOBS,
                                   .reference = file_bytes(bare) / JOBS,
                                   .goal = BENCH_AT_MOST,
                                   .limit = 700 });
    for (size_t i = 0; i < 3; i++) {
        static const char *const suffixes[] = { "", "-wal", "-shm" };

        snprintf(log, sizeof(log), "%s%s", path, suffixes[i]);
        unlink(log);
    }
    unlink(bare);
    rmdir(directory);
    return 0;
}
