/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent of `sonde up`. A small process that keeps what `sonde up` was started with (root, or
 * not) starts sonde-agent on a socket of ours, starts it again when it ends or no longer answers,
 * and ends with us. */
#ifndef SONDE_CMD_UP_AGENT_H
#define SONDE_CMD_UP_AGENT_H

#include "base/log.h"

#include <sys/types.h>

struct up_agent;

struct up_agent_config {
    const char *program;     /* NULL: sonde-agent, beside this one */
    const char *socket_path; /* where it will answer us */
    uid_t owner;             /* of the socket: who may ask */
    gid_t group;
    const char *user; /* the agent becomes this user and keeps the capabilities that it needs; NULL:
                       * it stays who we are */
    int64_t tick_ns;  /* how often it looks */
    struct log *log;
};

/* Before there is any thread, and before privileges are given up. */
int up_agent_start(const struct up_agent_config *config, struct up_agent **ret, struct err *err);

/* After what it was started again: it had ended, or it had not answered and was killed. */
struct up_agent_stats {
    uint64_t ends, hangs;
};
void up_agent_stats(const struct up_agent *agent, struct up_agent_stats *ret);

/* Waits until both have ended, for some seconds at most. Returns NULL. */
struct up_agent *up_agent_stop(struct up_agent *agent);

/* Begins with that and returns at once. NULL is allowed. */
void up_agent_end(struct up_agent *agent);

#endif
