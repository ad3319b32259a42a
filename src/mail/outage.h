/* SPDX-License-Identifier: GPL-2.0-or-later */
/* While no mail can be sent: since when and at which mail it failed, which is kept in the spool
 * (the file "outage"), and until when nothing is tried, ever longer. */
#ifndef SONDE_MAIL_OUTAGE_H
#define SONDE_MAIL_OUTAGE_H

#include "base/clock.h"
#include "mail/spool.h"

struct outage {
    int directory;
    const struct clock *clock;
    int64_t since; /* UTC seconds; 0: all is well */
    char at[MAIL_ENTRY_ID + 1];
    int64_t pause;        /* seconds */
    int64_t paused_until; /* monotonic seconds */
};

void outage_open(struct outage *outage, int directory, const struct clock *clock);

/* The server has failed, at first or again, at the mail of this id. Returns for how many seconds
 * nothing is tried. */
int64_t outage_note(struct outage *outage, struct str id);

/* It has not. True if it had. */
bool outage_end(struct outage *outage);

bool outage_is_paused(const struct outage *outage);

#endif
