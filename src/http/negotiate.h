/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an asker's headers say it would like to get: RFC 9110, section 12.5. */
#ifndef SONDE_HTTP_NEGOTIATE_H
#define SONDE_HTTP_NEGOTIATE_H

#include "base/str.h"
#include "metric/writer.h"

/* OpenMetrics where Accept prefers it, else the text format that everybody reads. */
enum metric_format negotiate_format(struct str accept);

/* True if Accept-Encoding allows gzip. */
bool negotiate_gzip(struct str accept_encoding);

/* How long the asker will wait, from X-Prometheus-Scrape-Timeout-Seconds, less a margin for the way
 * back; `otherwise_ns` without one. */
int64_t negotiate_patience_ns(struct str timeout_header, int64_t otherwise_ns);

#endif
