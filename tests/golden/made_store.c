/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the store that the tests of `sonde jobs` and `sonde usage` ask: made_store FILE. */
#include "store/store.h"

#include "base/arena.h"

enum { HOUR = 3600, DAY = 24 * HOUR };
static const int64_t october = 1790812800; /* 2026-10-01T00:00:00Z */

struct made {
    const char *cluster;
    uint32_t id;
    const char *user, *account, *partition, *name, *state, *nodes, *tres;
    int64_t submit, start, end; /* hours from the first of October; -1: none */
    double cpu_seconds;         /* 0: not told */
    uint32_t array, task;       /* 0: none */
};

static const struct made rows[] = {
    { "cedar", 100, "alice", "physics", "gpu", "train", "COMPLETED", "g[1-2]",
      "billing=20,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2", 0, 1, 25, 345600, 0, 0 },
    { "cedar", 101, "alice", "physics", "gpu", "=HYPERLINK(\"http://x\")", "FAILED", "g1",
      "billing=5,cpu=4,gres/gpu:a100=1,gres/gpu:v100=2,gres/gpu=3,mem=16G,node=1", 10, 12, 14, 1440,
      0, 0 },
    { "cedar", 102, "bob", "chemistry", "cpu", "a name\nof two lines, and \033[31mcolour",
      "CANCELLED", "", "cpu=1,mem=1G", 20, -1, 22, 0, 0, 0 },
    { "cedar", 103, "bob", "chemistry", "cpu", "an array of tasks with a long name", "COMPLETED",
      "n[1-4]", "billing=16,cpu=16,mem=64G,node=4", 30, 30, 36, 259200, 103, 1 },
    { "cedar", 104, "bob", "chemistry", "cpu", "an array of tasks with a long name", "TIMEOUT",
      "n[1-4]", "billing=16,cpu=16,mem=64G,node=4", 30, 30, 54, 0, 103, 2 },
    { "cedar", 105, "carol", "chemistry", "cpu", "both", "COMPLETED", "n1", "cpu=2,node=1", 40, 41,
      43, 3600, 0, 0 },
    { "cedar", 106, "alice", "physics", "gpu", "now", "RUNNING", "g2",
      "billing=5,cpu=4,gres/gpu:a100=1,gres/gpu=1,mem=16G,node=1", 340, 344, -1, 0, 0, 0 },
    { "cedar", 107, "alice", "physics", "gpu,cpu", "later", "PENDING", "", "cpu=4,mem=16G,node=1",
      347, -1, -1, 0, 0, 0 },
    { "beluga", 100, "dave", "physics", "main", "elsewhere", "COMPLETED", "b7", "cpu=1,node=1", 2,
      3, 4, 1800, 0, 0 },
};

static int64_t time_of(int64_t hours)
{
    return hours < 0 ? 0 : october + hours * HOUR;
}

static uint64_t read_memory(const char *tres)
{
    return strstr(tres, "mem=64G")   ? UINT64_C(64) << 30
           : strstr(tres, "mem=16G") ? UINT64_C(16) << 30
                                     : UINT64_C(1) << 30;
}

static struct job_record record_of(const struct made *made)
{
    static const struct record_extra extra[] = { { STR_INIT("WorkDir"), STR_INIT("/home") },
                                                 { STR_INIT("Comment"), STR_INIT("\"a\"\\\n") } };
    const char *cpus = strstr(made->tres, "cpu=") + 4;
    struct job_record record;

    job_record_clear(&record);
    record.id = made->id;
    record.submit_time = time_of(made->submit);
    record.eligible_time = record.submit_time;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = october + 348 * HOUR;
    job_state_parse(str_of(made->state), &record.state);
    record.user = str_of(made->user);
    record.account = str_of(made->account);
    record.partition = str_of(made->partition);
    record.qos = STR("normal");
    record.name = str_of(made->name);
    record.nodes = str_of(made->nodes);
    record.tres = str_of(made->tres);
    record.cpus = (uint32_t)strtoul(cpus, NULL, 10);
    record.node_count = made->nodes[0] ? 1 : MODEL_UNKNOWN_U32;
    record.memory_bytes = read_memory(made->tres);
    record.time_limit_minutes = 1440;
    record.start_time = time_of(made->start);
    record.end_time = time_of(made->end);
    record.exit_code = made->end < 0 ? MODEL_UNKNOWN_U32 : strcmp(made->state, "FAILED") == 0;
    record.exit_signal = record.exit_code == MODEL_UNKNOWN_U32 ? MODEL_UNKNOWN_U32 : 0;
    if (made->cpu_seconds > 0)
        record.cpu_seconds = made->cpu_seconds;
    record.array_job_id = made->array;
    if (made->array)
        record.array_task_id = made->task;
    if (strcmp(made->name, "both") == 0)
        record.het_job_id = made->id;
    if (made->id == 100) {
        record.extra = extra;
        record.n_extra = COUNT(extra);
    }
    return record;
}

static int fill(struct store *store, struct err *err)
{
    const struct final_record final = { 100, STR("g1"), october + HOUR + 2, october + 25 * HOUR,
                                        STR("{\"cpu_seconds\": 170000.5, \"oom_kills\": 0}") };
    int r = store_begin(store, err);

    for (size_t i = 0; i < COUNT(rows) && r == 0; i++) {
        struct job_record record = record_of(&rows[i]);

        r = store_put_job(store, str_of(rows[i].cluster), &record, err);
    }
    if (r == 0)
        r = store_put_final(store, STR("cedar"), &final, err);
    return r == 0 ? store_commit(store, err) : r;
}

int main(int argc, char **argv)
{
    struct store *store = NULL;
    struct err err = { 0 };
    int r;

    if (argc != 2)
        return 2;
    r = store_open(str_of(argv[1]), false, &store, &err);
    if (r == 0)
        r = fill(store, &err);
    if (r < 0)
        fprintf(stderr, "made_store: %s\n", err.text);
    store_close(store);
    return r < 0;
}
