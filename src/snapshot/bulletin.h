/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the agent has to say after a tick, rendered and compressed. Only the compressed form is
 * kept: it is a tenth of the text, and nearly every scraper asks for it. Immutable, shared by
 * counting references. */
#ifndef SONDE_SNAPSHOT_BULLETIN_H
#define SONDE_SNAPSHOT_BULLETIN_H

#include "collector/usage.h"
#include "metric/segment.h"

struct bulletin_config {
    usage_collector_set collectors;            /* which are switched on */
    family_set excluded[USAGE_COLLECTORS_MAX]; /* by collector: families that are not wanted */
    size_t max_segment; /* bytes of text that one collector may render; more is left out and told */
};

struct bulletin_collector {
    struct segment *packed[METRIC_FORMATS]; /* without text; NULL: off, or not rendered */
    double seconds;                         /* what rendering took, in all formats */
    uint64_t samples, duplicates, folded;
    bool is_over; /* it hit max_segment: its segments are empty */
};

struct bulletin {
    atomic_uint refs;
    uint64_t serial;  /* of one agent: no two have the same */
    unsigned formats; /* FORMAT_BITs that were rendered */
    int gpu_up;       /* as usage has it */
    struct agent_use agent;
    struct bulletin_collector collectors[USAGE_COLLECTORS_MAX];
};

struct bulletin *bulletin_new(const struct bulletin_config *config, const struct usage *usage,
                              unsigned formats, uint64_t serial);
struct bulletin *bulletin_ref(struct bulletin *bulletin);
struct bulletin *bulletin_unref(struct bulletin *bulletin); /* returns NULL */

/* The place where the newest one hangs: the sampler puts, everybody else takes. */
struct bulletin_board;

struct bulletin_board *bulletin_board_new(void);
struct bulletin_board *bulletin_board_free(struct bulletin_board *board);
void bulletin_board_put(struct bulletin_board *board,
                        struct bulletin *bulletin);                 /* takes it over */
struct bulletin *bulletin_board_take(struct bulletin_board *board); /* NULL: none yet; unref it */

/* Says that somebody wants a format; the sampler renders those that were wanted lately, the text
 * format always where it pushes. As long as nobody wants any, it is the text format: from one that
 * there is, the other can be made. */
void bulletin_board_want(struct bulletin_board *board, enum metric_format format, int64_t mono_ns);
unsigned bulletin_board_wanted(struct bulletin_board *board, int64_t since_mono_ns);

#endif
