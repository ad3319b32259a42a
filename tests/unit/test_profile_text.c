/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of plugin/text: what the profile plugin sends. */
#include "test.h"

#include "base/err.h"
#include "plugin/text.h"
#include "source/profile_message.h"

static const struct samples_field task_fields[] = { { "CPUTime", true }, { "RSS", false } };
static const struct samples_field energy_fields[] = { { "Power", false }, { "CPUPower", false } };

struct task_sample {
    double cpu_time;
    uint64_t rss;
};

static const struct profile_step plain_step = {
    .job_id = 123,
    .step = "batch",
    .node = "c1",
    .user = "anna",
    .account = "physics",
    .partition = "long",
};
static const struct profile_settings both_names = { .names = PROFILE_NAMES_BOTH,
                                                    .frequency_seconds = 10 };

/* Tasks 0 and 1, and the node's energy. */
static struct samples *make_samples(void)
{
    static const struct profile_quirks quirks;
    static const struct task_sample tasks[] = { { 0.1, 4728 }, { 2, 3 } };
    static const uint64_t energy[] = { 250, 90 };
    struct samples *samples = samples_new(&quirks);

    for (unsigned i = 0; i < COUNT(tasks); i++)
        samples_add(samples, samples_dataset(samples, PROFILE_OF_TASK, i, task_fields, 2),
                    &tasks[i]);
    samples_add(samples, samples_dataset(samples, PROFILE_OF_ENERGY, 0, energy_fields, 2), energy);
    return samples;
}

#define HELP_NODE " Each step on the node repeats it: do not add them up.\n"

static const char new_text[] =
    "# HELP slurm_profile_task_cpu_seconds_total CPU time that the task used since its first "
    "sample.\n"
    "# TYPE slurm_profile_task_cpu_seconds_total counter\n"
    "slurm_profile_task_cpu_seconds_total{slurm_job=\"123\",task=\"0\"} 0.1\n"
    "slurm_profile_task_cpu_seconds_total{slurm_job=\"123\",task=\"1\"} 2\n"
    "# HELP slurm_profile_task_resident_memory_bytes Resident memory of the task.\n"
    "# TYPE slurm_profile_task_resident_memory_bytes gauge\n"
    "slurm_profile_task_resident_memory_bytes{slurm_job=\"123\",task=\"0\"} 4841472\n"
    "slurm_profile_task_resident_memory_bytes{slurm_job=\"123\",task=\"1\"} 3072\n"
    "# HELP slurm_profile_node_power_watts Power that the node draws, or the part of it that the "
    "sensor tells." HELP_NODE "# TYPE slurm_profile_node_power_watts gauge\n"
    "slurm_profile_node_power_watts{slurm_job=\"123\"} 250\n"
    "slurm_profile_node_power_watts{slurm_job=\"123\",sensor=\"CPU\"} 90\n";
static const char original_text[] =
    "# HELP CPUTime CPU time of the task in the last interval, in seconds.\n"
    "# TYPE CPUTime untyped\n"
    "CPUTime{task=\"0\"} 0.1\n"
    "CPUTime{task=\"1\"} 2\n"
    "# HELP RSS Resident memory of the task in KiB.\n"
    "# TYPE RSS untyped\n"
    "RSS{task=\"0\"} 4728\n"
    "RSS{task=\"1\"} 3\n"
    "# HELP Power Power that the node draws, in watts.\n"
    "# TYPE Power untyped\n"
    "Power 250\n";

static struct str expose(const struct profile_step *step, const struct profile_settings *settings)
{
    static char text[16384];
    struct samples *samples = make_samples();
    size_t left_out, n = text_exposition(samples, step, settings, text, sizeof(text), &left_out);

    assert_int_equal(left_out, 0);
    samples_free(samples);
    return (struct str){ text, n };
}

TEST(a_group_has_families_in_one_piece_with_help_and_type)
{
    struct profile_settings settings = both_names;
    char both[sizeof(new_text) + sizeof(original_text)];

    snprintf(both, sizeof(both), "%s%s", new_text, original_text);
    assert_str(expose(&plain_step, &settings), both);
    settings.names = PROFILE_NAMES_NEW;
    assert_str(expose(&plain_step, &settings), new_text);
    settings.names = PROFILE_NAMES_ORIGINAL;
    settings.labels = PROFILE_LABEL_USER;
    assert_str(expose(&plain_step, &settings), original_text);
}

/* The line of a new metric of task 1. */
static struct str labels_of(const struct profile_step *step, unsigned labels)
{
    struct profile_settings settings = { .names = PROFILE_NAMES_NEW, .labels = labels };
    struct str text = expose(step, &settings);
    struct str begin = STR("slurm_profile_task_cpu_seconds_total{slurm_job=\"123\",task=\"1\"");

    text = str_skip(text, str_find_str(text, begin) + begin.n);
    return str_head(text, str_find(text, '\n'));
}

TEST(wanted_labels_are_there_if_they_are_known)
{
    assert_str(labels_of(&plain_step, PROFILE_LABEL_USER | PROFILE_LABEL_ACCOUNT |
                                          PROFILE_LABEL_PARTITION | PROFILE_LABEL_CLUSTER),
               ",user=\"anna\",account=\"physics\",partition=\"long\"} 2");
    assert_str(labels_of(&plain_step, PROFILE_LABEL_PARTITION), ",partition=\"long\"} 2");
    /* the group has it */
    assert_str(labels_of(&plain_step, PROFILE_LABEL_STEP), "} 2");
}

static const struct {
    const char *value, *in_exposition, *in_message;
} hostile[] = {
    { "a\nb", "a?b", "a?b" },
    { "a\"} 1\nRSS{b=\"", "a\\\"} 1?RSS{b=\\\"", "a\"} 1?RSS{b=\"" },
    { "\\n\\", "\\\\n\\\\", "\\n\\" },
    { "\xff\xc3(\xe2\x82",
      "?"
      "?(??",
      "?"
      "?(??" },
    { "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80",
      "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80" },
    { "\x01\x1b[31m\x7f\xc2\x85\r", "??[31m????", "??[31m????" },
};

TEST(a_hostile_label_is_no_structure)
{
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct profile_step step = plain_step;
        char expected[128];

        snprintf(step.account, sizeof(step.account), "%s", hostile[i].value);
        snprintf(expected, sizeof(expected), ",account=\"%s\"} 2", hostile[i].in_exposition);
        assert_str(labels_of(&step, PROFILE_LABEL_ACCOUNT), expected);
    }
}

TEST(labels_that_are_as_long_as_can_be_fit)
{
    static const char bytes[] = { '"', '\\', '\n', '\xff' };

    for (size_t i = 0; i < sizeof(bytes); i++) {
        struct profile_step step = { .job_id = 123 };
        struct profile_settings settings = { .names = PROFILE_NAMES_NEW, .labels = ~0u };
        size_t each = bytes[i] == '"' || bytes[i] == '\\' ? 2 : 1;

        memset(step.user, bytes[i], sizeof(step.user) - 1);
        memset(step.account, bytes[i], sizeof(step.account) - 1);
        memset(step.partition, bytes[i], sizeof(step.partition) - 1);
        memset(step.cluster, bytes[i], sizeof(step.cluster) - 1);
        assert_int_equal(labels_of(&step, settings.labels).n,
                         strlen(",user=\"\",account=\"\",partition=\"\",cluster=\"\"} 2") +
                             (3 * 63 + 127) * each);
    }
}

static size_t count(struct str text, struct str part)
{
    size_t n = 0;

    for (size_t at; (at = str_find_str(text, part)) < text.n; text = str_skip(text, at + part.n))
        n++;
    return n;
}

TEST(families_that_do_not_fit_are_left_out_whole)
{
    struct str whole = expose(&plain_step, &both_names);
    size_t families = count(whole, STR("# TYPE "));
    struct samples *samples = make_samples();

    for (size_t room = 0; room <= whole.n; room++) {
        char *text = malloc(room + 1); /* the sanitizer sees a byte too far */
        size_t left_out = 99, n;
        struct str got;

        n = text_exposition(samples, &plain_step, &both_names, text + 1, room, &left_out);
        got = (struct str){ text + 1, n };
        assert_true(n <= room);
        assert_int_equal(count(got, STR("# TYPE ")) + left_out, families);
        assert_int_equal(left_out == 0, room == whole.n);
        for (struct str line, rest = got; rest.n;) {
            line = str_cut(&rest, '\n');
            assert_true(str_find_str(whole, line) < whole.n);
        }
        /* 6 families: two of tasks have two samples, and so has power */
        assert_int_equal(count(got, STR("\n")),
                         2 * count(got, STR("# TYPE ")) + 2 * count(got, STR("_seconds_total c")) +
                             2 * count(got, STR("_memory_bytes g")) +
                             2 * count(got, STR("_watts g")) + 2 * count(got, STR("CPUTime u")) +
                             2 * count(got, STR("RSS u")) + count(got, STR("Power u")));
        free(text);
    }
    samples_free(samples);
}

TEST(a_step_without_samples_has_nothing_to_say)
{
    static const struct profile_quirks quirks;
    struct samples *samples = samples_new(&quirks);
    char text[1024];
    size_t left_out, next = 0;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            text_exposition(samples, &plain_step, &both_names, text, sizeof(text), &left_out), 0);
        assert_int_equal(left_out, 0);
        assert_int_equal(text_message(samples, &plain_step, &both_names, &next, text, sizeof(text)),
                         0);
        assert_int_equal(next, i);
        samples_dataset(samples, PROFILE_OF_TASK, 0, task_fields, 2);
        next = 0;
    }
    samples_free(samples);
}

TEST(a_message_is_lines)
{
    struct profile_settings settings = both_names;
    struct samples *samples = make_samples();
    char text[PROFILE_MESSAGE];
    size_t next = 0, n;

    settings.labels = PROFILE_LABEL_USER | PROFILE_LABEL_ACCOUNT | PROFILE_LABEL_STEP;
    n = text_message(samples, &plain_step, &settings, &next, text, sizeof(text));
    assert_int_equal(next, 3);
    assert_str(((struct str){ text, n }), "sonde-profile 1\n"
                                          "step 123 batch c1\n"
                                          "label user anna\n"
                                          "label account physics\n"
                                          "every 10\n"
                                          "dataset task 0\n"
                                          "slurm_profile_task_cpu_seconds_total 0.1\n"
                                          "CPUTime 0.1\n"
                                          "slurm_profile_task_resident_memory_bytes 4841472\n"
                                          "RSS 4728\n"
                                          "dataset task 1\n"
                                          "slurm_profile_task_cpu_seconds_total 2\n"
                                          "CPUTime 2\n"
                                          "slurm_profile_task_resident_memory_bytes 3072\n"
                                          "RSS 3\n"
                                          "dataset energy\n"
                                          "slurm_profile_node_power_watts 250\n"
                                          "Power 250\n"
                                          "slurm_profile_node_power_watts 90 CPU\n");
    assert_int_equal(text_message(samples, &plain_step, &settings, &next, text, sizeof(text)), 0);
    samples_free(samples);
}

TEST(a_farewell_is_a_head_and_an_end)
{
    static const char expected[] = "sonde-profile 1\nstep 123 batch c1\nend\n";
    char text[128];
    size_t n = text_farewell(&plain_step, text, sizeof(text));

    assert_str(((struct str){ text, n }), expected);
    assert_int_equal(text_farewell(&plain_step, text, n), n);
    assert_int_equal(text_farewell(&plain_step, text, n - 1), 0);
}

/* The agent's reader on it; returns how many numbers it found. */
static size_t read_back(struct str text, const struct profile_step *step)
{
    struct profile_message message;
    struct profile_sample sample;
    struct err err = { 0 };
    size_t n = 0;

    if (profile_message_read(text, &message, &err) != 0)
        fail_msg("%s: %.*s", err.text, STR_ARG(text));
    assert_int_equal(message.id.job_id, step->job_id);
    while (profile_message_next(&message, &sample))
        n++;
    return n;
}

TEST(what_does_not_fit_into_one_message_is_in_the_next)
{
    static const struct profile_quirks quirks;
    enum { TASKS = 1000 };
    struct samples *samples = samples_new(&quirks);
    size_t next = 0, n, n_values = 0, n_messages = 0;
    char text[PROFILE_MESSAGE];

    for (uint32_t i = 0; i < TASKS; i++) {
        struct task_sample sample = { i, i + 1 };

        samples_add(samples, samples_dataset(samples, PROFILE_OF_TASK, i, task_fields, 2), &sample);
    }
    while ((n = text_message(samples, &plain_step, &both_names, &next, text, sizeof(text)))) {
        n_values += read_back((struct str){ text, n }, &plain_step);
        n_messages++;
    }
    assert_int_equal(next, TASKS);
    assert_int_equal(n_values, 4 * TASKS);
    assert_true(n_messages > 1 && n_messages < 20);
    samples_free(samples);
}

TEST(the_largest_dataset_fits_into_a_message)
{
    static const struct profile_quirks quirks;
    char names[SAMPLES_FIELDS][64], text[PROFILE_MESSAGE];
    struct samples_field fields[SAMPLES_FIELDS];
    double data[SAMPLES_FIELDS];
    struct samples *samples = samples_new(&quirks);
    struct profile_step step = { .job_id = UINT32_MAX };
    struct profile_settings settings = both_names;
    size_t next = 0, n;

    settings.labels = ~0u;
    memset(step.step, 's', sizeof(step.step) - 1);
    memset(step.node, 'n', sizeof(step.node) - 1);
    memset(step.user, 'u', sizeof(step.user) - 1);
    memset(step.account, 'a', sizeof(step.account) - 1);
    memset(step.partition, '\xff', sizeof(step.partition) - 1);
    memset(step.cluster, 'c', sizeof(step.cluster) - 1);
    for (size_t i = 0; i < SAMPLES_FIELDS; i++) {
        snprintf(names[i], sizeof(names[i]), "%031zuPower", i);
        fields[i] = (struct samples_field){ names[i], true };
        data[i] = 1e-7 / 3;
    }
    samples_add(samples, samples_dataset(samples, PROFILE_OF_ENERGY, 0, fields, COUNT(fields)),
                data);
    n = text_message(samples, &step, &settings, &next, text, sizeof(text));
    assert_true(n > 0);
    assert_int_equal(read_back((struct str){ text, n }, &step), SAMPLES_FIELDS);
    samples_free(samples);
}

TEST(a_message_never_goes_past_its_room)
{
    const size_t head = strlen("sonde-profile 1\nstep 123 batch c1\nevery 10\n");
    struct samples *samples = make_samples();

    for (size_t room = 0; room < 700; room++) {
        char *text = malloc(room + 1);
        size_t next = 0, n, n_values = 0;

        while ((n = text_message(samples, &plain_step, &both_names, &next, text + 1, room))) {
            assert_true(n <= room);
            n_values += read_back((struct str){ text + 1, n }, &plain_step);
        }
        if (room < head)
            assert_int_equal(next, 0);
        else
            assert_int_equal(next, 3);
        if (room >= 250) /* what each of them needs alone */
            assert_int_equal(n_values, 11);
        free(text);
    }
    samples_free(samples);
}

TEST(the_agent_reads_what_was_told)
{
    struct profile_settings settings = both_names;
    struct samples *samples = make_samples();
    struct profile_message message;
    struct profile_sample sample;
    char text[PROFILE_MESSAGE];
    struct err err;

    settings.labels = ~0u;
    settings.frequency_seconds = 30;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct profile_step step = plain_step;
        size_t next = 0, n, power = 0;

        snprintf(step.user, sizeof(step.user), "%s", hostile[i].value);
        n = text_message(samples, &step, &settings, &next, text, sizeof(text));
        assert_int_equal(profile_message_read((struct str){ text, n }, &message, &err), 0);
        assert_string_equal(message.id.step, "batch");
        assert_string_equal(message.id.node, "c1");
        assert_string_equal(message.labels.user, hostile[i].in_message);
        assert_string_equal(message.labels.account, "physics");
        assert_string_equal(message.labels.cluster, "");
        assert_int_equal(message.every_seconds, 30);
        assert_false(message.is_end);
        while (profile_message_next(&message, &sample))
            if (str_eq(sample.sensor, STR("CPU")))
                power += sample.value == 90 && sample.kind == PROFILE_OF_ENERGY;
        assert_int_equal(power, 1);
    }
    samples_free(samples);
}

TEST(the_agent_takes_odd_steps_and_farewells)
{
    static const struct {
        const char *step, *node, *read_step, *read_node;
    } cases[] = {
        { "0", "node-1.example.org", "0", "node-1.example.org" },
        { "", "", "-", "-" },
        { "a b", "c\nd\xff", "a?b", "c?d?" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct profile_step step = { .job_id = 7 };
        struct profile_message message;
        char text[512];
        struct err err;
        size_t n;

        snprintf(step.step, sizeof(step.step), "%s", cases[i].step);
        snprintf(step.node, sizeof(step.node), "%s", cases[i].node);
        n = text_farewell(&step, text, sizeof(text));
        assert_int_equal(profile_message_read((struct str){ text, n }, &message, &err), 0);
        assert_true(message.is_end);
        assert_string_equal(message.id.step, cases[i].read_step);
        assert_string_equal(message.id.node, cases[i].read_node);
    }
}

TEST(the_path_of_a_group_is_as_the_pushgateway_wants_it)
{
    static const struct {
        const char *node, *step, *path;
    } cases[] = {
        { "c1", "batch", "/metrics/job/123/instance/c1/step/batch" },
        { "n-1.a_b", "0", "/metrics/job/123/instance/n-1.a_b/step/0" },
        { "a/b", "0", "/metrics/job/123/instance@base64/YS9i/step/0" },
        { "", "", "/metrics/job/123/instance@base64/=/step@base64/=" },
        { "..", "0", "/metrics/job/123/instance@base64/Li4/step/0" },
        { "a%2Fb", "0", "/metrics/job/123/instance@base64/YSUyRmI/step/0" },
        { "a b?c#", "0", "/metrics/job/123/instance@base64/YSBiP2Mj/step/0" },
        { "\xff", "0", "/metrics/job/123/instance@base64/Pw/step/0" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct profile_step step = { .job_id = 123 };
        char path[128];
        size_t n;

        snprintf(step.node, sizeof(step.node), "%s", cases[i].node);
        snprintf(step.step, sizeof(step.step), "%s", cases[i].step);
        n = text_group_path(&step, path, sizeof(path));
        assert_string_equal(path, cases[i].path);
        assert_int_equal(n, strlen(cases[i].path));
        assert_int_equal(text_group_path(&step, path, n + 1), n);
        assert_int_equal(text_group_path(&step, path, n), 0);
    }
}

TEST(the_longest_path_fits_into_512_bytes)
{
    struct profile_step step = { .job_id = UINT32_MAX };
    char path[512];

    memset(step.node, '/', sizeof(step.node) - 1);
    memset(step.step, ' ', sizeof(step.step) - 1);
    assert_true(text_group_path(&step, path, sizeof(path)) > 0);
}
