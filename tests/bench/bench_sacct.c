/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast the output of sacct becomes records: jobs as they were recorded of a real one
 * (tests/data/sacct), each with three steps, over and over. The reference is a count of its lines.
 */
#include "bench.h"

#include "base/num.h"
#include "source/sacct_answer.h"

enum {
    JOBS = 50000,
    LINES_A_JOB = 4, /* itself, batch, extern, and one that was started by srun */
    PIECE = 64 * 1024,
    ROUNDS = 5,
};

struct input {
    struct sacct_fields fields;
    struct str recording; /* of one job, with ~ for the token */
    struct buf text;      /* JOBS such, with a token: put_token replaces it */
    uint64_t told;
};

static int take(void *ctx, const struct job_record *job, struct err *err)
{
    struct input *input = ctx;

    (void)err;
    input->told += job->memory_peak_bytes != MODEL_UNKNOWN_U64 && job->n_extra > 10;
    return 0;
}

/* An answer's token is its own: it is put in the place of the last one's. */
static void put_token(struct input *input, const char *token)
{
    char *at = input->text.p, *end = at + input->text.n;

    while ((at = memchr(at, '@', (size_t)(end - at)))) {
        memcpy(at, token, FRAME_TOKEN);
        at += FRAME_TOKEN;
    }
}

static struct sacct_answer *make_answer(struct input *input)
{
    struct sacct_answer *answer = sacct_answer_new(&(struct sacct_answer_config){
        .fields = &input->fields,
        .as_of = 1,
        .record = take,
        .ctx = input,
    });

    put_token(input, sacct_answer_token(answer));
    return answer;
}

static struct sacct_answer *ready; /* made outside of what is measured */

static void run_reader(void *ctx)
{
    struct input *input = ctx;
    struct err err;

    input->told = 0;
    for (struct str rest = buf_str(&input->text); rest.n; rest = str_skip(rest, PIECE))
        if (sacct_answer_feed(ready, str_head(rest, PIECE), &err) < 0)
            bench_give_up("%s", err.text);
    if (input->told < JOBS - 1) /* the last has not been handed on */
        bench_give_up("%llu jobs were told instead of %d", (unsigned long long)input->told, JOBS);
}

static void run_count(void *ctx)
{
    struct input *input = ctx;
    size_t lines = 0;

    for (struct str rest = buf_str(&input->text); rest.n; lines++)
        rest = str_skip(rest, str_find(rest, '\n') + 1);
    if (lines != (size_t)JOBS * LINES_A_JOB)
        bench_give_up("there are %zu lines", lines);
}

/* The recorded job "completed-steps" with its first three steps. */
static void read_recording(struct input *input, struct buf *file)
{
    struct str rest, line;
    struct err err;
    FILE *stream = fopen(TEST_DATA "/sacct/24.11.txt", "rb");

    if (!stream)
        bench_give_up(TEST_DATA "/sacct/24.11.txt cannot be opened");
    buf_init(file, 1 << 20);
    file->n = fread(buf_room(file, 1 << 19), 1, 1 << 19, stream);
    buf_end(file);
    fclose(stream);
    rest = buf_str(file);
    line = str_cut(&rest, '\n');
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] == ',')
            file->p[i] = ' ';
    if (sacct_fields_read(line, &input->fields, &err) < 0)
        bench_give_up("%s", err.text);
    input->recording = rest;
    for (int i = 0; i < LINES_A_JOB; i++)
        str_cut(&rest, '\n');
    input->recording = str_span(input->recording.p, rest.p);
}

/* With ids and times of their own. */
static void put_job(struct buf *out, struct str recording, uint64_t id)
{
    static const struct str recorded_id = STR_INIT("5435002");

    for (struct str rest = recording; rest.n;) {
        if (str_starts(rest, recorded_id)) {
            buf_u64(out, 1000000 + id);
            rest = str_skip(rest, recorded_id.n);
        } else if (rest.p[0] == '~') {
            buf_text(out, "@0123456789abcdef@");
            rest = str_skip(rest, 1);
        } else {
            buf_byte(out, rest.p[0]);
            rest = str_skip(rest, 1);
        }
    }
}

int main(int argc, char **argv)
{
    struct input input = { 0 };
    double best = 1e9, best_count;
    struct bench_run count = { .run = run_count, .ctx = &input };
    struct buf file;

    bench_begin(argc, argv);
    read_recording(&input, &file);
    buf_init(&input.text, (size_t)1 << 30);
    for (uint64_t i = 0; i < JOBS; i++)
        put_job(&input.text, input.recording, i);
    bench_measure(&count, 1, ROUNDS);
    best_count = count.best_seconds;
    for (int i = 0; i < ROUNDS; i++) {
        struct bench_run run = { .run = run_reader, .ctx = &input };

        ready = make_answer(&input);
        bench_measure(&run, 1, 1);
        ready = sacct_answer_free(ready);
        if (run.best_seconds < best)
            best = run.best_seconds;
    }
    bench_row(&(struct bench_row){ "sacct: jobs with three steps into records", "jobs/s",
                                   JOBS / best, JOBS / best_count, BENCH_AT_LEAST, 20000 });
    bench_row(&(struct bench_row){ "sacct: bytes of text", "MB/s",
                                   (double)input.text.n / 1e6 / best, 0, BENCH_NO_GOAL, 0 });
    buf_free(&input.text);
    buf_free(&file);
    return 0;
}
