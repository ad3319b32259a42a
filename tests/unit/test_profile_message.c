/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/profile_message: datagrams of the profile plugin. */
#include "test.h"

#include "plugin/text.h"
#include "source/profile_message.h"

#define HEAD "sonde-profile 1\nstep 7 batch c1\n"

static struct profile_message message;
static struct profile_sample sample;
static struct err err;

static void read_text(const char *text)
{
    if (profile_message_read(str_of(text), &message, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_next(const char *name, const char *sensor, double value)
{
    assert_true(profile_message_next(&message, &sample));
    assert_string_equal(sample.metric->name, name);
    assert_str(sample.sensor, sensor);
    assert_true(sample.value == value);
}

static void assert_no_more(void)
{
    assert_false(profile_message_next(&message, &sample));
    assert_false(profile_message_next(&message, &sample));
}

TEST(all_that_a_message_says_is_read)
{
    read_text("sonde-profile 1\n"
              "step 4294967295 interactive node-17.example.org\n"
              "label user alice\n"
              "label account a b\n"
              "label partition gpu,long\n"
              "label cluster big\n"
              "every 30\n"
              "dataset task 3\n"
              "slurm_profile_task_cpu_seconds_total 1.25\n"
              "CPUTime 0.5\n"
              "dataset energy\n"
              "slurm_profile_node_power_watts 250 CPU 1\n"
              "slurm_profile_node_power_watts 400\n"
              "dataset network\n"
              "InMB 1e-3\n"
              "dataset filesystem\n"
              "Reads 18446744073709551615\n");
    assert_int_equal(message.id.job_id, UINT32_MAX);
    assert_string_equal(message.id.step, "interactive");
    assert_string_equal(message.id.node, "node-17.example.org");
    assert_string_equal(message.labels.user, "alice");
    assert_string_equal(message.labels.account, "a b");
    assert_string_equal(message.labels.partition, "gpu,long");
    assert_string_equal(message.labels.cluster, "big");
    assert_int_equal(message.every_seconds, 30);
    assert_false(message.is_end);
    assert_next("slurm_profile_task_cpu_seconds_total", "", 1.25);
    assert_int_equal(sample.kind, PROFILE_OF_TASK);
    assert_int_equal(sample.task, 3);
    assert_next("CPUTime", "", 0.5);
    assert_next("slurm_profile_node_power_watts", "CPU 1", 250);
    assert_int_equal(sample.kind, PROFILE_OF_ENERGY);
    assert_int_equal(sample.task, 0);
    assert_next("slurm_profile_node_power_watts", "", 400);
    assert_next("InMB", "", 0.001);
    assert_next("Reads", "", 18446744073709551615.0);
    assert_no_more();
}

/* The other end's own code, for two tasks of a step whose names are as long as they can be. */
TEST(what_the_plugin_writes_is_what_is_read)
{
    static const struct samples_field fields[] = { { "CPUTime", true }, { "RSS", false } };
    const struct profile_quirks quirks = { 0 };
    const union {
        double real;
        uint64_t integer;
    } data[] = { { .real = 1.5 }, { .integer = 1024 } };
    struct profile_step step = { .job_id = 7, .user = "al\nice", .account = "\xff b" };
    const struct profile_settings settings = {
        .labels = PROFILE_LABEL_USER | PROFILE_LABEL_ACCOUNT | PROFILE_LABEL_CLUSTER,
        .names = PROFILE_NAMES_BOTH,
        .frequency_seconds = 30,
    };
    struct samples *samples = samples_new(&quirks);
    char text[PROFILE_MESSAGE];
    size_t next = 0, n, n_read[2] = { 0 };

    memset(step.step, 's', sizeof(step.step) - 1);
    memset(step.node, 'n', sizeof(step.node) - 1);
    memset(step.cluster, 'c', sizeof(step.cluster) - 1);
    for (uint32_t task = 0; task < 2; task++)
        samples_add(samples, samples_dataset(samples, PROFILE_OF_TASK, task, fields, COUNT(fields)),
                    data);
    n = text_message(samples, &step, &settings, &next, text, sizeof(text));
    assert_true(n > 0 && next == 2);
    assert_int_equal(profile_message_read((struct str){ text, n }, &message, &err), 0);
    assert_int_equal(message.id.job_id, 7);
    assert_string_equal(message.id.step, step.step);
    assert_string_equal(message.id.node, step.node);
    assert_string_equal(message.labels.user, "al?ice");
    assert_string_equal(message.labels.account, "? b");
    assert_string_equal(message.labels.partition, "");
    assert_string_equal(message.labels.cluster, step.cluster);
    assert_int_equal(message.every_seconds, 30);
    while (profile_message_next(&message, &sample)) {
        n_read[sample.task]++;
        if (strcmp(sample.metric->name, "slurm_profile_task_resident_memory_bytes") == 0)
            assert_true(sample.value == 1 << 20);
    }
    assert_int_equal(n_read[0], 4);
    assert_int_equal(n_read[1], 4);
    n = text_farewell(&step, text, sizeof(text));
    assert_int_equal(profile_message_read((struct str){ text, n }, &message, &err), 0);
    assert_true(message.is_end);
    samples_free(samples);
}

TEST(what_is_not_said_is_empty_and_ten_seconds)
{
    read_text(HEAD);
    assert_string_equal(message.labels.user, "");
    assert_string_equal(message.labels.cluster, "");
    assert_int_equal(message.every_seconds, 10);
    assert_no_more();
}

TEST(an_end_has_no_numbers)
{
    read_text(HEAD "label user alice\nend\ndataset task 0\nCPUTime 1\n");
    assert_true(message.is_end);
    assert_no_more();
    read_text(HEAD "end of the world\n");
    assert_false(message.is_end);
    read_text(HEAD "end");
    assert_true(message.is_end);
}

TEST(what_a_newer_plugin_adds_is_passed_over)
{
    read_text(HEAD "sluid s123\n"
                   "label qos high\n"
                   "\n"
                   "dataset quantum 3\n"
                   "CPUTime 1\n"
                   "dataset task 1 core 4\n"
                   "CPUTime 2\n"
                   "dataset energy 7\n"
                   "Power 2\n"
                   "dataset task 2\n"
                   "slurm_profile_task_luck_ratio 1\n"
                   "CPUTime 3\n"
                   "label user late\n");
    assert_next("CPUTime", "", 3);
    assert_int_equal(sample.task, 2);
    assert_no_more();
    assert_string_equal(message.labels.user, "");
}

TEST(numbers_that_cannot_be_are_passed_over)
{
    read_text(HEAD "dataset task 0\n"
                   "CPUTime\n"
                   "CPUTime \n"
                   "CPUTime one\n"
                   "CPUTime nan\n"
                   "CPUTime inf\n"
                   "CPUTime 1e999\n"
                   "CPUTime  5\n"
                   "CPUTime 5 sensor\n"
                   "Power 5\n"
                   "slurm_profile_node_power_watts 5 CPU\n"
                   "dataset energy\n"
                   "slurm_profile_node_power_watts 5 \x1b[1m\n"
                   "slurm_profile_node_power_watts 5 a-name-of-a-sensor-of-32-letters\n"
                   "slurm_profile_node_power_watts 5 a-name-of-a-sensor-of-31-letter");
    assert_next("slurm_profile_node_power_watts", "a-name-of-a-sensor-of-31-letter", 5);
    assert_no_more();
}

TEST(a_head_that_is_not_understood_is_refused)
{
    static const char *const texts[] = {
        "",
        "\n",
        "hello",
        "sonde-profile",
        "sonde-profile 1",
        "sonde-profile 1\n",
        "sonde-profile 1\nstep\n",
        "sonde-profile 1\nstep 7\n",
        "sonde-profile 1\nstep 7 batch\n",
        "sonde-profile 1\nstep 7 batch \n",
        "sonde-profile 1\nstep 7  c1\n",
        "sonde-profile 1\nstep 0 batch c1\n",
        "sonde-profile 1\nstep -1 batch c1\n",
        "sonde-profile 1\nstep 4294967296 batch c1\n",
        "sonde-profile 1\nstep 7 batch c1 c2\n",
        "sonde-profile 1\nstep 7 batch c\t1\n",
        "sonde-profile 1\nstep 7 \x7f c1\n",
        "sonde-profile 1\nstep 7 123456789012345678901234 c1\n",
        "sonde-profile 1\nlabel user alice\nstep 7 batch c1\n",
        HEAD "label user\n",
        HEAD "label user \n",
        HEAD "label user al\x01ice\n",
        HEAD "label user 0123456789012345678901234567890123456789012345678901234567890123\n",
        HEAD "every\n",
        HEAD "every 0\n",
        HEAD "every soon\n",
        HEAD "every 86401\n",
        HEAD "label user alice\nevery 1.5\ndataset task 0\nCPUTime 1\n",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        err = (struct err){ 0 };
        if (profile_message_read(str_of(texts[i]), &message, &err) != -EINVAL)
            fail_msg("taken: %s", texts[i]);
        assert_int_equal(err.code, EINVAL);
        assert_true(err.text[0]);
    }
}

TEST(a_version_that_nobody_understands_is_told_apart)
{
    assert_int_equal(
        profile_message_read(STR("sonde-profile 2\nstep 7 batch c1\n"), &message, &err), -EPROTO);
}

TEST(bytes_past_any_message_are_refused)
{
    static char text[PROFILE_MESSAGE_BYTES + 1] = HEAD;

    memset(text + strlen(text), '\n', sizeof(text) - strlen(text));
    assert_int_equal(
        profile_message_read((struct str){ text, PROFILE_MESSAGE_BYTES }, &message, &err), 0);
    assert_int_equal(
        profile_message_read((struct str){ text, PROFILE_MESSAGE_BYTES + 1 }, &message, &err),
        -EINVAL);
}

TEST(a_nul_is_a_control_character)
{
    static const char text[] = "sonde-profile 1\nstep 7 bat\0ch c1\n";

    assert_int_equal(profile_message_read((struct str){ text, sizeof(text) - 1 }, &message, &err),
                     -EINVAL);
}
