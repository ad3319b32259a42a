/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What real sacct's of two releases printed (tests/data/sacct), and how it is asked. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "files.h"
#include "source/sacct.h"

#include <math.h>

enum { FILE_MAX = 4 << 20, RECORDS_MAX = 200, AS_OF = 1794900000 };

/* All that was told; texts live in the arena. */
struct told {
    struct arena arena;
    struct job_record job[RECORDS_MAX];
    size_t n;
    size_t most; /* then it is refused */
};

static struct str text_of(struct told *told, struct str text)
{
    return arena_str(&told->arena, text);
}

static int take(void *ctx, const struct job_record *record, struct err *err)
{
    struct told *told = ctx;
    struct job_record *job = &told->job[told->n];
    struct record_extra *extra = ARENA_ARRAY(&told->arena, struct record_extra, record->n_extra);

    if (told->n == told->most)
        return err_set(err, ENOSPC, "no room");
    told->n++;
    *job = *record;
    job->user = text_of(told, record->user);
    job->account = text_of(told, record->account);
    job->qos = text_of(told, record->qos);
    job->name = text_of(told, record->name);
    job->reservation = text_of(told, record->reservation);
    job->partition = text_of(told, record->partition);
    job->reason = text_of(told, record->reason);
    job->nodes = text_of(told, record->nodes);
    job->tres = text_of(told, record->tres);
    job->tres_requested = text_of(told, record->tres_requested);
    for (size_t i = 0; i < record->n_extra; i++)
        extra[i] = (struct record_extra){ text_of(told, record->extra[i].name),
                                          text_of(told, record->extra[i].value) };
    job->extra = extra;
    return 0;
}

static struct told *told_new(void)
{
    struct told *told = heap_alloc(sizeof(*told));

    told->most = RECORDS_MAX;
    return told;
}

static void told_free(struct told *told)
{
    arena_clear(&told->arena);
    free(told);
}

static const struct job_record *find(const struct told *told, const char *name, size_t which)
{
    for (size_t i = 0; i < told->n; i++)
        if (str_eq(told->job[i].name, str_of(name)) && !which--)
            return &told->job[i];
    fail_msg("there is no \"%s\"", name);
    return NULL;
}

/* Empty: it is not told. */
static struct str extra_of(const struct job_record *job, const char *name)
{
    struct str value = STR("");
    size_t found = 0;

    for (size_t i = 0; i < job->n_extra; i++) {
        if (str_eq(job->extra[i].name, str_of(name))) {
            value = job->extra[i].value;
            found++;
        }
    }
    assert_true(found < 2);
    return value;
}

static const char *data_file(const char *name)
{
    return source_path("tests/data/sacct/%s", name);
}

/* Those that a recording's first line names, in its order. */
static void fields_of(struct str line, struct sacct_fields *ret)
{
    struct buf help;
    struct err err;

    buf_init(&help, 64 * 1024);
    for (struct str rest = line; rest.p;) {
        buf_put(&help, str_cut(&rest, ','));
        buf_byte(&help, ' ');
    }
    if (sacct_fields_read(buf_str(&help), ret, &err) < 0)
        fail_msg("%s", err.text);
    buf_reset(&help);
    sacct_fields_put(ret, &help);
    assert_true(str_eq(buf_str(&help), line));
    buf_free(&help);
}

static void put_answer(struct buf *to, struct str recording, const char *token)
{
    for (size_t i = 0; i < recording.n; i++) {
        if (recording.p[i] == '~')
            buf_text(to, token);
        else
            buf_byte(to, recording.p[i]);
    }
}

struct outcome {
    int code;
    struct err err;
    struct sacct_counts counts;
};

/* "~" stands for the token. */
static struct outcome read_text(const struct sacct_fields *fields, struct str text, size_t piece,
                                bool only_ineligible, struct told *told)
{
    struct sacct_answer *answer = sacct_answer_new(&(struct sacct_answer_config){
        .fields = fields,
        .as_of = AS_OF,
        .only_ineligible = only_ineligible,
        .record = take,
        .ctx = told,
    });
    struct outcome outcome = { 0 };
    struct buf bytes;

    buf_init(&bytes, FILE_MAX);
    put_answer(&bytes, text, sacct_answer_token(answer));
    for (struct str rest = buf_str(&bytes); rest.n && !outcome.code; rest = str_skip(rest, piece))
        outcome.code = sacct_answer_feed(answer, str_head(rest, piece), &outcome.err);
    if (!outcome.code)
        outcome.code = sacct_answer_end(answer, &outcome.err);
    sacct_answer_count(answer, &outcome.counts);
    sacct_answer_free(answer);
    buf_free(&bytes);
    return outcome;
}

static struct told *read_recording(const char *release, size_t piece, bool only_ineligible)
{
    struct told *told = told_new();
    struct sacct_fields fields;
    struct outcome outcome;
    struct str rest;
    char name[40];

    snprintf(name, sizeof(name), "%s.txt", release);
    rest = read_file(data_file(name));
    fields_of(str_cut(&rest, '\n'), &fields);
    outcome = read_text(&fields, rest, piece, only_ineligible, told);
    if (outcome.code < 0)
        fail_msg("%s: %s", release, outcome.err.text);
    assert_int_equal(outcome.counts.records, told->n);
    assert_int_equal(outcome.counts.skipped, 0);
    return told;
}

static const char *const releases[] = { "22.05", "24.11" };

#define EACH_RELEASE(told)                                                                         \
    size_t release = 0;                                                                            \
    release < COUNT(releases) && ((told) = read_recording(releases[release], FILE_MAX, false));    \
    release++, told_free(told)

TEST(a_job_is_told_with_what_its_steps_used)
{
    static const struct {
        uint32_t id;
        int64_t submit, start, end;
        double cpu_used, user_used, system_used;
        uint64_t peak, read, written;
        uint32_t restarts;
    } expected[] = {
        { 7008002, 1794841634, 1794841634, 1794841636, 0.042, 0.015, 0.027, 3858432,
          30231 + 3980 + 7962, 1349 + 1 + 1 + 2 + 1, MODEL_UNKNOWN_U32 },
        { 5435002, 1794841650, 1794841651, 1794841653, 0.037, 0.022, 0.015, 4657152,
          46036 + 4148 + 8298, 9400 + 1 + 1 + 2 + 1, 0 },
    };
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *job = find(told, "completed-steps", 0);

        assert_int_equal(job->id, expected[release].id);
        assert_int_equal(job->submit_time, expected[release].submit);
        assert_int_equal(job->eligible_time, expected[release].submit);
        assert_int_equal(job->start_time, expected[release].start);
        assert_int_equal(job->end_time, expected[release].end);
        assert_int_equal(job->as_of, AS_OF);
        assert_int_equal(job->origin, RECORD_ACCOUNTED);
        assert_int_equal(job->state.base, JOB_COMPLETED);
        assert_str(job->user, "alice");
        assert_int_equal(job->user_id, 2001);
        assert_str(job->account, "physics");
        assert_str(job->partition, "cpu");
        assert_str(job->qos, "normal");
        assert_str(job->nodes, "c4");
        assert_str(job->reason, "");
        assert_str(job->reservation, "");
        assert_str(job->tres, "billing=2,cpu=2,mem=200M,node=1");
        assert_str(job->tres_requested, "billing=2,cpu=2,mem=200M,node=1");
        assert_int_equal(job->cpus, 2);
        assert_int_equal(job->node_count, 1);
        assert_int_equal(job->memory_bytes, 200 << 20);
        assert_int_equal(job->time_limit_minutes, 60);
        assert_int_equal(job->priority, 152);
        assert_int_equal(job->suspended_seconds, 0);
        assert_int_equal(job->exit_code, 0);
        assert_int_equal(job->exit_signal, 0);
        assert_int_equal(job->tasks, 1);
        assert_int_equal(job->restarts, expected[release].restarts);
        assert_true(fabs(job->cpu_seconds - expected[release].cpu_used) < 1e-9);
        assert_true(fabs(job->user_seconds - expected[release].user_used) < 1e-9);
        assert_true(fabs(job->system_seconds - expected[release].system_used) < 1e-9);
        assert_int_equal(job->memory_peak_bytes, expected[release].peak);
        assert_int_equal(job->read_bytes, expected[release].read);
        assert_int_equal(job->write_bytes, expected[release].written);
        assert_int_equal(job->energy_joules, MODEL_UNKNOWN_U64);
    }
}

TEST(what_has_no_place_of_its_own_is_told_under_its_name)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *job = find(told, "completed-steps", 0);

        assert_str(extra_of(job, "WorkDir"), "/sandbox/home/alice");
        assert_str(extra_of(job, "SubmitLine"),
                   "sbatch --parsable -D /sandbox/home/alice -o /dev/null -J completed-steps -n2 "
                   "--wrap srun -n1 -J prep true; srun -n2 -J main sleep 1; srun -n1 -J post true");
        assert_str(extra_of(job, "GID"), "2001");
        assert_str(extra_of(job, "Group"), "alice");
        assert_str(extra_of(job, "DerivedExitCode"), "0:0");
        assert_str(extra_of(job, "AssocID"), "8");
        assert_str(extra_of(job, "ReqCPUFreqMax"), "");
        assert_str(extra_of(job, "Elapsed"), "");
        assert_str(extra_of(job, "State"), "");
        assert_str(extra_of(job, release ? "Planned" : "Reserved"),
                   release ? "00:00:01" : "00:00:00");
        assert_str(extra_of(job, "StdIn"), release ? "/dev/null" : "");
        assert_str(extra_of(find(told, "wide", 0), release ? "Planned" : "Reserved"), "");
    }
}

TEST(ends_are_told_with_code_and_signal)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        assert_int_equal(find(told, "failed", 0)->state.base, JOB_FAILED);
        assert_int_equal(find(told, "failed", 0)->exit_code, 3);
        assert_int_equal(find(told, "signalled", 0)->exit_signal, 11);
        assert_int_equal(find(told, "oom", 0)->state.base, JOB_OUT_OF_MEMORY);
        assert_int_equal(find(told, "oom", 0)->exit_signal, 125);
        assert_int_equal(find(told, "node-fail", 0)->state.base, JOB_NODE_FAIL);
        assert_str(find(told, "node-fail", 0)->reason, "ReqNodeNotAvail");
        assert_int_equal(find(told, "timeout", 0)->state.base, JOB_TIMEOUT);
        assert_int_equal(find(told, "timeout", 0)->time_limit_minutes, 1);
        assert_int_equal(find(told, "cancelled-running", 0)->state.base, JOB_CANCELLED);
        assert_str(extra_of(find(told, "cancelled-running", 0), "State"), "CANCELLED by 0");
    }
}

TEST(of_a_job_that_runs_nothing_is_told_that_only_its_end_tells)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *job = find(told, "train", 0);

        assert_int_equal(job->state.base, JOB_RUNNING);
        assert_true(job->start_time > 0);
        assert_int_equal(job->end_time, 0);
        assert_true(isnan(job->cpu_seconds));
        assert_int_equal(job->exit_code, MODEL_UNKNOWN_U32);
        assert_int_equal(job->memory_peak_bytes, MODEL_UNKNOWN_U64);
        assert_int_equal(job->read_bytes, MODEL_UNKNOWN_U64);
        assert_str(job->tres, "billing=10,cpu=2,gres/gpu:a100=2,gres/gpu=2,mem=500M,node=1");
        assert_int_equal(find(told, "suspended", 0)->state.base, JOB_SUSPENDED);
        assert_true(find(told, "suspended", 0)->suspended_seconds > 60);
        assert_str(find(told, "course", 0)->reservation, "course");
    }
}

TEST(a_job_that_waits_is_told_with_what_it_asks_for)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *job = find(told, "wide", 0);

        assert_int_equal(job->state.base, JOB_PENDING);
        assert_int_equal(job->start_time, 0);
        assert_str(job->nodes, "");
        assert_str(job->tres, "billing=12,cpu=12,mem=1200M,node=3");
        assert_str(job->tres_requested, "billing=12,cpu=12,mem=1200M,node=3");
        assert_int_equal(job->cpus, 12);
        assert_int_equal(job->node_count, 3);
    }
}

TEST(a_job_that_was_cancelled_before_it_could_run_has_no_start)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *job = find(told, "cancelled-pending", 0);

        assert_int_equal(job->state.base, JOB_CANCELLED);
        assert_int_equal(job->eligible_time, 0);
        assert_int_equal(job->start_time, 0);
        assert_int_equal(job->end_time, job->submit_time);
        assert_true(isnan(job->cpu_seconds));
        assert_int_equal(job->cpus, 1);
    }
}

TEST(each_run_of_a_requeued_job_is_told)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *first = find(told, "requeued", 0);
        const struct job_record *second = find(told, "requeued", 1);

        assert_int_equal(first->id, second->id);
        assert_true(first->submit_time < second->submit_time);
        assert_true(first->state.flags & JOB_REQUEUED);
        assert_true(first->end_time > 0);
        assert_true(first->memory_peak_bytes == (release ? 524288 : 98304));
        assert_int_equal(second->state.base, JOB_PENDING);
        assert_int_equal(second->memory_peak_bytes, MODEL_UNKNOWN_U64);
        assert_int_equal(second->restarts, release ? 1 : MODEL_UNKNOWN_U32);
    }
}

TEST(tasks_of_arrays_and_components_are_told_as_such)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        const struct job_record *first = find(told, "array", 0), *waiting = find(told, "array", 2);
        const struct job_record *leader = find(told, "het", 0), *other = find(told, "het", 1);

        assert_int_equal(first->array_task_id, 1);
        assert_int_equal(first->array_job_id, waiting->id);
        assert_int_equal(first->tasks, 1);
        assert_int_equal(waiting->array_job_id, waiting->id);
        assert_int_equal(waiting->array_task_id, MODEL_UNKNOWN_U32);
        assert_int_equal(waiting->tasks, 6);
        assert_int_equal(leader->het_job_id, leader->id);
        assert_int_equal(leader->het_offset, 0);
        assert_int_equal(other->het_job_id, leader->id);
        assert_int_equal(other->het_offset, 1);
        assert_int_equal(other->id, leader->id + 1);
        assert_int_equal(other->array_job_id, 0);
    }
}

TEST(names_are_told_as_they_are)
{
    struct told *told;

    for (EACH_RELEASE(told)) {
        find(told, "first line\nsecond line", 0);
        find(told, "ended|\n999999|forged", 0);
        find(told, "say `hi`", 0); /* as slurmctld has told slurmdbd */
        for (size_t i = 0; i < told->n; i++)
            assert_int_not_equal(told->job[i].id, 999999);
    }
}

TEST(pieces_of_any_size_say_the_same)
{
    static const size_t sizes[] = { 1, 17, 18, 19, 500, 4096 };

    for (size_t r = 0; r < COUNT(releases); r++) {
        struct told *whole = read_recording(releases[r], FILE_MAX, false);

        for (size_t i = 0; i < COUNT(sizes); i++) {
            struct told *cut = read_recording(releases[r], sizes[i], false);

            assert_int_equal(cut->n, whole->n);
            for (size_t k = 0; k < cut->n; k++) {
                assert_int_equal(cut->job[k].id, whole->job[k].id);
                assert_true(str_eq(cut->job[k].name, whole->job[k].name));
                assert_true(cut->job[k].memory_peak_bytes == whole->job[k].memory_peak_bytes);
                assert_int_equal(cut->job[k].n_extra, whole->job[k].n_extra);
            }
            told_free(cut);
        }
        told_free(whole);
    }
}

TEST(only_those_that_never_could_have_run_are_told_if_they_are_asked_for)
{
    for (size_t r = 0; r < COUNT(releases); r++) {
        struct told *told = read_recording(releases[r], FILE_MAX, true);

        find(told, "cancelled-pending", 0);
        for (size_t i = 0; i < told->n; i++)
            assert_int_equal(told->job[i].eligible_time, 0);
        told_free(told);
    }
}

TEST(one_that_was_requeued_and_ended_before_it_could_run_again_never_could_have_run)
{
    struct told *told = told_new();
    struct sacct_fields fields;
    struct outcome outcome;
    struct err err;

    assert_int_equal(
        sacct_fields_read(STR("JobID JobIDRaw State Submit Eligible End"), &fields, &err), 0);
    outcome = read_text(&fields,
                        STR("1~1~CANCELLED~100~300~200~\n2~2~CANCELLED~100~150~200~\n"
                            "3~3~REQUEUED~100~200~200~\n"),
                        FILE_MAX, true, told);
    assert_int_equal(outcome.code, 0);
    assert_int_equal(told->n, 1);
    assert_int_equal(told->job[0].id, 1);
    told_free(told);
}

static const struct str few = STR_INIT("JobID JobIDRaw State Submit JobName Comment");

static struct outcome read_few(const char *text, struct told *told)
{
    struct sacct_fields fields;
    struct err err;

    assert_int_equal(sacct_fields_read(few, &fields, &err), 0);
    return read_text(&fields, str_of(text), FILE_MAX, false, told);
}

TEST(a_record_that_cannot_be_read_is_left_out)
{
    static const char *const wrong[] = {
        "x~x~PENDING~5~n~~\n",
        "5~0~PENDING~5~n~~\n",
        "5~5~PENDING~Unknown~n~~\n",
        "5~5~5~5~5~5~\n",
        "5_~5~PENDING~5~n~~\n",
        "5_[]x~5~PENDING~5~n~~\n",
        "5+~5~PENDING~5~n~~\n",
        "5+x~5~PENDING~5~n~~\n",
        "5/1~5~PENDING~5~n~~\n",
        "5~99999999999~PENDING~5~n~~\n",
        "5~5~~5~n~~\n",
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct told *told = told_new();
        char text[200];
        struct outcome outcome;

        snprintf(text, sizeof(text), "1~1~RUNNING~7~a~~\n%s2~2~NEWER_WORD~8~b~none~\n", wrong[i]);
        outcome = read_few(text, told);
        assert_int_equal(outcome.code, 0);
        if (outcome.counts.skipped != 1 || told->n != 2)
            fail_msg("%s: %zu records", wrong[i], told->n);
        assert_str(told->job[1].name, "b");
        assert_int_equal(told->job[1].state.base, JOB_BASE_UNKNOWN);
        assert_str(extra_of(&told->job[1], "Comment"), "none");
        told_free(told);
    }
}

TEST(a_step_of_another_job_is_not_counted_to_the_one_before_it)
{
    struct told *told = told_new();
    struct sacct_fields fields;
    struct outcome outcome;
    struct err err;

    assert_int_equal(sacct_fields_read(STR("JobID JobIDRaw State Submit MaxRSS"), &fields, &err),
                     0);
    outcome = read_text(&fields,
                        STR("3.0~3.0~RUNNING~1~9~\n1~1~RUNNING~7~~\n1.0~1.0~RUNNING~7~5K~\n"
                            "2.0~2.0~RUNNING~7~9M~\n1.1~1.1~RUNNING~7~4K~\n"),
                        FILE_MAX, false, told);
    assert_int_equal(outcome.code, 0);
    assert_int_equal(told->n, 1);
    assert_int_equal(told->job[0].memory_peak_bytes, 5 * 1024);
    assert_int_equal(outcome.counts.skipped, 1);
    assert_string_equal(outcome.counts.skipped_example, "2");
    told_free(told);
}

/* Somebody has seen the token in the list of processes, in time to name a job after it. */
TEST(a_name_with_the_token_in_it_forges_no_record)
{
    struct told *told = told_new();
    struct outcome outcome = read_few("1~1~RUNNING~7~good~~\n2~2~RUNNING~7~x~~\n666~666~666~666~"
                                      "666~666~\n~~\n3~3~RUNNING~7~after~~\n",
                                      told);

    assert_int_equal(outcome.code, -EBADMSG);
    for (size_t i = 0; i < told->n; i++)
        assert_int_not_equal(told->job[i].id, 666);
    told_free(told);
}

TEST(what_ends_in_the_middle_is_not_believed)
{
    struct told *told = told_new();

    assert_int_equal(read_few("1~1~RUNNING~7~good~~\n2~2~RUNN", told).code, -EBADMSG);
    told_free(told);
}

TEST(all_fields_of_a_release_are_asked_for_that_do_not_follow_from_others)
{
    for (size_t r = 0; r < COUNT(releases); r++) {
        struct buf list;
        struct sacct_fields fields;
        struct str help, rest;
        struct err err;
        char name[60];

        snprintf(name, sizeof(name), "helpformat-%s.txt", releases[r]);
        help = read_file(data_file(name));
        snprintf(name, sizeof(name), "%s.txt", releases[r]);
        rest = read_file(data_file(name));
        assert_int_equal(sacct_fields_read(help, &fields, &err), 0);
        buf_init(&list, 64 * 1024);
        sacct_fields_put(&fields, &list);
        assert_true(str_eq(buf_str(&list), str_cut(&rest, '\n')));
        buf_free(&list);
    }
}

TEST(fields_of_releases_to_come_are_asked_for_and_bad_names_are_not)
{
    struct sacct_fields fields;
    struct buf list;
    struct err err;

    buf_init(&list, 4096);
    assert_int_equal(sacct_fields_read(STR("State Novelty JobID state JobIDRaw Submit a,b x%30\n"
                                           "Elapsed AveNothing Novelty "),
                                       &fields, &err),
                     0);
    sacct_fields_put(&fields, &list);
    assert_str(buf_str(&list), "State,JobID,JobIDRaw,Submit,Novelty");
    assert_int_equal(sacct_fields_read(STR("JobID JobIDRaw Submit"), &fields, &err), -EBADMSG);
    assert_contains(err.text, "State");
    buf_free(&list);
}

TEST(the_order_of_fields_is_another_each_time)
{
    struct sacct_fields first, second;
    struct str help = read_file(data_file("helpformat-24.11.txt"));
    struct buf a, b;
    struct err err;

    assert_int_equal(sacct_fields_read(help, &first, &err), 0);
    second = first;
    sacct_fields_shuffle(&first);
    sacct_fields_shuffle(&second);
    buf_init(&a, 64 * 1024);
    buf_init(&b, 64 * 1024);
    sacct_fields_put(&first, &a);
    sacct_fields_put(&second, &b);
    assert_int_equal(a.n, b.n);
    assert_false(str_eq(buf_str(&a), buf_str(&b)));
    for (size_t i = 0; i < first.n; i++) {
        size_t found = 0;

        for (size_t k = 0; k < second.n; k++)
            found += strcmp(first.field[i].name, second.field[k].name) == 0 &&
                     first.field[i].place == second.field[k].place;
        assert_int_equal(found, 1);
    }
    buf_free(&a);
    buf_free(&b);
}

/* The rest asks tests/data/sacct/bin/sacct. */
struct asking {
    struct sacct *sacct;
    struct told *told;
    struct sacct_question question;
    struct sacct_result result;
    struct err err;
};

static struct asking *ask_new(const char *release, const char *prefix, size_t max_output)
{
    struct asking *asking = heap_alloc(sizeof(*asking));
    struct source_settings settings = { .max_answer = max_output, .conf = STR("/no/slurm.conf") };
    char name[40];

    snprintf(name, sizeof(name), "%s.txt", release);
    setenv("FAKE_SACCT_ANSWER", data_file(name), 1);
    setenv("FAKE_SACCT_LOG", write_file("log", ""), 1);
    unsetenv("FAKE_SACCT_REFUSAL");
    settings.bin_path = str_of(data_file("bin"));
    settings.prefix = str_of(prefix);
    if (sacct_new(&settings, &asking->sacct, &asking->err) < 0)
        fail_msg("%s", asking->err.text);
    asking->told = told_new();
    asking->question = (struct sacct_question){
        .from = 1794800000,
        .to = 1794900000,
        .as_of = AS_OF,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
        .record = take,
        .ctx = asking->told,
    };
    return asking;
}

static int ask(struct asking *asking)
{
    return sacct_ask(asking->sacct, &asking->question, &asking->result, &asking->err);
}

static void ask_free(struct asking *asking)
{
    sacct_free(asking->sacct);
    told_free(asking->told);
    free(asking);
}

TEST(a_question_of_a_time_gives_all_that_could_and_could_never_run_in_it)
{
    for (size_t r = 0; r < COUNT(releases); r++) {
        struct asking *asking = ask_new(releases[r], "", FILE_MAX);
        size_t cancelled = 0;

        if (ask(asking) < 0)
            fail_msg("%s", asking->err.text);
        assert_int_equal(asking->result.counts.records, asking->told->n);
        assert_true(asking->result.bytes > 10000);
        find(asking->told, "cancelled-pending", 0);
        for (size_t i = 0; i < asking->told->n; i++)
            cancelled += str_eq(asking->told->job[i].name, STR("cancelled-running"));
        assert_int_equal(cancelled, 1);
        assert_int_equal(find(asking->told, "completed-steps", 0)->user_id, 2001);
        ask_free(asking);
    }
}

TEST(the_format_is_no_argument_and_times_are_utc)
{
    static const char *const prefixes[] = { "", "sh -c" };

    for (size_t i = 0; i < COUNT(prefixes); i++) {
        struct asking *asking;
        struct str rest, line, arguments;

        setenv("TZ", "Australia/Lord_Howe", 1);
        setenv("SACCT_FORMAT", "JobID", 1);
        asking = ask_new("24.11", prefixes[i], FILE_MAX);
        if (ask(asking) < 0)
            fail_msg("%s", asking->err.text);
        unsetenv("TZ");
        unsetenv("SACCT_FORMAT");
        find(asking->told, "completed-steps", 0);
        rest = read_file("log");
        line = str_cut(&rest, '\n');
        assert_str(str_cut(&line, '|'), "--helpformat");
        line = str_cut(&rest, '\n');
        arguments = str_cut(&line, '|');
        assert_true(str_find_str(arguments, STR("--starttime 2026-11-16T03:33:20 --endtime "
                                                "2026-11-17T07:20:00")) < arguments.n);
        assert_true(str_find_str(arguments, STR("WorkDir")) == arguments.n);
        assert_str(str_cut(&line, '|'), "UTC");
        assert_str(str_cut(&line, '|'), "%s");
        assert_str(str_cut(&line, '|'), "/no/slurm.conf");
        assert_true(str_find_str(line, STR("WorkDir")) < line.n);
        ask_free(asking);
    }
}

TEST(jobs_are_asked_for_by_their_ids_whatever_their_time)
{
    static const uint32_t ids[] = { 5435002, 5435008, 5435042 };
    struct asking *asking = ask_new("24.11", "", FILE_MAX);

    asking->question.ids = ids;
    asking->question.n_ids = COUNT(ids);
    asking->question.from = asking->question.to = 0;
    if (ask(asking) < 0)
        fail_msg("%s", asking->err.text);
    assert_int_equal(asking->told->n, 3);
    find(asking->told, "cancelled-pending", 0);
    ask_free(asking);
}

TEST(refusals_are_told_apart)
{
    static const struct {
        const char *refusal;
        int code;
        const char *words;
    } cases[] = {
        { "echo 'Slurm accounting storage is disabled' >&2; exit 1", -EOPNOTSUPP, "no accounting" },
        { "echo 'sacct: error: Too wide of a date range in query' >&2; exit 95", -E2BIG,
          "MaxQueryTimeRange" },
        { "echo 'sacct: error: Problem talking to the database: Connection refused' >&2; exit 1",
          -EREMOTEIO, "is slurmdbd running?" },
        { "echo 'sacct: error: slurmdbd: Access/permission denied' >&2; exit 1", -EACCES,
          "denied" },
        { "echo 'sacct: error: something else' >&2; exit 1", -EREMOTEIO, "something else" },
        { "echo garbage; exit 0", -EBADMSG, "sacct" },
        { "exec /no/such", -EREMOTEIO, "no/such" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct asking *asking = ask_new("24.11", "", FILE_MAX);

        setenv("FAKE_SACCT_REFUSAL", cases[i].refusal, 1);
        assert_int_equal(ask(asking), cases[i].code);
        assert_int_equal(asking->err.code, -cases[i].code);
        assert_contains(asking->err.text, cases[i].words);
        assert_int_equal(asking->told->n, 0);
        ask_free(asking);
    }
}

TEST(without_sacct_there_is_none)
{
    struct source_settings settings = { .bin_path = STR("/no/such/place"), .max_answer = FILE_MAX };
    struct sacct_question question = {
        .to = 1,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
        .record = take,
    };
    struct sacct_result result;
    struct sacct *sacct;
    struct err err;

    assert_int_equal(sacct_new(&settings, &sacct, &err), 0);
    assert_int_equal(sacct_ask(sacct, &question, &result, &err), -ENOENT);
    sacct_free(sacct);
    settings.prefix = STR("ssh 'cedar");
    assert_int_equal(sacct_new(&settings, &sacct, &err), -EINVAL);
    assert_contains(err.text, "not a command line");
}

TEST(an_answer_past_the_ceiling_asks_for_less)
{
    struct asking *asking = ask_new("24.11", "", 9000);

    assert_int_equal(ask(asking), -E2BIG);
    assert_contains(asking->err.text, "--slurm.max-answer");
    ask_free(asking);
}

TEST(what_the_taker_refuses_is_passed_on)
{
    struct asking *asking = ask_new("22.05", "", FILE_MAX);

    asking->told->most = 3;
    assert_int_equal(ask(asking), -ENOSPC);
    assert_string_equal(asking->err.text, "no room");
    assert_int_equal(asking->told->n, 3);
    ask_free(asking);
}

TEST(after_an_upgrade_the_fields_are_asked_for_again)
{
    struct asking *asking = ask_new("24.11", "", FILE_MAX);
    size_t questions = 0;

    setenv("FAKE_SACCT_REFUSAL",
           "echo 'sacct: error: Invalid field requested: \"SLUID\"' >&2; exit 1", 1);
    assert_int_equal(ask(asking), -EREMOTEIO);
    unsetenv("FAKE_SACCT_REFUSAL");
    if (ask(asking) < 0)
        fail_msg("%s", asking->err.text);
    if (ask(asking) < 0)
        fail_msg("%s", asking->err.text);
    for (struct str rest = read_file("log"); rest.p;)
        questions += str_starts(str_cut(&rest, '\n'), STR("--helpformat"));
    assert_int_equal(questions, 2);
    ask_free(asking);
}

TEST(a_question_that_hangs_ends_at_its_deadline)
{
    struct asking *asking = ask_new("24.11", "", FILE_MAX);

    setenv("FAKE_SACCT_REFUSAL", "exec sleep 1000", 1);
    asking->question.deadline_ns = clock_mono(&clock_real) + 50 * NS_PER_MS;
    assert_int_equal(ask(asking), -ETIMEDOUT);
    ask_free(asking);
}
