/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that a person sees who opens /trace in a browser. */
#ifndef SONDE_HTTP_TRACE_PAGE_H
#define SONDE_HTTP_TRACE_PAGE_H

#include "base/buf.h"
#include "model/section.h"

enum {
    TRACE_PAGE_ROWS = 1000,
    TRACE_PAGE_BYTES = 8 << 20, /* no page needs more */
};

/* jobs: the queue that the traces were looked up in, or NULL. */
void trace_page(struct buf *out, const struct section *traces, const struct section *jobs,
                bool is_simulated);

#endif
