/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers that many exchanges share: libmicrohttpd's refcounted responses, made once for each
 * reading of the web configuration, whose headers are part of them. */
#include "http/internal.h"

enum {
    /* libmicrohttpd sends one piece together with the header, several after it: up to this size it
     * is cheaper to join them once than to send twice each time. */
    MOST_JOINED_BYTES = 64 * 1024,
};

struct http_body {
    atomic_uint users; /* of the answer; the last one lets go of `response` */
    atomic_uint refs;  /* the users together count as one, and each response as one */
    pthread_mutex_t lock;
    struct MHD_Response *response; /* the newest, or NULL */
    uint64_t generation;           /* of the webconfig whose headers it has */
    char *content_type, *encoding;
    void (*release)(void *ctx);
    void *ctx;
    char *joined; /* the pieces as one, where that is better */
    size_t n;
    struct MHD_IoVec pieces[];
};

static size_t total_bytes(const struct iovec *pieces, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += pieces[i].iov_len;
    return total;
}

static void join(struct http_body *body, const struct iovec *pieces, size_t n)
{
    size_t total = total_bytes(pieces, n);

    body->joined = heap_alloc(total);
    body->n = 1;
    body->pieces[0] = (struct MHD_IoVec){ body->joined, total };
    total = 0;
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].iov_len)
            memcpy(body->joined + total, pieces[i].iov_base, pieces[i].iov_len);
        total += pieces[i].iov_len;
    }
}

struct http_body *http_body_new(const struct iovec *pieces, size_t n, const char *content_type,
                                const char *encoding, void (*release)(void *ctx), void *ctx)
{
    bool is_joined = n > MOST_PIECES || (n > 1 && total_bytes(pieces, n) <= MOST_JOINED_BYTES);
    size_t n_kept = is_joined ? 1 : n;
    struct http_body *body = heap_alloc(sizeof(*body) + n_kept * sizeof(body->pieces[0]));

    atomic_init(&body->users, 1);
    atomic_init(&body->refs, 1);
    pthread_mutex_init(&body->lock, NULL);
    body->content_type = heap_str(str_of(content_type));
    body->encoding = encoding ? heap_str(str_of(encoding)) : NULL;
    body->release = release;
    body->ctx = ctx;
    if (is_joined) {
        join(body, pieces, n);
    } else {
        body->n = n;
        for (size_t i = 0; i < n; i++)
            body->pieces[i] = (struct MHD_IoVec){ pieces[i].iov_base, pieces[i].iov_len };
    }
    return body;
}

/* Also libmicrohttpd's callback when it is done with a response, on any thread. */
static void drop(void *arg)
{
    struct http_body *body = arg;

    if (atomic_fetch_sub_explicit(&body->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (body->release)
        body->release(body->ctx);
    pthread_mutex_destroy(&body->lock);
    free(body->joined);
    free(body->content_type);
    free(body->encoding);
    free(body);
}

struct http_body *body_ref(struct http_body *body)
{
    atomic_fetch_add_explicit(&body->users, 1, memory_order_relaxed);
    return body;
}

struct http_body *http_body_unref(struct http_body *body)
{
    if (body && atomic_fetch_sub_explicit(&body->users, 1, memory_order_acq_rel) == 1) {
        if (body->response)
            MHD_destroy_response(body->response);
        drop(body);
    }
    return NULL;
}

static bool is_among(const struct answer_header *headers, const char *name)
{
    for (; headers; headers = headers->next)
        if (strcasecmp(headers->name, name) == 0)
            return true;
    return false;
}

static bool is_fixed(const struct webconfig *web, const char *name)
{
    for (size_t i = 0; i < WEBCONFIG_HEADERS; i++)
        if (web->headers[i].from_file && strcasecmp(web->headers[i].name, name) == 0)
            return true;
    return false;
}

void add_headers(struct MHD_Response *response, const struct webconfig *web,
                 const struct answer_header *extra)
{
    for (size_t i = 0; i < WEBCONFIG_HEADERS; i++) {
        const struct webconfig_header *header = &web->headers[i];

        if (header->value[0] && (header->from_file || !is_among(extra, header->name)))
            MHD_add_response_header(response, header->name, header->value);
    }
    if (!is_among(extra, MHD_HTTP_HEADER_CACHE_CONTROL)) /* most answers name users */
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    for (; extra; extra = extra->next)
        if (!is_fixed(web, extra->name))
            MHD_add_response_header(response, extra->name, extra->value);
}

static struct MHD_Response *make_response(struct http_body *body, const struct webconfig *web,
                                          const struct answer_header *extra)
{
    struct MHD_Response *response =
        MHD_create_response_from_iovec(body->pieces, (unsigned)body->n, drop, body);

    if (!response)
        return NULL;
    atomic_fetch_add_explicit(&body->refs, 1, memory_order_relaxed);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, body->content_type);
    if (body->encoding) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, body->encoding);
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    }
    add_headers(response, web, extra);
    return response;
}

static enum MHD_Result queue_own(struct http_body *body, struct MHD_Connection *mhd,
                                 const struct webconfig *web, const struct answer_header *extra)
{
    struct MHD_Response *response = make_response(body, web, extra);
    enum MHD_Result result = MHD_NO;

    if (response) {
        result = MHD_queue_response(mhd, MHD_HTTP_OK, response);
        MHD_destroy_response(response);
    }
    return result;
}

enum MHD_Result body_queue(struct http_body *body, struct MHD_Connection *mhd,
                           const struct webconfig *web, const struct answer_header *extra)
{
    enum MHD_Result result = MHD_NO;

    if (extra)
        return queue_own(body, mhd, web, extra);
    pthread_mutex_lock(&body->lock);
    if (body->response && body->generation != web->generation) {
        MHD_destroy_response(body->response);
        body->response = NULL;
    }
    if (!body->response) {
        body->response = make_response(body, web, NULL);
        body->generation = web->generation;
    }
    if (body->response)
        result = MHD_queue_response(mhd, MHD_HTTP_OK, body->response);
    pthread_mutex_unlock(&body->lock);
    return result;
}
