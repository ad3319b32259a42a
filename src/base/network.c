/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses and compares networks. */
#include "base/network.h"

#include "base/num.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static bool read_address(struct str text, struct network *ret)
{
    char copy[INET6_ADDRSTRLEN + 1]; /* one more, so that a longer text is not an address */

    snprintf(copy, sizeof(copy), "%.*s", STR_ARG(str_head(text, sizeof(copy) - 1)));
    *ret = (struct network){ .family = AF_INET, .bits = 32 };
    if (inet_pton(AF_INET, copy, ret->address) == 1)
        return true;
    *ret = (struct network){ .family = AF_INET6, .bits = 128 };
    return inet_pton(AF_INET6, copy, ret->address) == 1;
}

bool network_read(struct str text, struct network *ret)
{
    struct str rest = text, address = str_cut(&rest, '/');
    uint64_t bits;

    if (str_eq(text, STR("unix"))) {
        *ret = (struct network){ .family = AF_UNIX };
        return true;
    }
    if (!read_address(address, ret))
        return false;
    if (!rest.p)
        return true;
    if (!num_get_u64(rest, &bits) || bits > ret->bits)
        return false;
    ret->bits = (unsigned)bits;
    return true;
}

bool network_contains(const struct network *network, const struct network *peer)
{
    size_t bytes = network->bits / 8;
    unsigned rest = network->bits % 8;

    if (network->family != peer->family || memcmp(network->address, peer->address, bytes) != 0)
        return false;
    return !rest || (network->address[bytes] ^ peer->address[bytes]) >> (8 - rest) == 0;
}

bool network_is_local(const struct network *peer)
{
    static const struct network local[] = {
        { .family = AF_INET, .address = { 127 }, .bits = 8 },
        { .family = AF_INET6, .address = { [15] = 1 }, .bits = 128 },
        { .family = AF_UNIX },
    };

    for (size_t i = 0; i < COUNT(local); i++)
        if (network_contains(&local[i], peer))
            return true;
    return false;
}
