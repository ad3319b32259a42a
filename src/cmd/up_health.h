/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde up` says of itself, for the page of that: what each stage of its work cost, the last
 * hundred times, and how its parts are. */
#ifndef SONDE_CMD_UP_HEALTH_H
#define SONDE_CMD_UP_HEALTH_H

#include "http/metrics.h"
#include "record/recorder.h"
#include "web/ticker.h"

struct up_health;

struct up_health *up_health_new(void);
struct up_health *up_health_free(struct up_health *health); /* returns NULL */

/* Notes looks and renderings of a cluster that are new since the last call. Any thread, one at a
 * time. */
void up_health_note(struct up_health *health, size_t cluster, const struct engine_cluster *of,
                    const struct snapshot *snapshot);

/* What adding up a board, or something else that is no look, took. */
void up_health_add(struct up_health *health, const char *stage, double seconds);

/* The document of web/health_facts.h, in the arena. Either of the last two may be NULL. */
struct str up_health_put(struct up_health *health, struct arena *arena, struct recorder *recorder,
                         struct ticker *ticker, bool has_agent);

#endif
