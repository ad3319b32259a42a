/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways of the cli and json sources: which command is asked for each kind of thing, with what,
 * and what reads its answer. */
#ifndef SONDE_SOURCE_CLI_ROUTES_H
#define SONDE_SOURCE_CLI_ROUTES_H

#include "source/answer.h"
#include "source/source.h"

#include <sys/types.h>

struct route {
    char **words;                /* of the command, ended by NULL; one heap block */
    const char *const *flags;    /* what follows them, ended by NULL; the format, if there is one */
    const char *format_variable; /* "NAME=": the format goes into the environment instead */
    const struct answer_class *answer;
    pid_t stuck; /* see base/spawn.h */
};

enum { ROUTES_MAX = 4 };

/* The ways to ask for one kind, the best first. Those that the release at hand turns out to lack
 * are passed over, and tried again after a while: it may have been upgraded. */
struct routes {
    struct route ways[ROUTES_MAX];
    size_t n, current;
    int64_t again_ns; /* monotonic; when the first is tried again */
};

/* -EINVAL with a sentence where the settings name a command of the site's own that cannot be. */
int routes_open(const struct source_settings *settings, bool is_json, enum kind kind,
                struct routes *ret, struct err *err);
void routes_close(struct routes *routes);

struct route *routes_current(struct routes *routes, int64_t now_ns);

/* After the current one has failed: whether that is for lack of it, and another is current now. */
bool routes_pass_over(struct routes *routes, int code, const struct err *err, int64_t now_ns);

/* The second questions: answer_partitions for the nodes, answer_config_user for the configuration.
 */
struct route route_of_partitions(const struct source_settings *settings);
struct route route_of_user(const struct source_settings *settings);

/* The only question where nothing more is wanted than whose each job is. -EINVAL as routes_open. */
int route_of_owners(const struct source_settings *settings, struct route *ret, struct err *err);
void route_close(struct route *route);

#endif
