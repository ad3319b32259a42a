/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that a person sees who opens the exporter's address in a browser. */
#ifndef SONDE_HTTP_LANDING_H
#define SONDE_HTTP_LANDING_H

#include "base/buf.h"
#include "collector/collector.h"

void landing_page(struct buf *out, const char *metrics_path, const char *source, bool simulated,
                  collector_set on, const char *trace_path); /* NULL: nothing is traced */

#endif
