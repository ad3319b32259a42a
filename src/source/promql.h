/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts inside a PromQL query (prometheus.io/docs/prometheus/latest/querying/basics): the only
 * place that knows how they are written. */
#ifndef SONDE_SOURCE_PROMQL_H
#define SONDE_SOURCE_PROMQL_H

#include "base/buf.h"
#include "base/err.h"

/* A string, with quotes. */
void promql_string(struct buf *to, struct str text);

/* The string, with quotes, of a regular expression that matches these texts and no other. At least
 * one. */
void promql_one_of(struct buf *to, const struct str *texts, size_t n);

/* … of one that matches all that begins as they all do. */
void promql_beginning(struct buf *to, const struct str *texts, size_t n);

/* Whether it can stand between the braces of a selector: label="value",other=~"a|b". -EINVAL with a
 * sentence if not, or if it is empty. */
int promql_check_matchers(struct str matchers, struct err *err);

#endif
