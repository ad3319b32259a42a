/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receives out-of-memory events of cgroup v1 by eventfd. */
#include "source/oom_notices.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

const struct oom_notices oom_notices_none = { .directory = -1, .out_of_memory = -1, .end = -1 };

/* More than any machine has: it is never reached. */
static const char unreachable[] = "9000000000000000000";

/* An eventfd that is told of what happens to `file`, or -1. */
static int ask(int directory, int control, const char *file, const char *argument)
{
    int watched = openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int event = watched < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    char order[64];
    int n = snprintf(order, sizeof(order), "%d %d %s", event, watched, argument);

    if (event >= 0 && write(control, order, (size_t)n) != n) {
        close(event);
        event = -1;
    }
    if (watched >= 0)
        close(watched); /* the kernel needs it for the order alone */
    return event;
}

static int ask_in(int directory, const char *file, const char *argument)
{
    int control = openat(directory, "cgroup.event_control", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    int event = control < 0 ? -1 : ask(directory, control, file, argument);

    if (control >= 0)
        close(control);
    return event;
}

void oom_notices_open(const struct cgroup_mounts *mounts, struct str path, struct quota *files,
                      struct oom_notices *ret)
{
    const char *mount = mounts->controller[CGROUP_MEMORY];
    char full[PATH_MAX];

    *ret = oom_notices_none;
    if (mounts->is_v2 || !mount[0] ||
        snprintf(full, sizeof(full), "%s/%.*s", mount, STR_ARG(path)) >= PATH_MAX ||
        !quota_take(files, OOM_NOTICES_FILES))
        return;
    ret->files = files;
    ret->directory = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (ret->directory < 0)
        quota_give(files, OOM_NOTICES_FILES);
    else
        ret->out_of_memory = ask_in(ret->directory, "memory.oom_control", "");
    if (ret->out_of_memory < 0)
        oom_notices_close(ret);
}

/* When its directory goes, the kernel signals all events once more, without a reason: an event that
 * never happens otherwise shows it. */
bool oom_notices_watch_end(struct oom_notices *notices)
{
    if (notices->out_of_memory < 0 || notices->end >= 0)
        return false;
    notices->end = ask_in(notices->directory, "memory.usage_in_bytes", unreachable);
    if (notices->end < 0)
        oom_notices_close(notices);
    return true;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void oom_notices_close(struct oom_notices *notices)
{
    if (notices->directory >= 0)
        quota_give(notices->files, OOM_NOTICES_FILES);
    close_fd(&notices->directory);
    close_fd(&notices->out_of_memory);
    close_fd(&notices->end);
}

static uint64_t told(int event)
{
    uint64_t n;

    return event >= 0 && read(event, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

static bool is_there(int directory)
{
    return faccessat(directory, "memory.oom_control", F_OK, 0) == 0;
}

static void wait_for(int event)
{
    poll(&(struct pollfd){ event, POLLIN, 0 }, 1, OOM_NOTICES_WAIT_MS);
}

/* What came while the directory was there is what was asked for. Of what came later, one notice is
 * of the end, and no more is believed of it than is certain: it takes two. The second one comes
 * soon after the directory has gone; the event of the end, which comes last, bounds the wait for
 * it. */
bool oom_notices_any(struct oom_notices *notices)
{
    if (notices->has_run_out)
        return true;
    notices->n_told += told(notices->out_of_memory);
    if (!notices->n_told)
        return false;
    if (is_there(notices->directory)) {
        notices->has_run_out = true;
        return true;
    }
    if (notices->end >= 0 && !notices->n_ended)
        wait_for(notices->end);
    notices->n_ended += told(notices->end);
    notices->n_told += told(notices->out_of_memory);
    notices->has_run_out = notices->n_told > 1;
    return notices->has_run_out;
}
