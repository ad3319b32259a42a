/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The watchdog of systemd (WatchdogSec=): a thread that still works sends keep-alive messages, and
 * systemd restarts a service that sends none. The protocol is that of sd_notify(3) and
 * sd_watchdog_enabled(3). */
#ifndef SONDE_BASE_WATCHDOG_H
#define SONDE_BASE_WATCHDOG_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct watchdog {
    int fd; /* -1: there is no watchdog */
    struct sockaddr_un address;
    socklen_t address_bytes;
    int64_t interval_ns; /* half of what systemd allows */
    int64_t due_ns;      /* when the next message is due; INT64_MAX: never */
};

/* As the environment says: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
void watchdog_open(struct watchdog *watchdog);
void watchdog_close(struct watchdog *watchdog);

/* Sends a message if it is due. Never blocks. */
void watchdog_feed(struct watchdog *watchdog, int64_t now_ns);

#endif
