/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/watchdog. */
#include "test.h"

#include "base/clock.h"
#include "base/watchdog.h"
#include "files.h"

#include <stdlib.h>
#include <unistd.h>

static struct watchdog watchdog;
static int systemd; /* its end */

static void set_pid(pid_t pid)
{
    char text[20];

    snprintf(text, sizeof(text), "%d", (int)pid);
    setenv("WATCHDOG_PID", text, 1);
}

static void listen_at(const char *socket_name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t n = strlen(socket_name);

    memcpy(address.sun_path, socket_name, n);
    if (socket_name[0] == '@')
        address.sun_path[0] = '\0';
    systemd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(systemd, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
                     0);
    setenv("NOTIFY_SOCKET", socket_name, 1);
    setenv("WATCHDOG_USEC", "20000000", 1);
    set_pid(getpid());
}

static bool has_message(void)
{
    char text[100];
    ssize_t n = recv(systemd, text, sizeof(text) - 1, 0);

    if (n < 0)
        return false;
    text[n] = '\0';
    assert_string_equal(text, "WATCHDOG=1");
    return true;
}

static void begin(void)
{
    systemd = -1;
}

static void end(void)
{
    watchdog_close(&watchdog);
    if (systemd >= 0)
        close(systemd);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

FIXTURE(begin, end)

static void check_messages(void)
{
    watchdog_open(&watchdog);
    assert_false(has_message());
    watchdog_feed(&watchdog, 100 * NS_PER_SEC);
    assert_true(has_message());
    assert_true(watchdog.due_ns == 110 * NS_PER_SEC);
    watchdog_feed(&watchdog, 110 * NS_PER_SEC - 1);
    assert_false(has_message());
    watchdog_feed(&watchdog, 110 * NS_PER_SEC);
    assert_true(has_message());
}

TEST(a_message_is_sent_each_half_of_the_time_that_is_allowed)
{
    listen_at(test_path("notify"));
    check_messages();
}

TEST(a_socket_may_be_abstract)
{
    char name[50];

    snprintf(name, sizeof(name), "@sonde-watchdog-%d", (int)getpid());
    listen_at(name);
    check_messages();
}

static void assert_none(void)
{
    watchdog_open(&watchdog);
    assert_true(watchdog.due_ns == INT64_MAX);
    watchdog_feed(&watchdog, NS_PER_SEC);
    assert_false(has_message());
    watchdog_close(&watchdog);
}

TEST(without_a_watchdog_or_with_one_of_another_process_nothing_is_sent)
{
    listen_at(test_path("notify"));
    set_pid(getppid());
    assert_none();
    set_pid(getpid());
    setenv("WATCHDOG_USEC", "0", 1);
    assert_none();
    unsetenv("WATCHDOG_USEC");
    assert_none();
    setenv("WATCHDOG_USEC", "20000000", 1);
    setenv("NOTIFY_SOCKET", "relative", 1);
    assert_none();
    unsetenv("NOTIFY_SOCKET");
    assert_none();
}

TEST(a_socket_that_nobody_reads_blocks_nobody)
{
    listen_at(test_path("notify"));
    watchdog_open(&watchdog);
    for (int64_t i = 1; i < 1000; i++)
        watchdog_feed(&watchdog, i * 10 * NS_PER_SEC);
    assert_true(has_message());
}
