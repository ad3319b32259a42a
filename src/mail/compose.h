/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the bytes of a mail from what is in the spool, for mail/drain.h. */
#ifndef SONDE_MAIL_COMPOSE_H
#define SONDE_MAIL_COMPOSE_H

#include "mail/drain.h"
#include "mail/summary.h"

enum { COMPOSE_MAX = 9 << 20 }; /* bytes of a mail: few servers take less */

struct compose {
    const struct drain_config *config;
    struct str address, id; /* whom it is for, and what it is known by */
    int64_t now;            /* UTC seconds */
    struct arena *arena;
};

/* -EAGAIN: a report comes later. */
int compose_entry(const struct compose *compose, const struct mail_entry *entry, struct buf *to,
                  struct err *err);
int compose_summary(const struct compose *compose, const struct summary *summary, struct buf *to,
                    struct err *err);

#endif
