/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pages ask of the request that they answer. */
#include "web/site_inside.h"

#include "base/arena.h"

#include <stdio.h>

enum { ADDRESS_BYTES = 8192 };

struct str site_argument(const struct site_call *call, const char *name)
{
    struct str value = http_query(call->x, name, 0);

    return value.p ? str_trim(value) : STR("");
}

int site_refuse(struct site_call *call, unsigned status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(call->err.text, sizeof(call->err.text), format, arguments);
    va_end(arguments);
    buf_reset(&call->out);
    return (int)status;
}

int site_go(struct site_call *call, struct str address)
{
    http_add_header(call->x, "Location", arena_str(&call->arena, address).p);
    return site_refuse(call, 303, "this is at %.*s", STR_ARG(str_head(address, 200)));
}

struct address {
    struct buf text;
    struct str replaced;
    bool has_query;
};

static void put_argument(struct address *address, struct str name, struct str value)
{
    if (!value.n)
        return;
    buf_byte(&address->text, address->has_query ? '&' : '?');
    address->has_query = true;
    buf_url(&address->text, name);
    buf_byte(&address->text, '=');
    buf_url(&address->text, value);
}

static int copy_argument(void *ctx, struct str name, struct str value)
{
    struct address *address = ctx;

    if (!str_eq(name, address->replaced))
        put_argument(address, name, value);
    return 0;
}

/* The parts of a path, but not what stands between them, are encoded. */
static void put_path(struct buf *to, struct str path)
{
    for (struct str rest = str_skip(path, 1); rest.p;) {
        buf_byte(to, '/');
        buf_url(to, str_cut(&rest, '/'));
    }
}

struct str site_address(struct site_call *call, const char *name, struct str value)
{
    struct address address = { .replaced = str_of(name) };
    struct str made;

    buf_init(&address.text, ADDRESS_BYTES);
    put_path(&address.text, http_path(call->x));
    http_queries(call->x, copy_argument, &address);
    put_argument(&address, address.replaced, value);
    made = arena_str(&call->arena, address.text.over ? STR("/") : buf_str(&address.text));
    buf_free(&address.text);
    return made;
}

bool site_shows(const struct site_call *call, const struct board_cluster *cluster)
{
    return !call->cluster.n || str_eq(call->cluster, cluster->name);
}

const struct check_settings *site_checks(const struct site_call *call)
{
    return &call->site->checks;
}

struct trends *site_trends(const struct site_call *call)
{
    return call->site->trends;
}

struct report_child *site_report_child(const struct site_call *call)
{
    return call->site->report_child;
}
