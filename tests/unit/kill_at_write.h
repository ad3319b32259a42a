/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends a process in the middle of what SQLite writes, at a chosen place. */
#ifndef SONDE_TESTS_KILL_AT_WRITE_H
#define SONDE_TESTS_KILL_AT_WRITE_H

#include "base/str.h"

#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

static unsigned writes_left; /* 0: it is not killed */

static ssize_t write_or_die(int fd, const void *bytes, size_t n, off_t at)
{
    if (writes_left && --writes_left == 0)
        kill(getpid(), SIGKILL);
    return pwrite(fd, bytes, n, at);
}

/* Kills this process at the given write from now on, counted from 1; 0: at none. */
static void kill_at_write(unsigned writes)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    for (const char *name = vfs->xNextSystemCall(vfs, NULL); name;
         name = vfs->xNextSystemCall(vfs, name))
        if (str_eq(str_of(name), STR("pwrite")) || str_eq(str_of(name), STR("pwrite64")))
            vfs->xSetSystemCall(vfs, name, (sqlite3_syscall_ptr)write_or_die);
    writes_left = writes;
}

#endif
