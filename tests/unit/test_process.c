/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/process: numbers of this process. */
#include "test.h"

#include "base/num.h"
#include "base/process.h"

#include <fcntl.h>
#include <sys/resource.h>

/* RssFile of /proc/self/status, in kB. */
static uint64_t resident_file_kb(void)
{
    char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text));
    struct str rest = { text, n > 0 ? (size_t)n : 0 };
    uint64_t kb = 0;

    close(fd);
    rest = str_skip(rest, str_find_str(rest, STR("RssFile:")) + strlen("RssFile:"));
    rest = str_trim(rest);
    num_get_u64(str_head(rest, str_find(rest, ' ')), &kb);
    return kb;
}

TEST(what_only_starting_needed_is_let_go_and_the_rest_comes_back)
{
    uint64_t before = resident_file_kb(), after;
    struct process process;

    process_forget_start();
    after = resident_file_kb();
    assert_true(before > 0 && after > 0);
    assert_true(after < before);
    process_read(&process);
    assert_true(process.resident_bytes > 0);
}

TEST(a_process_knows_itself)
{
    int fds[2] = { open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_RDONLY) };
    struct process before, after;

    process_read(&before);
    close(fds[0]);
    close(fds[1]);
    process_read(&after);
    assert_int_equal(before.open_fds, after.open_fds + 2);
    assert_true(after.threads >= 1);
    assert_true(after.max_fds >= after.open_fds);
    assert_true(after.virtual_bytes > after.resident_bytes);
    assert_true(after.cpu_seconds >= before.cpu_seconds);
    assert_true(after.start_time_seconds == before.start_time_seconds);
}

static uint64_t virtual_max_under(struct rlimit limit)
{
    struct process process;

    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    process_read(&process);
    return process.virtual_max_bytes;
}

TEST(the_limit_of_virtual_memory_is_the_soft_one_and_has_prometheus_number_if_there_is_none)
{
    struct rlimit before, limited;

    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limited = (struct rlimit){ UINT64_C(1) << 50, before.rlim_max };
    assert_true(virtual_max_under(limited) == UINT64_C(1) << 50);
    if (before.rlim_max == RLIM_INFINITY)
        assert_true(virtual_max_under((struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }) ==
                    UINT64_C(18446744073709551615));
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}
