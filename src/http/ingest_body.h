/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an agent posts to /ingest: {"cluster": NAME, "records": [RECORD, …]}. Of a record, job_id,
 * node, begin_time and end_time must be there; all its other members are its document, whatever
 * they are called. docs/store.md. */
#ifndef SONDE_HTTP_INGEST_BODY_H
#define SONDE_HTTP_INGEST_BODY_H

#include "base/arena.h"
#include "base/err.h"
#include "model/record.h"

enum {
    INGEST_BODY_MAX = 4 << 20,
    INGEST_RECORDS_MAX = 2000,
    INGEST_DOCUMENT_MAX = 64 * 1024,
};

struct ingest_body {
    struct str cluster; /* empty: not told */
    struct final_record *records;
    size_t n_records;
};

/* All of it, in the arena; documents are written anew, so that nothing in them is but what was
 * understood. -EBADMSG with a sentence if anything is wrong: then *ret_bad is the index of the
 * record that is at fault, or -1 if none is. */
int ingest_body_read(struct str text, struct arena *arena, struct ingest_body *ret,
                     int64_t *ret_bad, struct err *err);

#endif
