/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source/audit reads what Slurm's commands printed on real clusters (22.05 and 24.11), and
 * record/reconcile_file what it has written. */
#include "test.h"

#include "files.h"

#include "base/clock.h"
#include "record/reconcile_file.h"
#include "source/audit.h"

#include <sys/stat.h>

static struct audit *audit;
static struct err err;
static char told[4096];

static void set_up(void)
{
    const struct audit_config config = {
        .source = { .bin_path = str_of(test_dir()), .max_answer = 1 << 20 },
        .timeout_ns = 60 * NS_PER_SEC,
    };

    told[0] = '\0';
    assert_int_equal(audit_new(&config, &audit, &err), 0);
}

static void tear_down(void)
{
    audit = audit_free(audit);
}

FIXTURE(set_up, tear_down)

/* A command that prints this, whatever it is asked. */
static void make_command(const char *name, const char *prints)
{
    char script[4096];
    const char *path = test_path("%s", name);

    snprintf(script, sizeof(script), "#!/bin/sh\ncat <<'END'\n%sEND\n", prints);
    write_file(path, script);
    assert_int_equal(chmod(path, 0755), 0);
}

#define TELL(...) snprintf(told + strlen(told), sizeof(told) - strlen(told), __VA_ARGS__)

static int take_job(void *ctx, const struct audit_job *job)
{
    (void)ctx;
    TELL("%u*%u %.*s %lld-%lld %llu/%llu cpu=%llu gpu=%llu %.*s\n", (unsigned)job->id,
         (unsigned)job->tasks, STR_ARG(job->state), (long long)job->start, (long long)job->end,
         (unsigned long long)job->elapsed, (unsigned long long)job->suspended,
         (unsigned long long)job->cpus, (unsigned long long)job->gpus, STR_ARG(job->user));
    return 0;
}

TEST(jobs_are_read_with_their_tasks_and_without_a_start_if_they_never_ran)
{
    make_command("sacct", "39860001|39860001|1795011579|SUSPENDED|1795011579|Unknown|11|02:01:07|"
                          "billing=2,cpu=2,gres/gpu=1,mem=50M,node=1|physics|alice|cpu\n"
                          "39860004|39860004_[1-6]|1795011579|CANCELLED by "
                          "0|None|1795011598|0|00:00:00||physics|alice|"
                          "cpu\n");
    assert_int_equal(audit_jobs(audit, 0, 100, take_job, NULL, &err), 0);
    /* It is asked twice. */
    assert_string_equal(told, "39860001*1 SUSPENDED 1795011579-0 11/7267 cpu=2 gpu=1 alice\n"
                              "39860004*6 CANCELLED 0-1795011598 0/0 cpu=0 gpu=0 alice\n"
                              "39860001*1 SUSPENDED 1795011579-0 11/7267 cpu=2 gpu=1 alice\n"
                              "39860004*6 CANCELLED 0-1795011598 0/0 cpu=0 gpu=0 alice\n");
}

TEST(a_line_that_is_none_is_an_error)
{
    make_command("sacct", "1|2|3\n");
    assert_int_equal(audit_jobs(audit, 0, 100, take_job, NULL, &err), -EBADMSG);
    make_command("sacct", "x|x|1|FAILED|1|2|3|00:00:00||a|b|c\n");
    assert_int_equal(audit_jobs(audit, 0, 100, take_job, NULL, &err), -EBADMSG);
    remove_all(test_path("sacct"));
    assert_int_equal(audit_jobs(audit, 0, 100, take_job, NULL, &err), -ENOENT);
}

static int take_used(void *ctx, const struct audit_used *used)
{
    (void)ctx;
    TELL("%.*s %.*s %llu; ", STR_ARG(used->user), STR_ARG(audit_tres_names[used->tres]),
         (unsigned long long)used->seconds);
    return 0;
}

TEST(usage_is_that_of_users_and_not_the_sums_of_accounts)
{
    make_command("sreport", "physics||cpu|21588\nphysics|alice|cpu|7222\nphysics|alice|mem|301050\n"
                            "physics|alice|gres/gpu|0\nphysics|carol|billing|6\n");
    assert_int_equal(audit_usage(audit, 0, 3600, take_used, NULL, &err), 0);
    assert_string_equal(told, "alice cpu 7222; alice gres/gpu 0; carol billing 6; ");
}

TEST(an_hour_without_a_row_is_not_rolled_up)
{
    bool is_rolled_up;

    make_command("sreport", "sandbox|144000\n");
    assert_int_equal(audit_is_rolled_up(audit, 0, &is_rolled_up, &err), 0);
    assert_true(is_rolled_up);
    make_command("sreport", "");
    assert_int_equal(audit_is_rolled_up(audit, 0, &is_rolled_up, &err), 0);
    assert_false(is_rolled_up);
}

TEST(settings_of_slurmdbd_tell_what_it_deletes_and_hides)
{
    struct audit_settings settings;

    make_command("sacctmgr", "PrivateData            = none\nPurgeJobAfter          = NONE\n");
    assert_int_equal(audit_settings(audit, &settings, &err), 0);
    assert_true(!settings.purge_seconds && !settings.hides_jobs);
    make_command("sacctmgr",
                 "PrivateData            = jobs,users\nPurgeJobAfter          = 30 days\n");
    assert_int_equal(audit_settings(audit, &settings, &err), 0);
    assert_int_equal(settings.purge_seconds, 30 * 86400);
    assert_true(settings.hides_jobs);
}

TEST(the_result_that_was_written_is_read)
{
    const struct reconcile_summary summary = { 1795021705, { 1, 2, 3 }, { 4, 5, 6 } };
    struct str store = str_of(test_path("store.db"));
    struct reconcile_summary read;

    assert_false(reconcile_file_read(store, STR("blue"), &read));
    assert_int_equal(reconcile_file_write(store, STR("blue"), &summary, &err), 0);
    assert_true(reconcile_file_read(store, STR("blue"), &read));
    assert_memory_equal(&read, &summary, sizeof(read));
    write_file(test_path("store.db.reconcile.blue"), "time 17");
    assert_false(reconcile_file_read(store, STR("blue"), &read));
    remove_all(test_path("store.db.reconcile.blue"));
}
