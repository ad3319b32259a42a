/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fixture that makes sections from text: what a test would not notice if it were wrong. */
#include "sections.h"

int64_t sections_now = 1700000000;

TEST(a_line_changes_what_it_names_and_leaves_the_defaults)
{
    struct section *jobs = jobs_from("RUNNING+COMPLETING cpus=8 user=bob reason='two\nlines' qos=\n"
                                     "* memory=2G\n"
                                     "PENDING  submit=-1h start=+30s cpus=unknown\n");
    const struct job *job = jobs->jobs.job;

    assert_int_equal(jobs->jobs.n, 2);
    assert_int_equal(job[0].state.base, JOB_RUNNING);
    assert_int_equal(job[0].state.flags, JOB_COMPLETING);
    assert_int_equal(job[0].cpus, 8);
    assert_str(section_text(jobs, job[0].user), "bob");
    assert_str(section_text(jobs, job[0].reason), "two\nlines");
    assert_int_equal(job[0].qos, 0);
    assert_true(job[0].memory_bytes == UINT64_C(1) << 30);
    assert_int_equal(job[1].id, 2);
    assert_str(section_text(jobs, job[1].user), "ann");
    assert_int_equal(job[1].cpus, MODEL_UNKNOWN_U32);
    assert_true(job[1].memory_bytes == UINT64_C(2) << 30);
    assert_int_equal(job[1].submit_time, sections_now - 3600);
    assert_int_equal(job[1].start_time, sections_now + 30);
    section_unref(jobs);
}

TEST(a_node_is_in_partitions_that_were_made_or_are_made_then)
{
    struct section *section = nodes_from("partition cpu up=no time_limit=90\n"
                                         "n1 idle+drain cpus=2/6/0/8 partitions=cpu,gpu\n"
                                         "* partitions=gpu\n"
                                         "n2 mixed\n"
                                         "n3 mixed partitions=cpu\n");
    const struct nodes *nodes = &section->nodes;

    assert_int_equal(nodes->n, 3);
    assert_int_equal(nodes->n_partitions, 2);
    assert_false(nodes->partition[0].is_up);
    assert_int_equal(nodes->partition[0].time_limit_minutes, 90);
    assert_true(nodes->partition[1].is_up);
    assert_int_equal(nodes->node[0].cpus_idle, 6);
    assert_int_equal(nodes->node[0].cpus, 8);
    assert_int_equal(nodes->node[0].n_partitions, 2);
    assert_int_equal(nodes->node[1].first_partition, 2);
    assert_int_equal(nodes->membership[2], 1);
    assert_int_equal(nodes->node[2].first_partition, 3);
    assert_int_equal(nodes->node[2].n_partitions, 1);
    assert_int_equal(nodes->membership[3], 0);
    section_unref(section);
}

TEST(a_line_that_is_wrong_is_named)
{
    static const struct {
        const char *line, *error;
    } rows[] = {
        { "RUNNING cpu=8", "unknown word cpu" },
        { "RUNING", "RUNING is not a valid value of state" },
        { "RUNNING cpus=8x", "8x is not a valid value of cpus" },
        { "RUNNING cpus=4294967296", "4294967296 is not a valid value of cpus" },
        { "RUNNING memory=lots", "lots is not a valid value of memory" },
        { "RUNNING submit=-soon", "-soon is not a valid value of submit" },
        { "RUNNING reason='half", "'half is not a valid value of reason" },
        { "RUNNING held", "held has no value" },
        { "* qos", "qos has no value" },
        { "gpus 7 g1", "there is no gpus" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *jobs = section_new(KIND_JOBS);
        struct err err = { 0 };
        char text[100], expected[200];

        snprintf(text, sizeof(text), "PENDING\n%s", rows[i].line);
        snprintf(expected, sizeof(expected), "line 2 of jobs, \"%s\": %s", rows[i].line,
                 rows[i].error);
        assert_int_equal(section_read(jobs, str_of(text), &err), -EINVAL);
        assert_string_equal(err.text, expected);
        section_unref(jobs);
    }
}

TEST(a_limit_is_of_the_association_or_qos_before_it)
{
    struct section *section = associations_from("bio\n"
                                                "limit jobs 9 1\n"
                                                "qos high\n"
                                                "limit jobs 8 1\n"
                                                "limit tres 7 1 tres=cpu\n");
    const struct associations *all = &section->associations;
    struct err err = { 0 };

    assert_int_equal(all->association[0].n_limits, 1);
    assert_int_equal(all->qos[0].first_limit, 1);
    assert_int_equal(all->qos[0].n_limits, 2);
    section_unref(section);
    section = section_new(KIND_ASSOCIATIONS);
    assert_int_equal(section_read(section, STR("limit jobs 9 1"), &err), -EINVAL);
    section_unref(section);
}
