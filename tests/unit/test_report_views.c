/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the text, JSON and HTML views of reports. */
#include "base/json.h"
#include "base/shown.h"
#include "made_report.h"
#include "report/waiting.h"
#include "test.h"

#include "files.h"

#include <math.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OUT_MAX = 1 << 24 };

struct fixture {
    struct arena arena;
    struct job_report report;
    struct buf out;
};

static struct fixture *f;

static void set_up(void)
{
    f = calloc(1, sizeof(*f));
    buf_init(&f->out, OUT_MAX);
}

static void tear_down(void)
{
    buf_free(&f->out);
    arena_clear(&f->arena);
    free(f);
}

FIXTURE(set_up, tear_down)

static void set_zone(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
}

PROGRAM_FIXTURE(set_zone, NULL)

static const struct text_look plain = { false, false, 80 }, rich = { true, true, 80 };

TEST(a_good_job_is_told_so_at_a_glance)
{
    make_good(&f->report, &f->arena);
    report_text(&f->out, &f->report, &plain);
    assert_golden(buf_str(&f->out), "tests/data/report/good.txt");
}

TEST(gpus_that_were_not_measured_are_said_to_be_so)
{
    struct gpu_facts *gpu;

    make_good(&f->report, &f->arena);
    f->report.facts.total.gpus = 2;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "GPU use was not measured. Nothing to improve in what was measured.");
    assert_contains(f->out.p, " not measured\n");
    gpu = facts_gpu(&f->report.facts, &f->arena, STR("node07"), STR("0"));
    gpu->utilization_ratio.mean = 0.9;
    buf_reset(&f->out);
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "The use of 1 of 2 GPUs was measured. Nothing to improve in what");
    assert_null(strstr(f->out.p, " not measured\n"));
}

TEST(a_sampled_peak_of_memory_is_called_one)
{
    make_good(&f->report, &f->arena);
    f->report.facts.total.memory_counted_bytes = NAN;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "13.2 GiB of 16 GiB, sampled peak");
    assert_contains(f->out.p, "  Sampled peak");
    f->report.facts.row.record.state.base = JOB_OUT_OF_MEMORY;
    buf_reset(&f->out);
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "ran out of memory after");
    assert_null(strstr(f->out.p, "of its memory"));
}

TEST(a_wasteful_job_is_told_what_matters_first)
{
    make_wasteful(&f->report, &f->arena);
    report_text(&f->out, &f->report, &plain);
    assert_golden(buf_str(&f->out), "tests/data/report/wasteful.txt");
}

TEST(colour_and_blocks_only_add_to_what_is_said)
{
    make_wasteful(&f->report, &f->arena);
    report_text(&f->out, &f->report, &rich);
    assert_golden(buf_str(&f->out), "tests/data/report/wasteful_rich.txt");
    assert_contains(f->out.p, "\033[31mCRITICAL\033[0m");
}

TEST(a_job_of_accounting_alone_says_that_nothing_was_measured)
{
    make_accounted(&f->report, &f->arena);
    report_text(&f->out, &f->report, &plain);
    assert_golden(buf_str(&f->out), "tests/data/report/accounted.txt");
    assert_contains(f->out.p, "No measurements were found: http://prometheus.example:9090");
    assert_null(strstr(f->out.p, "Nothing to improve"));
}

TEST(what_was_not_judged_is_not_called_good)
{
    make_good(&f->report, &f->arena);
    f->report.least_seconds = INT64_C(1) << 32;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "What it used is judged when it has run for ");
    assert_contains(f->out.p, ": it was too short.");
    assert_null(strstr(f->out.p, "Nothing to improve"));
}

static void assert_ended(enum job_base base, uint32_t code, uint32_t signal, const char *headline,
                         const char *fact)
{
    make_good(&f->report, &f->arena);
    f->report.facts.row.record.state.base = (uint8_t)base;
    f->report.facts.row.record.exit_code = code;
    f->report.facts.row.record.exit_signal = signal;
    buf_reset(&f->out);
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, headline);
    assert_contains(f->out.p, fact);
}

TEST(a_signal_has_its_name_and_slurms_mark_of_memory_is_none)
{
    assert_ended(JOB_FAILED, 0, 11, "alice failed with signal 11 (SIGSEGV) after 02:30:05",
                 "Ended with           signal 11 (SIGSEGV)\n");
    assert_ended(JOB_FAILED, 0, 40, "failed with signal 40 after",
                 "Ended with           signal 40\n");
    assert_ended(JOB_FAILED, 3, 0, "failed with exit code 3 after",
                 "Ended with           exit code 3\n");
    assert_ended(JOB_OUT_OF_MEMORY, 0, 125, "alice ran out of memory after 02:30:05",
                 "Ended with           out of memory\n");
    assert_ended(JOB_FAILED, 0, 125, "alice ran out of memory after 02:30:05",
                 "Ended with           out of memory\n");
    assert_null(strstr(f->out.p, "125"));
}

TEST(a_job_that_failed_is_not_called_faultless)
{
    make_good(&f->report, &f->arena);
    f->report.facts.row.record.state = (struct job_state){ JOB_FAILED, 0 };
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "Nothing to improve in what it used");
}

TEST(an_array_is_summed_up)
{
    struct array_report array = { make_array(&f->arena, 20), 20, NULL };

    report_array_text(&f->out, &array, &plain);
    assert_golden(buf_str(&f->out), "tests/data/report/array.txt");
    buf_reset(&f->out);
    report_array_json(&f->out, &array);
    assert_golden(buf_str(&f->out), "tests/data/report/array.json");
}

TEST(a_second_more_is_not_far_slower)
{
    struct job_facts *task = make_array(&f->arena, 20);
    struct array_report array = { task, 20, NULL };

    for (size_t i = 0; i < 20; i++)
        task[i].row.elapsed_seconds = i == 7 ? 61 : 60;
    report_array_text(&f->out, &array, &plain);
    assert_null(strstr(f->out.p, "Far slower"));
    task[7].row.elapsed_seconds = 120;
    buf_reset(&f->out);
    report_array_text(&f->out, &array, &plain);
    assert_contains(f->out.p, "Far slower");
}

TEST(findings_of_an_array_are_counted_by_check)
{
    struct check_settings settings;
    struct array_report array = { make_array(&f->arena, 20), 20, &settings };

    check_settings_default(&f->arena, &settings);
    report_array_json(&f->out, &array);
    assert_contains(f->out.p, "{\"check\":\"out_of_memory\",\"severity\":\"critical\",\"tasks\":1,"
                              "\"first_job_id\":4718,");
    buf_reset(&f->out);
    report_array_text(&f->out, &array, &plain);
    assert_contains(f->out.p, "CRITICAL  1 task, such as 4711_7: ");
}

TEST(json_has_all_that_is_known_and_nothing_else)
{
    make_wasteful(&f->report, &f->arena);
    report_json(&f->out, &f->report);
    assert_golden(buf_str(&f->out), "tests/data/report/wasteful.json");
}

/* Keys that are states are told in words. */
static void assert_documented(const struct buf *out, struct str document)
{
    struct json *json = json_new();
    enum json_event event;

    json_feed(json, buf_str(out));
    json_finish(json);
    while ((event = json_next(json)) != JSON_END) {
        char quoted[128];

        assert_int_not_equal(event, JSON_ERROR);
        if (event != JSON_KEY || isupper((unsigned char)json_text(json).p[0]))
            continue;
        snprintf(quoted, sizeof(quoted), "`%.*s`", STR_ARG(json_text(json)));
        if (str_find_str(document, str_of(quoted)) == document.n)
            fail_msg("docs/report.md has no %s", quoted);
    }
    json_free(json);
}

TEST(every_member_of_the_json_is_documented)
{
    struct array_report array = { make_array(&f->arena, 20), 20, NULL };
    struct str document = read_file(source_path("docs/report.md"));

    make_huge(&f->report, &f->arena);
    report_json(&f->out, &f->report);
    assert_documented(&f->out, document);
    buf_reset(&f->out);
    make_wasteful(&f->report, &f->arena);
    report_json(&f->out, &f->report);
    assert_documented(&f->out, document);
    buf_reset(&f->out);
    make_waiting(&f->report, &f->arena, "Priority");
    f->report.facts.origin.is_simulated = true;
    report_json(&f->out, &f->report);
    assert_documented(&f->out, document);
    buf_reset(&f->out);
    report_array_json(&f->out, &array);
    assert_documented(&f->out, document);
}

TEST(petricores_mail_and_usage_have_its_shapes)
{
    make_good(&f->report, &f->arena);
    petricore_mail(&f->out, &f->report);
    assert_golden(buf_str(&f->out), "tests/data/report/petricore_good.txt");
    assert_true(str_ends(buf_str(&f->out), STR("\nWARNING=false")));
    buf_reset(&f->out);
    make_wasteful(&f->report, &f->arena);
    petricore_mail(&f->out, &f->report);
    assert_golden(buf_str(&f->out), "tests/data/report/petricore_wasteful.txt");
    assert_true(str_ends(buf_str(&f->out), STR("\nWARNING=true")));
    buf_reset(&f->out);
    petricore_usage(&f->out, &f->report);
    assert_golden(buf_str(&f->out), "tests/data/report/petricore_wasteful.json");
}

TEST(petricores_warning_is_not_raised_by_a_note)
{
    make_good(&f->report, &f->arena);
    add_finding(&f->report, &f->arena, "time_limit_far", "It was far off.");
    petricore_mail(&f->out, &f->report);
    assert_true(str_ends(buf_str(&f->out), STR("\nWARNING=false")));
}

TEST(petricores_gpus_of_one_node_stand_together)
{
    static const char *const nodes[] = { "a", "b", "a" };

    make_good(&f->report, &f->arena);
    for (size_t i = 0; i < COUNT(nodes); i++) {
        char id[] = { (char)('0' + i), '\0' };
        struct gpu_facts *gpu = facts_gpu(&f->report.facts, &f->arena, str_of(nodes[i]),
                                          arena_str(&f->arena, str_of(id)));

        gpu->temperature_celsius.max = 10.0 + (double)i;
    }
    petricore_usage(&f->out, &f->report);
    assert_contains(f->out.p, "\"alloc_gpu\":{\"a\":[\"0\",\"2\"],\"b\":[\"1\"]}");
    assert_contains(f->out.p, "\"max_temperature_gpu\":[10,12,11]");
}

TEST(petricores_user_has_its_jobs_and_no_guesses)
{
    const uint32_t jobs[] = { 1, 4294967294 };

    petricore_user(&f->out, &(struct petricore_user){ STR("a\"b"), 1000, jobs, 2 });
    assert_string_equal(f->out.p, "{\"user\":{\"username\":\"a\\\"b\",\"uid\":1000},"
                                  "\"jobs\":[1,4294967294]}\n");
    buf_reset(&f->out);
    petricore_user(&f->out, &(struct petricore_user){ STR("bob"), MODEL_UNKNOWN_U32, NULL, 0 });
    assert_string_equal(f->out.p, "{\"user\":{\"username\":\"bob\"},\"jobs\":[]}\n");
}

/* Every view of a report, one after the other, each by its name. */
static const char *const view_names[] = { "text", "rich",           "json",           "page",
                                          "mail", "petricore mail", "petricore usage" };

static void put_view(struct buf *to, const struct job_report *report, size_t which)
{
    switch (which) {
    case 0:
        report_text(to, report, &plain);
        break;
    case 1:
        report_text(to, report, &rich);
        break;
    case 2:
        report_json(to, report);
        break;
    case 3:
        report_html(to, report, HTML_PAGE);
        break;
    case 4:
        report_html(to, report, HTML_MAIL);
        break;
    case 5:
        petricore_mail(to, report);
        break;
    default:
        petricore_usage(to, report);
    }
}

TEST(what_is_guessed_after_a_failure_is_not_said_to_fit)
{
    make_wasteful(&f->report, &f->arena);
    f->report.advice.line[2].is_guess = true;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "  The rest fits what this job and 3 earlier ones");
    f->report.advice.n_lines = 1;
    f->report.advice.line[0].is_guess = true;
    for (size_t view = 0; view < COUNT(view_names); view++) {
        buf_reset(&f->out);
        put_view(&f->out, &f->report, view);
        assert_null(strstr(f->out.p, "fits what"));
        assert_null(strstr(f->out.p, "></p>"));
    }
}

/* Slurm gives it its end as its start; what the record has was requested. */
TEST(a_job_canceled_while_pending_was_allocated_nothing)
{
    struct job_record *record = &f->report.facts.row.record;

    make_waiting(&f->report, &f->arena, "Priority");
    record->state.base = JOB_CANCELLED;
    record->start_time = record->end_time = record->submit_time + 100;
    f->report.facts.row.wait_seconds = -1;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "was cancelled before it started.");
    assert_contains(f->out.p, "Requested   2 nodes, 64 CPUs, 256 GiB of memory");
    assert_null(strstr(f->out.p, "Started"));
    for (size_t view = 0; view < COUNT(view_names); view++) {
        buf_reset(&f->out);
        put_view(&f->out, &f->report, view);
        assert_null(strstr(f->out.p, "Allocated"));
        assert_null(strstr(f->out.p, "Available"));
        assert_null(strstr(f->out.p, "alloc_cpu"));
        assert_null(strstr(f->out.p, "No measurements"));
    }
}

TEST(other_gres_stand_beside_the_gpus)
{
    const struct text_look wide = { false, false, 160 };

    make_wasteful(&f->report, &f->arena);
    f->report.facts.row.record.tres =
        STR("billing=64,cpu=64,gres/gpu=8,gres/gpu:a100=8,gres/nic:hdr=4,gres/shard=0,gres/tpu=3,"
            "gres/tpu:v4=2,mem=256G,node=2");
    report_text(&f->out, &f->report, &wide);
    assert_contains(f->out.p, "8 GPUs (a100), 4 nic:hdr, 3 tpu\n");
}

TEST(a_waiting_job_has_nothing_yet_and_is_told_why)
{
    make_waiting(&f->report, &f->arena, "JobHeldUser");
    report_text(&f->out, &f->report, &plain);
    assert_golden(buf_str(&f->out), "tests/data/report/waiting.txt");
    assert_null(strstr(f->out.p, "Allocated"));
    assert_null(strstr(f->out.p, "No measurements"));
    for (size_t view = 0; view < COUNT(view_names) - 2; view++) {
        buf_reset(&f->out);
        put_view(&f->out, &f->report, view);
        assert_contains(f->out.p, "Its user has held it: scontrol release 4711 lets it start.");
    }
}

static void assert_waits(const char *reason, const char *sentence)
{
    make_waiting(&f->report, &f->arena, reason);
    buf_reset(&f->out);
    waiting_put(&f->out, &f->report.facts.row.record);
    assert_string_equal(f->out.p, sentence);
}

TEST(the_reasons_of_slurm_are_put_into_sentences)
{
    static const struct {
        const char *reason, *part;
    } cases[] = {
        { "Priority", "higher priority" },
        { "Resources", "is free" },
        { "Dependency", "--dependency" },
        { "DependencyNeverSatisfied", "scancel 4711 removes it." },
        { "JobHeldAdmin", "administrator" },
        { "BeginTime", "--begin" },
        { "JobArrayTaskLimit", "tasks of its array" },
        { "Licenses", "licence" },
        { "ReqNodeNotAvail, UnavailableNodes:n1", "down, drained" },
        { "PartitionTimeLimit", "longer than its partition allows" },
        { "QOSMaxCpuPerUserLimit", "one may have in this QOS" },
        { "QOSMaxWallDurationPerJobLimit", "more than a job of its QOS may have" },
        { "QOSGrpNodeLimit", "jobs of its QOS" },
        { "QOSResourceLimit", "limit of its QOS" },
        { "AssocGrpCPURunMinutesLimit", "may still use as much time" },
        { "AssocGrpCPUMinutesLimit", "used up the time" },
        { "AssocGrpCpuLimit", "jobs of its account" },
        { "AssocMaxJobsLimit", "in this account" },
        { "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
          "partitions",
          "The nodes that it could have" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        make_waiting(&f->report, &f->arena, cases[i].reason);
        buf_reset(&f->out);
        waiting_put(&f->out, &f->report.facts.row.record);
        if (!strstr(f->out.p, cases[i].part) || !str_ends(buf_str(&f->out), STR(".")))
            fail_msg("%s: %s", cases[i].reason, f->out.p);
    }
    assert_waits("PriorityOfAnother\033", "Slurm's reason why it waits is PriorityOfAnother?.");
    assert_waits("", "");
    make_waiting(&f->report, &f->arena, "Priority");
    f->report.facts.row.record.state.base = JOB_RUNNING;
    buf_reset(&f->out);
    waiting_put(&f->out, &f->report.facts.row.record);
    assert_int_equal(f->out.n, 0);
}

TEST(who_told_of_the_job_is_told)
{
    static const struct {
        enum facts_teller teller;
        enum record_origin origin;
        const char *words, *member;
    } cases[] = {
        { TOLD_BY_QUEUE, RECORD_SEEN, "Slurm's queue\n", "{\"teller\":\"queue\"," },
        { TOLD_BY_STORE, RECORD_SEEN, "Slurm's queue (store)\n", "{\"teller\":\"store\"," },
        { TOLD_BY_STORE, RECORD_ACCOUNTED, "Slurm's accounting (store)\n", "\"store\"" },
        { TOLD_BY_SACCT, RECORD_ACCOUNTED, "Slurm's accounting (sacct)\n", "\"sacct\"" },
    };

    /* one that waits or runs has no final record, whoever tells of it */
    for (size_t i = 0; i < COUNT(cases); i++) {
        make_waiting(&f->report, &f->arena, "Priority");
        f->report.facts.origin.teller = cases[i].teller;
        f->report.facts.row.record.origin = cases[i].origin;
        buf_reset(&f->out);
        report_text(&f->out, &f->report, &plain);
        assert_contains(f->out.p, cases[i].words);
        buf_reset(&f->out);
        report_json(&f->out, &f->report);
        assert_contains(f->out.p, cases[i].member);
    }
}

TEST(a_bar_beside_nothing_is_empty_and_one_cpu_is_one)
{
    make_good(&f->report, &f->arena);
    f->report.facts.total.cpus = 1;
    f->report.facts.mean_cpus = 0.07;
    f->report.facts.cpu_ratio = 0.07;
    f->report.facts.memory_ratio = 0.0004;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p,
                    "CPU         [|                   ]   7 %  0.07 of 1 CPU, on average\n");
    assert_contains(f->out.p, "Memory      [                    ]   0 %");
    f->report.facts.memory_ratio = 0.0006;
    buf_reset(&f->out);
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "Memory      [|                   ] 0.1 %");
}

static bool is_json(size_t view)
{
    return strstr(view_names[view], "json") || strstr(view_names[view], "usage");
}

static bool is_html(size_t view)
{
    return strcmp(view_names[view], "page") == 0 || strcmp(view_names[view], "mail") == 0;
}

TEST(what_is_simulated_is_marked_in_every_view)
{
    struct job_facts *task = make_array(&f->arena, 20);
    struct array_report array = { task, 20, NULL };

    for (int simulated = 0; simulated < 2; simulated++) {
        make_good(&f->report, &f->arena);
        f->report.facts.origin.is_simulated = simulated;
        for (size_t view = 0; view < COUNT(view_names); view++) {
            const char *mark =
                is_json(view) ? "{\"simulated\":true," : "Simulated cluster: this job never was";

            buf_reset(&f->out);
            put_view(&f->out, &f->report, view);
            if ((strstr(f->out.p, mark) != NULL) != simulated)
                fail_msg("%s: %s", view_names[view], f->out.p);
        }
        for (size_t i = 0; i < 20; i++)
            task[i].origin.is_simulated = simulated;
        buf_reset(&f->out);
        report_array_text(&f->out, &array, &plain);
        assert_int_equal(strstr(f->out.p, "\nSimulated cluster: these jobs never were") != NULL,
                         simulated);
        buf_reset(&f->out);
        report_array_json(&f->out, &array);
        assert_int_equal(strstr(f->out.p, "{\"simulated\":true,") != NULL, simulated);
    }
    buf_reset(&f->out);
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p,
                    "Job 4711 on beluga (simulated): train.sh\n"); /* and a mail's subject */
}

static void assert_valid_json(const struct buf *out)
{
    struct json *json = json_new();
    struct err err = { 0 };
    enum json_event event;

    json_feed(json, buf_str(out));
    json_finish(json);
    while ((event = json_next(json)) > JSON_END || event == JSON_MORE)
        continue;
    if (event == JSON_ERROR)
        fail_msg("no JSON: %d %s", json_error(json, &err), err.text);
    json_free(json);
}

/* Tags are opened and closed in turn. */
static void assert_balanced(const char *html)
{
    static const char *const alone[] = { "meta", "br", "!DOCTYPE" };
    struct str open[256];
    size_t n = 0;

    for (const char *p = strchr(html, '<'); p; p = strchr(p, '<')) {
        bool is_end = p[1] == '/', is_alone = false;
        const char *name = p + 1 + is_end, *end = name, *close = strchr(p, '>');

        assert_non_null(close);
        while (isalnum((unsigned char)*end) || *end == '!')
            end++;
        for (size_t i = 0; i < COUNT(alone); i++)
            is_alone |= str_eq(str_span(name, end), str_of(alone[i]));
        if (is_end) {
            assert_true(n > 0);
            n--;
            if (!str_eq(open[n], str_span(name, end)))
                fail_msg("</%.*s> ends <%.*s>", (int)(end - name), name, STR_ARG(open[n]));
        } else if (!is_alone && close[-1] != '/') {
            assert_true(n < COUNT(open));
            open[n++] = str_span(name, end);
        }
        p = close;
    }
    assert_int_equal(n, 0);
}

/* Only what the view itself writes may be unprintable: line ends, and colours. */
static void assert_tame(struct str out, bool has_colour)
{
    while (out.n) {
        size_t length = str_printable_len(out);

        if (out.p[0] == '\n')
            length = 1;
        if (has_colour && str_starts(out, STR("\033[")))
            length = str_find(out, 'm') + 1;
        if (!length)
            fail_msg("byte %#x gets through: %.*s", (unsigned char)out.p[0],
                     (int)(out.n < 40 ? out.n : 40), out.p);
        out = str_skip(out, length);
    }
}

TEST(hostile_texts_get_through_in_no_view)
{
    static const char *const hostile[] = {
        "</script><h1>\"'&lt;",
        "\r\nBcc: x",
        "a\nWARNING=false",
        "\033[31mred\x9b"
        "0m\xc2\x9b"
        "1m",
        "\xff\xfe\xc3(\x80",
        "\xe2\x80\xae"
        "evil\xe2\x80\x8f\xef\xbb\xbf",
        "javascript:alert(1)",
        "https://x/\"onclick=\"alert(1)",
        "]]></style><script>",
        "\t\v\f\b\a",
    };

    for (size_t i = 0; i < COUNT(hostile); i++) {
        make_hostile(&f->report, &f->arena, str_of(hostile[i]));
        for (size_t view = 0; view < COUNT(view_names); view++) {
            buf_reset(&f->out);
            put_view(&f->out, &f->report, view);
            assert_false(f->out.over);
            assert_null(strstr(f->out.p, "\nBcc"));
            assert_null(strstr(f->out.p, "\nWARNING=false"));
            if (is_json(view)) {
                assert_valid_json(&f->out);
                continue;
            }
            assert_tame(buf_str(&f->out), view == 1);
            if (!is_html(view))
                continue;
            assert_balanced(f->out.p);
            assert_null(strstr(f->out.p, "<script"));
            assert_null(strstr(f->out.p, "\"onclick"));
            assert_null(strstr(f->out.p, "href=\"javascript"));
        }
    }
}

TEST(what_a_user_wrote_is_no_link)
{
    make_good(&f->report, &f->arena);
    f->report.facts.row.record.name = STR("https://evil.example/login");
    for (int kind = HTML_PAGE; kind <= HTML_MAIL; kind++) {
        buf_reset(&f->out);
        report_html(&f->out, &f->report, (enum html_kind)kind);
        assert_contains(f->out.p, "https://evil.example/login");
        assert_null(strstr(f->out.p, "href=\"https://evil"));
        assert_contains(f->out.p, "href=\"https://portal.example/job/4711\"");
    }
}

TEST(hostile_tasks_do_not_get_through_either)
{
    struct array_report array = { make_array(&f->arena, 20), 20, NULL };
    struct str text = STR("\033[31m\r\n</h1>\xff[");

    for (size_t i = 0; i < 20; i++) {
        struct job_facts *task = (struct job_facts *)&array.task[i];

        task->row.record.name = task->row.record.user = task->row.record.nodes = text;
        task->row.record.account = task->row.key.cluster = text;
    }
    report_array_text(&f->out, &array, &plain);
    assert_tame(buf_str(&f->out), false);
    buf_reset(&f->out);
    report_array_json(&f->out, &array);
    assert_valid_json(&f->out);
}

TEST(a_name_of_a_megabyte_is_cut)
{
    static char name[1 << 20];

    memset(name, 'x', sizeof(name));
    make_hostile(&f->report, &f->arena, (struct str){ name, sizeof(name) });
    report_text(&f->out, &f->report, &plain);
    assert_true(f->out.n < 1 << 20);
    buf_reset(&f->out);
    f->report.n_findings = f->report.advice.n_lines = 0;
    report_html(&f->out, &f->report, HTML_MAIL);
    assert_true(f->out.n < 100 * 1024);
}

static void assert_no_nan(const char *text, const char *view)
{
    static const char *const words[] = { "nan", "NaN", "-nan", "inf", "Inf", "infinity" };

    for (size_t i = 0; i < COUNT(words); i++)
        for (const char *p = strstr(text, words[i]); p; p = strstr(p + 1, words[i])) {
            bool is_word = (p == text || !isalpha((unsigned char)p[-1])) &&
                           !isalpha((unsigned char)p[strlen(words[i])]);

            if (is_word)
                fail_msg("%s says %.40s", view, p);
        }
}

TEST(nothing_divides_by_zero)
{
    for (size_t view = 0; view < COUNT(view_names); view++) {
        make_zero(&f->report, &f->arena);
        buf_reset(&f->out);
        put_view(&f->out, &f->report, view);
        assert_no_nan(f->out.p, view_names[view]);
    }
}

TEST(a_report_of_nothing_at_all_is_one)
{
    f->report = (struct job_report){ 0 };
    job_facts_clear(&f->report.facts);
    for (size_t view = 0; view < COUNT(view_names); view++) {
        buf_reset(&f->out);
        put_view(&f->out, &f->report, view);
        assert_no_nan(f->out.p, view_names[view]);
    }
    buf_reset(&f->out);
    report_array_text(&f->out, &(struct array_report){ &f->report.facts, 1, NULL }, &plain);
    report_array_json(&f->out, &(struct array_report){ NULL, 0, NULL });
    assert_contains(f->out.p, "1 component: 1 UNKNOWN.");
    assert_no_nan(f->out.p, "array");
}

TEST(four_thousand_nodes_and_a_thousand_gpus_fit)
{
    /* text, rich, JSON, page, mail (programs cut one at 102 KB), petricore's */
    static const size_t most[] = { 16384, 32768, 8 << 20, 200 << 10, 100 << 10, 16384, 2 << 20 };

    make_huge(&f->report, &f->arena);
    for (size_t view = 0; view < COUNT(view_names); view++) {
        buf_reset(&f->out);
        put_view(&f->out, &f->report, view);
        if (f->out.n > most[view])
            fail_msg("%s takes %zu bytes", view_names[view], f->out.n);
    }
    buf_reset(&f->out);
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "3,985 more are left out");
    assert_contains(f->out.p, "node3999");
}

TEST(an_array_of_twenty_thousand_fits)
{
    struct array_report array = { make_array(&f->arena, 20000), 20000, NULL };

    report_array_text(&f->out, &array, &plain);
    assert_contains(f->out.p, "20,000 tasks of alice: 19,400 COMPLETED, 400 FAILED, "
                              "200 OUT_OF_MEMORY.\n");
    assert_contains(f->out.p, "580 more are left out");
    assert_contains(f->out.p, "node03     600             600\n");
    assert_true(f->out.n < 8192);
    buf_reset(&f->out);
    report_array_json(&f->out, &array);
    assert_contains(f->out.p, "\"failed_tasks\":600");
    assert_true(f->out.n < 16384);
}

TEST(no_line_is_longer_than_the_terminal_is_wide)
{
    static const size_t widths[] = { 40, 41, 60, 79, 80, 100, 132 };

    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t kind = 0; kind < 3; kind++) {
            struct text_look look = { false, kind == 1, widths[i] };

            if (kind == 2)
                make_hostile(&f->report, &f->arena,
                             STR("日本語日本語日本語 with-a-very-long-name-that-has-no-spaces-"
                                 "in-it-at-all-and-goes-on-for-ever-and-ever"));
            else
                make_wasteful(&f->report, &f->arena);
            buf_reset(&f->out);
            report_text(&f->out, &f->report, &look);
            for (struct str line, rest = buf_str(&f->out); rest.p;) {
                line = str_cut(&rest, '\n');
                if (shown_width(line) > widths[i])
                    fail_msg("%zu columns: %.*s", widths[i], STR_ARG(line));
            }
        }
}

TEST(text_without_unicode_is_ascii)
{
    make_hostile(&f->report, &f->arena, STR("日本語 naïve …"));
    report_text(&f->out, &f->report, &plain);
    for (size_t i = 0; i < f->out.n; i++)
        assert_true((unsigned char)f->out.p[i] < 0x80);
}

TEST(a_page_stands_alone)
{
    make_wasteful(&f->report, &f->arena);
    report_html(&f->out, &f->report, HTML_PAGE);
    assert_balanced(f->out.p);
    assert_contains(f->out.p, "<svg ");
    assert_contains(f->out.p, "prefers-color-scheme:dark");
    assert_contains(f->out.p, "<div class=\"critical\" style=\"width:15.0%\">");
    assert_null(strstr(f->out.p, "<script"));
    assert_null(strstr(f->out.p, "src="));
    assert_null(strstr(f->out.p, "<link"));
}

TEST(a_mail_has_only_what_mail_programs_keep)
{
    make_wasteful(&f->report, &f->arena);
    report_html(&f->out, &f->report, HTML_MAIL);
    assert_balanced(f->out.p);
    assert_contains(f->out.p, "<td width=\"30\" height=\"12\" bgcolor=\"#b3261e\"");
    assert_contains(f->out.p, "word-break:break-word;");
    /* its letters are dark, and the reader's paper may be so too */
    assert_contains(f->out.p, "<body bgcolor=\"#ffffff\">");
    assert_null(strstr(f->out.p, "<svg"));
    assert_null(strstr(f->out.p, "<style"));
    assert_null(strstr(f->out.p, "class="));
}

TEST(a_running_job_is_told_of_as_such)
{
    make_good(&f->report, &f->arena);
    f->report.facts.is_running = true;
    f->report.facts.row.record.state.base = JOB_RUNNING;
    f->report.facts.row.record.end_time = 0;
    report_text(&f->out, &f->report, &plain);
    assert_contains(f->out.p, "Job 4711 of alice is running, for 02:30:05 so far, and used 95 %");
    assert_null(strstr(f->out.p, "Ended"));
}
