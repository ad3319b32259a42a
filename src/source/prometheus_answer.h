/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Prometheus says to a query, read in pieces: prometheus.io/docs/prometheus/latest/querying/
 * api, "Format overview", "Instant vectors" and "Range vectors". */
#ifndef SONDE_SOURCE_PROMETHEUS_ANSWER_H
#define SONDE_SOURCE_PROMETHEUS_ANSWER_H

#include "source/prometheus.h"

enum { PROMETHEUS_WORDS = 300 };

struct prometheus_answer;

/* What was said besides samples. Texts are cut, and fit for a log. */
struct prometheus_said {
    enum { PROMETHEUS_SILENT, PROMETHEUS_SUCCESS, PROMETHEUS_ERROR } status;
    char error_type[40], error[PROMETHEUS_WORDS];
    char warning[PROMETHEUS_WORDS]; /* the first */
    bool is_partial;                /* VictoriaMetrics: some of its storage did not answer */
    size_t samples, skipped;        /* of a range: series */
};

/* Of the query, only the labels and the sink are looked at, and of a range its ends and step; it
 * must last as long as the answer. */
struct prometheus_answer *prometheus_answer_of_query(const struct prometheus_query *query);
struct prometheus_answer *prometheus_answer_of_range(const struct prometheus_range *range);
struct prometheus_answer *prometheus_answer_free(struct prometheus_answer *answer); /* NULL */

/* -EBADMSG or -EFBIG, as json_error. */
int prometheus_answer_feed(struct prometheus_answer *answer, struct str piece, struct err *err);

/* No more comes. 0 for a whole document that says error, or success and what was asked for, a
 * vector or a matrix; -EBADMSG with a sentence for any other. */
int prometheus_answer_end(struct prometheus_answer *answer, struct err *err);

/* So far; also of a document that could not be read to its end. */
const struct prometheus_said *prometheus_answer_said(const struct prometheus_answer *answer);

#endif
