/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer of an exchange: kept, on whichever thread it was made, until the HTTP thread hands it
 * to libmicrohttpd. */
#include "http/internal.h"

void reply_clear(struct http_exchange *x)
{
    struct answer *answer = &x->answer;

    while (answer->headers) {
        struct answer_header *header = answer->headers;

        answer->headers = header->next;
        free(header->name);
        free(header->value);
        free(header);
    }
    free(answer->content_type);
    free(answer->text);
    http_body_unref(answer->body);
    *answer = (struct answer){ 0 };
}

/* A second answer takes the place of the first; headers stay. */
static void set_answer(struct http_exchange *x, struct answer answer)
{
    answer.headers = x->answer.headers;
    x->answer.headers = NULL;
    reply_clear(x);
    x->answer = answer;
}

void http_reply(struct http_exchange *x, unsigned status, const char *content_type, struct str body)
{
    set_answer(x, (struct answer){ .status = status,
                                   .content_type = heap_str(str_of(content_type)),
                                   .text = heap_str(body),
                                   .n = body.n });
}

void http_reply_body(struct http_exchange *x, struct http_body *body)
{
    set_answer(x, (struct answer){ .status = MHD_HTTP_OK, .body = body_ref(body) });
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    struct answer_header *header = heap_alloc(sizeof(*header));

    *header = (struct answer_header){ x->answer.headers, heap_str(str_of(name)),
                                      heap_str(str_of(value)) };
    x->answer.headers = header;
}

void reply_text(struct http_exchange *x, unsigned status, const char *sentence)
{
    http_reply(x, status, "text/plain; charset=utf-8", str_of(sentence));
}

void reply_busy(struct http_exchange *x)
{
    atomic_fetch_add(&exchange_server(x)->refused_busy, 1);
    http_add_header(x, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    reply_text(x, MHD_HTTP_SERVICE_UNAVAILABLE, "too much to do at the moment, try again\n");
}

static enum MHD_Result queue_text(struct http_exchange *x)
{
    struct answer *answer = &x->answer;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->n, answer->text, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    answer->text = NULL;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
    add_headers(response, exchange_server(x)->web, answer->headers);
    result = MHD_queue_response(x->conn->mhd, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result reply_queue(struct http_exchange *x)
{
    enum MHD_Result result;

    if (!x->answer.status)
        reply_text(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "there was no answer\n");
    if (x->answer.body)
        result =
            body_queue(x->answer.body, x->conn->mhd, exchange_server(x)->web, x->answer.headers);
    else
        result = queue_text(x);
    reply_clear(x);
    if (result == MHD_YES)
        conn_enter(x->conn, STAGE_SENDING);
    return result;
}
