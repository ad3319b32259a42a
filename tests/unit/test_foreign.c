/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of prometheus-slurm-exporter and Slurm's JSON: what each says, what each bad record
 * costs, and that the same cluster is the same whichever tells of it. */
#include "model/units.h"
#include "source/cli.h"
#include "source/foreign.h"
#include "sim_print.h"
#include "source/source.h"

#include "test.h"

#include "files.h"

#include <math.h>

static const int64_t time_of_sim = 1794700000;

/* What came of an answer. */
struct outcome {
    struct section *section;
    int code;
    struct err err;
};

static struct outcome read_in_pieces(enum kind kind, const struct answer_class *class,
                                     struct str text, size_t piece)
{
    struct outcome outcome = { .section = section_new(kind) };
    struct answer *answer = answer_new(class, outcome.section, SIZE_MAX);

    for (; text.n && outcome.code == 0; text = str_skip(text, piece)) {
        /* In memory of its own, so that reading past its end is found. */
        char *copy = heap_array(1, str_head(text, piece).n);

        memcpy(copy, text.p, str_head(text, piece).n);
        outcome.code =
            class->feed(answer, (struct str){ copy, str_head(text, piece).n }, &outcome.err);
        free(copy);
    }
    if (outcome.code == 0)
        outcome.code = class->end(answer, &outcome.err);
    answer_free(answer);
    return outcome;
}

static struct section *read_text(enum kind kind, const struct answer_class *class, struct str text)
{
    struct outcome outcome = read_in_pieces(kind, class, text, SIZE_MAX);

    if (outcome.code < 0)
        fail_msg("%s", outcome.err.text);
    return outcome.section;
}

static struct section *jobs_of(const char *text)
{
    return read_text(KIND_JOBS, &answer_foreign_jobs, str_of(text));
}

static struct section *nodes_of(const char *text)
{
    return read_text(KIND_NODES, &answer_foreign_nodes, str_of(text));
}

static void assert_refused(enum kind kind, const struct answer_class *class, const char *text,
                           int code, const char *part)
{
    struct outcome outcome = read_in_pieces(kind, class, str_of(text), SIZE_MAX);

    assert_int_equal(outcome.code, code);
    assert_contains(outcome.err.text, part);
    section_unref(outcome.section);
}

static void assert_symbol(const struct section *section, symbol s, const char *expected)
{
    assert_str(section_text(section, s), expected);
}

static struct str recorded(const char *name, const char *version, const char *ending)
{
    return read_file(source_path("tests/data/foreign/%s%s%s", name, version, ending));
}

static struct section *read_recorded(enum kind kind, const struct answer_class *class,
                                     const char *name, const char *version, const char *ending)
{
    struct section *section = read_text(kind, class, recorded(name, version, ending));

    assert_int_equal(section->skipped, 0);
    return section;
}

static const char *const versions[] = { "22.05", "24.11", "26.05" };

TEST(a_line_of_the_peer_is_read_field_by_field)
{
    struct section *section =
        jobs_of("{\"a\": \"physics\", \"id\": 26515966, \"end_time\": \"2023-09-21T00:21:42\", "
                "\"u\": \"alice\", \"state\": \"RUNNING\", \"p\": \"hw-h\", \"cpu\": 16, \"mem\": "
                "\"128G\", "
                "\"array_id\": \"7\", \"r\": \"cs[75-76]\"}\n");
    const struct job *job = &section->jobs.job[0];

    assert_int_equal(section->jobs.n, 1);
    assert_int_equal(section->skipped, 0);
    assert_true(section->jobs.lacks_features);
    assert_true(section->jobs.lacks_qos);
    assert_int_equal(job->id, 26515966);
    assert_int_equal(job->array_task_id, 7);
    assert_int_equal(job->tasks, 1);
    assert_int_equal(job->state.base, JOB_RUNNING);
    assert_int_equal(job->cpus, 16);
    assert_int_equal(job->node_count, 2);
    assert_int_equal(job->memory_bytes, UINT64_C(128) << 30);
    assert_int_equal(job->end_time, 1695255702);
    assert_symbol(section, job->account, "physics");
    assert_symbol(section, job->user, "alice");
    assert_symbol(section, job->partition, "hw-h");
    assert_symbol(section, job->nodes, "cs[75-76]");
    assert_int_equal(job->reason, 0);
    assert_int_equal(job->priority, MODEL_UNKNOWN_U64);
    assert_int_equal(job->time_limit_minutes, MODEL_UNKNOWN_U32);
    section_unref(section);
}

TEST(a_line_of_three_words_is_a_job_and_whose_it_is)
{
    struct section *section =
        read_text(KIND_JOBS, &answer_foreign_owners,
                  STR("7 physics alice\n8 bob\nJOBID ACCOUNT USER\n9\n\n"
                      "10 physics alice and more\n{\"id\": 11, \"u\": \"eve\"}\n"
                      "12  (null)\tcarol"));
    static const struct {
        uint32_t id;
        const char *account, *user;
    } expected[] = {
        { 7, "physics", "alice" }, { 8, "", "bob" }, { 11, "", "eve" }, { 12, "", "carol" }
    };

    assert_int_equal(section->jobs.n, COUNT(expected));
    assert_int_equal(section->skipped, 3);
    for (size_t i = 0; i < COUNT(expected); i++) {
        const struct job *job = &section->jobs.job[i];

        assert_int_equal(job->id, expected[i].id);
        assert_symbol(section, job->account, expected[i].account);
        assert_symbol(section, job->user, expected[i].user);
        assert_int_equal(job->state.base, JOB_STATE_NONE.base);
        assert_int_equal(job->cpus, MODEL_UNKNOWN_U32);
        assert_int_equal(job->tasks, 1);
    }
    section_unref(section);
}

/* A line with other values in some fields; NULL: the usual ones. */
struct line {
    const char *id, *end_time, *state, *partition, *cpus, *memory, *array, *nodes;
};

static void put_line(struct buf *buf, const struct line *line)
{
    buf_printf(buf,
               "{\"a\": \"acct\", \"id\": %s, \"end_time\": \"%s\", \"u\": \"bob\", \"state\": "
               "\"%s\", \"p\": \"%s\", \"cpu\": %s, \"mem\": \"%s\", \"array_id\": \"%s\", \"r\": "
               "\"%s\"}\n",
               line->id ? line->id : "5", line->end_time ? line->end_time : "N/A",
               line->state ? line->state : "RUNNING", line->partition ? line->partition : "cpu",
               line->cpus ? line->cpus : "4", line->memory ? line->memory : "1G",
               line->array ? line->array : "N/A", line->nodes ? line->nodes : "n1");
}

static struct section *lines_of(const struct line *lines, size_t n)
{
    struct section *section;
    struct buf text;

    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < n; i++)
        put_line(&text, &lines[i]);
    section = read_text(KIND_JOBS, &answer_foreign_jobs, buf_str(&text));
    buf_free(&text);
    return section;
}

TEST(memory_is_in_slurms_units_and_no_suffix_loses_a_job)
{
    static const struct {
        struct line line;
        uint64_t bytes;
    } cases[] = {
        { { .memory = "62.50G" }, UINT64_C(64000) << 20 },
        { { .memory = "40000M" }, UINT64_C(40000) << 20 },
        { { .memory = "4000" }, UINT64_C(4000) << 20 },
        { { .memory = "512K" }, 512 << 10 },
        { { .memory = "1T" }, UINT64_C(1) << 40 },
        { { .memory = "2P" }, UINT64_C(2) << 50 },
        { { .memory = "4000Mc", .cpus = "8" }, UINT64_C(32000) << 20 },
        { { .memory = "4Gn", .nodes = "n[1-3]" }, UINT64_C(12) << 30 },
        { { .memory = "4Gn", .state = "PENDING", .nodes = "(Priority)" }, UINT64_C(4) << 30 },
        { { .memory = "4G", .nodes = "n[1-3]" }, UINT64_C(4) << 30 },
        { { .memory = "0" }, MODEL_UNKNOWN_U64 },
        { { .memory = "" }, MODEL_UNKNOWN_U64 },
        { { .memory = "N/A" }, MODEL_UNKNOWN_U64 },
        { { .memory = "16777216T" }, MODEL_UNKNOWN_U64 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct section *section = lines_of(&cases[i].line, 1);

        assert_int_equal(section->jobs.n, 1);
        if (section->jobs.job[0].memory_bytes != cases[i].bytes)
            fail_msg("%s is %llu bytes", cases[i].line.memory,
                     (unsigned long long)section->jobs.job[0].memory_bytes);
        section_unref(section);
    }
}

TEST(a_time_that_is_no_time_is_unknown_and_the_job_stays)
{
    static const struct line lines[] = {
        { .end_time = "Unknown" },    { .end_time = "N/A" },
        { .end_time = "NONE" },       { .end_time = "" },
        { .end_time = "yesterday" },  { .end_time = "2026-13-45T99:00:00" },
        { .end_time = "1794700000" }, /* SLURM_TIME_FORMAT=%s */
    };
    struct section *section = lines_of(lines, COUNT(lines));

    assert_int_equal(section->jobs.n, COUNT(lines));
    for (size_t i = 0; i + 1 < COUNT(lines); i++)
        assert_int_equal(section->jobs.job[i].end_time, 0);
    assert_int_equal(section->jobs.job[COUNT(lines) - 1].end_time, 1794700000);
    section_unref(section);
}

TEST(what_squeue_prints_for_nodes_is_a_reason_or_nodes)
{
    static const struct {
        const char *state, *field, *reason, *nodes;
        uint32_t node_count;
    } cases[] = {
        { "PENDING", "(Priority)", "Priority", "", MODEL_UNKNOWN_U32 },
        { "PENDING", "(ReqNodeNotAvail, UnavailableNodes:cn[1-2],cn9)",
          "ReqNodeNotAvail, UnavailableNodes:cn[1-2],cn9", "", MODEL_UNKNOWN_U32 },
        { "PENDING", "(None)", "", "", MODEL_UNKNOWN_U32 },
        { "PENDING", "()", "", "", MODEL_UNKNOWN_U32 },
        { "PENDING", "(", "", "", MODEL_UNKNOWN_U32 },
        { "PENDING", "(ReqNodeNotAvail, Unavailab", "ReqNodeNotAvail, Unavailab", "",
          MODEL_UNKNOWN_U32 },
        { "FAILED", "(RaisedSignal:11(Segmentation fault))", "RaisedSignal:11(Segmentation fault)",
          "", MODEL_UNKNOWN_U32 },
        { "PENDING", "Priority", "Priority", "", MODEL_UNKNOWN_U32 },
        { "PENDING", "None", "", "", MODEL_UNKNOWN_U32 },
        { "RUNNING", "cn[001-016,020],big1", "", "cn[001-016,020],big1", 18 },
        { "RUNNING", "cn[1-", "", "cn[1-", MODEL_UNKNOWN_U32 },
        { "CANCELLED", "", "", "", MODEL_UNKNOWN_U32 },
        { "RUNNING", "(null)", "", "", MODEL_UNKNOWN_U32 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct line line = { .state = cases[i].state, .nodes = cases[i].field };
        struct section *section = lines_of(&line, 1);

        assert_symbol(section, section->jobs.job[0].reason, cases[i].reason);
        assert_symbol(section, section->jobs.job[0].nodes, cases[i].nodes);
        assert_int_equal(section->jobs.job[0].node_count, cases[i].node_count);
        section_unref(section);
    }
}

TEST(quotes_and_backslashes_in_the_last_field_are_kept_as_they_are)
{
    static const struct {
        const char *field, *reason;
    } cases[] = {
        { "(waits for \\\"disk\\\" | C:\\temp)", "waits for \\\"disk\\\" | C:\\temp" },
        { "(say \"hi\", \"r\": \"x\")", "say \"hi\", \"r\": \"x\"" },
        { "(ends in \"})", "ends in \"}" },
        { "(\\)", "\\" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct line line = { .state = "PENDING", .nodes = cases[i].field };
        struct section *section = lines_of(&line, 1);

        assert_int_equal(section->skipped, 0);
        assert_symbol(section, section->jobs.job[0].reason, cases[i].reason);
        assert_symbol(section, section->jobs.job[0].user, "bob");
        section_unref(section);
    }
}

TEST(each_line_of_an_array_is_a_task_and_a_list_counts_its_tasks)
{
    static const struct line lines[] = {
        { .id = "43", .state = "PENDING", .array = "1" },
        { .id = "43", .state = "PENDING", .array = "2" },
        { .id = "51", .state = "RUNNING", .array = "0" },
        { .id = "43", .state = "PENDING", .array = "3-50:2%2" },
    };
    static const uint32_t tasks[] = { 1, 1, 1, 24 };
    static const uint32_t ids[] = { 1, 2, 0, MODEL_UNKNOWN_U32 };
    struct section *section = lines_of(lines, COUNT(lines));

    assert_int_equal(section->jobs.n, COUNT(lines));
    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_int_equal(section->jobs.job[i].tasks, tasks[i]);
        assert_int_equal(section->jobs.job[i].array_task_id, ids[i]);
    }
    assert_int_equal(section->jobs.job[3].array_job_id, 43);
    section_unref(section);
}

TEST(a_list_of_tasks_that_is_cut_short_counts_those_that_it_names)
{
    static const struct {
        const char *list;
        uint32_t tasks;
    } cases[] = {
        { "1,3,6,190,...", 4 }, { "1,3-5,...%2", 4 }, { "1,3,19...", 3 },
        { "1,3-...", 2 },       { "...", 1 },         { ",...", 1 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct line line = { .id = "9", .state = "PENDING", .array = cases[i].list };
        struct section *section = lines_of(&line, 1);

        assert_int_equal(section->jobs.n, 1);
        assert_int_equal(section->skipped, 0);
        assert_int_equal(section->jobs.job[0].tasks, cases[i].tasks);
        assert_int_equal(section->jobs.job[0].array_job_id, 9);
        section_unref(section);
    }
}

TEST(odd_states_counts_and_partitions_keep_the_job)
{
    static const struct line lines[] = {
        { .state = "TELEPORTING" }, { .state = "" },
        { .cpus = "1.50K" },        { .state = "PENDING", .partition = "gpu,gpu-long" },
        { .state = "COMPLETING" },  { .cpus = "" },
    };
    struct section *section = lines_of(lines, COUNT(lines));
    const struct job *job = section->jobs.job;

    assert_int_equal(section->jobs.n, COUNT(lines));
    assert_str(job_state_word(job[0].state), "UNKNOWN");
    assert_str(job_state_word(job[1].state), "UNKNOWN");
    assert_int_equal(job[2].cpus, 1536);
    assert_symbol(section, job[3].partition, "gpu,gpu-long");
    assert_str(job_state_word(job[4].state), "COMPLETING");
    assert_int_equal(job[5].cpus, MODEL_UNKNOWN_U32);
    section_unref(section);
}

TEST(keys_may_stand_in_any_order_with_others_between)
{
    struct section *section = jobs_of(
        " {\"name\":\"a \\\"b\\\" \\u00e9\", \"id\" : 7,\"state\":\"PENDING\" , \"r\": "
        "\"(C:\\\\temp)\", \"cpu\": 1.50K, \"gpus\":null, \"mem\": \"1G\", \"u\": \"bob\"}\r\n"
        "{\"id\": 8, \"a\": \"acct\", \"end_time\": \"N/A\", \"state\": \"RUNNING\", \"p\": "
        "\"hw-h\", \"cpu\": 1, \"mem\": \"128G\", \"id\": 9, \"comment\": \"not \\q JSON\"}\n");
    const struct job *job = section->jobs.job;

    assert_int_equal(section->jobs.n, 2);
    assert_int_equal(section->skipped, 0);
    assert_int_equal(job[0].id, 7);
    assert_int_equal(job[0].cpus, 1536);
    assert_int_equal(job[0].account, 0);
    assert_symbol(section, job[0].user, "bob");
    assert_symbol(section, job[0].reason, "C:\\temp");
    assert_int_equal(job[1].id, 8);
    assert_int_equal(job[1].user, 0);
    assert_symbol(section, job[1].partition, "hw-h");
    section_unref(section);
}

TEST(a_line_that_cannot_be_read_costs_only_itself)
{
    struct section *section;
    struct buf text;

    buf_init(&text, 1 << 16);
    put_line(&text, &(struct line){ .id = "1" });
    buf_text(&text, "# a comment of the site's own\n");
    put_line(&text, &(struct line){ .cpus = "xx" });
    put_line(&text, &(struct line){ .id = "0" });
    put_line(&text, &(struct line){ .id = "-3" });
    put_line(&text, &(struct line){ .id = "99999999999" });
    put_line(&text, &(struct line){ .array = "1,x,5,..." });
    buf_text(&text, "\n   \n");
    buf_text(&text, "{\"a\": \"acct\", \"id\": 6, \"end_time\": \"2026-11-15T2\n");
    buf_text(&text, "{\"a\": \"acct\", \"id\": {\"number\": 6}, \"cpu\": 1}\n");
    buf_text(&text, "{}\n{\"a\"}\n{\"a\":}\n{\"a\": \"x\" \"id\": 3}\n{\"id\": 3,}\n");
    put_line(&text, &(struct line){ .id = "2" });
    section = read_text(KIND_JOBS, &answer_foreign_jobs, buf_str(&text));
    assert_int_equal(section->jobs.n, 2);
    assert_int_equal(section->jobs.job[0].id, 1);
    assert_int_equal(section->jobs.job[1].id, 2);
    assert_int_equal(section->skipped, 13);
    assert_str(section->skipped_example, "# a comment of the site's own");
    section_unref(section);
    buf_free(&text);
}

TEST(a_line_that_is_too_long_is_passed_over)
{
    struct section *section;
    struct buf text;

    buf_init(&text, 4 << 20);
    buf_text(&text, "{\"id\": 3, \"cpu\": 1, \"r\": \"");
    memset(buf_room(&text, 2 << 20), 'x', 2 << 20);
    text.n += 2 << 20;
    buf_text(&text, "\"}\n");
    put_line(&text, &(struct line){ .id = "2" });
    section = read_text(KIND_JOBS, &answer_foreign_jobs, buf_str(&text));
    assert_int_equal(section->jobs.n, 1);
    assert_int_equal(section->skipped, 1);
    section_unref(section);
    buf_free(&text);
}

TEST(an_empty_answer_is_an_empty_queue_and_garbage_is_an_error)
{
    static const char *const empty[] = { "", "\n", "  \n\n" };

    for (size_t i = 0; i < COUNT(empty); i++) {
        struct section *section = jobs_of(empty[i]);

        assert_int_equal(section->jobs.n, 0);
        assert_int_equal(section->skipped, 0);
        section_unref(section);
    }
    assert_refused(KIND_JOBS, &answer_foreign_jobs, "slurm_load_jobs error: Unable to contact\n",
                   -EBADMSG, "the first of 1 is \"slurm_load_jobs error: Unable to contact\"");
    assert_refused(KIND_NODES, &answer_foreign_nodes, "no\nnodes\n", -EBADMSG, "the first of 2");
}

TEST(numbers_may_have_every_shape)
{
    struct section *section = jobs_of(
        "{\"meta\": {\"jobs\": [3]}, \"jobs\": ["
        "{\"job_id\": 1, \"cpus\": 4, \"time_limit\": null, \"priority\": 12.0, \"end_time\": 5},"
        "{\"job_id\": {\"set\": true, \"infinite\": false, \"number\": 2}, \"cpus\": {\"number\": "
        "4,"
        " \"set\": true}, \"time_limit\": {\"set\": false, \"infinite\": true, \"number\": 0}, "
        "\"end_time\": {\"set\": true, \"infinite\": false, \"number\": 5}},"
        "{\"job_id\": \"3\", \"cpus\": {\"set\": false, \"infinite\": false, \"number\": 9}, "
        "\"time_limit\": \"Infinity\", \"end_time\": 4294967294, \"priority\": -1},"
        "{\"job_id\": 4, \"cpus\": 4294967294, \"time_limit\": [60], \"end_time\": {\"x\": {}}, "
        "\"array_task_id\": {\"set\": true, \"infinite\": false, \"number\": \"none\"}, "
        "\"nodes\": {\"list\": \"n1\"}, \"partition\": 7}]}");
    const struct job *job = section->jobs.job;

    assert_int_equal(section->jobs.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(job[i].id, i + 1);
        assert_int_equal(job[i].cpus, i < 2 ? 4 : MODEL_UNKNOWN_U32);
        assert_int_equal(job[i].end_time, i < 2 ? 5 : 0);
        assert_int_equal(job[i].time_limit_minutes, MODEL_UNKNOWN_U32);
        assert_int_equal(job[i].array_task_id, MODEL_UNKNOWN_U32);
    }
    assert_int_equal(job[0].priority, 12);
    assert_int_equal(job[2].priority, MODEL_UNKNOWN_U64);
    assert_false(section->jobs.lacks_features);
    assert_false(section->jobs.lacks_qos);
    section_unref(section);
}

TEST(states_are_a_word_or_a_list_and_resources_may_be_anything)
{
    struct section *section = jobs_of(
        "{\"jobs\": ["
        "{\"job_id\": 1, \"job_state\": \"RUNNING\", \"job_resources\": null},"
        "{\"job_id\": 2, \"job_state\": [\"RUNNING\", \"COMPLETING\"], \"job_resources\": {}},"
        "{\"job_id\": 3, \"job_state\": [], \"job_resources\": [[{\"job_id\": 9}]]},"
        "{\"job_id\": 4, \"job_state\": [\"NEW\", 3, [\"x\"]], \"job_resources\": 7}]}");
    const struct job *job = section->jobs.job;

    assert_int_equal(section->jobs.n, 4);
    assert_str(job_state_word(job[0].state), "RUNNING");
    assert_str(job_state_word(job[1].state), "COMPLETING");
    assert_int_equal(job[1].state.base, JOB_RUNNING);
    assert_str(job_state_word(job[2].state), "UNKNOWN");
    assert_str(job_state_word(job[3].state), "UNKNOWN");
    section_unref(section);
}

TEST(memory_is_what_is_allocated_or_else_requested)
{
    static const struct {
        const char *members;
        uint64_t mebibytes;
    } cases[] = {
        { "\"tres_alloc_str\": \"cpu=4,mem=800M,node=2\", \"tres_req_str\": \"cpu=1,mem=1M\"",
          800 },
        { "\"tres_alloc_str\": \"\", \"tres_req_str\": \"cpu=1,mem=1.50G,node=1\"", 1536 },
        { "\"cpus\": 8, \"memory_per_cpu\": {\"set\": true, \"number\": 64000}", 512000 },
        { "\"node_count\": 3, \"memory_per_node\": 1000, \"memory_per_cpu\": null", 3000 },
        { "\"node_count\": 3, \"memory_per_node\": 0", MODEL_UNKNOWN_U64 },
        { "\"memory_per_node\": 1000", MODEL_UNKNOWN_U64 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct section *section;
        struct buf text;

        buf_init(&text, 4096);
        buf_printf(&text, "{\"jobs\": [{\"job_id\": 1, %s}]}", cases[i].members);
        section = read_text(KIND_JOBS, &answer_foreign_jobs, buf_str(&text));
        assert_int_equal(section->jobs.job[0].memory_bytes, cases[i].mebibytes == MODEL_UNKNOWN_U64
                                                                ? MODEL_UNKNOWN_U64
                                                                : cases[i].mebibytes << 20);
        section_unref(section);
        buf_free(&text);
    }
}

TEST(a_document_tells_arrays_reasons_and_users_as_squeue_does)
{
    struct section *section = jobs_of(
        "{\"jobs\": ["
        "{\"job_id\": 18, \"array_job_id\": 18, \"array_task_id\": null, \"array_task_string\": "
        "\"3-8%2\", \"state_reason\": \"JobArrayTaskLimit\", \"user_name\": \"none\"},"
        "{\"job_id\": 19, \"array_job_id\": 18, \"array_task_id\": 0, \"array_task_string\": \"\", "
        "\"state_reason\": \"None\", \"user_name\": \"\", \"user_id\": 1001},"
        "{\"job_id\": 20, \"array_task_string\": \"1,x,5\"},"
        "{\"user_name\": \"nobody\"},"
        "{\"job_id\": 21, \"state_reason\": \"ReqNodeNotAvail\", \"state_description\": "
        "\"ReqNodeNotAvail, UnavailableNodes:c5\", \"het_job_id\": 20, \"het_job_offset\": 1},"
        "{\"job_id\": 22, \"array_job_id\": 22, \"array_task_string\": \"1,3-5,190,...\"}]}");
    const struct job *job = section->jobs.job;

    assert_int_equal(section->jobs.n, 4);
    assert_int_equal(section->skipped, 2);
    assert_str(section->skipped_example, "1,x,5");
    assert_int_equal(job[3].tasks, 5);
    assert_int_equal(job[0].tasks, 6);
    assert_int_equal(job[0].array_job_id, 18);
    assert_symbol(section, job[0].reason, "JobArrayTaskLimit");
    assert_symbol(section, job[0].user, "none");
    assert_int_equal(job[1].tasks, 1);
    assert_int_equal(job[1].array_task_id, 0);
    assert_int_equal(job[1].reason, 0);
    assert_symbol(section, job[1].user, "1001");
    assert_symbol(section, job[2].reason, "ReqNodeNotAvail, UnavailableNodes:c5");
    assert_int_equal(job[2].het_job_id, 20);
    assert_int_equal(job[2].het_offset, 1);
    section_unref(section);
}

TEST(a_document_without_jobs_is_refused_with_slurms_own_words)
{
    static const struct {
        const char *text, *part;
        int code;
    } cases[] = {
        { "{\"jobs\": [], \"errors\": [{\"error_number\": 1, \"description\": \"Unable to contact "
          "slurm controller\"}]}",
          "Slurm says in its JSON: Unable to contact slurm controller", -EREMOTEIO },
        { "{\"errors\": [{}, {\"error\": \"no way\"}], \"warnings\": []}", "no way", -EREMOTEIO },
        { "{\"meta\": {}, \"nodes\": [{}]}", "the document has no \"jobs\"", -EBADMSG },
        { "{\"meta\": {}, \"jobs\": null}", "the document has no \"jobs\"", -EBADMSG },
        { "{\"jobs\": {}}", "the document has no \"jobs\"", -EBADMSG },
        { "{\"jobs\": [], \"errors\": [\"no\\nway\", \"nor this\"]}", "Slurm says in its JSON: no",
          -EREMOTEIO },
        { "{\"errors\": [{}], \"jobs\": []}", "an error that it does not describe", -EREMOTEIO },
        { "{\"jobs\": [], \"errors\": [7]}", "an error that it does not describe", -EREMOTEIO },
        { "{\"jobs\": [{\"job_id\": 1}", "cut short", -EBADMSG },
        { "{\"jobs\": [{\"job_id\": 1}]", "cut short", -EBADMSG },
        { "{\"jobs\": [}", "column 11", -EBADMSG },
        { "{}", "the document has no \"jobs\"", -EBADMSG },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(KIND_JOBS, &answer_foreign_jobs, cases[i].text, cases[i].code,
                       cases[i].part);
}

TEST(an_error_beside_jobs_does_not_hide_them)
{
    struct section *section =
        jobs_of("{\"jobs\": [{\"job_id\": 1}], \"errors\": [{\"error\": \"some node\"}]}");

    assert_int_equal(section->jobs.n, 1);
    section_unref(section);
}

#define NODE_LINE(name, state, partition, cpus)                                                    \
    "{\"s\": \"" state "\", \"mem\": 256000, \"n\": \"" name                                       \
    "\", \"l\": \"12.50\", \"p\": \"" partition "\", \"fmem\": \"1000\", \"cstate\": \"" cpus      \
    "\", \"w\": 10}\n"

static const struct node *find_node(const struct section *section, const char *name)
{
    for (size_t i = 0; i < section->nodes.n; i++)
        if (str_eq(section_text(section, section->nodes.node[i].name), str_of(name)))
            return &section->nodes.node[i];
    fail_msg("there is no node %s", name);
    return NULL;
}

static void assert_partitions(const struct section *section, const struct node *node,
                              const char *expected)
{
    struct buf names;

    buf_init(&names, 4096);
    for (uint32_t i = 0; i < node->n_partitions; i++) {
        uint32_t index = section->nodes.membership[node->first_partition + i];

        buf_text(&names, i ? "," : "");
        buf_put(&names, section_text(section, section->nodes.partition[index].name));
    }
    assert_str(buf_str(&names), expected);
    buf_free(&names);
}

TEST(a_node_is_one_node_in_however_many_lines)
{
    struct section *section = nodes_of(NODE_LINE("n1", "mixed-", "cpu", "4/28/0/32")
                                           NODE_LINE("n1", "mixed-", "gpu", "4/28/0/32")
                                               NODE_LINE("n2", "down*", "cpu", "0/0/32/32")
                                                   NODE_LINE("n1", "drained", "gpu", "4/28/0/32"));
    const struct node *node = find_node(section, "n1");

    assert_int_equal(section->nodes.n, 2);
    assert_int_equal(section->nodes.n_partitions, 2);
    assert_true(section->nodes.lacks_settings);
    assert_partitions(section, node, "cpu,gpu");
    assert_partitions(section, find_node(section, "n2"), "cpu");
    assert_int_equal(section->skipped, 0);
    assert_str(node_state_word(node->state), "draining");
    assert_true(node->state.flags & NODE_PLANNED);
    assert_int_equal(node->cpus, 32);
    assert_int_equal(node->cpus_alloc, 4);
    assert_int_equal(node->cpus_idle, 28);
    assert_true(node->cpu_load == 12.5);
    assert_int_equal(node->memory_bytes, UINT64_C(256000) << 20);
    assert_int_equal(node->memory_free_bytes, UINT64_C(1000) << 20);
    assert_int_equal(node->memory_alloc_bytes, MODEL_UNKNOWN_U64);
    assert_int_equal(node->weight, 10);
    assert_true(find_node(section, "n2")->state.flags & NODE_NOT_RESPONDING);
    section_unref(section);
}

static void assert_united(const char *first, const char *second, const char *expected)
{
    struct section *section;
    struct buf text;

    buf_init(&text, 4096);
    buf_printf(&text,
               "{\"s\": \"%s\", \"n\": \"n1\", \"p\": \"a\"}\n"
               "{\"s\": \"%s\", \"n\": \"n1\", \"p\": \"b\"}\n",
               first, second);
    section = nodes_of(text.p);
    assert_int_equal(section->nodes.n, 1);
    assert_str(node_state_word(section->nodes.node[0].state), expected);
    section_unref(section);
    buf_free(&text);
}

TEST(the_order_of_a_nodes_lines_makes_no_difference_to_its_state)
{
    static const struct {
        const char *one, *other, *united;
    } cases[] = {
        { "idle", "drained", "drained" }, { "mixed", "drained", "draining" },
        { "idle", "mixed", "mixed" },     { "mixed", "allocated", "allocated" },
        { "allocated", "down*", "down" }, { "idle", "reserved", "reserved" },
        { "bewitched", "idle", "idle" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_united(cases[i].one, cases[i].other, cases[i].united);
        assert_united(cases[i].other, cases[i].one, cases[i].united);
    }
}

TEST(a_column_that_cannot_be_read_is_counted_once_a_line_and_an_absent_one_not)
{
    struct section *section =
        nodes_of(NODE_LINE("n1", "bewitched", "cpu", "bad") NODE_LINE("n2", "idle", "cpu", "N/A")
                     NODE_LINE("n3", "", "cpu", "") NODE_LINE("n4", "idle", "cpu", "0/1/0/1"));

    assert_int_equal(section->nodes.n, 4);
    assert_int_equal(section->skipped, 1);
    assert_contains(section->skipped_example.p, "bewitched");
    section_unref(section);
}

TEST(a_column_that_cannot_be_read_costs_only_itself)
{
    struct section *section = nodes_of(
        NODE_LINE("n1", "idle", "cpu", "0/32") NODE_LINE("n2", "idle", "cpu", "a/b/c/d")
            NODE_LINE("n2", "idle", "gpu", "0/32/0/32") NODE_LINE("", "idle", "cpu", "0/1/0/1")
                NODE_LINE("n3", "bewitched", "cpu",
                          "0/32/0/32") "{\"s\": \"idle\", \"mem\": 8000+, \"n\": \"n4\", \"l\": "
                                       "\"N/A\", \"p\": \"\", \"fmem\": "
                                       "\"16624-16630\", \"cstate\": \"0/32/0/32\", \"w\": 10+}\n"
                                       "{\"s\": \"idle\", \"mem\": 80");
    const struct node *last = find_node(section, "n4");

    assert_int_equal(section->nodes.n, 4);
    assert_int_equal(section->skipped, 6);
    assert_int_equal(find_node(section, "n1")->cpus, MODEL_UNKNOWN_U32);
    assert_int_equal(find_node(section, "n1")->memory_bytes, UINT64_C(256000) << 20);
    assert_int_equal(find_node(section, "n2")->cpus, 32);
    assert_str(node_state_word(find_node(section, "n3")->state), "unknown");
    assert_int_equal(last->memory_bytes, MODEL_UNKNOWN_U64);
    assert_int_equal(last->memory_free_bytes, MODEL_UNKNOWN_U64);
    assert_int_equal(last->weight, MODEL_UNKNOWN_U32);
    assert_true(isnan(last->cpu_load));
    assert_int_equal(last->n_partitions, 0);
    section_unref(section);
}

TEST(padded_columns_are_read_with_or_without_the_newer_ones)
{
    struct section *section = nodes_of(
        "drng   |1540000   |cs422     |115.28  |hw-l*     |701906    |58/0/70/128  |161  |872016\n"
        "alloc  |1540000   |cs222     |N/A     |hw-h-lmt  |N/A       |96/0/0/96    |173  |1539792"
        "   |gpu:a100:8                    |gpu:a100:3(IDX:0-2)  |\n"
        "alloc  |1540000   |cs222     |N/A     |hw-l*     |N/A       |96/0/0/96    |173  |1539792"
        "   ||\n"
        "mix    |1         |cs1       |0.10    |hw-l*     |1         |1/0/0/1      |1    |1      "
        "   |gpu:nvidia_h100_80gb_hbm3_mig_|gpu:0|\n"
        "mix    |1         |cs3       |0.10    |hw-l*     |1         |1/0/0/1      |1    |1      "
        "   |gpu:nvidia_h100_80gb_hbm3_mig_1g.10gb:7|gpu:nvidia_h100_80gb_hbm3_mig_1g.10gb:7(|\n"
        "idle   |1         |cs2       |0.10    |hw-l*     |1         |0/1/0/1\n");
    const struct node *node = find_node(section, "cs222");

    assert_int_equal(section->nodes.n, 4);
    assert_int_equal(section->skipped, 1);
    assert_symbol(section, find_node(section, "cs3")->gres,
                  "gpu:nvidia_h100_80gb_hbm3_mig_1g.10gb:7");
    assert_int_equal(find_node(section, "cs3")->gres_used, 0);
    assert_str(node_state_word(find_node(section, "cs422")->state), "draining");
    assert_int_equal(find_node(section, "cs422")->memory_alloc_bytes, UINT64_C(872016) << 20);
    assert_int_equal(find_node(section, "cs422")->gres, 0);
    assert_partitions(section, node, "hw-h-lmt,hw-l");
    assert_true(isnan(node->cpu_load));
    assert_int_equal(node->memory_free_bytes, MODEL_UNKNOWN_U64);
    assert_symbol(section, node->gres, "gpu:a100:8");
    assert_symbol(section, node->gres_used, "gpu:a100:3(IDX:0-2)");
    assert_int_equal(find_node(section, "cs1")->gres, 0);
    assert_symbol(section, find_node(section, "cs1")->gres_used, "gpu:0");
    section_unref(section);
}

TEST(nodes_of_every_data_parser_are_read)
{
    struct section *section = nodes_of(
        "{\"nodes\": ["
        "{\"name\": \"n1\", \"state\": \"allocated\", \"state_flags\": [\"DRAIN\"], \"cpus\": 8, "
        "\"alloc_cpus\": 3, \"cpu_load\": 137, \"free_memory\": 1000, \"real_memory\": 16000, "
        "\"alloc_memory\": 700, \"features\": \"intel,avx2\", \"partitions\": [\"cpu\", \"gpu\"], "
        "\"slurmd_version\": \"22.05.8\", \"weight\": 10, \"reason\": \"bad \\\"DIMM\\\"\", "
        "\"reason_changed_at\": 99, \"reason_set_by_user\": \"root\", \"gres\": \"gpu:a100:4\"},"
        "{\"name\": \"n2\", \"state\": [\"DOWN\", \"NOT_RESPONDING\"], \"cpus\": 8, "
        "\"alloc_cpus\": "
        "0, \"cpu_load\": 0, \"free_mem\": {\"set\": false, \"infinite\": false, \"number\": 0}, "
        "\"features\": [\"intel\", \"avx2\"], \"partitions\": [\"cpu\", \"cpu\"], \"version\": "
        "\"\", \"reason\": null, \"reason_set_by_user\": \"root\"},"
        "{\"name\": \"n3\", \"state\": [\"IDLE\"], \"cpus\": 8, \"alloc_cpus\": 0, \"cpu_load\": "
        "0, "
        "\"free_mem\": 5, \"partitions\": [], \"gres\": null},"
        "{\"name\": \"n4\", \"state\": \"down\", \"cpu_load\": 4294967294, \"free_memory\": -2},"
        "{\"name\": \"n5\", \"state\": [\"MIXED\"], \"cpus\": {\"set\": true, \"number\": 4}, "
        "\"alloc_cpus\": 5, \"cpu_load\": {\"set\": true, \"infinite\": false, \"number\": 50}},"
        "{\"name\": null}]}");
    const struct node *node = section->nodes.node;

    assert_int_equal(section->nodes.n, 5);
    assert_int_equal(section->skipped, 1);
    assert_int_equal(node[0].state.base, NODE_ALLOCATED);
    assert_str(node_state_word(node[0].state), "draining");
    assert_int_equal(node[0].cpus_idle, 0);
    assert_int_equal(node[0].cpus_other, 5);
    assert_true(node[0].cpu_load == 1.37);
    assert_int_equal(node[0].memory_free_bytes, UINT64_C(1000) << 20);
    assert_int_equal(node[0].memory_alloc_bytes, UINT64_C(700) << 20);
    assert_symbol(section, node[0].features, "intel,avx2");
    assert_symbol(section, node[0].version, "22.05.8");
    assert_symbol(section, node[0].reason, "bad \"DIMM\"");
    assert_symbol(section, node[0].reason_user, "root");
    assert_int_equal(node[0].reason_time, 99);
    assert_partitions(section, &node[0], "cpu,gpu");
    assert_true(isnan(node[1].cpu_load));
    assert_int_equal(node[1].cpus_other, 8);
    assert_int_equal(node[1].features, node[0].features);
    assert_int_equal(node[1].reason_user, 0);
    assert_partitions(section, &node[1], "cpu");
    assert_true(node[2].cpu_load == 0);
    assert_int_equal(node[2].cpus_idle, 8);
    assert_int_equal(node[2].gres, 0);
    assert_true(isnan(node[3].cpu_load));
    assert_int_equal(node[3].memory_free_bytes, MODEL_UNKNOWN_U64);
    assert_int_equal(node[3].cpus, MODEL_UNKNOWN_U32);
    assert_true(node[4].cpu_load == 0.5);
    assert_int_equal(node[4].cpus_idle, MODEL_UNKNOWN_U32);
    section_unref(section);
}

TEST(groups_of_nodes_are_refused_with_what_to_ask_instead)
{
    for (size_t i = 1; i < COUNT(versions); i++) {
        assert_refused(KIND_NODES, &answer_foreign_nodes,
                       recorded("sinfo-", versions[i], ".json").p, -EOPNOTSUPP,
                       "scontrol show nodes --json");
    }
}

static const struct rpc *find_rpc(const struct section *section, const char *name)
{
    for (size_t i = 0; i < section->diag.n_rpc_by_type; i++)
        if (str_eq(section_text(section, section->diag.rpc_by_type[i].name), str_of(name)))
            return &section->diag.rpc_by_type[i];
    fail_msg("there is no RPC %s", name);
    return NULL;
}

TEST(an_rpc_without_an_average_does_not_hide_the_statistics)
{
    struct section *section = read_text(
        KIND_DIAG, &answer_json_diag,
        STR("{\"statistics\": {\"req_time\": {\"set\": true, \"number\": 1739832148}, "
            "\"req_time_start\": 1739822537, \"server_thread_count\": 2, \"schedule_cycle_total\": "
            "0, \"schedule_cycle_mean\": 0, \"schedule_cycle_max\": 1666, \"schedule_exit\": "
            "{\"end_job_queue\": 162, \"licenses\": 3, \"unheard_of\": 1}, \"bf_active\": true, "
            "\"bf_cycle_counter\": 4, \"bf_cycle_mean\": 7, \"bf_cycle_sum\": 28, "
            "\"rpcs_by_message_type\": ["
            "{\"type_id\": 1002, \"message_type\": \"A\", \"count\": 6, \"queued\": 0, "
            "\"dropped\": "
            "0, \"cycle_last\": 0, \"cycle_max\": 0, \"total_time\": 4969, \"average_time\": "
            "{\"set\": false, \"infinite\": false, \"number\": 0}},"
            "{\"type_id\": 2009, \"message_type\": \"B\", \"count\": 1}, {\"type_id\": 5}],"
            "\"rpcs_by_user\": [{\"user_id\": 0, \"user\": \"root\", \"count\": 29, "
            "\"total_time\": "
            "40360}], \"pending_rpcs\": [{\"type_id\": 6011, \"message_type\": \"C\", \"count\": "
            "2}]}}"));
    const struct diag *diag = &section->diag;

    assert_int_equal(diag->time, 1739832148);
    assert_int_equal(diag->reset_time, 1739822537);
    assert_int_equal(diag->server_threads, 2);
    assert_int_equal(diag->agent_count, MODEL_UNKNOWN_U64);
    assert_int_equal(diag->main.mean_usec, MODEL_UNKNOWN_U64);
    assert_int_equal(diag->main.max_usec, 1666);
    assert_int_equal(diag->main.n_exits, 2);
    assert_symbol(section, diag->main.exit[1].reason, "Blocked on licenses");
    assert_int_equal(diag->main.exit[1].count, 3);
    assert_int_equal(diag->backfill.n_exits, 0);
    assert_true(diag->backfill_is_active);
    assert_int_equal(diag->backfill.mean_usec, 7);
    assert_int_equal(diag->backfill.total_usec, 28);
    assert_int_equal(diag->n_rpc_by_type, 2);
    assert_int_equal(section->skipped, 1);
    assert_int_equal(find_rpc(section, "A")->total_usec, 4969);
    assert_int_equal(find_rpc(section, "A")->queued, MODEL_UNKNOWN_U64);
    assert_int_equal(find_rpc(section, "B")->total_usec, MODEL_UNKNOWN_U64);
    assert_int_equal(diag->n_rpc_by_user, 1);
    assert_int_equal(diag->rpc_by_user[0].count, 29);
    assert_int_equal(diag->n_rpc_pending, 1);
    assert_int_equal(diag->rpc_pending[0].count, 2);
    section_unref(section);
}

TEST(statistics_of_recorded_releases_are_read)
{
    for (size_t i = 1; i < COUNT(versions); i++) {
        struct section *section =
            read_recorded(KIND_DIAG, &answer_json_diag, "sdiag-", versions[i], ".json");
        const struct diag *diag = &section->diag;

        assert_true(diag->time > diag->reset_time && diag->reset_time > 1700000000);
        assert_true(diag->jobs_submitted < 1000000);
        assert_true(diag->main.count > 0 && diag->main.mean_usec > 0);
        assert_int_equal(diag->main.total_usec / diag->main.count, diag->main.mean_usec);
        assert_int_equal(diag->backfill.total_depth / diag->backfill.count,
                         diag->backfill.mean_depth);
        assert_int_equal(diag->main.n_exits, 6);
        assert_int_equal(diag->backfill.n_exits, 6);
        assert_true(find_rpc(section, "REQUEST_PARTITION_INFO")->count > 0);
        assert_int_equal(find_rpc(section, "REQUEST_PARTITION_INFO")->id, 2009);
        assert_true(diag->n_rpc_by_user >= 2);
        section_unref(section);
    }
    assert_refused(KIND_DIAG, &answer_json_diag, "{\"meta\": {}}", -EBADMSG, "no \"statistics\"");
}

TEST(licences_of_recorded_releases_are_read)
{
    for (size_t i = 1; i < COUNT(versions); i++) {
        struct section *section =
            read_recorded(KIND_LICENSES, &answer_json_licenses, "licenses-", versions[i], ".json");
        const struct licenses *licenses = &section->licenses;

        assert_int_equal(licenses->n, 2);
        for (size_t k = 0; k < licenses->n; k++) {
            const struct license *license = &licenses->license[k];
            bool is_matlab = str_eq(section_text(section, license->name), STR("matlab"));

            assert_int_equal(license->total, is_matlab ? 10 : 4);
            assert_int_equal(license->free + license->used, license->total);
            assert_false(license->is_remote);
            assert_int_equal(license->last_deficit, MODEL_UNKNOWN_U64);
        }
        section_unref(section);
    }
}

static const struct association *find_association(const struct section *section, const char *user,
                                                  const char *account)
{
    for (size_t i = 0; i < section->associations.n; i++) {
        const struct association *association = &section->associations.association[i];

        if (str_eq(section_text(section, association->user), str_of(user)) &&
            str_eq(section_text(section, association->account), str_of(account)))
            return association;
    }
    fail_msg("there is no association of \"%s\" in \"%s\"", user, account);
    return NULL;
}

TEST(limits_of_an_account_are_those_of_its_first_row_without_a_user)
{
    static const struct limit expected[] = {
        { .kind = LIMIT_TRES, .limit = 7948 },
        { .kind = LIMIT_TRES, .limit = UINT64_C(95505000) << 20 },
        { .kind = LIMIT_JOBS, .limit = 8000 },
        { .kind = LIMIT_SUBMITTED, .limit = 60000 },
    };
    static const char *const tres[] = { "cpu", "mem", "", "" };
    struct section *section =
        read_text(KIND_ASSOCIATIONS, &answer_foreign_limits,
                  STR("|root||||\n|account4|7948|95505000|8000|60000\nbob|account4|3978|477500|405|"
                      "301\n|account4|1|2|3|4\n|account5||many||12|\nbroken|row\n||1|2|3|4\n"));
    const struct association *account = find_association(section, "", "account4");

    assert_int_equal(section->associations.n, 4);
    assert_int_equal(section->skipped, 3);
    assert_int_equal(account->n_limits, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        const struct limit *limit = &section->associations.limit[account->first_limit + i];

        assert_int_equal(limit->kind, expected[i].kind);
        assert_int_equal(limit->limit, expected[i].limit);
        assert_int_equal(limit->used, MODEL_UNKNOWN_U64);
        assert_symbol(section, limit->tres, tres[i]);
    }
    assert_int_equal(find_association(section, "", "root")->n_limits, 0);
    assert_int_equal(find_association(section, "bob", "account4")->n_limits, 4);
    assert_int_equal(find_association(section, "", "account5")->n_limits, 1);
    section_unref(section);
}

TEST(limits_of_recorded_releases_are_read)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section = read_recorded(KIND_ASSOCIATIONS, &answer_foreign_limits,
                                                "limits-", versions[i], ".txt");

        assert_int_equal(section->associations.n, 14);
        assert_int_equal(section->associations.n_limits, 1);
        assert_int_equal(find_association(section, "", "physics")->n_limits, 1);
        assert_int_equal(section->associations.limit[0].limit, 12);
        section_unref(section);
    }
}

static void put_symbol(struct buf *buf, const struct section *section, symbol s)
{
    buf_json(buf, section_text(section, s));
    buf_byte(buf, '|');
}

static void put_job(struct buf *buf, const struct section *section, const struct job *job)
{
    const symbol texts[] = { job->user,        job->account,  job->qos,      job->name,
                             job->reservation, job->licenses, job->features, job->partition,
                             job->reason,      job->nodes,    job->tres };
    const uint64_t numbers[] = { job->id,
                                 job->array_job_id,
                                 job->array_task_id,
                                 job->tasks,
                                 job->het_job_id,
                                 job->het_offset,
                                 job->user_id,
                                 job->restarts,
                                 job->cpus,
                                 job->node_count,
                                 job->memory_bytes,
                                 job->time_limit_minutes,
                                 job->priority,
                                 (uint64_t)job->submit_time,
                                 (uint64_t)job->eligible_time,
                                 (uint64_t)job->start_time,
                                 (uint64_t)job->end_time };

    for (size_t i = 0; i < COUNT(numbers); i++)
        buf_printf(buf, "%llu|", (unsigned long long)numbers[i]);
    buf_put(buf, job_state_word(job->state));
    for (size_t i = 0; i < COUNT(texts); i++)
        put_symbol(buf, section, texts[i]);
    buf_byte(buf, '\n');
}

static void put_node(struct buf *buf, const struct section *section, const struct node *node)
{
    const symbol texts[] = { node->name,     node->gres,   node->gres_used,
                             node->features, node->reason, node->reason_user };
    const uint64_t numbers[] = { node->cpus,
                                 node->cpus_alloc,
                                 node->cpus_idle,
                                 node->cpus_other,
                                 node->memory_bytes,
                                 node->memory_alloc_bytes,
                                 node->memory_free_bytes,
                                 (uint64_t)node->reason_time,
                                 node->weight };

    for (size_t i = 0; i < COUNT(texts); i++)
        put_symbol(buf, section, texts[i]);
    for (size_t i = 0; i < COUNT(numbers); i++)
        buf_printf(buf, "%llu|", (unsigned long long)numbers[i]);
    buf_printf(buf, "%.2f|", node->cpu_load);
    node_state_put(buf, node->state);
    for (uint32_t i = 0; i < node->n_partitions; i++) {
        uint32_t index = section->nodes.membership[node->first_partition + i];

        buf_byte(buf, ',');
        buf_put(buf, section_text(section, section->nodes.partition[index].name));
    }
    buf_byte(buf, '\n');
}

/* What a test compares of a section. */
static struct buf dump(const struct section *section)
{
    struct buf buf;

    buf_init(&buf, 64 << 20);
    for (size_t i = 0; section->kind == KIND_JOBS && i < section->jobs.n; i++)
        put_job(&buf, section, &section->jobs.job[i]);
    for (size_t i = 0; section->kind == KIND_NODES && i < section->nodes.n; i++)
        put_node(&buf, section, &section->nodes.node[i]);
    for (size_t i = 0; section->kind == KIND_ASSOCIATIONS && i < section->associations.n; i++)
        put_symbol(&buf, section, section->associations.association[i].account);
    for (size_t i = 0; section->kind == KIND_DIAG && i < section->diag.n_rpc_by_type; i++)
        buf_printf(&buf, "%llu|", (unsigned long long)section->diag.rpc_by_type[i].total_usec);
    for (size_t i = 0; section->kind == KIND_LICENSES && i < section->licenses.n; i++)
        put_symbol(&buf, section, section->licenses.license[i].name);
    buf_printf(&buf, "skipped %llu\n", (unsigned long long)section->skipped);
    assert_false(buf.over);
    return buf;
}

/* Fails with the first line that differs. */
static void assert_same(struct str actual, struct str expected, const char *what)
{
    while (actual.p || expected.p) {
        struct str a = str_cut(&actual, '\n'), b = str_cut(&expected, '\n');

        if (!str_eq(a, b))
            fail_msg("%s: got\n%.*s\ninstead of\n%.*s", what, STR_ARG(a), STR_ARG(b));
    }
}

static void assert_same_sections(struct section *actual, struct section *expected, const char *what)
{
    struct buf a = dump(actual), b = dump(expected);

    assert_same(buf_str(&a), buf_str(&b), what);
    buf_free(&a);
    buf_free(&b);
    section_unref(actual);
    section_unref(expected);
}

static const struct {
    enum kind kind;
    const struct answer_class *class;
    const char *name, *ending;
    size_t first; /* of the versions that have it */
} recordings[] = {
    { KIND_JOBS, &answer_foreign_jobs, "squeue-", ".txt", 0 },
    { KIND_JOBS, &answer_foreign_jobs, "squeue-", ".json", 0 },
    { KIND_NODES, &answer_foreign_nodes, "sinfo-", ".txt", 0 },
    { KIND_NODES, &answer_foreign_nodes, "columns-", ".txt", 0 },
    { KIND_NODES, &answer_foreign_nodes, "nodes-", ".json", 0 },
    { KIND_ASSOCIATIONS, &answer_foreign_limits, "limits-", ".txt", 0 },
    { KIND_DIAG, &answer_json_diag, "sdiag-", ".json", 1 },
    { KIND_LICENSES, &answer_json_licenses, "licenses-", ".json", 1 },
};

TEST(the_pieces_in_which_an_answer_comes_make_no_difference)
{
    static const size_t pieces[] = { 1, 2, 3, 7, 64, 4093, 4096 };

    for (size_t i = 0; i < COUNT(recordings); i++) {
        for (size_t v = recordings[i].first; v < COUNT(versions); v++) {
            struct str text = recorded(recordings[i].name, versions[v], recordings[i].ending);

            for (size_t k = 0; k < COUNT(pieces); k++) {
                struct outcome cut =
                    read_in_pieces(recordings[i].kind, recordings[i].class, text, pieces[k]);

                assert_int_equal(cut.code, 0);
                assert_same_sections(cut.section,
                                     read_text(recordings[i].kind, recordings[i].class, text),
                                     recordings[i].name);
            }
        }
    }
}

TEST(an_answer_may_end_anywhere)
{
    for (size_t i = 0; i < COUNT(recordings); i++) {
        struct str text = recorded(recordings[i].name, "24.11", recordings[i].ending);

        for (size_t n = 0; n < text.n; n += 1 + n / 50) {
            struct outcome outcome = read_in_pieces(recordings[i].kind, recordings[i].class,
                                                    str_head(text, n), SIZE_MAX);

            section_unref(outcome.section);
        }
    }
}

static const struct job *find_job(const struct section *section, uint32_t id)
{
    for (size_t i = 0; i < section->jobs.n; i++)
        if (section->jobs.job[i].id == id)
            return &section->jobs.job[i];
    return NULL;
}

static void assert_same_text(const struct section *a, symbol s, const struct section *b, symbol t)
{
    struct str left = section_text(a, s), right = section_text(b, t);

    if (!str_eq(left, right))
        fail_msg("\"%.*s\" in lines is \"%.*s\" in JSON", STR_ARG(left), STR_ARG(right));
}

/* Where lines and JSON tell of one queue, a line is a job or one of its tasks. */
static void assert_line_is_of(const struct section *lines, const struct job *line,
                              const struct section *json, const struct job *job)
{
    assert_non_null(job);
    assert_str(job_state_word(line->state), job_state_word(job->state).p);
    assert_same_text(lines, line->user, json, job->user);
    assert_same_text(lines, line->account, json, job->account);
    assert_same_text(lines, line->partition, json, job->partition);
    assert_int_equal(line->cpus, job->cpus);
    assert_int_equal(line->end_time, job->end_time);
    if (line->reason)
        assert_same_text(lines, line->reason, json, job->reason);
    if (line->nodes)
        assert_same_text(lines, line->nodes, json, job->nodes);
    if (line->nodes)
        assert_int_equal(line->node_count, job->node_count);
}

TEST(recorded_lines_and_documents_tell_the_same_of_jobs)
{
    for (size_t v = 0; v < COUNT(versions); v++) {
        struct section *lines =
            read_recorded(KIND_JOBS, &answer_foreign_jobs, "squeue-", versions[v], ".txt");
        struct section *json =
            read_recorded(KIND_JOBS, &answer_foreign_jobs, "squeue-", versions[v], ".json");
        uint64_t tasks = 0;

        for (size_t i = 0; i < lines->jobs.n; i++)
            assert_line_is_of(lines, &lines->jobs.job[i], json,
                              find_job(json, lines->jobs.job[i].id));
        for (size_t i = 0; i < json->jobs.n; i++)
            tasks += json->jobs.job[i].tasks;
        assert_int_equal(tasks, lines->jobs.n);
        section_unref(lines);
        section_unref(json);
    }
}

TEST(recorded_lines_columns_and_documents_tell_the_same_of_nodes)
{
    for (size_t v = 0; v < COUNT(versions); v++) {
        struct section *lines =
            read_recorded(KIND_NODES, &answer_foreign_nodes, "sinfo-", versions[v], ".txt");
        struct section *columns =
            read_recorded(KIND_NODES, &answer_foreign_nodes, "columns-", versions[v], ".txt");
        struct section *json =
            read_recorded(KIND_NODES, &answer_foreign_nodes, "nodes-", versions[v], ".json");

        assert_int_equal(lines->nodes.n, 8);
        assert_int_equal(columns->nodes.n, 8);
        assert_int_equal(json->nodes.n, 8);
        for (size_t i = 0; i < 8; i++) {
            const struct node *a = &lines->nodes.node[i], *b = &columns->nodes.node[i],
                              *c = &json->nodes.node[i];

            assert_same_text(lines, a->name, json, c->name);
            assert_same_text(columns, b->name, json, c->name);
            assert_str(node_state_word(a->state), node_state_word(c->state).p);
            assert_str(node_state_word(b->state), node_state_word(c->state).p);
            assert_int_equal(a->cpus_alloc, c->cpus_alloc);
            assert_int_equal(a->cpus_idle, c->cpus_idle);
            assert_int_equal(a->cpus_other, c->cpus_other);
            assert_int_equal(a->cpus, c->cpus);
            assert_int_equal(a->memory_bytes, c->memory_bytes);
            assert_int_equal(a->weight, c->weight);
            assert_int_equal(b->memory_alloc_bytes, c->memory_alloc_bytes);
            assert_int_equal(a->n_partitions, c->n_partitions);
            assert_same_text(columns, b->gres, json, c->gres);
        }
        section_unref(lines);
        section_unref(columns);
        section_unref(json);
    }
}

/* Each job of one document is the same in the other. */
static void assert_same_jobs(const struct section *a, const struct section *b, const char *what)
{
    struct buf left, right;

    buf_init(&left, 1 << 20);
    buf_init(&right, 1 << 20);
    for (size_t i = 0; i < a->jobs.n; i++) {
        assert_non_null(find_job(b, a->jobs.job[i].id));
        put_job(&left, a, &a->jobs.job[i]);
        put_job(&right, b, find_job(b, a->jobs.job[i].id));
    }
    assert_same(buf_str(&left), buf_str(&right), what);
    buf_free(&left);
    buf_free(&right);
}

static void assert_same_nodes(const struct section *a, const struct section *b, const char *what)
{
    struct buf left, right;

    buf_init(&left, 1 << 20);
    buf_init(&right, 1 << 20);
    for (size_t i = 0; i < a->nodes.n; i++) {
        put_node(&left, a, &a->nodes.node[i]);
        put_node(&right, b, find_node(b, section_text(a, a->nodes.node[i].name).p));
    }
    assert_same(buf_str(&left), buf_str(&right), what);
    buf_free(&left);
    buf_free(&right);
}

TEST(every_data_parser_of_a_release_tells_the_same)
{
    static const char *const parsers[][2] = {
        { "24.11", "v0.0.40" }, { "24.11", "v0.0.41" }, { "24.11", "v0.0.42+complex" },
        { "26.05", "v0.0.43" }, { "26.05", "v0.0.44" }, { "26.05", "v0.0.45+complex" },
    };

    for (size_t i = 0; i < COUNT(parsers); i++) {
        const char *version = parsers[i][0];
        char ending[64];
        struct section *own, *other;

        snprintf(ending, sizeof(ending), "-%s.json", parsers[i][1]);
        own = read_recorded(KIND_JOBS, &answer_foreign_jobs, "squeue-", version, ".json");
        other = read_recorded(KIND_JOBS, &answer_foreign_jobs, "squeue-", version, ending);
        assert_true(other->jobs.n >= 4);
        assert_same_jobs(other, own, ending);
        section_unref(own);
        section_unref(other);
        own = read_recorded(KIND_NODES, &answer_foreign_nodes, "nodes-", version, ".json");
        other = read_recorded(KIND_NODES, &answer_foreign_nodes, "nodes-", version, ending);
        assert_int_equal(other->nodes.n, 3);
        assert_same_nodes(other, own, ending);
        section_unref(own);
        section_unref(other);
    }
}

static int append(void *ctx, struct str piece)
{
    buf_put(ctx, piece);
    return 0;
}

static struct section *read_sim(const struct sim *sim, enum kind kind, enum sim_format format)
{
    struct section *section;
    struct buf text;

    buf_init(&text, (size_t)256 << 20);
    assert_int_equal(sim_print(sim, format, STR(""), time_of_sim, append, &text), 0);
    section = read_text(kind, kind == KIND_JOBS ? &answer_foreign_jobs : &answer_foreign_nodes,
                        buf_str(&text));
    assert_int_equal(section->skipped, 0);
    buf_free(&text);
    return section;
}

static struct sim simulated(void)
{
    struct sim sim;
    struct err err;

    assert_int_equal(sim_parse(STR("nodes=300,jobs=2000,seed=3"), &sim, &err), 0);
    return sim;
}

TEST(documents_tell_all_of_a_simulated_cluster)
{
    struct sim sim = simulated();

    assert_same_sections(read_sim(&sim, KIND_JOBS, SIM_SQUEUE_JSON_38),
                         sim_section(&sim, KIND_JOBS, time_of_sim), "v0.0.38");
    assert_same_sections(read_sim(&sim, KIND_JOBS, SIM_SQUEUE_JSON_42),
                         sim_section(&sim, KIND_JOBS, time_of_sim), "v0.0.42");
    assert_same_sections(read_sim(&sim, KIND_NODES, SIM_NODES_JSON_38),
                         sim_section(&sim, KIND_NODES, time_of_sim), "v0.0.38");
    assert_same_sections(read_sim(&sim, KIND_NODES, SIM_NODES_JSON_42),
                         sim_section(&sim, KIND_NODES, time_of_sim), "v0.0.42");
}

/* Up to 22.05 the JSON does not tell it, nor does a line. */
TEST(newer_documents_tell_where_a_job_was_submitted)
{
    struct sim sim = simulated();
    struct section *expected = sim_section(&sim, KIND_JOBS, time_of_sim);
    struct section *newer = read_sim(&sim, KIND_JOBS, SIM_SQUEUE_JSON_42);
    struct section *older = read_sim(&sim, KIND_JOBS, SIM_SQUEUE_JSON_38);
    struct section *lines = read_sim(&sim, KIND_JOBS, SIM_SQUEUE_LINES);

    for (size_t i = 0; i < expected->jobs.n; i++) {
        assert_true(
            str_starts(section_text(expected, expected->jobs.job[i].alloc_node), STR("login")));
        assert_same_text(newer, newer->jobs.job[i].alloc_node, expected,
                         expected->jobs.job[i].alloc_node);
        assert_int_equal(older->jobs.job[i].alloc_node, 0);
        assert_int_equal(lines->jobs.job[i].alloc_node, 0);
    }
    section_unref(expected);
    section_unref(newer);
    section_unref(older);
    section_unref(lines);
}

TEST(lines_tell_each_task_of_a_simulated_queue)
{
    struct sim sim = simulated();
    struct section *lines = read_sim(&sim, KIND_JOBS, SIM_SQUEUE_LINES);
    struct section *json = read_sim(&sim, KIND_JOBS, SIM_SQUEUE_JSON_42);
    size_t at = 0;

    for (size_t i = 0; i < json->jobs.n; i++) {
        const struct job *job = &json->jobs.job[i];

        for (uint32_t task = 0; task < job->tasks; task++, at++) {
            assert_true(at < lines->jobs.n);
            assert_int_equal(lines->jobs.job[at].id, job->id);
            assert_line_is_of(lines, &lines->jobs.job[at], json, job);
            assert_true(lines->jobs.job[at].memory_bytes <= job->memory_bytes);
        }
    }
    assert_int_equal(at, lines->jobs.n);
    section_unref(lines);
    section_unref(json);
}

TEST(lines_tell_each_node_of_a_simulated_cluster)
{
    struct sim sim = simulated();
    struct section *lines = read_sim(&sim, KIND_NODES, SIM_SINFO_LINES);
    struct section *json = read_sim(&sim, KIND_NODES, SIM_NODES_JSON_42);

    assert_int_equal(lines->nodes.n, json->nodes.n);
    assert_int_equal(lines->nodes.n_membership, json->nodes.n_membership);
    for (size_t i = 0; i < json->nodes.n; i++) {
        const struct node *a = &lines->nodes.node[i], *b = &json->nodes.node[i];

        assert_same_text(lines, a->name, json, b->name);
        assert_str(node_state_word(a->state), node_state_word(b->state).p);
        assert_int_equal(a->cpus, b->cpus);
        assert_int_equal(a->cpus_alloc, b->cpus_alloc);
        assert_int_equal(a->cpus_idle, b->cpus_idle);
        assert_int_equal(a->cpus_other, b->cpus_other);
        assert_int_equal(a->memory_bytes, b->memory_bytes);
        assert_int_equal(a->memory_free_bytes, b->memory_free_bytes);
        assert_int_equal(a->weight, b->weight);
        assert_true(a->cpu_load == b->cpu_load || (isnan(a->cpu_load) && isnan(b->cpu_load)));
        assert_int_equal(a->n_partitions, b->n_partitions);
    }
    section_unref(lines);
    section_unref(json);
}

static struct section *ask(struct source *source, enum kind kind, char *warning)
{
    struct section *section;
    struct err err;
    int code = source->class->read(source, kind, clock_mono(&clock_real) + TEST_DEADLINE, &section,
                                   warning, &err);

    if (code < 0)
        fail_msg("%s", err.text);
    return section;
}

static struct source *open_cli(struct source_settings settings)
{
    struct source *source;
    struct err err;

    if (!settings.spec.n)
        settings.spec = STR("cli");
    settings.max_answer = 64 << 20;
    if (source_open(&settings, &clock_real, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

TEST(a_command_of_the_sites_own_is_run_as_given_and_a_warning_hides_nothing)
{
    struct source_settings settings = { 0 };
    char warning[SOURCE_WARNING] = "";
    struct source *source;
    struct section *section;
    struct buf command;

    buf_init(&command, 4096);
    buf_printf(&command, "sh -c 'echo a warning >&2; cat %s'",
               source_path("tests/data/foreign/squeue-24.11.txt"));
    settings.commands[KIND_JOBS] = buf_str(&command);
    source = open_cli(settings);
    section = ask(source, KIND_JOBS, warning);
    assert_int_equal(section->jobs.n, 25);
    assert_contains(warning, "a warning");
    section_unref(section);
    source_close(source);
    buf_free(&command);
}

static void put_script(const char *name, const char *counter, const char *answer)
{
    char commands[1000];

    snprintf(commands, sizeof(commands), "echo \"$0 $*\" >>%s\ncat %s", test_path("%s", counter),
             source_path("tests/data/foreign/%s", answer));
    write_script(name, commands);
}

#define SDIAG_TEXT                                                                                 \
    "sdiag output at Sun Nov 15 19:00:40 2026 (1794769240)\n"                                      \
    "Data since      Sun Nov 15 19:00:28 2026 (1794769228)\nServer thread count:  3\n"

TEST(statistics_and_licences_may_come_as_text_or_documents)
{
    struct section *section;

    section = read_recorded(KIND_DIAG, &answer_foreign_diag, "sdiag-", "24.11", ".json");
    assert_true(section->diag.n_rpc_by_type > 0);
    section_unref(section);
    section = read_text(KIND_DIAG, &answer_foreign_diag, STR(SDIAG_TEXT));
    assert_int_equal(section->diag.server_threads, 3);
    section_unref(section);
    section = read_recorded(KIND_LICENSES, &answer_foreign_licenses, "licenses-", "24.11", ".json");
    assert_int_equal(section->licenses.n, 2);
    section_unref(section);
    section = read_text(KIND_LICENSES, &answer_foreign_licenses,
                        STR("LicenseName=matlab Total=10 Used=2 Free=8 Reserved=0 Remote=no\n"));
    assert_int_equal(section->licenses.license[0].free, 8);
    section_unref(section);
}

TEST(the_last_line_of_a_recorded_answer_may_lack_its_newline)
{
    struct section *section = read_text(KIND_DIAG, &answer_foreign_diag,
                                        str_head(STR(SDIAG_TEXT), strlen(SDIAG_TEXT) - 1));

    assert_int_equal(section->diag.server_threads, 3);
    section_unref(section);
    section = read_text(KIND_LICENSES, &answer_foreign_licenses,
                        STR("LicenseName=matlab\n    Total=10 Used=2 Free=8 Reserved=0 Remote=no"));
    assert_int_equal(section->licenses.license[0].free, 8);
    section_unref(section);
    assert_refused(KIND_LICENSES, &answer_foreign_licenses, "usage: lic", -EBADMSG,
                   "the first of 1 is \"usage: lic\"");
}

TEST(json_is_asked_for_every_job)
{
    char warning[SOURCE_WARNING] = "";
    struct source *source;
    struct section *section;

    put_script("squeue", "asked", "squeue-22.05.json");
    source =
        open_cli((struct source_settings){ .spec = STR("json"), .bin_path = str_of(test_dir()) });
    section = ask(source, KIND_JOBS, warning);
    assert_int_equal(section->jobs.n, 19);
    section_unref(section);
    source_close(source);
    assert_contains(read_file("asked").p, "--all --local --states=all --json");
}

/* What is asked of squeue and sinfo in text, whatever they answer. */
TEST(the_siblings_of_a_federation_are_left_out)
{
    char warning[SOURCE_WARNING] = "";
    struct source *source;
    struct section *section;
    struct err err;

    put_script("squeue", "asked-squeue", "nothing.txt");
    put_script("sinfo", "asked-sinfo", "nothing.txt");
    source = open_cli((struct source_settings){ .bin_path = str_of(test_dir()) });
    for (int kind = KIND_NODES; kind <= KIND_JOBS; kind++)
        assert_true(source->class->read(source, kind, clock_mono(&clock_real) + TEST_DEADLINE,
                                        &section, warning, &err) < 0);
    source_close(source);
    assert_contains(read_file("asked-squeue").p, "--noheader --all --local --states=all --array");
    assert_contains(read_file("asked-sinfo").p, "--noheader --all --local --Node --Format ");
}
