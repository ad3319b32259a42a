/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Prometheus, or whatever answers as one (Thanos, Mimir, VictoriaMetrics): instant and range
 * queries of its HTTP API (prometheus.io/docs/prometheus/latest/querying/api). */
#ifndef SONDE_SOURCE_PROMETHEUS_H
#define SONDE_SOURCE_PROMETHEUS_H

#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

struct prometheus;

/* Texts are copied. */
struct prometheus_settings {
    struct str url;  /* "http://host:9090", also with a path: "https://host/select/0/prometheus";
                      * a user may stand in it, a password should not */
    struct str user; /* of basic auth, if it does not stand in the URL; or empty */
    struct str password_file; /* or empty; this and the next are read again at each query */
    struct str bearer_file;   /* or empty */
    struct str ca_file;       /* certificates to trust instead of the system's; or empty */
    size_t max_answer;
    int64_t timeout_ms; /* for one query, if that has longer; 0: as long as each has */
};

/* -EINVAL with a sentence for a URL that cannot be used, two ways to say who we are, a user without
 * a password file. */
int prometheus_open(const struct prometheus_settings *settings, struct prometheus **ret,
                    struct err *err);
struct prometheus *prometheus_close(struct prometheus *prometheus); /* returns NULL */

/* "http://host:9090": for sentences. */
const char *prometheus_origin(const struct prometheus *prometheus);

enum { PROMETHEUS_LABELS = 6, PROMETHEUS_WARNING = 300 };

/* One element of a vector, valid until the sink returns. */
struct prometheus_sample {
    struct str label[PROMETHEUS_LABELS]; /* as asked for by name; empty: it has none such */
    double value;                        /* also NAN, and infinite */
};

struct prometheus_query {
    const char *text;
    int64_t time;                          /* for which it is asked, UTC seconds; 0: now */
    const char *labels[PROMETHEUS_LABELS]; /* whose values are wanted */
    int64_t timeout_ms;
    const atomic_bool *cancelled; /* as struct fetch */
    void (*sink)(void *ctx, const struct prometheus_sample *sample);
    void *ctx;
};

struct prometheus_result {
    size_t bytes, samples;
    size_t skipped;                   /* elements that are not what was asked for */
    char warning[PROMETHEUS_WARNING]; /* what it warned of: part of the data may be missing; or
                                         empty */
};

/* 0 when a whole answer with "status":"success" came and is a vector. As fetch_run otherwise, and
 * -EACCES (401, 403), -EBADMSG (not JSON, not a vector, cut off), -EREMOTEIO (any other status, or
 * "status":"error", whose words are in the sentence). The sink may have been called before a
 * failure: what it was told counts only after success. One thread at a time. */
int prometheus_query(struct prometheus *prometheus, const struct prometheus_query *query,
                     struct prometheus_result *ret, struct err *err);

struct prometheus_point {
    double time, value; /* seconds; the value as that of a sample */
};

/* One series of a matrix, valid until the sink returns. */
struct prometheus_series {
    struct str label[PROMETHEUS_LABELS];
    const struct prometheus_point *point; /* in the order in which they came, at least one */
    size_t n_points;
};

struct prometheus_range {
    const char *text;
    int64_t begin, end, step_seconds; /* UTC seconds; both ends belong to it */
    const char *labels[PROMETHEUS_LABELS];
    int64_t timeout_ms;
    const atomic_bool *cancelled;
    void (*sink)(void *ctx, const struct prometheus_series *series);
    void *ctx;
};

/* As prometheus_query, of a matrix: its result counts series as samples. One that has more points
 * than there are steps is none. */
int prometheus_range(struct prometheus *prometheus, const struct prometheus_range *range,
                     struct prometheus_result *ret, struct err *err);

#endif
