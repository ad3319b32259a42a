/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An edition is a section as scrapers see it: beside the facts, one rendered and compressed segment
 * for each collector made of them and each format that somebody has asked for. A snapshot is the
 * newest edition of every kind. Both are immutable and shared by counting references. */
#ifndef SONDE_SNAPSHOT_PUBLISH_H
#define SONDE_SNAPSHOT_PUBLISH_H

#include "collector/collector.h"
#include "metric/segment.h"

struct clock;

#define FORMAT_BIT(format) (1u << (format))

struct publish_config {
    unsigned generation;      /* editions of another one are to be rendered anew */
    collector_set collectors; /* which are switched on */
    struct str const_labels;  /* as metric_writer */
    size_t max_segment;       /* bytes that one collector may render; more is cut off and told */
    const struct clock *clock;
};

struct edition_collector {
    struct segment
        *segments[METRIC_FORMATS]; /* NULL: not of this kind, off, or format not wanted */
    double seconds;                /* what the last rendering took */
    uint64_t samples, duplicates, folded;
    bool is_over; /* it hit max_segment: its segments are empty */
};

struct edition {
    atomic_uint refs;
    struct section *section;
    unsigned generation; /* of the publish_config */
    unsigned formats;    /* FORMAT_BITs that have been rendered */
    struct edition_collector collectors[COLLECTORS_MAX];
};

/* Renders what `formats` asks for. Segments that `older`, an edition of the same section, has are
 * taken from it. older may be NULL. */
struct edition *edition_new(const struct publish_config *config, struct section *section,
                            unsigned formats, const struct edition *older);
struct edition *edition_ref(struct edition *edition);
struct edition *edition_unref(struct edition *edition);

struct snapshot {
    atomic_uint refs;
    struct edition *editions[KINDS]; /* NULL: nothing has been seen yet, or it was withdrawn */
};

struct snapshot *snapshot_new(void);
/* A copy of the old one, with one edition in place of another. Takes the edition over. */
struct snapshot *snapshot_with(const struct snapshot *old, enum kind kind, struct edition *edition);
struct snapshot *snapshot_ref(struct snapshot *snapshot);
struct snapshot *snapshot_unref(struct snapshot *snapshot);

#endif
