/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 9110, 7.2, has the form of Host. */
#include "web/api_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static bool is_port(struct str text)
{
    for (size_t i = 1; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.p[0] == ':';
}

static struct str without_port(struct str host)
{
    size_t end = str_starts(host, STR("[")) ? str_find(host, ']') + 1 : str_find(host, ':');

    return end < host.n && is_port(str_skip(host, end)) ? str_head(host, end) : host;
}

static bool is_loopback(struct str name)
{
    char text[INET_ADDRSTRLEN + 1]; /* one more, so that a longer one is none */
    struct in_addr four;

    if (str_eq(name, STR("[::1]")))
        return true;
    snprintf(text, sizeof(text), "%.*s", STR_ARG(str_head(name, sizeof(text) - 1)));
    return inet_pton(AF_INET, text, &four) == 1 && ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool api_host_is_ours(struct str host, const struct str *names, size_t n)
{
    struct str name = without_port(host);

    if (!host.n || str_eq_nocase(name, STR("localhost")) || is_loopback(name))
        return true;
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(name, names[i]))
            return true;
    return false;
}
