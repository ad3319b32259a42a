/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a handler can ask of a request. Also on the pool: while a connection is suspended,
 * libmicrohttpd leaves its memory alone. */
#include "http/internal.h"

#include "base/map.h"
#include "base/num.h"

#include <arpa/inet.h>

struct search {
    struct str name;
    size_t n_to_skip;
    struct str found;
};

struct str http_path(const struct http_exchange *x)
{
    return x->path;
}

struct str http_header(const struct http_exchange *x, const char *name)
{
    struct str value = { 0 };

    MHD_lookup_connection_value_n(x->conn->mhd, MHD_HEADER_KIND, name, strlen(name), &value.p,
                                  &value.n);
    return value;
}

struct count {
    struct str name;
    size_t n;
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *key,
                                    size_t key_size, const char *value, size_t value_size)
{
    struct count *count = arg;

    (void)kind;
    (void)value;
    (void)value_size;
    count->n += str_eq_nocase(count->name, (struct str){ key, key_size });
    return MHD_YES;
}

size_t http_header_count(const struct http_exchange *x, const char *name)
{
    struct count count = { str_of(name), 0 };

    MHD_get_connection_values_n(x->conn->mhd, MHD_HEADER_KIND, count_header, &count);
    return count.n;
}

static enum MHD_Result look_at(void *arg, enum MHD_ValueKind kind, const char *key, size_t key_size,
                               const char *value, size_t value_size)
{
    struct search *search = arg;

    (void)kind;
    if (!str_eq(search->name, (struct str){ key, key_size }))
        return MHD_YES;
    if (search->n_to_skip) {
        search->n_to_skip--;
        return MHD_YES;
    }
    search->found = value ? (struct str){ value, value_size } : STR("");
    return MHD_NO;
}

struct str http_query(const struct http_exchange *x, const char *name, size_t nth)
{
    struct search search = { .name = str_of(name), .n_to_skip = nth };

    MHD_get_connection_values_n(x->conn->mhd, MHD_GET_ARGUMENT_KIND, look_at, &search);
    return search.found;
}

struct tour {
    int (*see)(void *ctx, struct str name, struct str value);
    void *ctx;
    int code;
};

static enum MHD_Result visit(void *arg, enum MHD_ValueKind kind, const char *key, size_t key_size,
                             const char *value, size_t value_size)
{
    struct tour *tour = arg;

    (void)kind;
    tour->code = tour->see(tour->ctx, (struct str){ key, key_size },
                           value ? (struct str){ value, value_size } : STR(""));
    return tour->code < 0 ? MHD_NO : MHD_YES;
}

int http_queries(const struct http_exchange *x,
                 int (*see)(void *ctx, struct str name, struct str value), void *ctx)
{
    struct tour tour = { .see = see, .ctx = ctx };

    MHD_get_connection_values_n(x->conn->mhd, MHD_GET_ARGUMENT_KIND, visit, &tour);
    return tour.code < 0 ? tour.code : 0;
}

struct str http_request_body(const struct http_exchange *x)
{
    return buf_str(&x->body);
}

void http_drop_body(struct http_exchange *x)
{
    buf_free(&x->body);
}

bool http_body_length(const struct http_exchange *x, uint64_t *ret)
{
    struct str length = http_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);

    /* libmicrohttpd has checked it: what it let pass and we can't read is too large. */
    if (length.p && !num_get_u64(length, ret))
        *ret = UINT64_MAX;
    return length.p;
}

struct http_server *http_server_of(const struct http_exchange *x)
{
    return exchange_server(x);
}

struct str http_user(const struct http_exchange *x)
{
    return x->user;
}

static const struct sockaddr *client_address(const struct http_exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info ? info->client_addr : NULL;
}

struct str http_peer(const struct http_exchange *x)
{
    const struct sockaddr *address = client_address(x);
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;
    char *to = x->conn->peer;
    const char *text = NULL;

    if (str_starts(str_of(x->conn->listener->address), STR("unix:")))
        return STR("unix");
    if (address && address->sa_family == AF_INET)
        text = inet_ntop(AF_INET, &four->sin_addr, to, sizeof(x->conn->peer));
    else if (address && address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        text = inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, to, sizeof(x->conn->peer));
    else if (address && address->sa_family == AF_INET6)
        text = inet_ntop(AF_INET6, &six->sin6_addr, to, sizeof(x->conn->peer));
    return str_of(text);
}

uint64_t http_client(const struct http_exchange *x)
{
    const struct sockaddr *address = client_address(x);
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;

    if (address && address->sa_family == AF_INET)
        return map_hash((struct str){ (const char *)&four->sin_addr, 4 });
    /* Who has one IPv6 address has 2^64 of them. */
    if (address && address->sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return map_hash((struct str){ (const char *)&six->sin6_addr, 8 });
    if (address && address->sa_family == AF_INET6)
        return map_hash((struct str){ (const char *)&six->sin6_addr + 12, 4 });
    return 0;
}

int64_t http_started(const struct http_exchange *x)
{
    return x->started_ns;
}

void **http_state(struct http_exchange *x, void (*free_state)(void *))
{
    x->free_state = free_state;
    return &x->state;
}

void http_share(struct http_exchange *x, struct str name,
                void (*refuse)(void *ctx, struct http_exchange *x))
{
    x->job.owner = (name.n ? map_hash(name) : http_client(x)) | 1; /* 0 would be nobody */
    x->refuse = refuse;
}

void http_wait_until(struct http_exchange *x, int64_t mono_ns)
{
    x->wait_until_ns = mono_ns;
}
