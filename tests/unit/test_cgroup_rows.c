/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/cgroup_rows: cgroup paths of jobs. */
#include "test.h"

#include "source/cgroup_rows.h"

#include <stdio.h>

static const char *const level_words[] = {
    [CGROUP_ABOVE] = "above",
    [CGROUP_SCOPE] = "scope",
    [CGROUP_JOB] = "job",
    [CGROUP_STEP] = "step",
    [CGROUP_TASK] = "task",
    [CGROUP_BELOW] = "below",
    [CGROUP_STEP_USER] = "step's user",
    [CGROUP_STEPD] = "stepd",
};

static struct cgroup_rows *rows;

/* What a path is: "level job=7 sluid=… step=… task=… node=… uid=…", or "nothing". */
static const char *told(bool is_v2, const char *path)
{
    static char text[500];
    struct cgroup_match match;
    size_t n;

    if (!cgroup_rows_match(rows, is_v2, str_of(path), &match))
        return "nothing";
    assert_int_equal(match.row->is_v2, is_v2);
    n = (size_t)snprintf(text, sizeof(text), "%s", level_words[match.level]);
    const struct {
        const char *name, *value;
    } values[] = {
        { "job", match.job },   { "sluid", match.sluid }, { "step", match.step },
        { "task", match.task }, { "node", match.node },
    };
    for (size_t i = 0; i < COUNT(values); i++)
        if (values[i].value[0])
            n += (size_t)snprintf(text + n, sizeof(text) - n, " %s=%s", values[i].name,
                                  values[i].value);
    if (match.uid != MODEL_UNKNOWN_U32)
        snprintf(text + n, sizeof(text) - n, " uid=%u", match.uid);
    return text;
}

#define assert_v1(path, expected) assert_string_equal(told(false, path), expected)
#define assert_v2(path, expected) assert_string_equal(told(true, path), expected)

TEST(every_directory_of_v1_is_known_by_its_path)
{
    assert_v1("slurm", "scope");
    assert_v1("slurm/uid_1000", "scope uid=1000");
    assert_v1("slurm/uid_0/job_17", "job job=17 uid=0");
    assert_v1("slurm/uid_1000/job_17/step_batch", "step job=17 step=batch uid=1000");
    assert_v1("slurm/uid_1000/job_17/step_0/task_12", "task job=17 step=0 task=12 uid=1000");
    assert_v1("slurm/uid_1000/job_17/step_0/task_special",
              "task job=17 step=0 task=special uid=1000");
    assert_v1("slurm/uid_1000/job_17/step_0/task_0/mine", "below job=17 step=0 task=0 uid=1000");
}

TEST(several_slurmd_of_v1_tell_their_node)
{
    assert_v1("slurm_c1", "scope node=c1");
    assert_v1("slurm_gpu_01/uid_5/job_9/step_extern", "step job=9 step=extern node=gpu_01 uid=5");
    assert_v1("slurm_", "nothing");
    assert_v1("slurmdbd", "nothing");
}

TEST(every_directory_of_v2_is_known_by_its_path)
{
    assert_v2("system.slice", "above");
    assert_v2("system.slice/slurmstepd.scope", "scope");
    assert_v2("system.slice/slurmstepd.scope/job_17", "job job=17");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0", "step job=17 step=0");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0/slurm", "stepd job=17 step=0");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0/slurm/x", "stepd job=17 step=0");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0/user", "step's user job=17 step=0");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0/user/task_3",
              "task job=17 step=0 task=3");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0/user/task_special",
              "task job=17 step=0 task=special");
    assert_v2("system.slice/slurmstepd.scope/job_17/step_0/user/task_3/a/b",
              "below job=17 step=0 task=3");
}

TEST(several_slurmd_of_v2_tell_their_node)
{
    assert_v2("system.slice/n1_slurmstepd.scope", "scope node=n1");
    assert_v2("system.slice/n1_slurmstepd.scope/job_1/step_0/user/task_0",
              "task job=1 step=0 task=0 node=n1");
    assert_v2("system.slice/n1_slurmstepd.scope/sF0NM7G8GT4500/step_batch/slurm",
              "stepd sluid=sF0NM7G8GT4500 step=batch node=n1");
    assert_v2("system.slice/_slurmstepd.scope/job_1", "above");
}

TEST(a_sluid_is_a_job_whose_id_is_not_told)
{
    assert_v2("system.slice/slurmstepd.scope/sEKNKTV3WPV500", "job sluid=sEKNKTV3WPV500");
    assert_v2("system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_1",
              "task sluid=sEKNKTV3WPV500 step=0 task=1");
    assert_v2("system.slice/slurmstepd.scope/sEKNKTV3WPV50I", "nothing"); /* Crockford has no I */
    assert_v2("system.slice/slurmstepd.scope/sEKNKTV3WPV50", "nothing");
    assert_v2("system.slice/slurmstepd.scope/sEKNKTV3WPV5000", "nothing");
    assert_v2("system.slice/slurmstepd.scope/sekNKTV3WPV500", "nothing");
}

TEST(a_scope_is_found_at_any_depth_down_to_eight)
{
    assert_v2("slurmstepd.scope/job_1", "job job=1");
    assert_v2("hpc.slice/hpc-slurm.slice/slurmstepd.scope/job_1/step_0", "step job=1 step=0");
    assert_v2("1/2/3/4/5/6/7/8", "above");
    assert_v2("1/2/3/4/5/6/7/8/slurmstepd.scope/job_1", "job job=1");
    assert_v2("1/2/3/4/5/6/7/8/9", "nothing");
    assert_v2("1/2/3/4/5/6/7/8/9/slurmstepd.scope/job_1", "nothing");
}

TEST(what_else_is_in_a_scope_is_no_job)
{
    assert_v2("system.slice/slurmstepd.scope/slurmd", "nothing");
    assert_v2("system.slice/slurmstepd.scope/system", "nothing");
    assert_v2("system.slice/slurmstepd.scope/system/job_5", "nothing");
    assert_v2("system.slice/slurmstepd.scope/system/slurmstepd.scope/job_5", "nothing");
    assert_v1("slurm/system", "nothing");
    assert_v1("slurm/job_5", "nothing");
    assert_v1("user.slice/slurm/uid_1/job_5", "nothing");
}

TEST(the_layouts_of_the_versions_do_not_mix)
{
    assert_v1("system.slice/slurmstepd.scope/job_1", "nothing");
    assert_v2("slurm/uid_1/job_1", "above");
}

TEST(only_a_number_that_slurm_would_write_is_a_job_id)
{
    assert_v2("slurmstepd.scope/job_4294967295", "job job=4294967295");
    assert_v2("slurmstepd.scope/job_4294967296", "nothing");
    assert_v2("slurmstepd.scope/job_99999999999999999999999", "nothing");
    assert_v2("slurmstepd.scope/job_0", "nothing");
    assert_v2("slurmstepd.scope/job_007", "nothing");
    assert_v2("slurmstepd.scope/job_", "nothing");
    assert_v2("slurmstepd.scope/job_1x", "nothing");
    assert_v2("slurmstepd.scope/job_-1", "nothing");
    assert_v2("slurmstepd.scope/job_+1", "nothing");
    assert_v2("slurmstepd.scope/job_ 1", "nothing");
    assert_v2("slurmstepd.scope/Job_1", "nothing");
    assert_v1("slurm/uid_4294967295/job_1", "nothing"); /* no uid is -1 */
    assert_v1("slurm/uid_01/job_1", "nothing");
}

TEST(all_kinds_of_steps_are_steps)
{
    const char *const steps[] = { "batch", "extern", "interactive", "0", "4294967290", "0+1" };

    for (size_t i = 0; i < COUNT(steps); i++) {
        char path[100], expected[100];

        snprintf(path, sizeof(path), "slurmstepd.scope/job_1/step_%s", steps[i]);
        snprintf(expected, sizeof(expected), "step job=1 step=%s", steps[i]);
        assert_v2(path, expected);
    }
    assert_v2("slurmstepd.scope/job_1/step_", "below job=1");
    assert_v2("slurmstepd.scope/job_1/step_a-name-longer-than-thirty-one-bytes", "below job=1");
}

TEST(nothing_that_a_job_names_looks_like_another_job)
{
    assert_v2("slurmstepd.scope/job_7/step_0/user/task_0/job_99/step_0/user/task_1",
              "below job=7 step=0 task=0");
    assert_v2("slurmstepd.scope/job_7/step_0/user/task_0/system.slice/slurmstepd.scope/job_99",
              "below job=7 step=0 task=0");
    assert_v2("n1_slurmstepd.scope/job_7/step_0/user/task_0/slurmstepd.scope/job_99",
              "below job=7 step=0 task=0 node=n1");
    assert_v2("slurmstepd.scope/job_7/slurmstepd.scope/job_99", "below job=7");
    assert_v2("slurmstepd.scope/job_7/step_0/user/job_99", "below job=7 step=0");
    assert_v2("slurmstepd.scope/job_7/step_0/user/task_x", "below job=7 step=0");
    assert_v2("slurmstepd.scope/job_7/step_0/user/slurm", "below job=7 step=0");
    assert_v2("slurmstepd.scope/job_7/step_0/other/task_0", "below job=7 step=0");
    assert_v2("n1_slurmstepd.scope/slurmstepd.scope/job_99", "nothing");
    assert_v1("slurm/uid_1/job_7/step_0/job_99/step_0", "below job=7 step=0 uid=1");
    assert_v1("slurm/uid_1/job_7/step_0/slurm", "below job=7 step=0 uid=1");
    assert_v1("slurm/uid_1/job_7/step_0/slurm/uid_2/job_99", "below job=7 step=0 uid=1");
    assert_v1("slurm/uid_1/job_7/step_0/task_07", "below job=7 step=0 uid=1");
}

TEST(a_path_that_is_none_leads_nowhere)
{
    const char *const paths[] = {
        "/slurmstepd.scope/job_1",    "slurmstepd.scope//job_1",  "slurmstepd.scope/job_1/",
        "slurmstepd.scope/../job_1",  "./slurmstepd.scope/job_1", "..",
        "slurmstepd.scope/job_1/./x",
    };
    struct cgroup_match match;

    for (size_t i = 0; i < COUNT(paths); i++)
        assert_v2(paths[i], "nothing");
    assert_false(cgroup_rows_match(rows, true, STR("slurmstepd.scope/job_1\0x"), &match));
    assert_v2("", "above");
    assert_v1("", "above");
}

static void add(const char *text)
{
    struct err err = { 0 };

    if (cgroup_rows_add(rows, str_of(text), &err) < 0)
        fail_msg("%s", err.text);
}

TEST(another_scheduler_is_one_row_of_the_configuration)
{
    struct cgroup_match match;

    assert_v2("pbs.slice/jobs/4711.server.scope", "above");
    add("pbs=v2:pbs.slice/jobs/{job}.scope");
    assert_v2("pbs.slice", "scope");
    assert_v2("pbs.slice/jobs", "scope");
    assert_v2("pbs.slice/jobs/4711.server.scope", "job job=4711.server");
    assert_v2("pbs.slice/jobs/4711.server.scope/step_0/user/task_0", "below job=4711.server");
    assert_v2("pbs.slice/jobs/4711.server.service", "above"); /* a scope may be below it */
    assert_v2("system.slice/slurmstepd.scope/job_17", "job job=17");
    assert_v1("pbs.slice", "nothing");
    assert_true(cgroup_rows_match(rows, true, STR("pbs.slice/jobs/a.scope"), &match));
    assert_string_equal(match.row->name, "pbs");
    assert_false(match.row->has_stepd);
}

TEST(another_scheduler_may_have_steps_and_tasks)
{
    add("mine=v1:farm/{node}.d/u{uid}/{job}/part-{step}/ranks/{task}");
    assert_v1("farm/a.d/u17", "scope node=a uid=17");
    assert_v1("farm/a.d/u17/x y", "job job=x y node=a uid=17");
    assert_v1("farm/a.d/u17/x y/part-one", "step job=x y step=one node=a uid=17");
    assert_v1("farm/a.d/u17/x y/part-one/ranks", "step's user job=x y step=one node=a uid=17");
    assert_v1("farm/a.d/u17/x y/part-one/ranks/0x1",
              "task job=x y step=one task=0x1 node=a uid=17");
    assert_v1("farm/a.d/u17/x y/part-one/ranks/0x1/farm", "below job=x y step=one task=0x1 node=a "
                                                          "uid=17");
    assert_v1("farm/a.d/ux/j", "nothing");
}

TEST(a_star_stands_for_anything)
{
    add("lsf=v1:lsf/*/job.{job}.*");
    assert_v1("lsf/cluster/job.123.1.1623456", "job job=123");
    assert_v1("lsf/cluster/job.123", "nothing");
    assert_v1("lsf/cluster/other", "nothing");
    add("deep=v1:**/x_{job}.scope");
    assert_v1("a/b/x_1.scope", "job job=1");
    assert_v1("a/b/x_.scope", "above");
}

TEST(a_job_id_that_does_not_fit_is_refused_rather_than_cut)
{
    add("other=v1:q/{job}");
    assert_v1("q/1234567890123456789012345678901", "job job=1234567890123456789012345678901");
    assert_v1("q/12345678901234567890123456789012", "nothing");
}

TEST(the_earlier_row_has_what_two_claim)
{
    add("greedy=v2:system.slice/{job}.scope");
    add("late=v1:slurm/{job}");
    assert_v2("system.slice/slurmstepd.scope", "scope");
    assert_v2("system.slice/slurmstepd.scope/job_17", "job job=17");
    assert_v2("system.slice/other.scope", "job job=other");
    assert_v1("slurm/uid_1000", "scope uid=1000");
    assert_v1("slurm/uid_1000/job_2", "job job=2 uid=1000");
    assert_v1("slurm/x", "job job=x");
}

TEST(a_bad_template_is_refused_with_what_is_wrong_with_it)
{
    const struct {
        const char *text, *reason;
    } bad[] = {
        { "", "NAME=v1:PATH" },
        { "pbs", "NAME=v1:PATH" },
        { "pbs=pbs/{job}", "NAME=v1:PATH" },
        { "pbs=v3:pbs/{job}", "NAME=v1:PATH" },
        { "=v1:pbs/{job}", "NAME=v1:PATH" },
        { "slurm v1=v1:pbs/{job}", "another of that name" },
        { "pbs=v1:", "empty name" },
        { "pbs=v1:/pbs/{job}", "leave out the first slash" },
        { "pbs=v1:pbs//{job}", "empty name" },
        { "pbs=v1:pbs/{job}/", "empty name" },
        { "pbs=v1:pbs/../{job}", "\"..\"" },
        { "pbs=v1:./{job}", "\".\"" },
        { "pbs=v1:pbs/jobs", "has no {job}" },
        { "pbs=v2:pbs/{sluid}", "{sluid} is not known" },
        { "pbs=v1:{job}/{job}", "{job} stands there twice" },
        { "pbs=v1:{job}/{step}/{step}", "{step} stands there twice" },
        { "pbs=v1:pbs/{jib}", "{jib} is not known: there are {job}" },
        { "pbs=v1:pbs/{}", "{} is not known" },
        { "pbs=v1:pbs/{job", "a { has no }" },
        { "pbs=v1:pbs/{job/}", "a { has no }" },
        { "pbs=v1:{uid}{job}", "need text between" },
        { "pbs=v1:{job}**", "need text between" },
        { "pbs=v1:{uid}_{node}_{job}", "at most 2" },
        { "pbs=v1:{job}/{uid}", "{uid} must not stand below {job}" },
        { "pbs=v1:{job}/{node}", "{node} must not stand below {job}" },
        { "pbs=v1:{step}/{job}", "{step} must stand in a directory of its own, below {job}" },
        { "pbs=v1:{job}.{step}", "{step} must stand in a directory of its own, below {job}" },
        { "pbs=v1:{task}/{job}", "{task} must stand in a directory of its own, below {job}" },
        { "pbs=v1:{job}/{task}/{step}",
          "{task} must stand in a directory of its own, below {step" },
        { "pbs=v1:a/**/{job}", "** may only be the first" },
        { "pbs=v1:**", "** may only be the first" },
        { "pbs=v1:**/{job}", "a name must follow" },
        { "pbs=v1:a/b/c/d/e/f/g/h/i/j/k/l/{job}", "more than 12 directories" },
        { "pbs=v1:a\nb/{job}", "control character" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = { 0 };

        assert_int_equal(cgroup_rows_add(rows, str_of(bad[i].text), &err), -EINVAL);
        assert_contains(err.text, bad[i].reason);
        assert_contains(err.text, "the layout of cgroups \"");
    }
    assert_v1("pbs/1", "nothing");
}

TEST(rows_without_end_are_refused)
{
    struct err err = { 0 };
    int code = 0, n = 0;

    while (code == 0 && n < 1000) {
        char text[100];

        snprintf(text, sizeof(text), "row%d=v1:r%d/{job}", n, n);
        code = cgroup_rows_add(rows, str_of(text), &err);
        n += code == 0;
    }
    assert_int_equal(code, -EINVAL);
    assert_in_range(n, 8, 100);
    assert_v1("r0/x", "job job=x");
}

static void begin(void)
{
    rows = cgroup_rows_new();
}

static void end(void)
{
    rows = cgroup_rows_free(rows);
}

FIXTURE(begin, end)
