/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receives the datagrams of the profile plugin and checks their sender. */
#include "source/profile_socket.h"

#include "base/arena.h"
#include "source/profile_message.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct profile_socket {
    int fd;
    uint32_t slurmd_uid;
    struct sockaddr_un address;
    dev_t device; /* of the file: another's is not removed */
    ino_t inode;
    char message[PROFILE_MESSAGE_BYTES];
};

static int new_fd(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int bind_to(const struct profile_socket *socket)
{
    return bind(socket->fd, (const struct sockaddr *)&socket->address, sizeof(socket->address));
}

/* Removes what is at the path if it is a socket at which nobody answers. False: it must stay. */
static bool remove_stale(const struct profile_socket *socket)
{
    struct stat file;
    bool is_stale;
    int fd;

    if (lstat(socket->address.sun_path, &file) < 0)
        return errno == ENOENT;
    fd = S_ISSOCK(file.st_mode) ? new_fd() : -1;
    if (fd < 0)
        return false;
    is_stale =
        connect(fd, (const struct sockaddr *)&socket->address, sizeof(socket->address)) < 0 &&
        errno == ECONNREFUSED;
    close(fd);
    return is_stale && unlink(socket->address.sun_path) == 0;
}

static int bind_or_replace(const struct profile_socket *socket)
{
    if (bind_to(socket) == 0)
        return 0;
    return errno == EADDRINUSE && remove_stale(socket) ? bind_to(socket) : -1;
}

static int listen_at(struct profile_socket *socket, struct err *err)
{
    const char *path = socket->address.sun_path;
    const int on = 1;
    struct stat file;

    socket->fd = new_fd();
    /* A file gets the mode that its socket has when it is bound: at no moment is it wider. */
    if (socket->fd < 0 || fchmod(socket->fd, 0660) < 0 ||
        setsockopt(socket->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return err_set(err, errno, "no socket: %s", err_words(errno));
    if (bind_or_replace(socket) < 0)
        return err_set(err, errno, "cannot listen at %s: %s", path,
                       errno == EADDRINUSE ? "somebody else does, or it is not a socket"
                                           : err_words(errno));
    if (lstat(path, &file) == 0) {
        socket->device = file.st_dev;
        socket->inode = file.st_ino;
    }
    return 0;
}

int profile_socket_open(const char *path, uint32_t slurmd_uid, struct profile_socket **ret,
                        struct err *err)
{
    struct profile_socket *socket = heap_alloc(sizeof(*socket));
    struct str text = str_of(path);
    int code;

    *socket = (struct profile_socket){ .fd = -1, .slurmd_uid = slurmd_uid };
    socket->address.sun_family = AF_UNIX;
    if (!text.n || text.n >= sizeof(socket->address.sun_path)) {
        free(socket);
        return err_set(err, EINVAL, "the path of a socket must have from 1 to %zu bytes",
                       sizeof(socket->address.sun_path) - 1);
    }
    memcpy(socket->address.sun_path, text.p, text.n);
    code = listen_at(socket, err);
    if (code < 0)
        profile_socket_close(socket);
    else
        *ret = socket;
    return code;
}

struct profile_socket *profile_socket_close(struct profile_socket *socket)
{
    struct stat file;

    if (socket) {
        if (socket->inode && lstat(socket->address.sun_path, &file) == 0 &&
            file.st_ino == socket->inode && file.st_dev == socket->device)
            unlink(socket->address.sun_path);
        if (socket->fd >= 0)
            close(socket->fd);
        free(socket);
    }
    return NULL;
}

int profile_socket_fd(const struct profile_socket *socket)
{
    return socket->fd;
}

static bool is_heard(const struct profile_socket *socket, struct msghdr *head)
{
    for (struct cmsghdr *more = CMSG_FIRSTHDR(head); more; more = CMSG_NXTHDR(head, more)) {
        struct ucred sender;

        if (more->cmsg_level != SOL_SOCKET || more->cmsg_type != SCM_CREDENTIALS)
            continue;
        memcpy(&sender, CMSG_DATA(more), sizeof(sender));
        return sender.uid == 0 || sender.uid == socket->slurmd_uid;
    }
    return false;
}

int profile_socket_read(struct profile_socket *socket, struct str *ret)
{
    /* For credentials alone: descriptors that somebody sends along find no room, and are closed. */
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } more;
    struct iovec piece = { socket->message, sizeof(socket->message) };
    struct msghdr head = { .msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = more.bytes,
                           .msg_controllen = sizeof(more.bytes) };
    ssize_t n;

    do
        n = recvmsg(socket->fd, &head, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return 0;
    if (!is_heard(socket, &head))
        return -EPERM;
    if (head.msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    *ret = (struct str){ socket->message, (size_t)n };
    return 1;
}
