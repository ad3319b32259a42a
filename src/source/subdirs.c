/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the directories in a directory. */
#include "source/subdirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdbool.h>
#include <sys/stat.h>

static bool is_subdir(int fd, const struct dirent64 *entry)
{
    struct stat status;

    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return false;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

int subdirs_each(int fd, void (*visit)(void *ctx, const char *name), void *ctx)
{
    alignas(struct dirent64) char entries[8192];
    ssize_t n;

    while ((n = getdents64(fd, entries, sizeof(entries))) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(entries + at);

            if (is_subdir(fd, entry))
                visit(ctx, entry->d_name);
            at += entry->d_reclen;
        }
    }
    return n < 0 ? -errno : 0;
}
