/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody asks the recorder's thread to do, and its answer. It holds copies of all it was
 * given, so that who has asked may leave at any time, also while a disk that hangs is written to.
 */
#ifndef SONDE_RECORD_REQUEST_H
#define SONDE_RECORD_REQUEST_H

#include "base/list.h"
#include "record/changes.h"
#include "record/recorder.h"

struct request;

/* On the recorder's thread, in a transaction. */
typedef int request_run(struct request *request, struct store *store, struct str cluster,
                        const struct changes *seen, struct err *err);

struct request {
    struct link link;
    request_run *run;
    bool is_written;           /* it changes the store */
    bool is_taken;             /* by the thread, which then is its owner until it is done */
    atomic_bool is_done;       /* code and err are final */
    bool is_abandoned;         /* nobody waits for it any longer: the thread frees it */
    void (*notify)(void *ctx); /* when it is done; or NULL */
    void *notify_ctx;
    int64_t since_ns;
    struct arena arena;
    int code; /* 0 or what err says */
    struct err err;

    struct record_batch batch; /* its cluster, whatever is asked */
    const char *const *names;  /* of marks */
    int64_t *values;
    int64_t as_of; /* of open runs, as what follows */
    uint32_t after;
    uint32_t *ids;
    size_t most, n;
};

struct request *request_put(const struct record_batch *batch);
struct request *request_marks(size_t cluster, const char *const *names, size_t n);
struct request *request_open_runs(size_t cluster, int64_t as_of, uint32_t after, size_t most);
struct request *request_free(struct request *request); /* returns NULL */

#endif
