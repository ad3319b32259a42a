/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the text format of samples (prometheus.io/docs/instrumenting/exposition_formats), as an
 * agent answers it. Whoever wrote it is a stranger: every line has a ceiling, and one that is none
 * is passed over and counted. */
#ifndef SONDE_METRIC_READER_H
#define SONDE_METRIC_READER_H

#include "base/str.h"

enum { METRIC_READ_LABELS = 16, METRIC_READ_LINE = 64 * 1024 };

struct metric_sample {
    struct str name;
    struct {
        struct str name, value; /* unescaped */
    } label[METRIC_READ_LABELS];
    size_t n_labels;
    double value; /* also NAN and infinite */
};

/* Of a whole answer. Texts are valid during the call of `see`. Returns how many lines were passed
 * over. */
size_t metric_read(struct str text, void (*see)(void *ctx, const struct metric_sample *sample),
                   void *ctx);

/* The value of a label; empty: it has none such. */
struct str metric_label(const struct metric_sample *sample, const char *name);

#endif
