/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Networks as options name them: "10.1.2.3", "10.0.0.0/8", "::1", "fd00::/8", or "unix" for every
 * unix socket. */
#ifndef SONDE_BASE_NETWORK_H
#define SONDE_BASE_NETWORK_H

#include "base/str.h"

struct network {
    int family; /* AF_INET, AF_INET6, or AF_UNIX */
    unsigned char address[16];
    unsigned bits;
};

/* False if the text is not a network. */
bool network_read(struct str text, struct network *ret);

/* `peer` is a single address. */
bool network_contains(const struct network *network, const struct network *peer);

/* 127.0.0.0/8, ::1, and unix sockets. */
bool network_is_local(const struct network *peer);

#endif
