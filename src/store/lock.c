/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of its own: closing a descriptor of the store's file would drop SQLite's locks. */
#include "store/lock.h"

#include "store/store.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* root must not leave a file that the exporter's user cannot open. */
static void give_to_owner(const char *path, int fd)
{
    char copy[STORE_PATH_MAX];
    struct stat directory, file;

    snprintf(copy, sizeof(copy), "%s", path);
    if (geteuid() == 0 && stat(dirname(copy), &directory) == 0 && fstat(fd, &file) == 0 &&
        file.st_uid == 0 && directory.st_uid != 0 &&
        fchown(fd, directory.st_uid, directory.st_gid) < 0)
        return;
}

static int refuse(const char *path, int fd, struct err *err)
{
    char pid[20] = "";
    ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    return err_set(
        err, EALREADY,
        "the store %s is in use: process %s of another sonde exporter, sonde up or sonde "
        "admin restore holds its lock; stop that one, or name another file in --store",
        path, pid[0] >= '0' && pid[0] <= '9' ? pid : "(unknown)");
}

/* Who is refused reads it. Without it the lock holds as well. */
static void write_pid(int fd)
{
    char pid[20];
    int n = snprintf(pid, sizeof(pid), "%d", getpid());

    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) < n)
        return;
}

int store_lock(const char *path, int *ret, struct err *err)
{
    char name[STORE_PATH_MAX + 8];
    int fd, code = 0;

    snprintf(name, sizeof(name), "%s-lock", path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
    if (fd < 0)
        return err_set(err, errno, "cannot make %s: %s; check its directory", name,
                       err_words(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        code = errno == EWOULDBLOCK
                   ? refuse(path, fd, err)
                   : err_set(err, errno, "cannot lock %s: %s", name, err_words(errno));
    if (code < 0) {
        close(fd);
        return code;
    }
    give_to_owner(path, fd);
    write_pid(fd);
    *ret = fd;
    return 0;
}
