/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the doctor prints of facts that are put before it. */
#include "test.h"

#include "cmd/doctor.h"
#include "files.h"

#include <sys/stat.h>
#include <unistd.h>

static struct doctor doctor;
static struct source_options options;
static struct page page;
static char *printed;
static size_t n_printed;

static void begin(void)
{
    doctor = (struct doctor){ 0 };
    options = (struct source_options){ .timeout_ns = NS_PER_SEC };
    page = (struct page){ .to = open_memstream(&printed, &n_printed), .width = 80 };
    doctor.options = &options;
    doctor.root = test_dir();
    doctor.page = &page;
    assert_non_null(page.to);
}

static void end(void)
{
    fclose(page.to);
    free(printed);
}

FIXTURE(begin, end)

/* Everything so far, with its lines joined. */
static const char *text(void)
{
    static char joined[8192];
    size_t n = 0;
    bool is_space = false;

    fflush(page.to);
    for (size_t i = 0; i < n_printed && n < sizeof(joined) - 1; i++) {
        bool is_blank = printed[i] == ' ' || printed[i] == '\n';

        if (!is_blank || !is_space)
            joined[n++] = is_blank ? ' ' : printed[i];
        is_space = is_blank;
    }
    joined[n] = '\0';
    return joined;
}

static void assert_counts(size_t ok, size_t note, size_t warn, size_t fail)
{
    assert_int_equal(page.counts[MARK_OK], ok);
    assert_int_equal(page.counts[MARK_NOTE], note);
    assert_int_equal(page.counts[MARK_WARN], warn);
    assert_int_equal(page.counts[MARK_FAIL], fail);
}

TEST(a_line_is_never_wider_than_the_page)
{
    size_t column = 0;

    page.width = 60;
    page_finding(&page, MARK_WARN, "something", "%s",
                 "a long tale of many words that goes on and on until there is no more room on the "
                 "line, née là-bas, and then some more of it");
    page_advice(&page, "%s", "much to do, and all of it has to be told on lines of the same width");
    fflush(page.to);
    for (size_t i = 0; i < n_printed; i++) {
        column = printed[i] == '\n' ? 0
                                    : column + ((unsigned char)printed[i] < 0x80 ||
                                                (unsigned char)printed[i] >= 0xc0);
        assert_true(column <= 60);
    }
    assert_contains(text(), "warn something a long tale of many words");
    assert_contains(text(), "to do: much to do");
}

TEST(what_would_move_the_cursor_is_not_printed)
{
    page_finding(&page, MARK_NOTE, "cli", "%s",
                 "squeue: \033[31mred\007 \302\233 \377 \177 end\r\n");
    fflush(page.to);
    for (size_t i = 0; i < n_printed; i++)
        assert_true(printed[i] == '\n' || (printed[i] >= ' ' && printed[i] < 127));
    assert_contains(text(), "end");
}

TEST(lines_of_a_text_stay_lines)
{
    page_finding(&page, MARK_WARN, "cli", "%s", "squeue: error: one\nsqueue: error: two\n");
    fflush(page.to);
    assert_contains(printed, "squeue: error: one\n                     squeue: error: two\n");
    fputs("jobs:", page.to);
    page_line(page.to, "one\n\033two ");
    fflush(page.to);
    assert_contains(printed, "\njobs: one two\n");
}

TEST(a_title_without_findings_is_not_printed)
{
    page_title(&page, "Nothing below");
    page_title(&page, "Something below");
    page_finding(&page, MARK_OK, "x", "y");
    assert_null(strstr(text(), "Nothing below"));
    assert_contains(text(), "Something below");
}

TEST(colours_are_for_terminals_only)
{
    struct page plain = page_for(page.to);

    assert_false(plain.has_colours);
    page_finding(&page, MARK_FAIL, "x", "y");
    assert_null(strchr(text(), '\033'));
    page.has_colours = true;
    page_finding(&page, MARK_FAIL, "x", "y");
    assert_non_null(strchr(text(), '\033'));
}

TEST(durations_are_told_in_a_unit_that_fits)
{
    assert_string_equal(doctor_duration(400000).text, "0.4" GLUE "ms");
    assert_string_equal(doctor_duration(12 * NS_PER_MS).text, "12" GLUE "ms");
    assert_string_equal(doctor_duration(83 * NS_PER_SEC).text, "83.0" GLUE "s");
}

static void be_told_config(const char *user, uint32_t user_id, unsigned hidden)
{
    doctor.has_config = doctor.has_user = true;
    doctor.user_door = "cli";
    doctor.cluster = quote(STR("alpha"));
    doctor.version = quote(STR("23.11.4"));
    doctor.user = quote(str_of(user));
    doctor.user_id = user_id;
    doctor.hidden = hidden;
}

TEST(what_private_data_hides_is_warned_of_with_the_command_to_run)
{
    be_told_config("monitor", 2001, 1u << PRIVATE_JOBS | 1u << PRIVATE_USERS);
    doctor_check_private_data(&doctor);
    assert_counts(0, 0, 1, 0);
    assert_contains(text(), "PrivateData hides jobs, users of others");
    assert_contains(text(), "to do: sacctmgr modify user monitor set adminlevel=operator");
}

TEST(a_user_whom_slurm_does_not_know_is_to_be_added)
{
    be_told_config("", 0, 1u << PRIVATE_JOBS);
    doctor_check_private_data(&doctor);
    assert_counts(0, 0, 1, 0);
    assert_contains(text(), "to do: sacctmgr add user root account=ACCOUNT adminlevel=operator");
}

TEST(nothing_hidden_is_ok)
{
    be_told_config("", 0, 0);
    doctor_check_private_data(&doctor);
    assert_counts(1, 0, 0, 0);
    assert_contains(text(), "root (uid 0)");
}

TEST(a_door_that_does_not_tell_of_private_data_is_noted)
{
    be_told_config("", MODEL_UNKNOWN_U32, 0);
    doctor.has_user = false;
    doctor_check_private_data(&doctor);
    assert_counts(0, 1, 0, 0);
    assert_contains(text(), "is not told through these doors");
    be_told_config("", 0, 0);
    snprintf(doctor.taken, sizeof(doctor.taken), "rest");
    doctor_check_private_data(&doctor);
    assert_counts(1, 2, 0, 0);
    assert_contains(text(), "is not told through rest");
}

TEST(commands_newer_than_the_controller_are_warned_of)
{
    be_told_config("", 0, 0);
    doctor.command_version = quote(STR("23.02.7"));
    doctor_check_cluster(&doctor);
    assert_counts(1, 0, 0, 0);
    doctor.command_version = quote(STR("24.05.1"));
    doctor_check_cluster(&doctor);
    assert_counts(2, 0, 1, 0);
    assert_contains(text(), "(24.05.1 and 23.11.4)");
}

TEST(a_helper_of_another_release_than_slurmctld_is_named_with_the_one_to_install)
{
    be_told_config("", 0, 0);
    doctor.n_doors = 1;
    doctor.doors[0] = (struct door){ .name = "libslurm", .is_open = true };
    snprintf(doctor.doors[0].about.interface, sizeof(doctor.doors[0].about.interface), "26.05");
    doctor_check_cluster(&doctor);
    assert_counts(1, 1, 0, 0);
    assert_contains(text(), "sonde-libslurm-26.05 is built for Slurm 26.05, slurmctld is 23.11.4");
    assert_contains(text(), "to do: Install sonde-libslurm-23.11");
    doctor.doors[0].works = true;
    doctor_check_cluster(&doctor);
    assert_counts(2, 1, 0, 0);
}

TEST(a_clock_that_is_wrong_is_told_by_how_much)
{
    doctor.has_time = true;
    doctor_check_clock(&doctor);
    assert_counts(1, 0, 0, 0);
    doctor.clock_ahead = -42;
    doctor_check_clock(&doctor);
    assert_counts(1, 0, 1, 0);
    assert_contains(text(), "is 42 s behind slurmctld's");
    doctor.clock_ahead = 3600;
    doctor_check_clock(&doctor);
    assert_counts(1, 0, 1, 1);
    assert_contains(text(), "is 3600 s ahead of slurmctld's");
}

static void use_token(const char *name, int64_t expires)
{
    doctor.settings.rest_token_file = str_of(test_path("%s", name));
    doctor.n_doors = 1;
    doctor.doors[0] = (struct door){ .name = "rest", .is_open = true };
    doctor.doors[0].about.token_expires = expires;
}

TEST(a_token_that_everybody_can_read_is_warned_of)
{
    int64_t now = clock_wall(&clock_real) / NS_PER_SEC;

    write_file("token", "eyJ");
    use_token("token", now + 40 * 86400 + 60);
    doctor_check_token(&doctor);
    assert_counts(1, 0, 1, 0);
    assert_contains(text(), "can be read by everybody");
    assert_contains(text(), "to do: chmod o= ");
    assert_contains(text(), test_path("token"));
    assert_contains(text(), "holds for another 40 days");
    assert_null(strstr(text(), "eyJ"));
}

TEST(the_end_of_a_token_is_told_in_time)
{
    int64_t now = clock_wall(&clock_real) / NS_PER_SEC;

    assert_int_equal(chmod(write_file("token", "eyJ"), 0600), 0);
    use_token("token", now + 3630);
    doctor_check_token(&doctor);
    assert_counts(0, 1, 0, 0);
    assert_contains(text(), "holds for another 60 minutes");
    use_token("token", now + 300);
    doctor_check_token(&doctor);
    assert_counts(0, 1, 1, 0);
    use_token("token", now - 1);
    doctor_check_token(&doctor);
    assert_counts(0, 1, 1, 1);
    assert_contains(text(), "has expired");
    use_token("token", 0);
    doctor_check_token(&doctor);
    assert_counts(0, 2, 1, 1);
    use_token("no-token", 0);
    doctor_check_token(&doctor);
    assert_counts(0, 3, 1, 2);
}

TEST(slurm_conf_names_the_socket_of_munge)
{
    write_file("slurm.conf",
               "ClusterName=alpha\n# AuthType=auth/none\nauthtype = auth/munge # ours\n"
               "AuthInfo=cred_expire=120,socket=/run/other/munge.socket\n");
    doctor.settings.conf = str_of(test_path("slurm.conf"));
    doctor_check_conf(&doctor);
    assert_counts(1, 0, 0, 0);
    assert_true(doctor.conf.is_found);
    assert_string_equal(doctor.conf.auth, "auth/munge");
    assert_string_equal(doctor.conf.munge_socket, "/run/other/munge.socket");
}

TEST(a_slurm_conf_that_cannot_be_read_is_warned_of)
{
    doctor.settings.conf = STR("/nonexistent/slurm.conf");
    doctor_check_conf(&doctor);
    assert_counts(0, 0, 1, 0);
    assert_contains(text(), "/nonexistent/slurm.conf, named by --slurm.conf, cannot be read");
}

#define SCOPE "sys/fs/cgroup/system.slice/slurmstepd.scope/"

static void put_v2_host(void)
{
    write_file("proc/self/mountinfo", "31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write_file("proc/12/comm", "slurmd\n");
    write_file("proc/13/comm", "slurmstepd\n");
}

TEST(jobs_in_cgroups_are_counted)
{
    put_v2_host();
    write_file(SCOPE "job_7/cgroup.procs", "");
    write_file(SCOPE "job_8/cgroup.procs", "");
    doctor_check_cgroups(&doctor);
    assert_counts(2, 0, 0, 0);
    assert_contains(text(), "cgroups version 2, at /sys/fs/cgroup");
    assert_contains(text(), "2 in /sys/fs/cgroup/system.slice/slurmstepd.scope, named job_N");
}

TEST(jobs_that_are_named_by_sluid_are_noted)
{
    put_v2_host();
    write_file(SCOPE "sF0NM7G8GT4500/cgroup.procs", "");
    doctor_check_cgroups(&doctor);
    assert_counts(2, 1, 0, 0);
    assert_contains(text(), "CgroupJobIdPaths=yes");
}

TEST(jobs_whose_cgroups_cannot_be_read_are_warned_of)
{
    put_v2_host();
    write_file(SCOPE "job_7/cpu.stat", ""); /* no cgroup.procs: root can read what is there */
    doctor_check_cgroups(&doctor);
    assert_counts(2, 0, 1, 0);
    assert_contains(text(), "cannot be read by this user");
}

TEST(a_slurmd_without_cgroups_is_noted)
{
    put_v2_host();
    doctor_check_cgroups(&doctor);
    assert_counts(1, 1, 0, 0);
    assert_contains(text(), "ProctrackType=proctrack/cgroup");
}

TEST(a_host_without_slurmd_is_fine)
{
    write_file("proc/self/mountinfo", "31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write_file("proc/12/comm", "slurmd-watcher\n");
    doctor_check_cgroups(&doctor);
    assert_counts(2, 0, 0, 0);
    assert_contains(text(), "slurmd does not run on this host");
}

TEST(without_munge_a_cluster_of_auth_slurm_lacks_nothing)
{
    doctor.munge_socket = "/nonexistent/socket";
    doctor.has_commands = true;
    snprintf(doctor.conf.auth, sizeof(doctor.conf.auth), "auth/slurm");
    doctor_check_munge(&doctor);
    assert_counts(0, 1, 0, 0);
    doctor.conf.auth[0] = '\0';
    doctor_check_munge(&doctor);
    assert_counts(0, 1, 0, 1);
    assert_contains(text(), "systemctl start munge");
    doctor.n_doors = 1;
    doctor.doors[0].works = true;
    doctor_check_munge(&doctor);
    assert_counts(0, 2, 0, 1);
}
