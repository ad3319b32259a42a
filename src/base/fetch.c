/* SPDX-License-Identifier: GPL-2.0-or-later */
/* https://curl.se/libcurl/c/: one easy handle a request, or a line. Works from libcurl 7.74 (Debian
 * 11) on. */
#include "base/fetch.h"

#include "base/num.h"

#include "base/arena.h"
#include "base/curl.h"
#include "base/quote.h"

#include <limits.h>

enum {
    MOST_HEADER_BYTES = 256 * 1024,
    LARGE_ANSWER = 1 << 20, /* who allows for more gets it in larger pieces than libcurl's 16 KiB */
    LARGE_PIECE = 128 * 1024,
};

struct fetch_line {
    const struct libcurl *curl;
    CURL *easy; /* NULL: no request has been made yet */
};

struct transfer {
    const struct fetch *fetch;
    struct err *err;
    const struct libcurl *curl;
    CURL *easy;
    CURLU *url;
    struct curl_slist *headers;
    char origin[FETCH_ORIGIN];
    char curl_words[CURL_ERROR_SIZE];
    bool is_local; /* a unix socket or the loopback */
    bool has_begun;
    size_t header_bytes, body_bytes;
    uint64_t retry_after;
    unsigned codings; /* that the body is packed in */
    int64_t until_ns; /* by the other clock, if there is one */
    int code;         /* why a callback ended it, or 0 */
};

/* A line break in a header would let its value add headers of its own. */
static bool is_one_line(const char *text)
{
    return !text || !strpbrk(text, "\r\n");
}

static int check_lines(const struct fetch *fetch, struct err *err)
{
    bool ok = is_one_line(fetch->method) && is_one_line(fetch->content_type) &&
              is_one_line(fetch->bearer);

    for (const char *const *header = fetch->headers; header && *header; header++)
        ok = ok && is_one_line(*header);
    if (!ok)
        return err_set(err, EINVAL,
                       "a header or token holds a line break; remove it where it "
                       "comes from");
    return 0;
}

static bool is_http(const char *scheme)
{
    return strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
}

/* Keeps what may be shown of the URL: a path or a query can hold a token. */
static bool read_url(const struct libcurl *curl, CURLU *parts, const char *url,
                     const char *unix_socket, char origin[FETCH_ORIGIN], bool *ret_is_local)
{
    char *scheme = NULL, *host = NULL, *port = NULL;
    bool ok = parts && curl->url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl->url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && is_http(scheme) &&
              curl->url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK;

    if (ok) {
        curl->url_get(parts, CURLUPART_PORT, &port, 0);
        *ret_is_local = unix_socket || libcurl_is_loopback(host);
        if (unix_socket)
            snprintf(origin, FETCH_ORIGIN, "unix:%s", quote(str_of(unix_socket)).text);
        else
            snprintf(origin, FETCH_ORIGIN, "%s://%s%s%s", scheme, quote(str_of(host)).text,
                     port ? ":" : "", port ? port : "");
    }
    curl->free(scheme);
    curl->free(host);
    curl->free(port);
    return ok;
}

static int refuse_url(struct err *err)
{
    return err_set(err, EINVAL, "the URL is not of the form http://HOST:PORT/PATH or https://…");
}

static void add_header(struct transfer *transfer, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 1;
    char *line = heap_array(size, 1);
    struct curl_slist *longer;

    snprintf(line, size, "%s%s", name, value);
    longer = transfer->curl->slist_append(transfer->headers, line);
    free(line);
    if (!longer)
        abort();
    transfer->headers = longer;
}

static void add_headers(struct transfer *transfer)
{
    const struct fetch *fetch = transfer->fetch;

    for (const char *const *header = fetch->headers; header && *header; header++)
        add_header(transfer, *header, "");
    add_header(transfer, "Content-Type: ", fetch->content_type ? fetch->content_type : "");
    if (fetch->bearer)
        add_header(transfer, "Authorization: Bearer ", fetch->bearer);
    /* Servers that ignore this one cost a second of waiting. */
    add_header(transfer, "Expect:", "");
}

static unsigned count_codings(struct str line)
{
    struct str name = str_cut(&line, ':');
    unsigned n = 0;

    if (!str_eq_nocase(name, STR("Content-Encoding")) &&
        !str_eq_nocase(name, STR("Transfer-Encoding")))
        return 0;
    while (line.p)
        n += !str_eq_nocase(str_trim(str_cut(&line, ',')), STR("chunked"));
    return n;
}

/* As a date it is passed over: the clocks may differ. */
static void read_retry_after(struct transfer *transfer, struct str line)
{
    uint64_t seconds;

    if (str_eq_nocase(str_cut(&line, ':'), STR("Retry-After")) &&
        num_get_u64(str_trim(line), &seconds))
        transfer->retry_after = seconds;
}

static int check_header(struct transfer *transfer, struct str line)
{
    transfer->header_bytes += line.n;
    read_retry_after(transfer, line);
    transfer->codings += count_codings(line);
    if (transfer->header_bytes > MOST_HEADER_BYTES)
        return err_set(transfer->err, EREMOTEIO, "%s sent more than %d bytes of headers",
                       transfer->origin, MOST_HEADER_BYTES);
    /* Each can make a thousand bytes of one, and libcurl unpacks what it has got through all of
     * them before it looks at the time or hands over a byte. */
    if (transfer->codings > 1)
        return err_set(transfer->err, EREMOTEIO, "%s has packed its answer more than once",
                       transfer->origin);
    return 0;
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    struct transfer *transfer = ctx;

    transfer->code = check_header(transfer, (struct str){ line, size * n });
    return transfer->code ? 0 : size * n;
}

static void fill_result(struct transfer *transfer, struct fetch_result *ret)
{
    const char *content_type = NULL;

    *ret = (struct fetch_result){ .bytes = transfer->body_bytes,
                                  .retry_after = transfer->retry_after };
    LIBCURL_GETINFO(transfer->curl, transfer->easy, CURLINFO_RESPONSE_CODE, &ret->status);
    LIBCURL_GETINFO(transfer->curl, transfer->easy, CURLINFO_CONTENT_TYPE, &content_type);
    snprintf(ret->content_type, sizeof(ret->content_type), "%s", content_type ? content_type : "");
}

static int begin_body(struct transfer *transfer)
{
    const struct fetch *fetch = transfer->fetch;
    struct fetch_result result;

    if (transfer->has_begun)
        return 0;
    transfer->has_begun = true;
    if (!fetch->begin)
        return 0;
    fill_result(transfer, &result);
    return fetch->begin(fetch->ctx, &result, transfer->err);
}

/* Gets the body after decompression, so that the ceiling holds for what a gzip bomb becomes. */
static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct transfer *transfer = ctx;
    const struct fetch *fetch = transfer->fetch;
    struct str piece = { bytes, size * n };

    transfer->code = begin_body(transfer);
    if (transfer->code < 0)
        return 0;
    if (piece.n > fetch->max_answer - transfer->body_bytes) {
        transfer->code = err_set(transfer->err, EFBIG,
                                 "the answer of %s is larger than %zu bytes; raise the ceiling if "
                                 "it has to be",
                                 transfer->origin, fetch->max_answer);
        return 0;
    }
    transfer->body_bytes += piece.n;
    if (piece.n && fetch->sink)
        transfer->code = fetch->sink(fetch->ctx, piece, transfer->err);
    if (transfer->code > 0)
        transfer->code = 0;
    return transfer->code ? 0 : piece.n;
}

static int refuse_late(struct transfer *transfer)
{
    if (transfer->body_bytes)
        return err_set(transfer->err, ETIMEDOUT, "%s had not sent the whole of its answer in time",
                       transfer->origin);
    return err_set(transfer->err, ETIMEDOUT, "%s did not answer in time", transfer->origin);
}

/* libcurl knows the real clock only. */
static bool has_other_clock(const struct fetch *fetch)
{
    return fetch->clock && fetch->clock->longest_nap_ns;
}

static int on_progress(void *ctx, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    struct transfer *transfer = ctx;
    const struct fetch *fetch = transfer->fetch;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    if (fetch->cancelled && atomic_load(fetch->cancelled))
        transfer->code =
            err_set(transfer->err, ECANCELED, "the request to %s was stopped", transfer->origin);
    else if (has_other_clock(fetch) && clock_mono(fetch->clock) >= transfer->until_ns)
        transfer->code = refuse_late(transfer);
    return transfer->code < 0;
}

#define SET(option, value)                                                                         \
    ok = LIBCURL_SETOPT(transfer->curl, transfer->easy, option, value) == CURLE_OK && ok

static bool set_limits(struct transfer *transfer)
{
    const struct fetch *fetch = transfer->fetch;
    bool ok = true;

#if CURL_AT_LEAST_VERSION(7, 85, 0)
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if CURL_AT_LEAST_VERSION(7, 87, 0)
    /* Not to wait past the deadline for a name server that hangs; older ones wait for it. */
    SET(CURLOPT_QUICK_EXIT, 1L);
#endif
    if (fetch->max_answer > LARGE_ANSWER)
        SET(CURLOPT_BUFFERSIZE, (long)LARGE_PIECE);
    SET(CURLOPT_NOSIGNAL, 1L);
    if (!has_other_clock(fetch))
        SET(CURLOPT_TIMEOUT_MS, fetch->timeout_ms < LONG_MAX ? (long)fetch->timeout_ms : LONG_MAX);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, transfer);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, transfer);
    if (fetch->cancelled || has_other_clock(fetch)) {
        SET(CURLOPT_XFERINFOFUNCTION, on_progress);
        SET(CURLOPT_XFERINFODATA, transfer);
        SET(CURLOPT_NOPROGRESS, 0L);
    }
    return ok;
}

static bool set_peer(struct transfer *transfer)
{
    const struct fetch *fetch = transfer->fetch;
    bool ok = true;

    SET(CURLOPT_CURLU, transfer->url);
    SET(CURLOPT_ERRORBUFFER, transfer->curl_words);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    /* One request has nothing to gain from HTTP/2. */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (fetch->unix_socket)
        SET(CURLOPT_UNIX_SOCKET_PATH, fetch->unix_socket);
    if (transfer->is_local)
        SET(CURLOPT_PROXY, "");
    if (fetch->ca_file) {
        SET(CURLOPT_CAINFO, fetch->ca_file);
        SET(CURLOPT_CAPATH, NULL);
    }
    if (fetch->user) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, fetch->user);
        SET(CURLOPT_PASSWORD, fetch->password ? fetch->password : "");
    }
    return ok;
}

static bool set_request(struct transfer *transfer)
{
    const struct fetch *fetch = transfer->fetch;
    const char *method = fetch->method ? fetch->method : fetch->body.n ? "POST" : "GET";
    bool has_body = fetch->body.n || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
    bool ok = true;

    add_headers(transfer);
    SET(CURLOPT_HTTPHEADER, transfer->headers);
    SET(CURLOPT_USERAGENT, "sonde/" SONDE_VERSION);
    SET(CURLOPT_ACCEPT_ENCODING, "gzip");
    if (has_body) {
        SET(CURLOPT_POSTFIELDS, fetch->body.n ? fetch->body.p : "");
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)fetch->body.n);
    }
    if (strcmp(method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    else
        SET(CURLOPT_CUSTOMREQUEST, method);
    return ok;
}

static int refuse_connection(struct transfer *transfer)
{
    long number = 0;

    LIBCURL_GETINFO(transfer->curl, transfer->easy, CURLINFO_OS_ERRNO, &number);
    return err_set(transfer->err, number == ENOENT || number == EACCES ? (int)number : ECONNREFUSED,
                   "cannot connect to %s: %s; is it running, and listening there?",
                   transfer->origin, number ? err_words((int)number) : "no connection");
}

static int refuse_tls(struct transfer *transfer, const char *words)
{
    /* They quote the server's certificate, but nothing of the request. */
    if (transfer->curl_words[0])
        words = transfer->curl_words;
    return err_set(transfer->err, EACCES, "no trusted TLS connection to %s: %s", transfer->origin,
                   quote(str_trim(str_of(words))).text);
}

static int judge(struct transfer *transfer, CURLcode result)
{
    const char *words = transfer->curl->easy_strerror(result);

    if (transfer->code < 0)
        return transfer->code;
    switch (result) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_RESOLVE_HOST:
        return err_set(transfer->err, ENOENT,
                       "the host name of %s is not known; check its spelling and the name service",
                       transfer->origin);
    case CURLE_COULDNT_CONNECT:
        return refuse_connection(transfer);
    case CURLE_OPERATION_TIMEDOUT:
        return refuse_late(transfer);
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(transfer->err, EACCES, "cannot read certificates from %s",
                       quote(str_of(transfer->fetch->ca_file)).text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
        return refuse_tls(transfer, words);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
        return err_set(transfer->err, EREMOTEIO,
                       "%s closed the connection before its answer was whole", transfer->origin);
    default:
        return err_set(transfer->err, EREMOTEIO, "the request to %s failed: %s", transfer->origin,
                       words);
    }
}

static int run(struct transfer *transfer, struct fetch_result *ret)
{
    const struct fetch *fetch = transfer->fetch;
    int code;

    if (!read_url(transfer->curl, transfer->url, fetch->url, fetch->unix_socket, transfer->origin,
                  &transfer->is_local))
        return refuse_url(transfer->err);
    if (!transfer->easy || !set_limits(transfer) || !set_peer(transfer) || !set_request(transfer))
        return err_set(
            transfer->err, ENOTSUP,
            "the installed libcurl cannot make this request to %s; %s or newer is needed",
            transfer->origin, LIBCURL_VERSION);
    code = judge(transfer, transfer->curl->easy_perform(transfer->easy));
    if (!code)
        code = begin_body(transfer);
    if (!code)
        fill_result(transfer, ret);
    return code;
}

static CURL *line_easy(struct fetch_line *line, const struct libcurl *curl)
{
    if (!line->easy) {
        line->curl = curl;
        line->easy = curl->easy_init();
        if (!line->easy)
            abort();
    }
    return line->easy;
}

int fetch_run(const struct fetch *fetch, struct fetch_result *ret, struct err *err)
{
    struct err unwanted;
    struct transfer transfer = { .fetch = fetch, .err = err ? err : &unwanted };
    const struct libcurl *curl;
    int code = check_lines(fetch, err);

    if (code < 0)
        return code;
    /* libcurl takes 0 for "no limit". */
    if (fetch->timeout_ms <= 0)
        return err_set(err, ETIMEDOUT, "no time is left for a request");
    code = libcurl_open(&curl, err);
    if (code < 0)
        return code;
    transfer.curl = curl;
    if (has_other_clock(fetch))
        transfer.until_ns = clock_mono(fetch->clock) + fetch->timeout_ms * NS_PER_MS;
    transfer.easy = fetch->line ? line_easy(fetch->line, curl) : curl->easy_init();
    transfer.url = curl->url();
    code = run(&transfer, ret);
    /* A reset forgets all but the connections. */
    if (fetch->line)
        curl->easy_reset(transfer.easy);
    else
        curl->easy_cleanup(transfer.easy);
    curl->url_cleanup(transfer.url);
    curl->slist_free_all(transfer.headers);
    return code;
}

struct fetch_line *fetch_line_new(void)
{
    return heap_alloc(sizeof(struct fetch_line));
}

struct fetch_line *fetch_line_free(struct fetch_line *line)
{
    if (line && line->easy)
        line->curl->easy_cleanup(line->easy);
    free(line);
    return NULL;
}

/* One part of a URL as a heap_str; NULL if it has none, or if that cannot be shown as text. */
static char *part_of(const struct libcurl *curl, CURLU *parts, CURLUPart part, unsigned flags)
{
    char *text = NULL, *copy = NULL;

    if (curl->url_get(parts, part, &text, flags) == CURLUE_OK)
        copy = heap_str(str_of(text));
    curl->free(text);
    return copy;
}

static bool split_url(const struct libcurl *curl, CURLU *parts, const char *url,
                      struct fetch_base *ret)
{
    struct fetch_base base = { 0 };
    bool is_local;
    size_t n;

    if (strpbrk(url, "?#") || !read_url(curl, parts, url, NULL, base.origin, &is_local))
        return false;
    base.user = part_of(curl, parts, CURLUPART_USER, CURLU_URLDECODE);
    base.password = part_of(curl, parts, CURLUPART_PASSWORD, CURLU_URLDECODE);
    curl->url_set(parts, CURLUPART_USER, NULL, 0);
    curl->url_set(parts, CURLUPART_PASSWORD, NULL, 0);
    base.url = part_of(curl, parts, CURLUPART_URL, 0);
    if (!base.url) {
        fetch_base_clear(&base);
        return false;
    }
    for (n = strlen(base.url); n && base.url[n - 1] == '/'; n--)
        base.url[n - 1] = '\0';
    *ret = base;
    return true;
}

int fetch_base_of(const char *url, struct fetch_base *ret, struct err *err)
{
    const struct libcurl *curl;
    CURLU *parts;
    bool ok;
    int code = libcurl_open(&curl, err);

    if (code < 0)
        return code;
    parts = curl->url();
    ok = split_url(curl, parts, url, ret);
    curl->url_cleanup(parts);
    return ok ? 0 : refuse_url(err);
}

void fetch_base_clear(struct fetch_base *base)
{
    if (base->password)
        explicit_bzero(base->password, strlen(base->password));
    free(base->url);
    free(base->user);
    free(base->password);
    *base = (struct fetch_base){ 0 };
}

int fetch_origin(const char *url, const char *unix_socket, char ret[FETCH_ORIGIN], struct err *err)
{
    const struct libcurl *curl;
    CURLU *parts;
    bool is_local, ok;
    int code = libcurl_open(&curl, err);

    if (code < 0)
        return code;
    parts = curl->url();
    ok = read_url(curl, parts, url, unix_socket, ret, &is_local);
    curl->url_cleanup(parts);
    return ok ? 0 : refuse_url(err);
}
