/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The addresses of nodes, by their names, as this host resolves them (getaddrinfo(3)). Answers are
 * cached. A lookup has no deadline: while one takes long, and for a while after it, names that are
 * not in the cache are not looked up. By any thread. */
#ifndef SONDE_HTTP_NODE_ADDRESSES_H
#define SONDE_HTTP_NODE_ADDRESSES_H

#include "base/clock.h"
#include "base/err.h"
#include "base/network.h"

enum { NODE_ADDRESSES_MAX = 8 }; /* of one node */

struct node_addresses;

/* Fills in at most NODE_ADDRESSES_MAX and returns how many: 0 if the name has none, or is an
 * address itself; -EAGAIN if that cannot be found out now. May block. */
typedef int (*node_lookup)(const char *name, struct network *to);

int node_lookup_system(const char *name, struct network *to);

/* After this time a lookup takes long; … */
#define NODE_LOOKUP_SLOW_NS (2 * NS_PER_SEC)
/* … after that, or a failure, there is none for this time. */
#define NODE_LOOKUP_PAUSE_NS (10 * NS_PER_SEC)

struct node_addresses *node_addresses_new(node_lookup lookup, const struct clock *clock);
struct node_addresses *node_addresses_free(struct node_addresses *nodes); /* returns NULL */

/* Whether one of the addresses is the node's: 0, -ENOENT if the node's name has no address here,
 * -EPERM if it has others, or -EAGAIN if names cannot be looked up now. May block in the lookup. */
int node_addresses_check(struct node_addresses *nodes, struct str node,
                         const struct network *addresses, size_t n, struct err *err);

#endif
