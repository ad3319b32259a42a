/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs `sonde report --drain --follow` beside a server, so that mails are sent without another
 * service, and cairo and pango are in a process of their own. If it ends, it is started again. */
#ifndef SONDE_CMD_DRAIN_CHILD_H
#define SONDE_CMD_DRAIN_CHILD_H

#include "base/log.h"

struct drain_child;

struct drain_child_config {
    const char *program;     /* NULL: sonde-report, beside this one */
    const char *config_file; /* that it is given; copied, as the program */
    const struct clock *clock;
    struct log *log;
};

int drain_child_start(const struct drain_child_config *config, struct drain_child **ret,
                      struct err *err);

/* Asks it to end, and kills it if it does not in time. Returns NULL. */
struct drain_child *drain_child_stop(struct drain_child *child);

/* Begins with that and returns at once. NULL is allowed. */
void drain_child_end(struct drain_child *child);

bool drain_child_is_up(struct drain_child *child);

#endif
