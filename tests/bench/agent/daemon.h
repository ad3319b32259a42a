/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that serves /metrics, started and watched: what it uses, what it says. */
#ifndef SONDE_TESTS_BENCH_AGENT_DAEMON_H
#define SONDE_TESTS_BENCH_AGENT_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon {
    pid_t pid;
    uint16_t port;
    const char *name;
};

uint16_t daemon_port(void); /* one that is free now */

/* argv[0] is the program; its output goes to that file. Waits until it listens. */
struct daemon daemon_start(const char *name, const char *const *argv, uint16_t port,
                           const char *log);
void daemon_stop(struct daemon *daemon);

double daemon_cpu_seconds(const struct daemon *daemon); /* of all its threads, to the nanosecond */

/* As Prometheus asks. Returns the bytes of the answer. */
size_t daemon_scrape(const struct daemon *daemon);

/* The value of a sample without labels; NAN if it is not there. Asks without compression. */
double daemon_sample(const struct daemon *daemon, const char *name);

struct daemon_memory {
    double resident_bytes, anonymous_bytes;
};
struct daemon_memory daemon_memory(const struct daemon *daemon);

/* Whether it has ever had a child: one that lives, or one that it has waited for, which leaves its
 * page faults behind. */
bool daemon_has_started(const struct daemon *daemon);

#endif
