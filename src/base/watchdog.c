/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends keep-alive messages to systemd. */
#include "base/watchdog.h"

#include "base/num.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool number_of(const char *variable, uint64_t *ret)
{
    const char *text = getenv(variable);

    return text && num_get_u64(str_of(text), ret);
}

/* A path, or "@name" for the abstract namespace. */
static bool set_address(struct watchdog *watchdog, const char *socket)
{
    size_t n = socket ? strlen(socket) : 0;
    char *path = watchdog->address.sun_path;

    if (n < 2 || n >= sizeof(watchdog->address.sun_path) || !strchr("/@", socket[0]))
        return false;
    watchdog->address.sun_family = AF_UNIX;
    memcpy(path, socket, n + 1);
    if (path[0] == '@')
        path[0] = '\0';
    watchdog->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return true;
}

void watchdog_open(struct watchdog *watchdog)
{
    uint64_t usec, pid = (uint64_t)getpid();

    *watchdog = (struct watchdog){ .fd = -1, .due_ns = INT64_MAX };
    if (!number_of("WATCHDOG_USEC", &usec) || !usec || usec > INT64_MAX / 1000 ||
        (getenv("WATCHDOG_PID") && !number_of("WATCHDOG_PID", &pid)) || pid != (uint64_t)getpid() ||
        !set_address(watchdog, getenv("NOTIFY_SOCKET")))
        return;
    watchdog->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (watchdog->fd < 0)
        return;
    watchdog->interval_ns = (int64_t)usec * 1000 / 2;
    watchdog->due_ns = 0;
}

void watchdog_close(struct watchdog *watchdog)
{
    if (watchdog->fd >= 0)
        close(watchdog->fd);
    watchdog->fd = -1;
    watchdog->due_ns = INT64_MAX;
}

void watchdog_feed(struct watchdog *watchdog, int64_t now_ns)
{
    static const char message[] = "WATCHDOG=1";

    if (now_ns < watchdog->due_ns)
        return;
    watchdog->due_ns = now_ns + watchdog->interval_ns;
    /* A message that is lost is followed by another in time. */
    (void)sendto(watchdog->fd, message, sizeof(message) - 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                 (const struct sockaddr *)&watchdog->address, watchdog->address_bytes);
}
