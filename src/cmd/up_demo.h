/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The past of the simulated cluster: a day of it, computed into the store and the series of
 * `sonde up --demo` while that is starting, and what jobs use from then on. */
#ifndef SONDE_CMD_UP_DEMO_H
#define SONDE_CMD_UP_DEMO_H

#include "base/log.h"
#include "record/recorder.h"
#include "source/sim.h"
#include "store/ticks.h"

struct up_demo;

struct up_demo_config {
    struct sim sim;
    struct recorder *recorder;               /* NULL: there is no store */
    const struct ticks_config *series;       /* NULL: there are none */
    int (*then)(void *ctx, struct err *err); /* when the series have their past: who goes on with
                                              * them; on its thread */
    void *ctx;
    const struct clock *clock;
    struct log *log;
};

int up_demo_start(const struct up_demo_config *config, struct up_demo **ret, struct err *err);
struct up_demo *up_demo_stop(struct up_demo *demo); /* returns NULL */

/* For ticker_config: ctx is a struct sim. */
void up_demo_more(void *sim, int64_t now, struct arena *arena, struct tick_sample **ret,
                  size_t *ret_n);

/* Writes a file of allocations for some of its accounts. */
int up_demo_promise(const struct sim *sim, int64_t now, const char *path, struct err *err);

#endif
