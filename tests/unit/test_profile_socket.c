/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/profile_socket: who may send datagrams. */
#include "test.h"

#include "files.h"
#include "source/profile_message.h"
#include "source/profile_socket.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRANGER = 64998 };

static const char *path;
static struct err err;

static void set_up(void)
{
    path = test_path("profile.sock");
}

FIXTURE(set_up, NULL)

static struct profile_socket *open_socket(uint32_t slurmd_uid)
{
    struct profile_socket *opened = NULL;

    if (profile_socket_open(path, slurmd_uid, &opened, &err) < 0)
        fail_msg("%s", err.text);
    return opened;
}

static int bound_or_connected(int type, int (*how)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);

    memcpy(address.sun_path, path, strlen(path));
    assert_true(fd >= 0);
    if (how(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

static int connect_to(int fd, const struct sockaddr *address, socklen_t n)
{
    return connect(fd, address, n);
}

static int bind_at(int fd, const struct sockaddr *address, socklen_t n)
{
    return bind(fd, address, n);
}

static void send_text(const void *text, size_t n)
{
    int fd = bound_or_connected(SOCK_DGRAM, connect_to);

    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, n, 0), n);
    close(fd);
}

static mode_t mode_of_file(void)
{
    struct stat file;

    assert_int_equal(lstat(path, &file), 0);
    return file.st_mode & 07777;
}

TEST(a_datagram_is_read_whole_and_then_there_is_none)
{
    struct profile_socket *opened = open_socket(geteuid());
    struct str text;

    assert_int_equal(profile_socket_read(opened, &text), 0);
    send_text("one", 3);
    send_text("", 0);
    send_text("two", 3);
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "one");
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "");
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "two");
    assert_int_equal(profile_socket_read(opened, &text), 0);
    profile_socket_close(opened);
    assert_int_equal(access(path, F_OK), -1);
}

TEST(one_that_is_too_long_is_refused_and_the_next_heard)
{
    static char bytes[PROFILE_MESSAGE_BYTES + 1];
    struct profile_socket *opened = open_socket(geteuid());
    struct str text;

    send_text(bytes, sizeof(bytes));
    send_text(bytes, sizeof(bytes) - 1);
    assert_int_equal(profile_socket_read(opened, &text), -EMSGSIZE);
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_int_equal(text.n, PROFILE_MESSAGE_BYTES);
    profile_socket_close(opened);
}

static void send_as_stranger(void)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        int fd = setresuid(STRANGER, STRANGER, STRANGER) < 0
                     ? -1
                     : bound_or_connected(SOCK_DGRAM, connect_to);

        _exit(fd >= 0 && send(fd, "hello", 5, 0) == 5 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(others_are_not_heard_even_where_the_file_lets_them)
{
    struct profile_socket *opened;
    struct str text;

    need("root");
    opened = open_socket(0);
    assert_int_equal(chmod(path, 0666), 0);
    send_as_stranger();
    send_text("mine", 4);
    assert_int_equal(profile_socket_read(opened, &text), -EPERM);
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "mine");
    profile_socket_close(opened);

    opened = open_socket(STRANGER);
    assert_int_equal(chmod(path, 0666), 0);
    send_as_stranger();
    send_text("root", 4);
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "hello");
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "root");
    profile_socket_close(opened);
}

static size_t open_descriptors(void)
{
    size_t n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TEST(descriptors_that_come_along_are_closed)
{
    struct profile_socket *opened = open_socket(geteuid());
    int fd = bound_or_connected(SOCK_DGRAM, connect_to);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } more = { 0 };
    struct iovec piece = { (char[]){ "hi" }, 2 };
    struct msghdr head = { .msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = more.bytes,
                           .msg_controllen = sizeof(more.bytes) };
    struct str text;
    size_t n;

    assert_true(fd >= 0);
    more.align = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
    memcpy(CMSG_DATA(&more.align), &fd, sizeof(fd));
    assert_int_equal(sendmsg(fd, &head, 0), 2);
    n = open_descriptors();
    assert_int_equal(profile_socket_read(opened, &text), 1);
    assert_str(text, "hi");
    assert_int_equal(open_descriptors(), n);
    close(fd);
    profile_socket_close(opened);
}

TEST(its_file_is_for_owner_and_group_whatever_the_umask)
{
    mode_t before = umask(0);
    struct profile_socket *opened = open_socket(0);

    assert_int_equal(mode_of_file(), 0660);
    profile_socket_close(opened);
    umask(077);
    opened = open_socket(0);
    assert_int_equal(mode_of_file(), 0600);
    profile_socket_close(opened);
    umask(before);
}

TEST(a_file_that_nobody_answers_at_is_replaced)
{
    struct profile_socket *opened;

    close(bound_or_connected(SOCK_DGRAM, bind_at));
    assert_int_equal(access(path, F_OK), 0);
    opened = open_socket(geteuid());
    send_text("x", 1);
    profile_socket_close(opened);
}

TEST(one_that_somebody_answers_at_is_left_alone)
{
    struct profile_socket *first = open_socket(geteuid()), *second;
    struct str text;

    assert_int_equal(profile_socket_open(path, 0, &second, &err), -EADDRINUSE);
    assert_contains(err.text, path);
    send_text("x", 1);
    assert_int_equal(profile_socket_read(first, &text), 1);
    profile_socket_close(first);
}

TEST(what_is_not_such_a_socket_is_left_alone)
{
    struct profile_socket *opened;
    int fd;

    write_file(path, "");
    assert_int_equal(profile_socket_open(path, 0, &opened, &err), -EADDRINUSE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(profile_socket_open(path, 0, &opened, &err), -EADDRINUSE);
    assert_int_equal(unlink(path), 0);
    fd = bound_or_connected(SOCK_STREAM, bind_at);
    assert_int_equal(listen(fd, 1), 0);
    assert_true(profile_socket_open(path, 0, &opened, &err) < 0);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    assert_int_equal(unlink(path), 0);
}

TEST(another_that_took_its_place_is_not_removed)
{
    struct profile_socket *first = open_socket(0), *second;

    assert_int_equal(unlink(path), 0);
    second = open_socket(0);
    profile_socket_close(first);
    assert_int_equal(access(path, F_OK), 0);
    profile_socket_close(second);
}

TEST(a_missing_directory_is_told_apart)
{
    struct profile_socket *opened;
    char missing[200];

    snprintf(missing, sizeof(missing), "%s/none/profile.sock", test_dir());
    assert_int_equal(profile_socket_open(missing, 0, &opened, &err), -ENOENT);
    assert_contains(err.text, missing);
    memset(missing, 'x', sizeof(missing) - 1);
    assert_int_equal(profile_socket_open(missing, 0, &opened, &err), -EINVAL);
}
