/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks sacct, for tests:
 *     accounting_probe ask BIN_PATH PREFIX FROM TO [ID…]
 * prints each record as a line of JSON, or says why there is none and exits with 1;
 *     accounting_probe complete BIN_PATH PREFIX FIRST_TIME STORE
 * completes a store as the exporter does, until nothing is left, and prints "QUESTIONS RECORDS". */
#include "base/arena.h"
#include "base/num.h"
#include "record/history.h"
#include "source/sacct.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_IDS = 100, DEADLINE_SECONDS = 300 }; /* it only bounds a hang */

static struct source_settings settings_of(char **argv)
{
    return (struct source_settings){ .bin_path = str_of(argv[2]),
                                     .prefix = str_of(argv[3]),
                                     .max_answer = 64 << 20 };
}

static int64_t number(const char *text)
{
    int64_t value = 0;

    if (!num_get_i64(str_of(text), &value))
        fprintf(stderr, "%s is no number\n", text);
    return value;
}

static void put_text(struct buf *line, const char *name, struct str text)
{
    buf_printf(line, ",\"%s\":", name);
    buf_json(line, text);
}

static int print(void *ctx, const struct job_record *job, struct err *err)
{
    struct buf line, state;

    (void)ctx;
    (void)err;
    buf_init(&line, 4 << 20);
    buf_init(&state, 200);
    job_state_put(&state, job->state);
    buf_printf(&line,
               "{\"id\":%" PRIu32 ",\"submit\":%" PRId64 ",\"eligible\":%" PRId64
               ",\"start\":%" PRId64 ",\"end\":%" PRId64 ",\"array\":%" PRIu32 ",\"task\":%" PRIu32
               ",\"tasks\":%" PRIu32 ",\"het\":%" PRIu32 ",\"offset\":%" PRIu32 ",\"cpus\":%" PRIu32
               ",\"code\":%" PRIu32 ",\"signal\":%" PRIu32 ",\"peak\":%" PRIu64 ",\"cpu\":%g",
               job->id, job->submit_time, job->eligible_time, job->start_time, job->end_time,
               job->array_job_id, job->array_task_id, job->tasks, job->het_job_id, job->het_offset,
               job->cpus, job->exit_code, job->exit_signal, job->memory_peak_bytes,
               isnan(job->cpu_seconds) ? -1 : job->cpu_seconds);
    put_text(&line, "state", buf_str(&state));
    put_text(&line, "name", job->name);
    put_text(&line, "user", job->user);
    put_text(&line, "nodes", job->nodes);
    put_text(&line, "tres", job->tres);
    put_text(&line, "tres_requested", job->tres_requested);
    for (size_t i = 0; i < job->n_extra; i++) {
        buf_byte(&line, ',');
        buf_json(&line, job->extra[i].name);
        buf_byte(&line, ':');
        buf_json(&line, job->extra[i].value);
    }
    buf_byte(&line, '}');
    puts(line.p);
    buf_free(&line);
    buf_free(&state);
    return 0;
}

static int ask(int argc, char **argv)
{
    struct source_settings settings = settings_of(argv);
    uint32_t ids[MOST_IDS];
    struct sacct_question question = {
        .from = number(argv[4]),
        .to = number(argv[5]),
        .ids = ids,
        .as_of = clock_wall(&clock_real) / NS_PER_SEC,
        .deadline_ns = clock_mono(&clock_real) + DEADLINE_SECONDS * NS_PER_SEC,
        .record = print,
    };
    struct sacct_result result;
    struct sacct *sacct;
    struct err err;
    int code;

    for (int i = 6; i < argc && question.n_ids < MOST_IDS; i++)
        ids[question.n_ids++] = (uint32_t)number(argv[i]);
    code = sacct_new(&settings, &sacct, &err);
    if (code == 0) {
        code = sacct_ask(sacct, &question, &result, &err);
        sacct_free(sacct);
    }
    if (code < 0)
        fprintf(stderr, "%s: %s\n", err_reason(-code), err.text);
    return code < 0;
}

static struct history_stats wait_until_complete(struct history *history)
{
    int64_t deadline = clock_mono(&clock_real) + DEADLINE_SECONDS * NS_PER_SEC;
    const struct timespec pause = { .tv_nsec = 20 * NS_PER_MS };
    struct history_stats stats;

    do {
        nanosleep(&pause, NULL);
        history_stats(history, &stats);
    } while (!stats.is_complete && clock_mono(&clock_real) < deadline);
    return stats;
}

static int complete(char **argv)
{
    struct log *log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    const struct recorded_cluster cluster = { .name = STR("sandbox") };
    struct history_config config = {
        .source = settings_of(argv),
        .interval_ns = 3600 * NS_PER_SEC,
        .timeout_ns = DEADLINE_SECONDS * NS_PER_SEC,
        .first_time = number(argv[4]),
        .clock = &clock_real,
        .log = log,
    };
    struct history_stats stats = { 0 };
    struct history *history;
    struct err err;
    int code = recorder_start(&(struct recorder_config){ .url = str_of(argv[5]),
                                                         .clusters = &cluster,
                                                         .n_clusters = 1,
                                                         .clock = &clock_real,
                                                         .log = log },
                              &config.recorder, &err);

    if (code == 0) {
        code = history_start(&config, &history, &err);
        if (code == 0) {
            stats = wait_until_complete(history);
            history_stop(history);
        }
        recorder_stop(config.recorder);
    }
    if (code < 0)
        fprintf(stderr, "%s\n", err.text);
    printf("%" PRIu64 " %" PRIu64 "\n", stats.questions, stats.records);
    log_free(log);
    return code < 0 || !stats.is_complete;
}

int main(int argc, char **argv)
{
    if (argc >= 6 && strcmp(argv[1], "ask") == 0)
        return ask(argc, argv);
    if (argc == 6 && strcmp(argv[1], "complete") == 0)
        return complete(argv);
    fprintf(stderr, "use: accounting_probe ask|complete …\n");
    return 2;
}
