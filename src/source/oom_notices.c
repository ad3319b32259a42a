/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/oom_notices.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

/* When its directory goes, the kernel tells everybody who has asked, once more and without saying
 * why: so somebody also asks for what never happens. Who asked last is told first. */
static void ask_both(int directory, struct oom_notices *notices)
{
    int control = openat(directory, "cgroup.event_control", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (control < 0)
        return;
    notices->out_of_memory = ask(directory, control, "memory.oom_control", "");
    if (notices->out_of_memory >= 0)
        notices->end = ask(directory, control, "memory.usage_in_bytes", unreachable);
    close(control);
    if (notices->end < 0)
        oom_notices_close(notices);
}

void oom_notices_open(const struct cgroup_mounts *mounts, struct str path, struct oom_notices *ret)
{
    const char *mount = mounts->controller[CGROUP_MEMORY];
    char full[PATH_MAX];
    int directory;

    *ret = (struct oom_notices){ .out_of_memory = -1, .end = -1 };
    if (mounts->is_v2 || !mount[0] ||
        snprintf(full, sizeof(full), "%s/%.*s", mount, STR_ARG(path)) >= PATH_MAX)
        return;
    directory = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (directory < 0)
        return;
    ask_both(directory, ret);
    close(directory);
}

void oom_notices_close(struct oom_notices *notices)
{
    if (notices->out_of_memory >= 0)
        close(notices->out_of_memory);
    if (notices->end >= 0)
        close(notices->end);
    notices->out_of_memory = notices->end = -1;
}

static uint64_t told(int event)
{
    uint64_t n;

    return event >= 0 && read(event, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

bool oom_notices_any(struct oom_notices *notices)
{
    notices->n_told += told(notices->out_of_memory);
    notices->n_ended += told(notices->end);
    return notices->n_told > notices->n_ended;
}
