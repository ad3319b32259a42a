/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of agent/profiles: the latest profile numbers of each step. */
#include "test.h"

#include "agent/profiles.h"
#include "base/buf.h"
#include "base/clock.h"

static const int64_t linger_ns = 120 * NS_PER_SEC;

static bool take(struct profiles *profiles, int64_t now_ns, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The magic line is added. */
static bool take(struct profiles *profiles, int64_t now_ns, const char *format, ...)
{
    char text[4096];
    va_list args;
    int n = snprintf(text, sizeof(text), "sonde-profile 1\n");

    va_start(args, format);
    vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
    va_end(args);
    return profiles_take(profiles, str_of(text), now_ns);
}

/* Adds what it counted. */
static struct agent_use count(const struct profiles *profiles)
{
    struct agent_use use = { 0 };

    profiles_count(profiles, &use);
    return use;
}

static const struct profile_use *only(const struct profiles *profiles)
{
    const struct profile_use *use = profiles_next(profiles, NULL);

    assert_non_null(use);
    assert_null(profiles_next(profiles, use));
    return use;
}

TEST(the_latest_values_of_each_dataset_are_kept)
{
    struct profiles *profiles = profiles_new(NULL);
    const struct profile_use *use;

    assert_true(take(profiles, 0,
                     "step 7 0 c1\nlabel user alice\ndataset task 1\nCPUTime 1\nRSS 10\n"
                     "dataset energy\nslurm_profile_node_power_watts 5 CPU\n"
                     "slurm_profile_node_power_watts 6 DRAM\n"));
    assert_true(take(profiles, 1,
                     "step 7 0 c1\nlabel account physics\ndataset task 0\nCPUTime 3\n"
                     "dataset task 1\nCPUTime 2\n"
                     "dataset energy\nslurm_profile_node_power_watts 7 CPU\n"));
    use = only(profiles);
    assert_int_equal(use->id.job_id, 7);
    assert_string_equal(use->labels.user, "");
    assert_string_equal(use->labels.account, "physics");
    assert_int_equal(use->n_datasets, 3);
    assert_int_equal(use->datasets[0].task, 0);
    assert_true(use->datasets[0].values[0].value == 3);
    assert_int_equal(use->datasets[1].task, 1);
    assert_int_equal(use->datasets[1].n_values, 2);
    assert_true(use->datasets[1].values[0].value == 2);
    assert_string_equal(use->datasets[1].values[1].metric->name, "RSS");
    assert_int_equal(use->datasets[2].kind, PROFILE_OF_ENERGY);
    assert_true(use->datasets[2].values[0].value == 7);
    assert_string_equal(use->datasets[2].values[1].sensor, "DRAM");
    assert_int_equal(count(profiles).profile_values, 5);
    assert_int_equal(count(profiles).profile_messages, 2);
    profiles_free(profiles);
}

TEST(jobs_steps_and_nodes_are_told_apart)
{
    static const char *const ids[] = { "7 0 c1", "7 0 c2", "7 1 c1", "8 0 c1", "7 batch c1" };
    struct profiles *profiles = profiles_new(NULL);
    const struct profile_use *use = NULL;

    for (size_t i = 0; i < COUNT(ids); i++)
        assert_true(take(profiles, 0, "step %s\ndataset task 0\nCPUTime %zu\n", ids[i], i));
    assert_int_equal(count(profiles).profile_steps, COUNT(ids));
    for (size_t i = 0; i < COUNT(ids); i++) {
        use = profiles_next(profiles, use);
        assert_true(use->datasets[0].values[0].value == (double)i);
    }
    assert_null(profiles_next(profiles, use));
    profiles_free(profiles);
}

TEST(a_step_that_has_said_its_end_lingers)
{
    struct profiles *profiles = profiles_new(NULL);
    int64_t end_ns = 50 * NS_PER_SEC;

    assert_false(take(profiles, 0, "step 7 0 c1\nend\n"));
    assert_true(take(profiles, 0, "step 7 0 c1\ndataset task 0\nCPUTime 1\n"));
    assert_true(take(profiles, end_ns, "step 7 0 c1\nend\n"));
    assert_false(take(profiles, end_ns + 1, "step 7 0 c1\nend\n"));
    assert_true(only(profiles)->has_ended);
    assert_false(profiles_expire(profiles, end_ns + 1, linger_ns));
    assert_int_equal(profiles_due(profiles), end_ns + linger_ns);
    assert_false(profiles_expire(profiles, end_ns + linger_ns - 1, linger_ns));
    assert_true(profiles_expire(profiles, end_ns + linger_ns, linger_ns));
    assert_null(profiles_next(profiles, NULL));
    assert_int_equal(count(profiles).profile_steps, 0);
    assert_int_equal(count(profiles).profile_values, 0);
    assert_int_equal(profiles_due(profiles), INT64_MAX);
    profiles_free(profiles);
}

TEST(a_step_that_is_not_heard_of_any_more_goes)
{
    struct profiles *profiles = profiles_new(NULL);
    int64_t last_ns = 3 * NS_PER_SEC, silence_ns = 35 * NS_PER_SEC;

    take(profiles, 0, "step 7 0 c1\nevery 10\ndataset task 0\nCPUTime 1\n");
    take(profiles, last_ns, "step 7 0 c1\nevery 10\ndataset task 0\nCPUTime 1\n");
    take(profiles, 0, "step 8 0 c1\nevery 3600\ndataset task 0\nCPUTime 1\n");
    assert_int_equal(profiles_due(profiles), silence_ns);
    assert_false(profiles_expire(profiles, silence_ns, linger_ns));
    assert_int_equal(profiles_due(profiles), last_ns + silence_ns);
    assert_true(profiles_expire(profiles, last_ns + silence_ns, linger_ns));
    assert_int_equal(only(profiles)->id.job_id, 8);
    assert_int_equal(profiles_due(profiles), 10805 * NS_PER_SEC);
    profiles_free(profiles);
}

TEST(a_step_that_begins_again_has_nothing_of_its_last_run)
{
    struct profiles *profiles = profiles_new(NULL);

    take(profiles, 0, "step 7 batch c1\ndataset task 0\nCPUTime 1\nRSS 9\n");
    take(profiles, 1, "step 7 batch c1\nend\n");
    take(profiles, 2, "step 7 batch c1\ndataset task 0\nCPUTime 2\n");
    assert_false(only(profiles)->has_ended);
    assert_int_equal(only(profiles)->datasets[0].n_values, 1);
    assert_false(profiles_expire(profiles, 30 * NS_PER_SEC, 0));
    profiles_free(profiles);
}

TEST(what_a_killed_slurmstepd_told_goes_at_once)
{
    struct profiles *profiles = profiles_new(NULL);

    take(profiles, 0, "step 7 0 c1\ndataset task 0\nCPUTime 1\n");
    take(profiles, 0, "step 7 0 c2\ndataset task 0\nCPUTime 1\n");
    take(profiles, 0, "step 7 1 c1\ndataset task 0\nCPUTime 1\n");
    profiles_stepd_ended(profiles, "7", "0", "c1", false);
    profiles_stepd_ended(profiles, "8", "0", "c1", false);
    profiles_stepd_ended(profiles, "7[1].server", "0", "c1", false);
    assert_int_equal(count(profiles).profile_steps, 2);
    assert_string_equal(profiles_next(profiles, NULL)->id.node, "c2");
    /* The agent calls the node by its host's name, the plugin by Slurm's. */
    profiles_stepd_ended(profiles, "7", "1", "host", false);
    assert_int_equal(count(profiles).profile_steps, 2);
    profiles_stepd_ended(profiles, "7", "1", "host", true);
    assert_int_equal(count(profiles).profile_steps, 1);
    profiles_free(profiles);
}

TEST(what_an_orderly_slurmstepd_told_last_stays)
{
    struct profiles *profiles = profiles_new(NULL);

    take(profiles, 0, "step 7 0 c1\ndataset task 0\nCPUTime 1\n");
    take(profiles, 0, "step 7 0 c1\nend\n");
    profiles_stepd_ended(profiles, "7", "0", "c1", true);
    assert_true(only(profiles)->has_ended);
    profiles_free(profiles);
}

TEST(what_is_refused_is_counted_by_reason)
{
    struct profiles *profiles = profiles_new(NULL);

    assert_false(profiles_take(profiles, STR("garbage"), 0));
    assert_false(profiles_take(profiles, STR("sonde-profile 9\nstep 7 0 c1\n"), 0));
    assert_false(take(profiles, 0, "step 7 0 c1\nevery 10\n"));
    assert_false(take(profiles, 0, "step 7 0 c1\ndataset task 0\nUnheardOf 1\n"));
    assert_int_equal(count(profiles).profile_messages, 4);
    assert_int_equal(count(profiles).profile_refused[PROFILE_GARBLED], 1);
    assert_int_equal(count(profiles).profile_refused[PROFILE_NEWER], 1);
    assert_int_equal(count(profiles).profile_refused[PROFILE_FULL], 0);
    assert_int_equal(count(profiles).profile_steps, 0);
    profiles_free(profiles);
}

TEST(steps_past_the_ceiling_are_refused_until_some_have_ended)
{
    struct profiles *profiles = profiles_new(NULL);

    for (int i = 1; i <= PROFILES_STEPS; i++)
        assert_true(take(profiles, 0, "step %d 0 c1\ndataset task 0\nCPUTime 1\n", i));
    assert_false(take(profiles, 0, "step 9999 0 c1\ndataset task 0\nCPUTime 1\n"));
    assert_int_equal(count(profiles).profile_refused[PROFILE_FULL], 1);
    assert_true(take(profiles, 0, "step 5 0 c1\ndataset task 0\nCPUTime 2\n"));
    assert_true(take(profiles, 0, "step 5 0 c1\nend\n"));
    assert_true(take(profiles, 0, "step 9999 0 c1\ndataset task 0\nCPUTime 1\n"));
    assert_int_equal(count(profiles).profile_steps, PROFILES_STEPS);
    profiles_free(profiles);
}

TEST(datasets_past_the_ceiling_of_a_step_are_refused)
{
    struct profiles *profiles = profiles_new(NULL);

    for (int i = PROFILES_DATASETS; i > 0; i--)
        assert_true(take(profiles, 0, "step 7 0 c1\ndataset task %d\nCPUTime %d\n", i, i));
    assert_int_equal(only(profiles)->n_datasets, PROFILES_DATASETS);
    take(profiles, 0, "step 7 0 c1\ndataset energy\nPower 1\n");
    assert_int_equal(only(profiles)->n_datasets, PROFILES_DATASETS);
    assert_int_equal(count(profiles).profile_refused[PROFILE_FULL], 1);
    for (size_t i = 0; i < PROFILES_DATASETS; i++)
        assert_true(only(profiles)->datasets[i].values[0].value == (double)(i + 1));
    profiles_free(profiles);
}

TEST(values_past_the_ceiling_are_refused_and_leave_nothing_empty)
{
    struct profiles *profiles = profiles_new(NULL);
    const struct profile_use *use = NULL;

    for (int i = 0; i < PROFILES_VALUES / 2; i++)
        take(profiles, 0, "step %d 0 c1\ndataset task %d\nCPUTime 1\nRSS 2\n",
             1 + i / PROFILES_DATASETS, i % PROFILES_DATASETS);
    assert_int_equal(count(profiles).profile_values, PROFILES_VALUES);
    assert_int_equal(count(profiles).profile_refused[PROFILE_FULL], 0);
    assert_false(take(profiles, 0, "step 100 0 c1\ndataset task 0\nCPUTime 1\n"));
    assert_true(take(profiles, 0, "step 1 0 c1\ndataset energy\nPower 1\n"));
    assert_true(take(profiles, 0, "step 1 0 c1\ndataset task 0\nCPUTime 4\nPages 1\n"));
    assert_int_equal(count(profiles).profile_values, PROFILES_VALUES);
    assert_int_equal(count(profiles).profile_refused[PROFILE_FULL], 3);
    assert_true(profiles_next(profiles, NULL)->datasets[0].values[0].value == 4);
    while ((use = profiles_next(profiles, use)))
        assert_int_equal(use->n_datasets, PROFILES_DATASETS);
    profiles_free(profiles);
}
