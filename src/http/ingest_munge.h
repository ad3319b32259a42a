/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Munge credentials of agents. One is accepted if a user of --ingest.users made it for the very
 * post that it comes with, and for records of nodes that have the sender's address: that of the
 * connection, if it does not come through a trusted proxy, or that of the host where the credential
 * was made. docs/decisions/munge.md. */
#ifndef SONDE_HTTP_INGEST_MUNGE_H
#define SONDE_HTTP_INGEST_MUNGE_H

#include "http/node_addresses.h"
#include "http/unsealer.h"
#include "model/ingest_claim.h"

struct ingest_munge;

struct ingest_munge_config {
    struct unsealer_config credentials; /* its socket is copied; limits are set here */
    node_lookup lookup;
    const uid_t *users; /* copied */
    size_t n_users;
};

struct ingest_munge *ingest_munge_new(const struct ingest_munge_config *config);
struct ingest_munge *ingest_munge_free(struct ingest_munge *munge); /* returns NULL */

/* Who sent a post. */
struct ingest_sender {
    char claim[INGEST_CLAIM_SIZE];
    struct network addresses[2]; /* of the connection, of the credential */
    size_t n_addresses;
};

/* Before ingest_munge_open, for a credential that came from `peer`, the connection's address as
 * text. -EACCES: it is too long; -EAGAIN: munged does not answer; -EBUSY: too many credentials from
 * there were refused. Never blocks. */
int ingest_munge_admit(struct ingest_munge *munge, struct str credential, struct str peer,
                       struct err *err);

/* On a worker. -EACCES: the credential is not valid; -EPERM: it was made by another user; -EAGAIN:
 * munged does not answer. */
int ingest_munge_open(struct ingest_munge *munge, struct str credential, struct str peer,
                      bool is_proxied, struct ingest_sender *ret, struct err *err);

/* -EPERM if the credential was made for another body. */
int ingest_munge_check_body(const struct ingest_sender *sender, struct str body, struct err *err);

/* On a worker, since the name is resolved: as node_addresses_check. */
int ingest_munge_check_node(struct ingest_munge *munge, const struct ingest_sender *sender,
                            struct str node, struct err *err);

#endif
