/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Client addresses and their shares. When all connections are in use, an address that has more than
 * a quarter of them loses one. Connections on which a request is being handled can't be closed, so
 * their number is limited: of one address, in all, and with a reserve for scrapes. */
#include "http/internal.h"

static unsigned share(const struct http_server *server)
{
    return server->max_connections / 4 + 1;
}

static void free_row(struct clients *clients, struct client *client)
{
    client->next = clients->free;
    clients->free = client;
}

/* A row for each connection is enough for any number of addresses. */
void clients_init(struct http_server *server)
{
    struct clients *clients = &server->clients;

    clients->n_chains = 1;
    while (clients->n_chains < server->n_slots)
        clients->n_chains *= 2;
    clients->chains = heap_alloc(clients->n_chains * sizeof(clients->chains[0]));
    clients->rows = heap_alloc(server->n_slots * sizeof(clients->rows[0]));
    list_init(&clients->crowded);
    for (size_t i = server->n_slots; i-- > 0;)
        free_row(clients, &clients->rows[i]);
}

void clients_free(struct http_server *server)
{
    free(server->clients.chains);
    free(server->clients.rows);
}

static struct client **chain_of(struct clients *clients, uint64_t key)
{
    return &clients->chains[key & (clients->n_chains - 1)];
}

static struct client *take_row(struct clients *clients, uint64_t key)
{
    struct client *client = clients->free;

    clients->free = client->next;
    *client = (struct client){ .key = key };
    list_init(&client->evictable);
    return client;
}

static struct client *find_row(struct clients *clients, uint64_t key)
{
    struct client **chain = chain_of(clients, key), *client = *chain;

    while (client && client->key != key)
        client = client->next;
    if (client)
        return client;
    client = take_row(clients, key);
    client->next = *chain;
    *chain = client;
    return client;
}

static bool is_trusted_proxy(const struct conn *conn)
{
    const struct http_server *server = conn->listener->server;
    struct network peer;

    if (!server->n_proxies || !network_read(http_peer(&conn->exchange), &peer))
        return false;
    for (size_t i = 0; i < server->n_proxies; i++)
        if (network_contains(&server->proxies[i], &peer))
            return true;
    return false;
}

static void count(struct http_server *server, struct client *client, int change)
{
    client->n += (unsigned)change;
    if (client->n <= share(server))
        list_remove(&client->crowded);
    else if (!client->crowded.next)
        list_append(&server->clients.crowded, &client->crowded);
}

void client_join(struct conn *conn)
{
    struct http_server *server = conn->listener->server;
    struct clients *clients = &server->clients;

    conn->client = is_trusted_proxy(conn) ? take_row(clients, 0)
                                          : find_row(clients, http_client(&conn->exchange) | 1);
    list_append(&conn->client->evictable, &conn->of_client);
    count(server, conn->client, 1);
}

static void drop_row(struct clients *clients, struct client *client)
{
    struct client **at = chain_of(clients, client->key);

    while (client->key && *at != client)
        at = &(*at)->next;
    if (client->key)
        *at = client->next;
    free_row(clients, client);
}

void client_leave(struct conn *conn)
{
    struct http_server *server = conn->listener->server;
    struct client *client = conn->client;

    if (conn->stage == STAGE_BUSY) {
        client->n_busy--;
        server->clients.n_busy--;
    }
    list_remove(&conn->of_client);
    count(server, client, -1);
    conn->client = NULL;
    if (!client->n)
        drop_row(&server->clients, client);
}

void client_note_stage(struct conn *conn, enum stage from, enum stage to)
{
    struct client *client = conn->client;
    int change = (to == STAGE_BUSY) - (from == STAGE_BUSY);

    client->n_busy += (unsigned)change;
    conn->listener->server->clients.n_busy += (unsigned)change;
    if (to == STAGE_BUSY)
        list_remove(&conn->of_client);
    else if (to == STAGE_STALLED)
        list_prepend(&client->evictable, &conn->of_client);
    else if (to != STAGE_IDLE) /* nothing has happened since it came to rest */
        list_append(&client->evictable, &conn->of_client);
}

bool client_may_wait(const struct http_exchange *x)
{
    const struct http_server *server = exchange_server(x);
    bool is_urgent = x->route && x->route->is_urgent;
    unsigned most = server->max_connections - server->max_connections / (is_urgent ? 4 : 2);

    return server->clients.n_busy < most && x->conn->client->n_busy < share(server);
}

static bool has_verified_certificate(const struct conn *conn)
{
    const union MHD_ConnectionInfo *info;

    if (!conn->web)
        return false;
    info = MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return tls_is_verified(conn->web->tls, info->tls_session);
}

bool http_is_proxied(const struct http_exchange *x)
{
    return is_trusted_proxy(x->conn);
}

bool http_is_trusted(const struct http_exchange *x)
{
    struct network peer;

    return http_user(x).n || (network_read(http_peer(x), &peer) && network_is_local(&peer)) ||
           is_trusted_proxy(x->conn) || has_verified_certificate(x->conn);
}

static struct conn *first_evictable(const struct client *client)
{
    struct link *first = list_first(&client->evictable);

    return first ? PART_OF(first, struct conn, of_client) : NULL;
}

struct conn *client_find_crowded(const struct http_server *server, const struct conn *newcomer)
{
    struct conn *found = NULL;

    if (newcomer && newcomer->client->n > share(server))
        found = first_evictable(newcomer->client);
    for (struct link *link = list_first(&server->clients.crowded); link && !found;
         link = list_next(&server->clients.crowded, link))
        found = first_evictable(PART_OF(link, struct client, crowded));
    return found;
}
