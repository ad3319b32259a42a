/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits the rate and the posts in progress of each sender. */
#include "http/ingest_senders.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PLACES =
        16384,  /* a power of 2: the senders that are remembered, more than a cluster has nodes */
    PROBES = 8, /* places where a sender may be */
    LONGEST_WAIT = 60,
};

struct sender {
    uint64_t hash;  /* of its name; 0: the place is free */
    double credit;  /* records that it may send; below 0 after a large post */
    int64_t at_ns;  /* of the credit */
    unsigned posts; /* in progress */
    uint64_t bytes; /* likewise */
};

struct senders {
    struct senders_config config;
    struct sender places[PLACES];
};

struct senders *senders_new(const struct senders_config *config)
{
    struct senders *senders = heap_alloc(sizeof(*senders));

    senders->config = *config;
    return senders;
}

struct senders *senders_free(struct senders *senders)
{
    free(senders);
    return NULL;
}

/* The credit that a sender has now. */
static double credit_of(const struct sender *sender, int64_t now_ns)
{
    double credit =
        sender->credit + (double)(now_ns - sender->at_ns) / NS_PER_SEC * SENDERS_RECORDS_PER_SECOND;

    return credit < SENDERS_BURST ? credit : SENDERS_BURST;
}

/* Of two places without a post in progress, one that says less is given up first. */
static bool is_better(const struct sender *a, const struct sender *b, int64_t now_ns)
{
    if (!b || !a->hash || !b->hash)
        return !b || (!a->hash && b->hash);
    return credit_of(a, now_ns) > credit_of(b, now_ns);
}

/* Its place; or one that is free, or that is given up for it; NULL if all have posts in progress.
 */
static struct sender *find_place(struct senders *senders, uint64_t hash, int64_t now_ns)
{
    struct sender *best = NULL;

    for (uint64_t i = 0; i < PROBES; i++) {
        struct sender *sender = &senders->places[(hash + i) % PLACES];

        if (sender->hash == hash)
            return sender;
        if (!sender->posts && is_better(sender, best, now_ns))
            best = sender;
    }
    return best;
}

static unsigned wait_of(double credit)
{
    double seconds = 1 - credit / SENDERS_RECORDS_PER_SECOND;

    return seconds < LONGEST_WAIT ? (unsigned)seconds : LONGEST_WAIT;
}

int senders_enter(struct senders *senders, struct str name, uint64_t bytes, int64_t now_ns,
                  struct sender **ret, unsigned *ret_seconds)
{
    uint64_t hash = map_hash(name) | 1;
    struct sender *sender = find_place(senders, hash, now_ns);

    *ret_seconds = 2;
    if (!sender)
        return -EBUSY;
    if (sender->hash != hash)
        *sender = (struct sender){ .hash = hash, .credit = SENDERS_BURST, .at_ns = now_ns };
    sender->credit = credit_of(sender, now_ns);
    sender->at_ns = now_ns;
    if (sender->credit <= 0)
        *ret_seconds = wait_of(sender->credit);
    if (sender->credit <= 0 || sender->posts >= senders->config.max_posts ||
        sender->bytes + bytes > senders->config.max_bytes)
        return -EBUSY;
    sender->posts++;
    sender->bytes += bytes;
    *ret = sender;
    return 0;
}

void senders_leave(struct sender *sender, uint64_t bytes, size_t n_records)
{
    sender->posts--;
    sender->bytes -= bytes;
    sender->credit -= (double)n_records;
}
