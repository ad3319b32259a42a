/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers: pages in their frame, compressed; refusals that say what to do. Nothing here may be kept
 * by a cache: what is shown depends on who looks and when. */
#include "web/site_inside.h"

#include "base/arena.h"
#include "http/negotiate.h"
#include "web/html.h"

#include <zlib.h>

enum {
    /* Answers that are being sent, all together: whoever reads slowly holds on to his. Small ones
     * are sent in any case, or one who reads none of his would keep everybody else's away; of 4096
     * connections they are no more than that again. */
    SENDING_BYTES = 256 << 20,
    SMALL_BYTES = 64 << 10,
    LEAST_PACKED_BYTES = 1024,
    /* Of a page of 50 jobs, 43 KB: 5.3 KB in 0.2 ms; 9 makes it 4.7 KB in 0.7 ms. */
    PACKING_LEVEL = 4,
};

#define PLAIN "text/plain; charset=utf-8"

/* What dygraphs needs is style-src-attr, no more. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "style-src-attr 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

static const struct refusal {
    unsigned status;
    const char *title;
} refusals[] = {
    { 303, "It is elsewhere" },    { 400, "That cannot be asked" },
    { 403, "Not for you to see" }, { 404, "Not found" },
    { 413, "Too much to show" },   { 421, "Called by another name" },
    { 503, "Not at the moment" },  { 504, "It took too long" },
};

static const struct outcome {
    int code;
    unsigned status;
    const char *sentence;
} outcomes[] = {
    { -ETIMEDOUT, 504,
      "this took too long: ask for less (a shorter time, more filters), or have --api.timeout "
      "raised" },
    { -EFBIG, 413, "there is too much of it: ask for less, with more filters or fewer rows" },
    { -EBUSY, 503, "the store is in use by somebody who keeps all others out: try again" },
    { 0, 503, "what is needed cannot be read at the moment: sonde's log says why; try again" },
};

/* An answer that is being sent. */
struct sending {
    struct site *site;
    struct buf text;
};

static void release(void *ctx)
{
    struct sending *sending = ctx;

    atomic_fetch_sub(&sending->site->sending_bytes, sending->text.n);
    buf_free(&sending->text);
    free(sending);
}

/* Takes the text's place. */
static void pack(struct buf *text)
{
    z_stream stream = { .next_in = (unsigned char *)text->p, .avail_in = (unsigned)text->n };
    struct buf packed;
    size_t most;

    if (deflateInit2(&stream, PACKING_LEVEL, Z_DEFLATED, MAX_WBITS + 16, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* out of memory, or not the zlib of the build: base/arena.c ends likewise */
    most = deflateBound(&stream, text->n);
    buf_init(&packed, most);
    stream.next_out = (unsigned char *)buf_room(&packed, most);
    stream.avail_out = (unsigned)most;
    deflate(&stream, Z_FINISH);
    packed.n = stream.total_out;
    buf_end(&packed);
    deflateEnd(&stream);
    buf_free(text);
    *text = packed;
}

static bool is_text(const char *type)
{
    return str_starts(str_of(type), STR("text/")) || str_ends(str_of(type), STR("json")) ||
           str_starts(str_of(type), STR("image/svg"));
}

static bool is_packed(const struct site_call *call, const char *type, size_t n)
{
    return n >= LEAST_PACKED_BYTES && is_text(type) &&
           negotiate_gzip(http_header(call->x, "Accept-Encoding"));
}

static void add_headers(const struct site_call *call)
{
    http_add_header(call->x, "Content-Security-Policy", policy);
}

/* Takes the text over. */
static void send_text(struct site_call *call, const char *type, struct buf *text)
{
    bool wants_packed = is_packed(call, type, text->n);
    struct site *site = call->site;
    struct sending *sending;
    struct http_body *body;
    size_t before;

    if (wants_packed)
        pack(text);
    sending = heap_alloc(sizeof(*sending));
    *sending = (struct sending){ site, *text };
    buf_init(text, 0);
    before = atomic_fetch_add(&site->sending_bytes, sending->text.n);
    if (sending->text.n > SMALL_BYTES && before && before + sending->text.n > SENDING_BYTES) {
        release(sending);
        http_add_header(call->x, "Retry-After", "1");
        http_reply(call->x, 503, PLAIN,
                   STR("too many large answers are being sent at the moment: try again\n"));
        return;
    }
    body = http_body_new(&(struct iovec){ sending->text.p, sending->text.n }, 1, type,
                         wants_packed ? "gzip" : NULL, release, sending);
    add_headers(call);
    http_reply_body(call->x, body);
    http_body_unref(body);
}

void site_reply(struct site_call *call, const struct site_page *page, const char *type)
{
    struct buf whole;

    if (page->make) {
        send_text(call, type, &call->out);
        return;
    }
    buf_init(&whole, 2 * SITE_ANSWER_BYTES);
    site_frame(call, page, &whole);
    send_text(call, type, &whole);
    buf_free(&whole);
}

static const char *title_of(unsigned status)
{
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (refusals[i].status == status)
            return refusals[i].title;
    return "That did not work";
}

/* A sentence of an error begins as if something stood before it. */
static void put_sentence(struct buf *to, const char *text)
{
    bool is_small = text[0] >= 'a' && text[0] <= 'z';

    if (is_small)
        buf_byte(to, (char)(text[0] - 'a' + 'A'));
    html_textz(to, text + is_small);
}

/* Around what the page has written, as the nearest names. */
static void put_refusal(struct site_call *call, const char *title, struct buf *to)
{
    struct buf more = call->out;

    buf_init(&call->out, SITE_ANSWER_BYTES);
    buf_text(&call->out, "<h1>");
    html_textz(&call->out, title);
    buf_text(&call->out, "</h1>\n<p>");
    put_sentence(&call->out, call->err.text);
    buf_text(&call->out, "</p>\n");
    buf_put(&call->out, buf_str(&more));
    buf_free(&more);
    call->title = str_of(title);
    site_frame(call, NULL, to);
}

static void put_error(const struct site_call *call, bool is_json, struct buf *to)
{
    if (is_json) {
        buf_text(to, "{\"error\":");
        buf_json(to, str_of(call->err.text));
        buf_text(to, "}\n");
    } else {
        buf_put(to, str_of(call->err.text));
        buf_byte(to, '\n');
    }
}

void site_reply_refusal(struct site_call *call, const struct site_page *page, unsigned status)
{
    bool is_json = str_starts(http_path(call->x), STR("/api/"));
    const char *type = is_json ? "application/json" : page->make ? PLAIN : SITE_HTML;
    struct buf whole;

    buf_init(&whole, 2 * SITE_ANSWER_BYTES);
    if (page->make || is_json)
        put_error(call, is_json, &whole);
    else
        put_refusal(call, title_of(status), &whole);
    add_headers(call);
    if (status == 503)
        http_add_header(call->x, "Retry-After", "5");
    http_reply(call->x, status, type, buf_str(&whole));
    buf_free(&whole);
}

/* Why a store failed is in the log, for whom it concerns. */
void site_reply_failure(struct site_call *call, const struct site_page *page, int code)
{
    const struct outcome *outcome = outcomes;

    while (outcome->code && outcome->code != code)
        outcome++;
    if (!outcome->code)
        LOG(call->config->log, LOG_ERROR, "a page could not be made", LOG_STR("page", page->path),
            LOG_STR("error", call->err.text));
    site_refuse(call, outcome->status, "%s", outcome->sentence);
    site_reply_refusal(call, page, outcome->status);
}
