/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of mail/spool: mails on disk. */
#include "test.h"

#include "files.h"
#include "mail/spool.h"
#include "model/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static const char *const of_a_job[] = {
    "SLURM_CLUSTER_NAME=beluga", "SLURM_JOB_ID=4711",          "SLURM_JOB_NAME=my job",
    "SLURM_JOB_USER=anna",       "SLURM_JOB_ACCOUNT=(null)",   "SLURM_JOB_PARTITION=cpu",
    "SLURM_JOB_STATE=FAILED",    "SLURM_JOB_MAIL_TYPE=Failed", "SLURM_JOB_EXIT_CODE=768",
    "SLURM_JOB_EXIT_CODE2=3:0",  "SLURM_JOB_NODELIST=c[1-2]",  "SLURM_JOB_RUN_TIME=00:01:20",
    "SLURM_ARRAY_JOB_ID=4700",   "SLURM_ARRAY_TASK_ID=7",      NULL,
};

static char *const *const ended = (char *const *)(uintptr_t)of_a_job;

/* The path of the only file in test_dir(). */
static const char *only_file(void)
{
    DIR *listing = opendir(test_dir());
    struct dirent *entry;
    const char *path = NULL;
    size_t n_files = 0;

    while ((entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            path = test_path("%s", entry->d_name);
            n_files++;
        }
    closedir(listing);
    assert_int_equal(n_files, 1);
    return path;
}

TEST(facts_come_from_the_environment_and_never_from_the_subject)
{
    struct mail_entry entry;

    mail_entry_of_environment(ended, "Slurm Job_id=1 Name=Job_id=99 Ended, COMPLETED", "anna@x.org",
                              1000, &entry);
    assert_int_equal(entry.job_id, 4711);
    assert_int_equal(entry.array_job_id, 4700);
    assert_int_equal(entry.array_task_id, 7);
    assert_int_equal(entry.het_job_id, MODEL_UNKNOWN_U32);
    assert_str(entry.event, "Failed");
    assert_str(entry.state, "FAILED");
    assert_str(entry.exit_code, "3:0");
    assert_str(entry.name, "my job");
    assert_str(entry.cluster, "beluga");
    assert_str(entry.run_time, "00:01:20");
    assert_str(entry.account, "");
    assert_str(entry.to, "anna@x.org");
    assert_false(entry.is_array);
    assert_int_equal(entry.written_time, 1000);
}

TEST(the_mail_of_a_whole_array_has_no_task_and_no_state)
{
    struct mail_entry entry;

    mail_entry_of_environment(
        ended, "Slurm Array Summary Job_id=4700_* (4711) Name=my job Failed, Mixed, MaxSignal [9]",
        "anna", 1000, &entry);
    assert_true(entry.is_array);
    assert_int_equal(entry.array_job_id, 4700);
    assert_int_equal(entry.array_task_id, MODEL_UNKNOWN_U32);
    assert_str(entry.state, "");
    assert_str(entry.exit_code, "");
    mail_entry_of_environment(ended, "Slurm Job_id=1 Name=Slurm Array Summary ", "anna", 0, &entry);
    assert_false(entry.is_array);
}

TEST(of_slurm_20_11_there_is_a_subject_and_nothing_else)
{
    static const char *const env[] = { "SLURM_CLUSTER_NAME=old", NULL };
    struct mail_entry entry;

    mail_entry_of_environment((char *const *)(uintptr_t)env, "Slurm Job_id=1 Name=x Began", "bob",
                              5, &entry);
    assert_int_equal(entry.job_id, MODEL_UNKNOWN_U32);
    assert_str(entry.event, "");
    assert_str(entry.cluster, "old");
    assert_str(entry.subject, "Slurm Job_id=1 Name=x Began");
}

TEST(an_entry_comes_back_as_it_was)
{
    struct mail_entry entry, back;
    struct arena arena = { 0 };
    struct err err;

    mail_entry_of_environment(ended, "s", "anna@x.org", 1234567890, &entry);
    entry.name = STR("</script><h1>\r\nBcc: x \"q\" \xff \xc3\xa9");
    assert_int_equal(mail_spool_add(test_dir(), &entry, &err), 0);
    assert_int_equal(strlen(strrchr(only_file(), '/') + 1),
                     MAIL_ENTRY_ID + strlen(MAIL_ENTRY_SUFFIX));
    assert_int_equal(mail_entry_read(read_file(only_file()), &arena, &back, &err), 0);
    assert_str(back.name, "</script><h1>\r\nBcc: x \"q\" \xef\xbf\xbd \xc3\xa9");
    assert_str(back.to, "anna@x.org");
    assert_int_equal(back.job_id, 4711);
    assert_int_equal(back.array_task_id, 7);
    assert_int_equal(back.het_offset, MODEL_UNKNOWN_U32);
    assert_int_equal(back.written_time, 1234567890);
    assert_str(back.nodes, "c[1-2]");
    arena_clear(&arena);
}

TEST(however_long_and_odd_the_texts_an_entry_fits_its_ceiling)
{
    char *long_name = heap_array(1 << 20, 1);
    struct mail_entry entry, back;
    struct arena arena = { 0 };
    struct err err;

    memset(long_name, '\1', 1 << 20);
    long_name[(1 << 20) - 1] = '\0';
    mail_entry_of_environment(ended, long_name, "anna", 1, &entry);
    entry.name = entry.event = entry.cluster = entry.user = entry.account = entry.partition =
        entry.state = entry.exit_code = entry.nodes = entry.run_time = entry.queued_time =
            str_of(long_name);
    assert_int_equal(mail_spool_add(test_dir(), &entry, &err), 0);
    assert_true(read_file(only_file()).n < MAIL_ENTRY_MAX);
    assert_int_equal(mail_entry_read(read_file(only_file()), &arena, &back, &err), 0);
    assert_int_equal(back.name.n, 256);
    arena_clear(&arena);
    free(long_name);
}

TEST(texts_are_cut_between_characters)
{
    char job[257];
    struct mail_entry entry, back;
    struct arena arena = { 0 };
    struct err err;

    memset(job, 'x', sizeof(job));
    memcpy(job + 254, "\xe2\x82\xac", 3);
    mail_entry_of_environment(ended, "s", "anna", 1, &entry);
    entry.name = (struct str){ job, sizeof(job) };
    assert_int_equal(mail_spool_add(test_dir(), &entry, &err), 0);
    assert_int_equal(mail_entry_read(read_file(only_file()), &arena, &back, &err), 0);
    assert_int_equal(back.name.n, 254);
    arena_clear(&arena);
}

TEST(an_address_is_never_cut)
{
    char to[MAIL_ADDRESS_MAX + 2];
    struct mail_entry entry;
    struct err err;

    memset(to, 'a', sizeof(to) - 1);
    to[sizeof(to) - 1] = '\0';
    mail_entry_of_environment(ended, "s", to, 1, &entry);
    assert_int_equal(mail_spool_add(test_dir(), &entry, &err), -EINVAL);
    assert_contains(err.text, "too long");
    entry.to = STR("");
    assert_int_equal(mail_spool_add(test_dir(), &entry, &err), -EINVAL);
}

TEST(a_missing_directory_is_told_with_how_to_make_it)
{
    struct mail_entry entry;
    struct err err;

    mail_entry_of_environment(ended, "s", "anna", 1, &entry);
    assert_int_equal(mail_spool_add("/tmp/no-such-spool-of-mail", &entry, &err), -ENOENT);
    assert_contains(err.text, "/tmp/no-such-spool-of-mail");
    assert_contains(err.text, "install -d");
}

TEST(the_group_may_read_an_entry_whatever_the_umask)
{
    struct mail_entry entry;
    struct stat status;
    struct err err;
    mode_t before = umask(0077);

    mail_entry_of_environment(ended, "s", "anna", 1, &entry);
    assert_int_equal(mail_spool_add(test_dir(), &entry, &err), 0);
    umask(before);
    assert_int_equal(stat(only_file(), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
}

TEST(what_is_no_entry_is_refused_with_a_sentence)
{
    static const char *const wrong[] = {
        "",
        "nonsense",
        "[]",
        "\"to\"",
        "{\"to\":\"a\"",
        "{\"to\":\"a\"} x",
        "{\"to\":\"a\"}{\"to\":\"b\"}",
        "{\"to\":1}",
        "{\"to\":\"\"}",
        "{\"job_id\":1}",
        "{\"to\":\"a\",\"job_id\":\"1\"}",
        "{\"to\":\"a\",\"job_id\":4294967295}",
        "{\"to\":\"a\",\"job_id\":-1}",
        "{\"to\":\"a\",\"written\":-1}",
        "{\"to\":\"a\",\"written\":9223372036854775807}",
        "{\"to\":\"a\",\"is_array\":{\"to\":\"b\"}}",
    };
    struct arena arena = { 0 };
    struct mail_entry entry;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct err err = { 0 };

        if (mail_entry_read(str_of(wrong[i]), &arena, &entry, &err) == 0)
            fail_msg("taken: %s", wrong[i]);
        assert_true(err.code && err.text[0]);
    }
    arena_clear(&arena);
}

TEST(keys_of_a_later_release_are_passed_over)
{
    struct arena arena = { 0 };
    struct mail_entry entry;
    struct err err;

    assert_int_equal(mail_entry_read(STR("{\"new\":{\"to\":[1,{}]},\"to\":\"a\",\"x\":null}"),
                                     &arena, &entry, &err),
                     0);
    assert_str(entry.to, "a");
    arena_clear(&arena);
}

TEST(names_are_in_the_order_of_their_time)
{
    char first[MAIL_ENTRY_ID + 1], second[MAIL_ENTRY_ID + 1];

    mail_entry_new_id(first);
    do
        mail_entry_new_id(second);
    while (strncmp(first, second, 16) == 0);
    assert_true(strcmp(first, second) < 0);
    assert_true(strcmp(first + 17, second + 17) != 0);
}
