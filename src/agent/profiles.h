/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the profile plugins of this node's slurmstepds have told: the latest of each number. All of
 * it belongs to the sampler's thread. */
#ifndef SONDE_AGENT_PROFILES_H
#define SONDE_AGENT_PROFILES_H

#include "model/usage.h"
#include "source/profile_socket.h"

enum {
    PROFILES_STEPS = 4096,    /* kept; what comes beyond any of these is refused */
    PROFILES_DATASETS = 4096, /* of a step */
    PROFILES_VALUES = 65536,  /* of all steps */
};

struct profiles;

/* Takes the socket over; NULL: there is none. */
struct profiles *profiles_new(struct profile_socket *socket);
struct profiles *profiles_free(struct profiles *profiles); /* returns NULL */

/* Takes what waits at the socket, within bounds; true: something has changed. */
bool profiles_hear(struct profiles *profiles, int64_t now_ns);
bool profiles_take(struct profiles *profiles, struct str message, int64_t now_ns);

/* The slurmstepd of that step has ended. If it has not said so itself, it was killed, and what it
 * told goes. `is_only` is for a host with one slurmd, whose name the plugin may spell otherwise. */
void profiles_stepd_ended(struct profiles *profiles, const char *job, const char *step,
                          const char *node, bool is_only);

/* Forgets steps that ended `linger_ns` ago, and those not heard of for three times as long as they
 * had promised, and some seconds. True: some have gone. */
bool profiles_expire(struct profiles *profiles, int64_t now_ns, int64_t linger_ns);
int64_t profiles_due(const struct profiles *profiles); /* not before; INT64_MAX: none is kept */

/* Those that there are, one after another, from NULL; NULL: that was the last. */
const struct profile_use *profiles_next(const struct profiles *profiles,
                                        const struct profile_use *after);

void profiles_count(const struct profiles *profiles, struct agent_use *to);

#endif
