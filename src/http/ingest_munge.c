/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the munge credentials of posts to /ingest. */
#include "http/ingest_munge.h"

#include "base/arena.h"
#include "base/map.h"

enum {
    LONGEST_CREDENTIAL = 2000,
    /* A credential costs munged 0.1 ms. A user of the node must not be able to keep its agent out
     * with a few wrong ones. */
    MOST_REFUSED = 50, /* from one address, in a second */
};

struct ingest_munge {
    struct unsealer *unsealer;
    struct node_addresses *nodes;
    char *socket; /* or NULL */
    uid_t *users;
    size_t n_users;
};

struct ingest_munge *ingest_munge_new(const struct ingest_munge_config *config)
{
    struct ingest_munge *munge = heap_alloc(sizeof(*munge));
    struct unsealer_config credentials = config->credentials;

    munge->socket = credentials.socket ? heap_str(str_of(credentials.socket)) : NULL;
    credentials.socket = munge->socket;
    credentials.max_refused = MOST_REFUSED;
    credentials.refused_ns = NS_PER_SEC;
    munge->unsealer = unsealer_new(&credentials);
    munge->nodes = node_addresses_new(config->lookup, credentials.clock);
    munge->n_users = config->n_users;
    munge->users = heap_array(config->n_users, sizeof(*munge->users));
    memcpy(munge->users, config->users, config->n_users * sizeof(*munge->users));
    return munge;
}

struct ingest_munge *ingest_munge_free(struct ingest_munge *munge)
{
    if (munge) {
        node_addresses_free(munge->nodes);
        unsealer_free(munge->unsealer);
        free(munge->users);
        free(munge->socket);
        free(munge);
    }
    return NULL;
}

int ingest_munge_admit(struct ingest_munge *munge, struct str credential, struct str peer,
                       struct err *err)
{
    if (credential.n > LONGEST_CREDENTIAL)
        return err_set(err, EACCES, "the munge credential is too long");
    return unsealer_check(munge->unsealer, map_hash(peer), err);
}

static int check_user(const struct ingest_munge *munge, uid_t uid, struct err *err)
{
    for (size_t i = 0; i < munge->n_users; i++)
        if (munge->users[i] == uid)
            return 0;
    return err_set(err, EPERM,
                   "the munge credential was made by user %u, who is not in --ingest.users of the "
                   "exporter",
                   (unsigned)uid);
}

/* What comes through a unix socket has no address. */
static void add_peer(struct ingest_sender *sender, struct str text)
{
    struct network address;

    if (network_read(text, &address) && address.family != AF_UNIX)
        sender->addresses[sender->n_addresses++] = address;
}

/* A host that knows itself by a loopback address only, as Debian configures it, is every such host:
 * the address is of use only on this one. */
static void add_origin(struct ingest_sender *sender, struct in_addr origin, bool is_remote)
{
    struct network address = { .family = AF_INET, .bits = 32 };

    memcpy(address.address, &origin, sizeof(origin));
    if (origin.s_addr == INADDR_ANY || (is_remote && network_is_local(&address)))
        return;
    sender->addresses[sender->n_addresses++] = address;
}

static bool is_local(struct str peer)
{
    struct network address;

    return network_read(peer, &address) && network_is_local(&address);
}

static void note_addresses(struct ingest_sender *sender, struct str peer, bool is_proxied,
                           struct in_addr origin)
{
    if (!is_proxied)
        add_peer(sender, peer);
    add_origin(sender, origin, is_proxied || !is_local(peer));
}

/* A credential by another user is no attempt to guess: munged vouches for it. */
static int open_claim(struct ingest_munge *munge, struct str credential, struct str peer,
                      struct buf *claim, struct munge_origin *ret, struct err *err)
{
    int code = unsealer_open(munge->unsealer, credential, claim, ret, err);

    if (code == -EFBIG)
        code = err_set(err, EACCES, "the munge credential was not made for /ingest");
    if (code == -EACCES)
        unsealer_blame(munge->unsealer, map_hash(peer));
    if (code == -ENOENT)
        code = err_set(err, EAGAIN, "munged does not answer on the exporter's host");
    return code == 0 ? check_user(munge, ret->uid, err) : code;
}

int ingest_munge_open(struct ingest_munge *munge, struct str credential, struct str peer,
                      bool is_proxied, struct ingest_sender *ret, struct err *err)
{
    struct munge_origin origin;
    struct buf claim;
    int code;

    buf_init(&claim, sizeof(ret->claim) - 1);
    code = open_claim(munge, credential, peer, &claim, &origin, err);
    if (code == 0) {
        *ret = (struct ingest_sender){ 0 };
        snprintf(ret->claim, sizeof(ret->claim), "%.*s", STR_ARG(buf_str(&claim)));
        note_addresses(ret, peer, is_proxied, origin.address);
    }
    buf_free(&claim);
    return code;
}

int ingest_munge_check_body(const struct ingest_sender *sender, struct str body, struct err *err)
{
    char claim[INGEST_CLAIM_SIZE];
    int code = ingest_claim(body, claim, err);

    if (code == 0 && strcmp(claim, sender->claim) != 0)
        code = err_set(err, EPERM, "the munge credential was made for another post");
    return code;
}

int ingest_munge_check_node(struct ingest_munge *munge, const struct ingest_sender *sender,
                            struct str node, struct err *err)
{
    return node_addresses_check(munge->nodes, node, sender->addresses, sender->n_addresses, err);
}
