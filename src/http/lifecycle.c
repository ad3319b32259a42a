/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The routes /-/healthy, /-/ready and /-/reload. */
#include "http/lifecycle.h"

static const char plain[] = "text/plain; charset=utf-8";

static void reply_error(struct http_exchange *x, const struct err *err)
{
    char sentence[sizeof(err->text) + 1];

    snprintf(sentence, sizeof(sentence), "%s\n", err->text);
    http_reply(x, 503, plain, str_of(sentence));
}

static enum http_verdict serve_healthy(void *ctx, struct http_exchange *x)
{
    const struct lifecycle *lifecycle = ctx;
    struct err err = { 0 };

    if (lifecycle->check_healthy && lifecycle->check_healthy(lifecycle->ctx, &err) < 0)
        reply_error(x, &err);
    else
        http_reply(x, 200, plain, STR("sonde is healthy.\n"));
    return HTTP_DONE;
}

static enum http_verdict serve_ready(void *ctx, struct http_exchange *x)
{
    const struct lifecycle *lifecycle = ctx;

    if (lifecycle->check_ready)
        return HTTP_WORK;
    if (!lifecycle->is_ready || lifecycle->is_ready(lifecycle->ctx))
        http_reply(x, 200, plain, STR("sonde is ready.\n"));
    else
        http_reply(x, 503, plain, STR("sonde is not ready yet.\n"));
    return HTTP_DONE;
}

static void check_ready(void *ctx, struct http_exchange *x)
{
    const struct lifecycle *lifecycle = ctx;
    struct err err = { 0 };

    if (lifecycle->check_ready(lifecycle->ctx, &err) < 0)
        reply_error(x, &err);
    else
        http_reply(x, 200, plain, STR("sonde is ready.\n"));
}

/* A page of another site in somebody's browser has no business here. */
static enum http_verdict begin_reload(void *ctx, struct http_exchange *x)
{
    const struct lifecycle *lifecycle = ctx;

    if (http_header(x, "Origin").n)
        http_reply(x, 403, plain, STR("not from a web page, please\n"));
    else if (lifecycle->may_reload && !lifecycle->may_reload(lifecycle->ctx, x))
        http_reply(x, 403, plain, STR("this is for staff: --web.staff names them\n"));
    else if (!http_is_trusted(x))
        http_reply(x, 403, plain,
                   STR("reload from this host, or with a password or a certificate that "
                       "--web.config.file knows\n"));
    else
        return HTTP_WORK_UNCONFINED;
    return HTTP_DONE;
}

static void reload(void *ctx, struct http_exchange *x)
{
    const struct lifecycle *lifecycle = ctx;
    struct err err = { 0 };

    if (lifecycle->reload(lifecycle->ctx, &err) < 0)
        http_reply(x, 500, plain, str_of(err.text));
    else
        http_reply(x, 200, plain, STR("reloaded\n"));
}

void lifecycle_routes(struct lifecycle *lifecycle, struct http_route routes[LIFECYCLE_ROUTES])
{
    routes[0] = (struct http_route){ .method = "GET",
                                     .path = "/-/healthy",
                                     .access = HTTP_OPEN,
                                     .handle = serve_healthy,
                                     .ctx = lifecycle };
    routes[1] = (struct http_route){ .method = "GET",
                                     .path = "/-/ready",
                                     .access = HTTP_OPEN,
                                     .is_urgent = true,
                                     .handle = serve_ready,
                                     .work = check_ready,
                                     .ctx = lifecycle };
    routes[2] = (struct http_route){ .method = "POST",
                                     .path = "/-/reload",
                                     .handle = begin_reload,
                                     .work = reload,
                                     .ctx = lifecycle };
}
