/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An edition is a section as scrapers see it: beside the facts, one rendered and compressed segment
 * for each collector made of them and each format that somebody has asked for. A snapshot is the
 * newest edition of every kind. Both are immutable and shared by counting references. */
#ifndef SONDE_SNAPSHOT_PUBLISH_H
#define SONDE_SNAPSHOT_PUBLISH_H

#include "collector/collector.h"
#include "metric/segment.h"
#include "metric/split.h"

struct clock;

struct publish_config {
    collector_set collectors;            /* which are switched on */
    family_set excluded[COLLECTORS_MAX]; /* by collector: families that are not wanted */
    struct str const_labels;             /* as metric_writer */
    char prefix[METRIC_PREFIX_MAX + 1];  /* of collectors that have one */
    bool is_split;      /* rendered family by family, to stand beside other clusters' */
    bool keeps_facts;   /* somebody looks into the sections after they have been rendered */
    size_t max_segment; /* bytes that one collector may render; more is cut off and told */
    const struct clock *clock;
};

struct edition_collector {
    struct segment
        *segments[METRIC_FORMATS];        /* NULL: not of this kind, off, or format not wanted */
    struct split *splits[METRIC_FORMATS]; /* in their place if is_split */
    double seconds;                       /* what the last rendering took */
    uint64_t samples, duplicates, folded;
    bool is_over; /* it hit max_segment: its segments are empty */
};

struct edition {
    atomic_uint refs;
    struct section *section; /* NULL: nobody looks into it any more, and it is most of the memory */
    unsigned formats;        /* FORMAT_BITs that have been rendered */
    char prefix[METRIC_PREFIX_MAX + 1];
    struct edition_collector collectors[COLLECTORS_MAX];
};

/* Renders what `formats` asks for. */
struct edition *edition_new(const struct publish_config *config, struct section *section,
                            unsigned formats);

/* The same edition in more formats, made from one that it has. */
struct edition *edition_convert(const struct edition *old, unsigned formats);

/* Whether it has that collector in that format. */
bool edition_has(const struct edition *edition, size_t collector, enum metric_format format);

struct edition *edition_ref(struct edition *edition);
struct edition *edition_unref(struct edition *edition);

struct snapshot {
    atomic_uint refs;
    uint64_t serial;                 /* of one refresher: no two have the same */
    struct edition *editions[KINDS]; /* NULL: nothing has been seen yet, or it was withdrawn */
};

struct snapshot *snapshot_new(void);
/* A copy of the old one, with one edition in place of another. Takes the edition over. */
struct snapshot *snapshot_with(const struct snapshot *old, enum kind kind, struct edition *edition);
struct snapshot *snapshot_ref(struct snapshot *snapshot);
struct snapshot *snapshot_unref(struct snapshot *snapshot);

#endif
