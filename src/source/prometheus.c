/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One GET a query: caches, and what stands in for a Prometheus, do not all take POST. */
#include "source/prometheus.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/fetch.h"
#include "base/quote.h"
#include "base/secret.h"
#include "source/prometheus_answer.h"
#include "source/refusal.h"

enum {
    LONGEST_URL = 256 * 1024,
    BEGINNING = 300,   /* bytes of a body that are kept for sentences */
    TELLING_BYTES = 16 /* of a secret: words in which these stand are not shown */
};

struct prometheus {
    struct fetch_base base;
    char *user; /* NULL: none, as these */
    char *password_file, *bearer_file, *ca_file;
    size_t max_answer;
    int64_t timeout_ms; /* 0: none but that of each query */
    struct fetch_line *line;
};

/* Who asks, as long as one request takes. */
struct credentials {
    char *password, *bearer; /* NULL: none */
};

/* One request, and what came of it. */
struct exchange {
    const struct prometheus *prometheus;
    int64_t timeout_ms;
    const atomic_bool *cancelled;
    struct prometheus_answer *answer;
    struct credentials credentials;
    struct fetch_result result;
    char beginning[BEGINNING];
    size_t n_beginning;
    bool is_unreadable;
};

static char *copy_or_null(struct str text)
{
    return text.n ? heap_str(text) : NULL;
}

/* The user of the settings, or that of the URL. */
static int choose_user(struct prometheus *prometheus, struct str user, struct err *err)
{
    struct str in_url = str_of(prometheus->base.user);

    if (user.n && in_url.n)
        return err_set(err, EINVAL,
                       "a user stands in --prometheus.url and another in --prometheus.user: take "
                       "one of them out");
    prometheus->user = copy_or_null(user.n ? user : in_url);
    return 0;
}

static int check_identity(const struct prometheus *prometheus, struct err *err)
{
    bool has_password = prometheus->password_file || prometheus->base.password;

    if (prometheus->bearer_file && (prometheus->user || has_password))
        return err_set(err, EINVAL,
                       "a user or a password and --prometheus.bearer-file are two ways to say who "
                       "asks: take one of them out");
    if (prometheus->password_file && prometheus->base.password)
        return err_set(
            err, EINVAL,
            "a password stands in --prometheus.url, and --prometheus.password-file names "
            "another: take it out of the URL");
    if (prometheus->user && !has_password)
        return err_set(err, EINVAL,
                       "the user %s has no password: name its file with "
                       "--prometheus.password-file",
                       quote(str_of(prometheus->user)).text);
    if (has_password && !prometheus->user)
        return err_set(err, EINVAL,
                       "there is a password, but no user: name one with --prometheus.user");
    return 0;
}

static int open_settings(struct prometheus *prometheus, const struct prometheus_settings *settings,
                         struct err *err)
{
    char *url = heap_str(settings->url);
    int code = fetch_base_of(url, &prometheus->base, err);

    explicit_bzero(url, settings->url.n); /* a password may stand in it */
    free(url);
    if (code < 0)
        return code;
    prometheus->password_file = copy_or_null(settings->password_file);
    prometheus->bearer_file = copy_or_null(settings->bearer_file);
    prometheus->ca_file = copy_or_null(settings->ca_file);
    prometheus->max_answer = settings->max_answer;
    prometheus->timeout_ms = settings->timeout_ms;
    prometheus->line = fetch_line_new();
    code = choose_user(prometheus, settings->user, err);
    return code < 0 ? code : check_identity(prometheus, err);
}

int prometheus_open(const struct prometheus_settings *settings, struct prometheus **ret,
                    struct err *err)
{
    struct prometheus *prometheus = heap_alloc(sizeof(*prometheus));
    int code = open_settings(prometheus, settings, err);

    if (code < 0)
        prometheus_close(prometheus);
    else
        *ret = prometheus;
    return code;
}

struct prometheus *prometheus_close(struct prometheus *prometheus)
{
    if (!prometheus)
        return NULL;
    fetch_line_free(prometheus->line);
    fetch_base_clear(&prometheus->base);
    free(prometheus->user);
    free(prometheus->password_file);
    free(prometheus->bearer_file);
    free(prometheus->ca_file);
    free(prometheus);
    return NULL;
}

const char *prometheus_origin(const struct prometheus *prometheus)
{
    return prometheus->base.origin;
}

static int read_credentials(const struct prometheus *prometheus, struct credentials *ret,
                            struct err *err)
{
    if (prometheus->bearer_file)
        return secret_read(prometheus->bearer_file, "token", &ret->bearer, err);
    if (prometheus->password_file)
        return secret_read(prometheus->password_file, "password", &ret->password, err);
    if (prometheus->user)
        ret->password = heap_str(str_of(prometheus->base.password));
    return 0;
}

static void put_text(const struct prometheus *prometheus, const char *path, const char *text,
                     struct buf *url)
{
    buf_text(url, prometheus->base.url);
    buf_text(url, path);
    buf_text(url, "?query=");
    buf_url(url, str_of(text));
}

/* The time after which nobody waits any more, so that the server stops too. */
static void put_timeout(int64_t timeout_ms, struct buf *url)
{
    buf_printf(url, "&timeout=%lld.%03d", (long long)(timeout_ms / 1000), (int)(timeout_ms % 1000));
}

static int64_t shorter_timeout_ms(const struct prometheus *prometheus, int64_t timeout_ms)
{
    return prometheus->timeout_ms && prometheus->timeout_ms < timeout_ms ? prometheus->timeout_ms
                                                                         : timeout_ms;
}

static void put_query_url(const struct prometheus *prometheus, const struct prometheus_query *query,
                          struct buf *url)
{
    put_text(prometheus, "/api/v1/query", query->text, url);
    if (query->time)
        buf_printf(url, "&time=%lld", (long long)query->time);
    put_timeout(shorter_timeout_ms(prometheus, query->timeout_ms), url);
}

static void put_range_url(const struct prometheus *prometheus, const struct prometheus_range *range,
                          struct buf *url)
{
    put_text(prometheus, "/api/v1/query_range", range->text, url);
    buf_printf(url, "&start=%lld&end=%lld&step=%lld", (long long)range->begin,
               (long long)range->end, (long long)range->step_seconds);
    put_timeout(shorter_timeout_ms(prometheus, range->timeout_ms), url);
}

static int begin(void *ctx, const struct fetch_result *so_far, struct err *err)
{
    struct exchange *exchange = ctx;

    (void)err;
    exchange->result = *so_far;
    return 0;
}

static bool is_page(const struct exchange *exchange)
{
    struct str text = str_trim((struct str){ exchange->beginning, exchange->n_beginning });

    return refusal_is_page(exchange->result.content_type) || (text.n && text.p[0] == '<');
}

static void keep_beginning(struct exchange *exchange, struct str piece)
{
    piece = str_head(piece, BEGINNING - exchange->n_beginning);
    memcpy(exchange->beginning + exchange->n_beginning, piece.p, piece.n);
    exchange->n_beginning += piece.n;
}

/* A refusal may be a document with words, or anything. */
static int feed(void *ctx, struct str piece, struct err *err)
{
    struct exchange *exchange = ctx;
    int code;

    keep_beginning(exchange, piece);
    if (refusal_is_page(exchange->result.content_type))
        return 0;
    if (exchange->result.status != 200) {
        prometheus_answer_feed(exchange->answer, piece, NULL);
        return 0;
    }
    code = prometheus_answer_feed(exchange->answer, piece, err);
    exchange->is_unreadable = code < 0;
    return code;
}

static int refuse_page(const struct exchange *exchange, struct err *err)
{
    return err_set(
        err, EBADMSG,
        "%s answers with an HTML page: is --prometheus.url that of a Prometheus, or does "
        "something before it want a login?",
        exchange->prometheus->base.origin);
}

static int refuse_unreadable(const struct exchange *exchange, struct err *err)
{
    if (is_page(exchange))
        return refuse_page(exchange, err);
    return err_prefix(err, "cannot read what %s answered", exchange->prometheus->base.origin);
}

static int explain_failure(const struct exchange *exchange, int code, struct err *err)
{
    if (exchange->is_unreadable)
        return refuse_unreadable(exchange, err);
    if (code == -ETIMEDOUT)
        return err_prefix(err, "Prometheus is busy or down, or --prometheus.timeout too short");
    if (code == -EFBIG)
        return err_prefix(err, "if there are that many series, raise --prometheus.max-answer");
    return code;
}

static bool holds(struct str words, const char *secret)
{
    struct str telling = str_head(str_of(secret), TELLING_BYTES);

    return telling.n && str_find_str(words, telling) < words.n;
}

/* Some servers say again what they do not like: a header with its password too. */
static const char *shown(const struct exchange *exchange, const char *words)
{
    const struct credentials *credentials = &exchange->credentials;
    struct str all = str_of(words);

    if (holds(all, credentials->bearer) || holds(all, credentials->password) ||
        (credentials->password && holds(all, "Basic ")))
        return "its words hold the password or the token and are not shown here";
    return words;
}

/* Of a refusal that is no document of Prometheus; empty: a page, or nothing. */
static struct quote body_words(const struct exchange *exchange)
{
    struct str text = str_trim((struct str){ exchange->beginning, exchange->n_beginning });
    char words[BEGINNING + 1];

    words[str_copy_printable(words, BEGINNING, text)] = '\0';
    return quote(is_page(exchange) ? STR("") : str_of(shown(exchange, words)));
}

static int deny(const struct exchange *exchange, struct err *err)
{
    const struct prometheus *prometheus = exchange->prometheus;
    const char *origin = prometheus->base.origin;
    struct quote words = body_words(exchange);
    long status = exchange->result.status;

    if (prometheus->bearer_file)
        return err_set(err, EACCES,
                       "%s does not take the token in %s (status %ld): is it right, and may it "
                       "query?",
                       origin, quote(str_of(prometheus->bearer_file)).text, status);
    if (prometheus->user)
        return err_set(
            err, EACCES,
            "%s does not take the user %s with the password in %s (status %ld): are both "
            "right, and may this user query?",
            origin, quote(str_of(prometheus->user)).text,
            prometheus->password_file ? quote(str_of(prometheus->password_file)).text : "the URL",
            status);
    return err_set(err, EACCES,
                   "%s wants to know who asks (status %ld%s%s): name a user and "
                   "--prometheus.password-file, or --prometheus.bearer-file",
                   origin, status, words.text[0] ? ": " : "", words.text);
}

static int refuse_query(const struct exchange *exchange, struct err *err)
{
    const struct prometheus_said *said = prometheus_answer_said(exchange->answer);
    const char *words = said->error[0] ? said->error : "it does not say why";

    return err_set(err, EREMOTEIO, "%s cannot answer the query (status %ld): %s%s%s",
                   exchange->prometheus->base.origin, exchange->result.status,
                   shown(exchange, said->error_type), said->error_type[0] ? ": " : "",
                   shown(exchange, words));
}

static const struct {
    long first, last;
    const char *advice;
} statuses[] = {
    { 300, 399, "it sends us elsewhere: give --prometheus.url the address to which that leads" },
    { 404, 405, "is the path of --prometheus.url right, and a Prometheus there?" },
    { 414, 414, "what takes the requests there must take longer ones" },
    { 429, 429, "it has too much to do" },
    { 502, 504, "is it running, and ready?" },
};

static const char *advice_for(long status)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (status >= statuses[i].first && status <= statuses[i].last)
            return statuses[i].advice;
    return "see its log";
}

static int refuse_status(const struct exchange *exchange, struct err *err)
{
    struct quote words = body_words(exchange);

    return err_set(err, EREMOTEIO, "%s answers with status %ld%s%s; %s",
                   exchange->prometheus->base.origin, exchange->result.status,
                   words.text[0] ? ": " : "", words.text, advice_for(exchange->result.status));
}

static int judge_answer(struct exchange *exchange, struct err *err)
{
    int code;

    if (!exchange->result.bytes)
        return err_set(err, EBADMSG,
                       "%s answers with nothing: is --prometheus.url that of a Prometheus?",
                       exchange->prometheus->base.origin);
    if (is_page(exchange))
        return refuse_page(exchange, err);
    code = prometheus_answer_end(exchange->answer, err);
    if (code < 0)
        return refuse_unreadable(exchange, err);
    if (prometheus_answer_said(exchange->answer)->status == PROMETHEUS_ERROR)
        return refuse_query(exchange, err);
    return 0;
}

static int judge(struct exchange *exchange, struct err *err)
{
    long status = exchange->result.status;

    if (status == 200)
        return judge_answer(exchange, err);
    if (status == 401 || status == 403)
        return deny(exchange, err);
    if (prometheus_answer_said(exchange->answer)->status == PROMETHEUS_ERROR)
        return refuse_query(exchange, err);
    return refuse_status(exchange, err);
}

static int send_request(struct exchange *exchange, const char *url, struct err *err)
{
    static const char *const headers[] = { "Accept: application/json", NULL };
    const struct prometheus *prometheus = exchange->prometheus;
    struct fetch fetch = {
        .url = url,
        .headers = headers,
        .user = prometheus->user,
        .password = exchange->credentials.password,
        .bearer = exchange->credentials.bearer,
        .ca_file = prometheus->ca_file,
        .timeout_ms = exchange->timeout_ms,
        .max_answer = prometheus->max_answer,
        .cancelled = exchange->cancelled,
        .line = prometheus->line,
        .begin = begin,
        .sink = feed,
        .ctx = exchange,
    };
    int code = fetch_run(&fetch, &exchange->result, err);

    return code < 0 ? explain_failure(exchange, code, err) : judge(exchange, err);
}

static void put_warning(const struct exchange *exchange, char ret[PROMETHEUS_WARNING])
{
    const struct prometheus_said *said = prometheus_answer_said(exchange->answer);
    char sentence[FETCH_ORIGIN + PROMETHEUS_WORDS + 100] = "";

    if (said->warning[0])
        snprintf(sentence, sizeof(sentence), "%s warns: %s", exchange->prometheus->base.origin,
                 shown(exchange, said->warning));
    else if (said->is_partial)
        snprintf(sentence, sizeof(sentence),
                 "%s answers in part: some of its storage does not answer it",
                 exchange->prometheus->base.origin);
    ret[str_copy_printable(ret, PROMETHEUS_WARNING - 1, str_of(sentence))] = '\0';
}

static void fill_result(const struct exchange *exchange, struct prometheus_result *ret)
{
    const struct prometheus_said *said = prometheus_answer_said(exchange->answer);

    *ret = (struct prometheus_result){
        .bytes = exchange->result.bytes,
        .samples = said->samples,
        .skipped = said->skipped,
    };
    put_warning(exchange, ret->warning);
}

/* Ends the answer, and frees what the URL has. */
static int run(struct exchange *exchange, struct buf *url, struct prometheus_result *ret,
               struct err *err)
{
    int code = 0;

    if (url->over)
        code = err_set(err, EINVAL, "the query to %s is longer than %d bytes",
                       exchange->prometheus->base.origin, LONGEST_URL);
    if (code == 0)
        code = read_credentials(exchange->prometheus, &exchange->credentials, err);
    if (code == 0)
        code = send_request(exchange, url->p, err);
    if (code == 0)
        fill_result(exchange, ret);
    exchange->answer = prometheus_answer_free(exchange->answer);
    secret_free(exchange->credentials.password);
    secret_free(exchange->credentials.bearer);
    buf_free(url);
    return code;
}

int prometheus_query(struct prometheus *prometheus, const struct prometheus_query *query,
                     struct prometheus_result *ret, struct err *err)
{
    struct exchange exchange = {
        .prometheus = prometheus,
        .timeout_ms = shorter_timeout_ms(prometheus, query->timeout_ms),
        .cancelled = query->cancelled,
        .answer = prometheus_answer_of_query(query),
    };
    struct buf url;

    buf_init(&url, LONGEST_URL);
    put_query_url(prometheus, query, &url);
    return run(&exchange, &url, ret, err);
}

int prometheus_range(struct prometheus *prometheus, const struct prometheus_range *range,
                     struct prometheus_result *ret, struct err *err)
{
    struct exchange exchange = {
        .prometheus = prometheus,
        .timeout_ms = shorter_timeout_ms(prometheus, range->timeout_ms),
        .cancelled = range->cancelled,
        .answer = prometheus_answer_of_range(range),
    };
    struct buf url;

    buf_init(&url, LONGEST_URL);
    put_range_url(prometheus, range, &url);
    return run(&exchange, &url, ret, err);
}
