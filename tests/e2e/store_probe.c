/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes runs into a store, for tests: store_probe URL real|simulated. On its input, lines:
 *     runs CLUSTER COUNT FIRST_ID FIRST_SUBMIT     ids one apart, ten submitted in each second
 *     named CLUSTER ID SUBMIT BYTES                and then so many bytes, which are its name
 * each a transaction, answered by "done" once it is in the store. */
#include "base/arena.h"
#include "base/num.h"
#include "store/store.h"

#include <stdlib.h>

static struct job_record make_run(uint64_t id, int64_t submit_time)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = (uint32_t)id;
    record.submit_time = submit_time;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = submit_time + 1000;
    record.state = (struct job_state){ id % 10 ? JOB_COMPLETED : JOB_FAILED, 0 };
    record.user = id % 2 ? STR("alice") : STR("bob");
    record.account = STR("physics");
    record.partition = STR("gpu");
    record.name = STR("sim");
    record.nodes = STR("cn-a[001-002]");
    record.tres = STR("cpu=4,mem=8G,node=2,billing=6,gres/gpu=2,gres/gpu:a100=2");
    record.cpus = 4;
    record.eligible_time = submit_time;
    record.start_time = submit_time + 10;
    record.end_time = submit_time + 110;
    record.cpu_seconds = 100;
    return record;
}

static int put_all(struct store *store, struct str cluster, const struct job_record *records,
                   size_t n, struct err *err)
{
    int code = store_begin(store, err);

    for (size_t i = 0; i < n && code == 0; i++)
        code = store_put_job(store, cluster, &records[i], err);
    if (code == 0)
        code = store_commit(store, err);
    if (code < 0)
        store_rollback(store);
    return code;
}

static int put_runs(struct store *store, struct str cluster, const uint64_t numbers[3],
                    struct err *err)
{
    struct job_record *records = heap_array(numbers[0] + 1, sizeof(*records));
    int code;

    for (uint64_t i = 0; i < numbers[0]; i++)
        records[i] = make_run(numbers[1] + i, (int64_t)(numbers[2] + i / 10));
    code = put_all(store, cluster, records, numbers[0], err);
    free(records);
    return code;
}

static int put_named(struct store *store, struct str cluster, const uint64_t numbers[3],
                     struct err *err)
{
    struct job_record record = make_run(numbers[0], (int64_t)numbers[1]);
    char *name = heap_array(numbers[2] + 1, 1);
    int code = -EINVAL;

    if (fread(name, 1, numbers[2], stdin) == numbers[2]) {
        record.name = (struct str){ name, numbers[2] };
        code = put_all(store, cluster, &record, 1, err);
    }
    free(name);
    return code;
}

static int obey(struct store *store, struct str line, struct err *err)
{
    struct str word = str_cut(&line, ' '), cluster = str_cut(&line, ' ');
    uint64_t numbers[3];

    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!line.p || !num_get_u64(str_cut(&line, ' '), &numbers[i]))
            return err_set(err, EINVAL, "three numbers, please");
    return str_eq(word, STR("named")) ? put_named(store, cluster, numbers, err)
                                      : put_runs(store, cluster, numbers, err);
}

int main(int argc, char **argv)
{
    struct store *store = NULL;
    struct err err = { 0 };
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int code;

    if (argc != 3)
        return 2;
    code = store_open(str_of(argv[1]), strcmp(argv[2], "simulated") == 0, &store, &err);
    if (code == 0) {
        puts("done");
        fflush(stdout);
    }
    while (code == 0 && (n = getline(&line, &room, stdin)) > 0) {
        code = obey(store, str_head(str_of(line), (size_t)n - 1), &err);
        puts(code < 0 ? err.text : "done");
        fflush(stdout);
    }
    if (code < 0)
        fprintf(stderr, "%s\n", err.text);
    free(line);
    store_close(store);
    return code < 0;
}
