/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A command that stands in for sendmail keeps what it gets in files, and exits as it is told. */
#include "test.h"

#include "base/thread.h"
#include "files.h"
#include "mail/drain.h"
#include "manual_clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

enum { START = 1790812800, MOST_MAIL = 1 << 20 };

static const char sendmail_script[] = "#!/bin/sh\n"
                                      "dir=${0%/*}\n"
                                      "for to; do :; done\n"
                                      "echo \"$to\" >>\"$dir/tries\"\n"
                                      "for rule in all \"$to\"; do\n"
                                      "    [ -f \"$dir/exit-$rule\" ] || continue\n"
                                      "    echo 'as it was told' >&2\n"
                                      "    read -r status <\"$dir/exit-$rule\"\n"
                                      "    exit \"$status\"\n"
                                      "done\n"
                                      "n=$(ls \"$dir/box\" | wc -l)\n"
                                      "exec /bin/cat >\"$dir/box/$n\"\n";

struct fixture {
    const char *spool;
    char url[120];
    struct manual_clock clock;
    struct post_settings post;
    struct drain_config config;
    struct drain_result result;
    struct log *log;
    int log_fd;
    atomic_bool stopped, has_ended;
    unsigned n_asked, n_unknown; /* how often accounting is asked, and does not know */
    int report_code;             /* once it does */
    bool was_last;
    void (*meanwhile)(void); /* while a report is made */
    struct err err;
};

static struct fixture *fixture;

static int report(void *ctx, const struct mail_entry *entry, bool is_last, struct arena *arena,
                  struct drain_report *ret, struct err *err)
{
    (void)ctx;
    (void)entry;
    fixture->was_last = is_last;
    if (fixture->meanwhile)
        fixture->meanwhile();
    if (fixture->n_asked++ < fixture->n_unknown)
        return err_set(err, EAGAIN, "not known yet");
    if (fixture->report_code)
        return err_set(err, -fixture->report_code, "no report today");
    *ret = (struct drain_report){ .text = arena_str(arena, STR("the report\n")),
                                  .html = STR("<p>the report</p>\n"),
                                  .pdf = STR("%PDF"),
                                  .subject = STR("the subject") };
    return 0;
}

static void put_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *in(const char *name)
{
    return test_path("%s", name);
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    fixture->spool = test_path("spool");
    snprintf(fixture->url, sizeof(fixture->url), "sendmail:%s", test_path("sendmail"));
    assert_int_equal(mkdir(fixture->spool, 0770), 0);
    assert_int_equal(mkdir(in("box"), 0700), 0);
    put_file(in("sendmail"), sendmail_script, 0700);
    fixture->log_fd = open(in("log"), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
    manual_clock_init(&fixture->clock, START * NS_PER_SEC, 1000 * NS_PER_SEC);
    fixture->log = log_new(fixture->log_fd, LOG_INFO, &fixture->clock.clock);
    fixture->post = (struct post_settings){ .url = str_of(fixture->url) };
    fixture->config = (struct drain_config){
        .directory = fixture->spool,
        .post = &fixture->post,
        .from = STR("sonde@x.org"),
        .domain = STR("x.org"),
        .wait_ns = 120 * NS_PER_SEC,
        .give_up_ns = 86400 * NS_PER_SEC,
        .mails_per_hour = 20,
        .clock = &fixture->clock.clock,
        .log = fixture->log,
        .stopped = &fixture->stopped,
        .report = report,
        .ctx = fixture,
    };
}

static void teardown(void)
{
    log_free(fixture->log);
    close(fixture->log_fd);
    manual_clock_destroy(&fixture->clock);
    free(fixture);
}

FIXTURE(setup, teardown)

/* --- what the tests say and look at --- */

static struct mail_entry entry_of(const char *event, uint32_t id)
{
    struct mail_entry entry;

    mail_entry_of_environment((char *[]){ NULL }, "Slurm Job_id=1", "anna",
                              clock_wall(&fixture->clock.clock) / NS_PER_SEC, &entry);
    entry.job_id = id;
    entry.event = str_of(event);
    entry.name = STR("my job");
    entry.cluster = STR("beluga");
    entry.state = STR("COMPLETED");
    entry.run_time = STR("00:00:05");
    return entry;
}

static void add(const struct mail_entry *entry)
{
    if (mail_spool_add(fixture->spool, entry, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void add_to(const char *to, const char *event, uint32_t id)
{
    struct mail_entry entry = entry_of(event, id);

    entry.to = str_of(to);
    add(&entry);
}

static void drain(void)
{
    if (drain_run(&fixture->config, false, &fixture->result, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void pass(int64_t seconds)
{
    manual_clock_advance(&fixture->clock, seconds * NS_PER_SEC);
}

static size_t count_in(const char *path)
{
    DIR *listing = opendir(path);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(listing);
    while ((entry = readdir(listing)))
        n += entry->d_name[0] != '.';
    closedir(listing);
    return n;
}

static size_t n_mails(void)
{
    return count_in(in("box"));
}

static struct buf read_path(const char *path)
{
    struct buf text;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    buf_init(&text, MOST_MAIL);
    while (fd >= 0 && (n = read(fd, buf_room(&text, 65536), 65536)) > 0)
        text.n += (size_t)n;
    buf_room(&text, 1);
    buf_end(&text);
    if (fd >= 0)
        close(fd);
    return text;
}

static void assert_in_file(const char *name, const char *words)
{
    struct buf text = read_path(in(name));

    assert_contains(text.p, words);
    buf_free(&text);
}

static size_t n_tries(void)
{
    struct buf text = read_path(in("tries"));
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    buf_free(&text);
    return n;
}

static void tell_sendmail(const char *to, const char *status)
{
    char name[100];

    snprintf(name, sizeof(name), "exit-%s", to);
    if (status)
        put_file(in(name), status, 0600);
    else
        unlink(in(name));
}

/* --- the tests --- */

TEST(the_begin_of_a_job_is_told_at_once_and_in_short)
{
    add_to("anna", "Began", 4711);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_int_equal(fixture->result.left, 0);
    assert_int_equal(fixture->n_asked, 0);
    assert_in_file("box/0", "To: anna@x.org\n");
    assert_in_file("box/0", "Subject: Job 4711 (my job) on beluga began\n");
    assert_in_file("box/0", "\n  Cluster     beluga\n");
    drain();
    assert_int_equal(n_mails(), 1);
}

TEST(the_end_of_a_job_brings_the_report_with_its_file)
{
    add_to("bob@y.org", "Ended", 4711);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_in_file("box/0", "To: bob@y.org\n");
    assert_in_file("box/0", "Subject: the subject\n");
    assert_in_file("box/0", "\nthe report\n");
    assert_in_file("box/0", "<p>the report</p>");
    assert_in_file("box/0", "filename=\"job-4711.pdf\"");
}

TEST(a_report_waits_until_accounting_knows)
{
    fixture->n_unknown = 1;
    add_to("anna", "Failed", 4711);
    drain();
    assert_int_equal(fixture->result.left, 1);
    assert_int_equal(fixture->n_asked, 1);
    assert_false(fixture->was_last);
    pass(10);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_in_file("box/0", "\nthe report\n");
}

TEST(after_the_wait_it_takes_what_there_is)
{
    fixture->n_unknown = 1;
    add_to("anna", "Ended", 4711);
    drain();
    pass(121);
    drain();
    assert_true(fixture->was_last);
    assert_in_file("box/0", "\nthe report\n");
}

TEST(without_a_report_the_short_mail_goes_after_the_wait)
{
    fixture->report_code = -EIO;
    add_to("anna", "Ended", 4711);
    drain();
    assert_int_equal(fixture->result.left, 1);
    pass(121);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_in_file("box/0", "Subject: Job 4711 (my job) on beluga ended\n");
    assert_in_file("log", "no report today");
}

TEST(of_slurm_20_11_its_own_subject_is_sent)
{
    struct mail_entry entry;

    mail_entry_of_environment((char *[]){ NULL }, "Slurm Job_id=7 Name=x Ended", "anna", START,
                              &entry);
    add(&entry);
    drain();
    assert_int_equal(fixture->n_asked, 0);
    assert_in_file("box/0", "Subject: Slurm Job_id=7 Name=x Ended\n");
}

TEST(no_name_of_a_job_adds_a_header)
{
    struct mail_entry entry = entry_of("Began", 1);
    struct buf mail;

    entry.name = STR("x\r\nBcc: y@x.org\r\n\r\n</script><h1>");
    add(&entry);
    drain();
    mail = read_path(in("box/0"));
    assert_null(strstr(mail.p, "\nBcc"));
    assert_null(strstr(mail.p, "\r"));
    buf_free(&mail);
}

TEST(a_server_that_is_down_is_tried_once_for_all)
{
    for (uint32_t i = 0; i < 10; i++)
        add_to("anna", "Began", i);
    tell_sendmail("all", "78");
    drain();
    assert_int_equal(n_tries(), 1);
    assert_int_equal(fixture->result.left, 10);
    assert_in_file("log", "as it was told");
    tell_sendmail("all", NULL);
    drain();
    assert_int_equal(fixture->result.sent, 10);
    assert_int_equal(n_mails(), 10);
}

TEST(who_is_refused_for_now_is_tried_later_and_others_are_not_kept_waiting)
{
    add_to("anna", "Began", 1);
    add_to("anna", "Began", 2);
    add_to("bob", "Began", 3);
    tell_sendmail("anna@x.org", "75");
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_int_equal(n_tries(), 2);
    tell_sendmail("anna@x.org", NULL);
    pass(61);
    drain();
    assert_int_equal(fixture->result.left, 0);
    assert_int_equal(n_mails(), 3);
}

TEST(a_restart_does_not_forget_when_to_try_again)
{
    add_to("anna", "Began", 1);
    tell_sendmail("anna@x.org", "75");
    drain();
    tell_sendmail("anna@x.org", NULL);
    pass(30);
    drain();
    assert_int_equal(fixture->result.left, 1);
    assert_int_equal(n_tries(), 1);
    pass(31);
    drain();
    assert_int_equal(fixture->result.sent, 1);
}

TEST(pauses_grow_and_a_day_is_the_end)
{
    add_to("anna", "Began", 1);
    tell_sendmail("anna@x.org", "75");
    for (int minute = 0; minute < 26 * 60; minute++) {
        drain();
        pass(60);
        if (fixture->result.given_up)
            break;
    }
    assert_int_equal(fixture->result.given_up, 1);
    assert_true(clock_wall(&fixture->clock.clock) / NS_PER_SEC - START >= 86400);
    assert_in_range(n_tries(), 20, 45);
    assert_int_equal(count_in(in("spool/given-up")), 1);
    assert_in_file("log", "given up");
}

TEST(what_is_refused_for_good_is_given_up_at_once)
{
    add_to("nobody", "Began", 1);
    add_to("anna", "Began", 2);
    tell_sendmail("nobody@x.org", "67");
    drain();
    assert_int_equal(fixture->result.given_up, 1);
    assert_int_equal(fixture->result.sent, 1);
    assert_int_equal(count_in(in("spool/given-up")), 1);
}

TEST(an_outage_of_more_than_a_day_gives_up_what_is_old_and_keeps_the_rest)
{
    for (uint32_t i = 0; i < 5; i++)
        add_to("anna", "Began", i);
    tell_sendmail("all", "78");
    drain();
    pass(86400 - 3600);
    add_to("anna", "Began", 100);
    pass(3601);
    drain();
    assert_int_equal(fixture->result.given_up, 5);
    assert_int_equal(fixture->result.left, 1);
    tell_sendmail("all", NULL);
    drain();
    assert_in_file("box/0", "Job 100 ");
}

TEST(what_waited_for_days_because_nobody_sent_is_still_sent)
{
    add_to("anna", "Began", 1);
    pass(3 * 86400);
    tell_sendmail("all", "78");
    drain();
    assert_int_equal(fixture->result.left, 1);
    tell_sendmail("all", NULL);
    drain();
    assert_int_equal(fixture->result.sent, 1);
}

TEST(a_mail_at_which_the_server_fails_keeps_no_other_waiting)
{
    add_to("anna", "Began", 1);
    add_to("bob", "Began", 2);
    add_to("carl", "Began", 3);
    tell_sendmail("anna@x.org", "78");
    drain();
    assert_int_equal(fixture->result.left, 3);
    drain();
    assert_int_equal(fixture->result.sent, 2);
    assert_int_equal(fixture->result.left, 1);
    assert_int_equal(n_tries(), 4);
    /* and it is given up like one that is refused */
    for (uint32_t hour = 0; hour < 30 && !fixture->result.given_up; hour++) {
        pass(3600);
        add_to("bob", "Began", 100 + hour);
        drain();
        drain();
    }
    assert_int_equal(fixture->result.given_up, 1);
}

TEST(one_mail_that_is_refused_for_long_stays_a_mail)
{
    add_to("anna", "Ended", 1);
    tell_sendmail("anna@x.org", "75");
    for (int minute = 0; minute < 45; minute++) {
        drain();
        pass(60);
    }
    tell_sendmail("anna@x.org", NULL);
    pass(3600);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_in_file("box/0", "\nthe report\n");
}

TEST(a_mail_of_a_clock_that_was_ahead_does_not_wait_for_it)
{
    struct mail_entry entry = entry_of("Ended", 4711);

    fixture->report_code = -EIO;
    entry.written_time += 10 * 86400;
    add(&entry);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_in_file("box/0", "Subject: Job 4711 (my job) on beluga ended\n");
}

TEST(a_storm_becomes_one_summary_in_which_nobody_is_forgotten)
{
    fixture->config.mails_per_hour = 3;
    for (uint32_t i = 0; i < 300; i++) {
        struct mail_entry entry = entry_of(i % 3 ? "Ended" : "Failed", 1000 + i);

        entry.state = i % 3 ? STR("COMPLETED") : STR("FAILED");
        add(&entry);
    }
    add_to("bob", "Ended", 1);
    drain();
    assert_int_equal(fixture->result.sent, 4);
    assert_int_equal(fixture->result.left, 297);
    drain(); /* a restart does not begin to count anew */
    assert_int_equal(n_mails(), 4);
    pass(15 * 60);
    drain();
    assert_int_equal(fixture->result.summarised, 297);
    assert_int_equal(fixture->result.left, 0);
    assert_int_equal(n_mails(), 5);
    assert_in_file("box/4", "Subject: 297 mails about jobs on beluga: 99 FAILED, 198 COMPLETED\n");
    assert_in_file("box/4", "     198  COMPLETED\n");
    assert_in_file("box/4", "      99  FAILED\n");
    assert_in_file("box/4", "\n1003            my job ");
    assert_in_file("box/4", "\nand 97 more\n");
    assert_int_equal(count_in(fixture->spool), 4); /* bad, given-up, lock, sent */
}

TEST(summaries_are_rare_and_single_mails_come_back_when_the_hour_is_over)
{
    size_t most = 0;

    fixture->config.mails_per_hour = 2;
    for (uint32_t minute = 0; minute < 120; minute++) {
        add_to("anna", "Began", minute);
        drain();
        pass(60);
        if (minute == 59)
            most = n_mails();
    }
    assert_in_range(most, 2 + 2, 2 + 4);
    assert_in_range(n_mails(), most + 2, 2 * (2 + 4));
}

static void spoil_the_spool(void)
{
    DIR *listing = opendir(fixture->spool);
    struct dirent *entry;
    char name[100];

    while ((entry = readdir(listing)))
        if (str_ends(str_of(entry->d_name), STR(MAIL_ENTRY_SUFFIX))) {
            snprintf(name, sizeof(name), "spool/%.80s", entry->d_name);
            put_file(in(name), "no JSON", 0600);
        }
    closedir(listing);
    pass(15 * 60);
}

TEST(a_summary_of_nothing_is_not_sent)
{
    fixture->config.mails_per_hour = 1;
    fixture->meanwhile = spoil_the_spool;
    for (uint32_t i = 0; i < 3; i++)
        add_to("anna", "Ended", i);
    drain();
    assert_int_equal(n_mails(), 1);
    assert_in_file("log", "none of them can be read");
}

TEST(a_mail_that_a_summary_stands_for_is_not_sent_again_after_a_crash)
{
    char *text = heap_array(1000, 1);
    struct dirent *entry;
    DIR *listing;
    char name[100] = "";

    add_to("anna", "Began", 1);
    listing = opendir(fixture->spool);
    while ((entry = readdir(listing)))
        if (entry->d_name[0] != '.')
            snprintf(name, sizeof(name), "%.90s", entry->d_name);
    closedir(listing);
    add_to("anna", "Began", 2);
    snprintf(text, 1000,
             "{\"written\":%d,\"to\":\"anna@x.org\",\"subject\":\"s\",\"text\":\"t\",\"files\":["
             "\"%s\",\"../sendmail\"]}",
             START, name);
    put_file(in("spool/ffffffffffffffff-0123456789abcdef.summary"), text, 0600);
    free(text);
    drain();
    assert_int_equal(n_mails(), 2);
    assert_in_file("box/0", "Job 2 ");
    assert_in_file("box/1", "Subject: s\n");
    assert_in_file("box/1", "Message-ID: <ffffffffffffffff-0123456789abcdef@x.org>\n");
}

TEST(what_is_no_mail_is_moved_away_and_never_waited_for)
{
    char *huge = heap_array(100000, 1);

    memset(huge, ' ', 99999);
    huge[99999] = '\0';
#define SPOOLED(digit) in("spool/000000000000000" digit "-0000000000000000.mail")
    put_file(SPOOLED("1"), "no JSON", 0600);
    put_file(SPOOLED("2"), huge, 0600);
    assert_int_equal(symlink("/etc/passwd", SPOOLED("3")), 0);
    assert_int_equal(mkdir(SPOOLED("4"), 0700), 0);
    assert_int_equal(mkfifo(SPOOLED("5"), 0600), 0);
    put_file(SPOOLED("6"), "{\"to\":\"|/bin/sh\"}", 0600);
    put_file(SPOOLED("7"), "", 0600);
    put_file(in("spool/readme.mail"), "mine", 0600);
    add_to("anna", "Began", 1);
    drain();
    assert_int_equal(fixture->result.sent, 1);
    assert_int_equal(count_in(in("spool/bad")), 7);
    assert_int_equal(access(in("spool/readme.mail"), F_OK), 0);
    assert_int_equal(fixture->result.left, 0);
    free(huge);
}

TEST(a_file_of_somebody_else_is_not_sent)
{
    need("root");
    put_file(SPOOLED("1"), "{\"to\":\"anna\"}", 0600);
    assert_int_equal(chown(SPOOLED("1"), 65533, 65533), 0);
    drain();
    assert_int_equal(count_in(in("spool/bad")), 1);
    assert_int_equal(n_mails(), 0);
    assert_in_file("log", "65533");
}

/* As a member of the spool's group that may not remove others' files. */
static void drain_as_member(void)
{
    enum { MEMBER = 65533 };

    assert_int_equal(chmod(in("sendmail"), 0755), 0);
    assert_int_equal(chmod(in("box"), 0777), 0);
    assert_int_equal(chown(fixture->spool, 0, MEMBER), 0);
    assert_int_equal(chmod(fixture->spool, 01770), 0);
    assert_int_equal(setegid(MEMBER), 0);
    assert_int_equal(seteuid(MEMBER), 0);
    drain();
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
}

static size_t count_lines_with(const char *words)
{
    struct buf text = read_path(in("log"));
    size_t n = 0;

    for (const char *at = text.p; (at = strstr(at, words)); at++)
        n++;
    buf_free(&text);
    return n;
}

TEST(a_mail_that_cannot_be_removed_is_sent_once)
{
    char name[MAIL_ENTRY_ID + sizeof("spool/.mail")];

    need("root");
    snprintf(name, sizeof(name), "spool/%016x-%016x.mail", 1, 1);
    put_file(in(name), "{\"to\":\"anna\"}", 0644);
    drain_as_member();
    assert_int_equal(n_mails(), 1);
    assert_int_equal(fixture->result.left, 0);
    assert_int_equal(count_lines_with("cannot remove a mail"), 1);
}

TEST(many_mails_that_cannot_be_read_are_one_line_in_the_log)
{
    char name[MAIL_ENTRY_ID + sizeof("spool/.mail")];

    need("root");
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "spool/%016x-%016x.mail", i, i);
        put_file(in(name), "{\"to\":\"anna\"}", 0600);
    }
    drain_as_member();
    assert_int_equal(n_mails(), 0);
    assert_int_equal(count_lines_with("cannot be read"), 1);
    assert_in_file("log", "mails=50");
}

TEST(a_spool_that_everybody_may_write_into_is_refused)
{
    chmod(fixture->spool, 0777);
    assert_int_equal(drain_run(&fixture->config, false, &fixture->result, &fixture->err), -EPERM);
    assert_contains(fixture->err.text, "chmod o-w");
}

TEST(settings_with_which_nothing_can_be_sent_are_refused)
{
    struct drain_config config = fixture->config;

    config.from = STR("nobody at all");
    assert_int_equal(drain_run(&config, false, &fixture->result, &fixture->err), -EINVAL);
    assert_contains(fixture->err.text, "sender");
    config = fixture->config;
    config.domain = STR("x org");
    assert_int_equal(drain_run(&config, false, &fixture->result, &fixture->err), -EINVAL);
    fixture->post.url = STR("sendmail:/no/such/program");
    assert_int_equal(drain_run(&fixture->config, false, &fixture->result, &fixture->err), -ENOENT);
    assert_contains(fixture->err.text, "name a server by --mail.url=smtp://HOST:587");
    assert_null(strstr(fixture->err.text, "write sendmail:"));
    fixture->post.url = STR("sendmail:sendmail");
    assert_int_equal(drain_run(&fixture->config, false, &fixture->result, &fixture->err), -EINVAL);
    assert_contains(fixture->err.text, "write sendmail:/usr/sbin/sendmail");
    fixture->post.url = STR("http://x.org");
    assert_int_equal(drain_run(&fixture->config, false, &fixture->result, &fixture->err), -EINVAL);
    fixture->post.url = STR("smtp://user:secret@x.org");
    assert_int_equal(drain_run(&fixture->config, false, &fixture->result, &fixture->err), -EINVAL);
    assert_null(strstr(fixture->err.text, "secret"));
    fixture->post = (struct post_settings){ .url = STR("smtp://x.org:25"), .user = STR("me") };
    assert_int_equal(drain_run(&fixture->config, false, &fixture->result, &fixture->err), -EINVAL);
}

TEST(a_password_does_not_go_to_another_host_without_tls)
{
    char *path = heap_str(str_of(in("password")));

    put_file(path, "secret\n", 0600);
    fixture->post = (struct post_settings){ .url = STR("smtp://x.org:25"),
                                            .user = STR("me"),
                                            .password_file = str_of(path),
                                            .is_tls_off = true };
    assert_int_equal(post_settings_check(&fixture->post, &fixture->err), -EINVAL);
    assert_contains(fixture->err.text, "without TLS");
    fixture->post.url = STR("smtp://localhost:25");
    assert_int_equal(post_settings_check(&fixture->post, &fixture->err), 0);
    fixture->post.url = STR("smtp://x.org:25");
    fixture->post.is_tls_off = false;
    assert_int_equal(post_settings_check(&fixture->post, &fixture->err), 0);
    free(path);
}

/* --- while it runs --- */

static void *follow(void *ctx)
{
    (void)ctx;
    drain_run(&fixture->config, true, &fixture->result, &fixture->err);
    atomic_store(&fixture->has_ended, true);
    return NULL;
}

TEST(it_follows_until_it_is_stopped_and_nobody_else_can_meanwhile)
{
    struct drain_result result;
    struct err err;
    pthread_t thread;

    assert_int_equal(thread_start(&thread, "drain", follow, fixture, &err), 0);
    assert_true(manual_clock_await_waiters(&fixture->clock, 1));
    add_to("anna", "Began", 1);
    /* It is done when no more is left than bad, given-up, lock and sent. */
    wait_until_true(
        (pass(1), access(in("spool/sent"), F_OK) == 0 && count_in(fixture->spool) == 4));
    assert_int_equal(drain_run(&fixture->config, false, &result, &err), -EBUSY);
    atomic_store(&fixture->stopped, true);
    wait_until_true((pass(1), atomic_load(&fixture->has_ended)));
    pthread_join(thread, NULL);
    assert_int_equal(fixture->result.sent, 1);
}

TEST(a_clock_that_is_put_back_keeps_nothing_waiting)
{
    pthread_t thread;
    struct err err;

    fixture->n_unknown = 1;
    add_to("anna", "Ended", 1);
    assert_int_equal(thread_start(&thread, "drain", follow, fixture, &err), 0);
    assert_true(manual_clock_await_waiters(&fixture->clock, 1));
    assert_int_equal(fixture->n_asked, 1);
    manual_clock_set_wall(&fixture->clock, (START - 86400) * NS_PER_SEC);
    pass(1);
    wait_until_true(n_mails() == 1);
    atomic_store(&fixture->stopped, true);
    wait_until_true((pass(1), atomic_load(&fixture->has_ended)));
    pthread_join(thread, NULL);
}
