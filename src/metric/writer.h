/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes metric families as Prometheus text 0.0.4 or OpenMetrics 1.0 (prometheus.io, "Exposition
 * formats"; OpenMetrics specification). What it writes is always valid: label values are escaped
 * and made UTF-8, a family stands in one piece, a sample that was already written is left out.
 *
 * A collector gives each combination of label values once, because it adds up by them first. Two
 * that differ can still come out alike, when bytes that are not UTF-8 are replaced or a long value
 * is cut: such samples are always looked up. The others are, as a net under collectors, as long as
 * the table fits in a core's cache; a lookup that misses it would cost twice what writing does. */
#ifndef SONDE_METRIC_WRITER_H
#define SONDE_METRIC_WRITER_H

#include "base/buf.h"
#include "metric/family.h"
#include "metric/histogram.h"

enum metric_format { METRIC_TEXT, METRIC_OPENMETRICS, METRIC_FORMATS };

#define FORMAT_BIT(format) (1u << (format))

enum {
    METRIC_LABEL_BYTES = 1024, /* a longer label value is cut, at a character */
    METRIC_CHECKED = 16384,    /* samples of one writer that are all looked up for duplicates */
    METRIC_PREFIX_MAX = 100,
};

struct metric_writer {
    struct buf *out;
    enum metric_format format;
    struct str const_labels;       /* written before every family's own: `simulated="true"` or "" */
    const struct family *families; /* the table that families are begun from */
    size_t n_families;

    /* To be set before the first family is begun. */
    struct str prefix;   /* comes before all names: what a metric's name may begin with, or "" */
    family_set excluded; /* that nobody wants */

    bool is_unchecked; /* no label value comes from outside: nothing is looked up for duplicates */
    size_t samples;    /* written */
    size_t duplicates; /* left out */
    size_t folded;     /* series that a collector has added up as other or left out; at least */

    /* the rest is the writer's own */
    family_set begun;
    const struct family *family;
    bool is_muted; /* it is excluded */
    bool header_written;
    size_t n_labels;
    struct buf pieces; /* `name{a="`, `",b="`, `"} ` one after another */
    struct str piece[METRIC_LABELS_MAX + 2];
    uint64_t *seen; /* hashes of samples written, open addressing */
    size_t n_seen, cap_seen;
};

void metric_writer_init(struct metric_writer *writer, struct buf *out, enum metric_format format,
                        struct str const_labels, const struct family *families, size_t n_families);
void metric_writer_free(struct metric_writer *writer);

/* Goes on to a family of the table. Its HELP and TYPE lines come with its first sample. */
void metric_begin(struct metric_writer *writer, size_t family_index);

/* From now on these stand before the family's own labels; also within a family. They must live
 * until others are set. */
void metric_const_labels(struct metric_writer *writer, struct str const_labels);

/* One sample; `values` are those of the family's labels, in order. */
void metric_u64(struct metric_writer *writer, const struct str *values, uint64_t value);
void metric_double(struct metric_writer *writer, const struct str *values, double value);
void metric_histogram(struct metric_writer *writer, const struct str *values,
                      struct histogram_view histogram);

#define METRIC_VALUES(...) ((const struct str[]){ __VA_ARGS__ })

/* The HELP and TYPE lines of a family, and the name in them, but for the prefix: OpenMetrics has it
 * without _total. */
void metric_put_header(struct buf *out, const struct family *family, struct str prefix,
                       enum metric_format format);
struct str metric_header_name(const struct family *family, enum metric_format format);

/* What ends an OpenMetrics exposition; nothing in the text format. */
struct str metric_eof(enum metric_format format);
const char *metric_content_type(enum metric_format format);

#endif
