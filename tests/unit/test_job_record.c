/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/record: recorded facts of a job. */
#include "model/record.h"

#include "test.h"

#include <math.h>

TEST(a_cleared_record_knows_nothing)
{
    struct job_record record;

    job_record_clear(&record);
    assert_true(record.restarts == MODEL_UNKNOWN_U32 && record.cpus == MODEL_UNKNOWN_U32);
    assert_true(record.energy_joules == MODEL_UNKNOWN_U64 && isnan(record.cpu_seconds));
    assert_int_equal(record.state.base, JOB_BASE_UNKNOWN);
    assert_int_equal(record.tasks, 1);
    assert_false(job_record_has_ended(&record));
}

static bool has_ended(const char *state, enum record_origin origin, int64_t end_time)
{
    struct job_record record;

    job_record_clear(&record);
    assert_true(job_state_parse(str_of(state), &record.state));
    record.origin = origin;
    record.end_time = end_time;
    return job_record_has_ended(&record);
}

TEST(an_end_is_told_from_a_pause)
{
    assert_false(has_ended("PENDING", RECORD_SEEN, 0));
    assert_false(has_ended("RUNNING", RECORD_SEEN, 99));
    assert_false(has_ended("SUSPENDED", RECORD_ACCOUNTED, 0));
    assert_true(has_ended("COMPLETED", RECORD_SEEN, 99));
    assert_true(has_ended("OUT_OF_MEMORY", RECORD_ACCOUNTED, 99));
    assert_true(has_ended("COMPLETED+COMPLETING", RECORD_SEEN, 99));
    assert_false(has_ended("COMPLETING", RECORD_SEEN, 99));
    assert_false(has_ended("CANCELLED+REQUEUED", RECORD_SEEN, 99));
    assert_false(has_ended("REQUEUED", RECORD_SEEN, 99));
    assert_true(has_ended("REQUEUED", RECORD_ACCOUNTED, 99));
    assert_true(has_ended("RESIZING", RECORD_ACCOUNTED, 99));
    assert_false(has_ended("REQUEUED", RECORD_ACCOUNTED, 0));
}

static void check_types(const char *tres, const char *expected)
{
    char types[40];

    assert_str(((struct str){ types, tres_gpu_types(str_of(tres), types, sizeof(types)) }),
               expected);
}

TEST(types_of_gpus_are_told_in_order)
{
    check_types("", "");
    check_types("cpu=4,mem=1G", "");
    check_types("gres/gpu=4", "");
    check_types("cpu=4,gres/gpu:a100=2,gres/gpu=2", "a100");
    check_types("gres/gpu:v100=1,gres/gpu:a100=2,gres/gpu=3", "a100=2,v100=1");
    check_types("gres/gpu:v100=1,gres/gpu:v100=2", "v100");
    check_types("gres/gpu:a100=0", "");
    check_types("gres/shard:a100=4", "");
    check_types("gpu:a100:2(IDX:0-1)", "a100");
    check_types("gres/gpu:a_name_that_does_not_fit_into_it=1", "");
}

TEST(more_types_than_a_job_can_have_are_none)
{
    char tres[2000], types[1000];
    size_t n = 0;

    for (unsigned i = 0; i < 60; i++)
        n += (size_t)snprintf(tres + n, sizeof(tres) - n, "gres/gpu:t%u=1,", i);
    assert_int_equal(tres_gpu_types(str_of(tres), types, sizeof(types)), 0);
}
