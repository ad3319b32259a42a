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
    unsigned n_busy;      /* lookups under way, … */
    int64_t since_ns;     /* … the last of which began then */
    int64_t resume_ns;    /* no lookup before this */
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

/* "127.5" is an address too, and would be another node's name. */
static bool is_address(const char *name)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
    struct addrinfo *found = NULL;
    bool is_found = getaddrinfo(name, NULL, &hints, &found) == 0;

    if (is_found)
        freeaddrinfo(found);
    return is_found;
}

int node_lookup_system(const char *name, struct network *to)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int n = 0, code;

    if (is_address(name))
        return 0;
    code = getaddrinfo(name, NULL, &hints, &found);
    if (code == EAI_NONAME || code == EAI_NODATA)
        return 0;
    if (code != 0)
        return -EAGAIN;
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

static int begin_lookup(struct node_addresses *nodes)
{
    int64_t now_ns = clock_mono(nodes->clock);
    bool is_slow;

    pthread_mutex_lock(&nodes->lock);
    is_slow = nodes->n_busy && now_ns - nodes->since_ns >= NODE_LOOKUP_SLOW_NS;
    if (!is_slow && now_ns >= nodes->resume_ns) {
        nodes->n_busy++;
        nodes->since_ns = now_ns;
        pthread_mutex_unlock(&nodes->lock);
        return 0;
    }
    pthread_mutex_unlock(&nodes->lock);
    return -EAGAIN;
}

static void end_lookup(struct node_addresses *nodes, int64_t began_ns, bool has_failed)
{
    int64_t now_ns = clock_mono(nodes->clock);

    pthread_mutex_lock(&nodes->lock);
    nodes->n_busy--;
    if (has_failed || now_ns - began_ns >= NODE_LOOKUP_SLOW_NS)
        nodes->resume_ns = now_ns + NODE_LOOKUP_PAUSE_NS;
    pthread_mutex_unlock(&nodes->lock);
}

static int look_up(struct node_addresses *nodes, struct str name, struct entry *ret)
{
    int64_t began_ns = clock_mono(nodes->clock);
    char *text;
    int n = 0;

    if (begin_lookup(nodes) < 0)
        return -EAGAIN;
    *ret = (struct entry){ 0 };
    text = heap_str(name);
    if (strlen(text) == name.n) /* a NUL would hide the rest */
        n = nodes->lookup(text, ret->address);
    free(text);
    end_lookup(nodes, began_ns, n < 0);
    if (n < 0)
        return n;
    ret->n = (size_t)n;
    ret->until_ns = clock_mono(nodes->clock) + (n ? known_ns : unknown_ns);
    add(nodes, name, ret);
    return 0;
}

int node_addresses_check(struct node_addresses *nodes, struct str node,
                         const struct network *addresses, size_t n, struct err *err)
{
    struct entry entry;

    if (!find(nodes, node, &entry) && look_up(nodes, node, &entry) < 0)
        return err_set(
            err, EAGAIN,
            "the name of node %s cannot be resolved on the exporter's host now; try again "
            "later",
            quote(node).text);
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
