/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's routes: the metrics of the bulletin that hangs on the board, the landing page, and
 * /-/healthy, /-/ready, /-/reload. Nobody waits for the sampler. */
#ifndef SONDE_HTTP_BULLETINS_H
#define SONDE_HTTP_BULLETINS_H

#include "collector/agent_self.h"
#include "http/server.h"

struct bulletins; /* what the handlers share */

struct bulletins_config {
    const char *path; /* "/metrics" */
    const char *node; /* short host name */
    struct bulletin_board *board;
    const struct clock *clock;
    /* Re-reads everything or keeps what was; runs on a worker. */
    int (*reload)(void *ctx, struct err *err);
    /* Adds what is pushed; on any thread. NULL: nothing is. */
    void (*tell_pushes)(void *ctx, struct agent_self *to);
    void *ctx; /* of these two */
};

/* What can be changed while it serves. */
struct bulletins_tuning {
    usage_collector_set collectors; /* which are switched on */
    family_set excluded;            /* of agent_self_families: not wanted */
    int64_t stale_ns;               /* what is older is not shown: a flat line would be a lie */
};

struct bulletins *bulletins_new(const struct bulletins_config *config,
                                const struct bulletins_tuning *tuning);
struct bulletins *bulletins_free(struct bulletins *bulletins); /* after http_stop; returns NULL */

/* The table of routes; `bulletins` is the context of its handlers. */
const struct http_route *bulletins_routes(const struct bulletins *bulletins);

/* Whose statistics to show. */
void bulletins_set_server(struct bulletins *bulletins, struct http_server *server);

void bulletins_tune(struct bulletins *bulletins, const struct bulletins_tuning *tuning);

#endif
