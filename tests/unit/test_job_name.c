/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/job_name: job ids as people write them. */
#include "test.h"

#include "model/job.h"
#include "model/job_name.h"

static struct job_name name_of(const char *text)
{
    struct job_name name;
    struct err err;

    if (job_name_read(str_of(text), &name, &err) < 0)
        fail_msg("%s", err.text);
    return name;
}

TEST(a_job_a_task_and_a_component_have_names)
{
    struct job_name job = name_of("4711"), task = name_of("4711_7"), component = name_of("4711+1");

    assert_int_equal(job.id, 4711);
    assert_int_equal(job.task, MODEL_UNKNOWN_U32);
    assert_int_equal(job.offset, MODEL_UNKNOWN_U32);
    assert_int_equal(job.cluster.n, 0);
    assert_int_equal(task.id, 4711);
    assert_int_equal(task.task, 7);
    assert_int_equal(task.offset, MODEL_UNKNOWN_U32);
    assert_int_equal(component.offset, 1);
    assert_int_equal(component.task, MODEL_UNKNOWN_U32);
    assert_int_equal(name_of("4711_0").task, 0);
}

TEST(a_cluster_stands_in_front)
{
    struct job_name name = name_of("beluga:4711_7");

    assert_str(name.cluster, "beluga");
    assert_int_equal(name.id, 4711);
    assert_int_equal(name.task, 7);
}

TEST(spaces_around_it_do_not_matter)
{
    struct job_name name = name_of(" \tbeluga:4711\n");

    assert_str(name.cluster, "beluga");
    assert_int_equal(name.id, 4711);
}

TEST(what_is_written_reads_the_same)
{
    static const char *const names[] = { "4711", "4711_7", "4711+0", "beluga:4711",
                                         "beluga:4294967294_4294967294" };
    struct buf text;

    buf_init(&text, 100);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct job_name name = name_of(names[i]);

        buf_reset(&text);
        job_name_put(&text, &name);
        assert_str(buf_str(&text), names[i]);
    }
    buf_free(&text);
}

TEST(anything_else_is_refused_with_examples)
{
    static const char *const wrong[] = {
        "",
        " ",
        "0",
        "-1",
        "47 11",
        ":4711",
        "beluga:",
        "4711_",
        "4711+",
        "_7",
        "4711_7_8",
        "4711_7+1",
        "4711_[1-5]",
        "4711.batch",
        "0x10",
        "4711_-1",
        "beluga",
        "4294967295",
        "beluga::1",
        "a:b:1",
        "4711_4294967295",
        "99999999999999999999",
    };
    struct job_name before = { STR_INIT("untouched"), 1, 2, 3 }, name = before;
    struct err err;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (job_name_read(str_of(wrong[i]), &name, &err) != -EINVAL)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_contains(err.text, "4711_7, 4711+1 or CLUSTER:4711");
    }
    assert_str(name.cluster, "untouched");
    assert_int_equal(name.id, 1);
}

TEST(a_hostile_name_does_not_reach_the_terminal)
{
    struct job_name name;
    struct err err;

    assert_int_equal(job_name_read(STR("\x1b[31m\r\nBcc: x"), &name, &err), -EINVAL);
    assert_null(strpbrk(err.text, "\x1b\r\n"));
}
