/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the munge credentials of posts to /ingest. */
#include "http/ingest_munge.h"

#include "base/arena.h"

enum { LONGEST_CREDENTIAL = 2000 };

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

int ingest_munge_admit(struct ingest_munge *munge, uint64_t client, struct err *err)
{
    return unsealer_check(munge->unsealer, client, err);
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

static void add_address(struct ingest_sender *sender, struct str text)
{
    struct network address;

    /* What comes through a unix socket has only the address of its credential. */
    if (network_read(text, &address) && address.family != AF_UNIX)
        sender->addresses[sender->n_addresses++] = address;
}

static void add_origin(struct ingest_sender *sender, struct in_addr origin)
{
    struct network address = { .family = AF_INET, .bits = 32 };

    if (origin.s_addr == INADDR_ANY)
        return;
    memcpy(address.address, &origin, sizeof(origin));
    sender->addresses[sender->n_addresses++] = address;
}

int ingest_munge_open(struct ingest_munge *munge, struct str credential, uint64_t client,
                      struct str peer, struct ingest_sender *ret, struct err *err)
{
    struct munge_origin origin;
    struct buf claim;
    int code;

    if (credential.n > LONGEST_CREDENTIAL)
        return err_set(err, EACCES, "the munge credential is too long");
    buf_init(&claim, sizeof(ret->claim) - 1);
    code = unsealer_open(munge->unsealer, credential, &claim, &origin, err);
    if (code == 0)
        code = check_user(munge, origin.uid, err);
    if (code == 0) {
        *ret = (struct ingest_sender){ 0 };
        snprintf(ret->claim, sizeof(ret->claim), "%.*s", STR_ARG(buf_str(&claim)));
        add_address(ret, peer);
        add_origin(ret, origin.address);
    }
    buf_free(&claim);
    if (code == -EFBIG)
        code = err_set(err, EACCES, "the munge credential was not made for /ingest");
    if (code == -EACCES || code == -EPERM)
        unsealer_blame(munge->unsealer, client);
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
