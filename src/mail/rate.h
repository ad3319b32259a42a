/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many mails each address got lately, and all together; kept in the spool (the file "sent"), so
 * that a restart does not begin to count anew. Times are UTC seconds. */
#ifndef SONDE_MAIL_RATE_H
#define SONDE_MAIL_RATE_H

#include "base/err.h"
#include "base/map.h"

enum {
    RATE_MOST_PER_HOUR = 1000,      /* to one address; a larger limit counts as this one */
    RATE_ALL_PER_MINUTE = 300,      /* to all together */
    RATE_SUMMARY_SECONDS = 15 * 60, /* from one summary to the next, to one address */
};

struct rate_who {
    struct str address;
    int64_t *sent_times; /* of the last mails, a ring of per_hour */
    size_t next;
    int64_t summary_time; /* of the last */
    int64_t pause_until;  /* it is refused for now; not kept */
    size_t n_waiting;     /* the drain's */
    int64_t oldest_time;  /* likewise */
    bool has_summary;     /* likewise */
};

struct rate {
    int directory;
    size_t per_hour;
    struct arena arena;
    struct map index; /* by address: place in whos + 1 */
    struct rate_who *whos;
    size_t n, n_room;
    int64_t minute; /* that is counted */
    uint64_t n_in_minute, file_bytes;
};

/* Reads the file, if there is one; what is in it and cannot be read is passed over. */
void rate_open(struct rate *rate, int directory, uint64_t per_hour, int64_t now);
void rate_close(struct rate *rate);

size_t rate_who(struct rate *rate, struct str address);

/* When the next mail may go there, or to anybody; not after `now`: it may go. */
int64_t rate_next(const struct rate *rate, size_t who, int64_t now);
int64_t rate_next_of_all(const struct rate *rate, int64_t now);

/* One has gone there, or was refused for good. */
int rate_note(struct rate *rate, size_t who, bool is_summary, int64_t now, struct err *err);

#endif
