/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resolves node names, with a cache. */
#include "http/node_addresses.h"

#include "base/map.h"
#include "base/quote.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>

enum { MOST_NODES = 20000 }; /* then the cache starts anew */

static const int64_t known_ns = 300 * NS_PER_SEC;
static const int64_t unknown_ns = 30 * NS_PER_SEC;

struct entry {
    int64_t until_ns;
    size_t n;
    struct network address[NODE_ADDRESSES_MAX];
};

struct node_addresses {
    node_lookup lookup;
    const struct clock *clock;
    pthread_mutex_t lock; /* of what follows; not held during a lookup */
    struct arena arena;
    struct map entries;
};

static bool read_sockaddr(const struct sockaddr *address, struct network *ret)
{
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;

    if (address->sa_family == AF_INET) {
        *ret = (struct network){ .family = AF_INET, .bits = 32 };
        memcpy(ret->address, &four->sin_addr, sizeof(four->sin_addr));
    } else if (address->sa_family == AF_INET6) {
        *ret = (struct network){ .family = AF_INET6, .bits = 128 };
        memcpy(ret->address, &six->sin6_addr, sizeof(six->sin6_addr));
    } else {
        return false;
    }
    return true;
}

size_t node_lookup_system(const char *name, struct network *to)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    size_t n = 0;

    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return 0;
    for (const struct addrinfo *at = found; at && n < NODE_ADDRESSES_MAX; at = at->ai_next)
        n += read_sockaddr(at->ai_addr, &to[n]);
    freeaddrinfo(found);
    return n;
}

struct node_addresses *node_addresses_new(node_lookup lookup, const struct clock *clock)
{
    struct node_addresses *nodes = heap_alloc(sizeof(*nodes));

    nodes->lookup = lookup;
    nodes->clock = clock;
    pthread_mutex_init(&nodes->lock, NULL);
    map_init(&nodes->entries, &nodes->arena);
    return nodes;
}

struct node_addresses *node_addresses_free(struct node_addresses *nodes)
{
    if (nodes) {
        map_free(&nodes->entries);
        arena_clear(&nodes->arena);
        pthread_mutex_destroy(&nodes->lock);
        free(nodes);
    }
    return NULL;
}

static bool find(struct node_addresses *nodes, struct str name, struct entry *ret)
{
    void **place;
    bool is_known;

    pthread_mutex_lock(&nodes->lock);
    place = map_get(&nodes->entries, name);
    is_known = place && clock_mono(nodes->clock) < ((struct entry *)*place)->until_ns;
    if (is_known)
        *ret = *(struct entry *)*place;
    pthread_mutex_unlock(&nodes->lock);
    return is_known;
}

static void add(struct node_addresses *nodes, struct str name, const struct entry *entry)
{
    void **place;

    pthread_mutex_lock(&nodes->lock);
    if (nodes->entries.n >= MOST_NODES) {
        map_free(&nodes->entries);
        arena_clear(&nodes->arena);
        map_init(&nodes->entries, &nodes->arena);
    }
    place = map_put(&nodes->entries, name);
    if (!*place)
        *place = arena_alloc(&nodes->arena, sizeof(*entry));
    memcpy(*place, entry, sizeof(*entry));
    pthread_mutex_unlock(&nodes->lock);
}

static void look_up(struct node_addresses *nodes, struct str name, struct entry *ret)
{
    char *text = heap_str(name);

    *ret = (struct entry){ 0 };
    if (strlen(text) == name.n) /* a NUL would hide the rest */
        ret->n = nodes->lookup(text, ret->address);
    ret->until_ns = clock_mono(nodes->clock) + (ret->n ? known_ns : unknown_ns);
    free(text);
    add(nodes, name, ret);
}

int node_addresses_check(struct node_addresses *nodes, struct str node,
                         const struct network *addresses, size_t n, struct err *err)
{
    struct entry entry;

    if (!find(nodes, node, &entry))
        look_up(nodes, node, &entry);
    for (size_t i = 0; i < entry.n; i++)
        for (size_t k = 0; k < n; k++)
            if (network_contains(&entry.address[i], &addresses[k]))
                return 0;
    if (!entry.n)
        return err_set(err, ENOENT,
                       "node %s has no address on the exporter's host; add it to DNS or /etc/hosts "
                       "there, or use --ingest.token-file",
                       quote(node).text);
    return err_set(err, EPERM,
                   "node %s has another address than the sender; use --ingest.token-file if the "
                   "agent posts from an address that is not the node's",
                   quote(node).text);
}
