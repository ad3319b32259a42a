/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Posts records to an exporter's /ingest, and finds the ones that it does not take: agent/spool.h
 * says what its answers mean. */
#ifndef SONDE_AGENT_SPOOL_POST_H
#define SONDE_AGENT_SPOOL_POST_H

#include "agent/spool_disk.h"

#include <stdatomic.h>

enum {
    SPOOL_POST_RECORDS = 500,
    SPOOL_POST_BYTES = 1 << 20, /* of records, but for a single one that is larger */
};

struct spool_post;

struct spool_post_config {
    const char *url, *token_file, *munge_socket, *ca_file, *cluster; /* as struct spool_config;
                                                                      * copied */
    const atomic_bool *cancelled;
    const struct clock *clock;
};

/* As spool_start. */
int spool_post_new(const struct spool_post_config *config, struct spool_post **ret,
                   struct err *err);
struct spool_post *spool_post_free(struct spool_post *post); /* returns NULL */

/* What became of a batch. */
struct spool_batch {
    size_t n_taken, n_refused;
    int64_t retry_ns; /* that the exporter asks to wait; 0: it does not say */
    struct err err;   /* why not all of it */
    char words[200];  /* of the exporter, about that */
};

/* False if all of it is to be posted again later. A request has this long. The array is used up. */
bool spool_post_send(struct spool_post *post, struct spool_record *records, size_t n,
                     int64_t timeout_ns, struct spool_batch *ret);

#endif
