/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source of KIND_LUSTRE: what a Prometheus says of Lustre's job ids, joined with Slurm's jobs
 * and with users' names. Its three queries are those of prometheus-cluster-exporter. */
#ifndef SONDE_SOURCE_LUSTRE_H
#define SONDE_SOURCE_LUSTRE_H

#include "base/users.h"
#include "source/prometheus.h"
#include "source/source.h"

enum { LUSTRE_QUERIES = 9 }; /* that a look asks at most */

/* The newest section of jobs, waited for until then; NULL with a sentence: there is none. Unref it.
 */
typedef struct section *lustre_jobs(void *ctx, int64_t deadline_ns, const atomic_bool *cancelled,
                                    struct err *err);

/* Texts need to last only while the source is opened. */
struct lustre_settings {
    struct prometheus_settings prometheus;
    struct str time_range;     /* "1m": what rates are taken over */
    struct str matchers;       /* that the series must have, cluster="a",fs="b"; or empty */
    const struct str *formats; /* of ids, tried in turn before Lustre's usual ones */
    size_t n_formats;
    int64_t query_timeout_ns; /* of each query; the deadline of the look is that of all */
    struct users *users;      /* of the same clock; must outlive the source, as ctx */
    lustre_jobs *jobs;
    void *ctx;
};

/* -EINVAL with a sentence if a setting is wrong. */
int source_open_lustre(const struct lustre_settings *settings, const struct clock *clock,
                       struct source **ret, struct err *err);

#endif
