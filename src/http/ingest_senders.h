/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each sender of posts to /ingest has in progress and how much it has sent lately, so that one
 * node, or somebody who has its token, cannot use up what there is for all. Of one thread. */
#ifndef SONDE_HTTP_INGEST_SENDERS_H
#define SONDE_HTTP_INGEST_SENDERS_H

#include "base/str.h"

#include <stdint.h>

enum {
    SENDERS_RECORDS_PER_SECOND = 1000, /* on average, … */
    SENDERS_BURST = 30000,             /* … after a pause this many at once */
};

struct senders;
struct sender;

struct senders_config {
    unsigned max_posts; /* of one sender in progress */
    uint64_t max_bytes; /* likewise */
};

struct senders *senders_new(const struct senders_config *config);
struct senders *senders_free(struct senders *senders); /* returns NULL */

/* A post of so many bytes begins; *ret is to be given to senders_leave. If the sender has sent too
 * much, or has too much in progress, -EBUSY and the seconds after which to try again. */
int senders_enter(struct senders *senders, struct str name, uint64_t bytes, int64_t now_ns,
                  struct sender **ret, unsigned *ret_seconds);

/* It has ended, and had so many records. */
void senders_leave(struct sender *sender, uint64_t bytes, size_t n_records);

#endif
