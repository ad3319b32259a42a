/* SPDX-License-Identifier: GPL-2.0-or-later */
/* https://curl.se/libcurl/c/: one easy handle a mail. */
#include "mail/smtp.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/curl.h"
#include "base/quote.h"
#include "base/secret.h"

enum {
    ORIGIN = 200,
    MOST_HELLO = 800,
    /* That its word on a whole mail is waited for (RFC 5321, 4.5.3.2.6): it may have taken it, and
     * whoever does not wait sends it again. */
    LAST_WORD_SECONDS = 10 * 60,
    GOODBYE_SECONDS = 2, /* that its answer to QUIT, which nobody needs, is waited for */
    MOST_REPLY = 300,    /* bytes of a server's words that are kept */
};

struct transfer {
    const struct post_settings *settings;
    const struct libcurl *curl;
    CURL *easy;
    CURLU *url;
    struct curl_slist *recipients;
    const atomic_bool *cancelled;
    int64_t deadline_ns; /* until all of the message has been sent */
    struct str rest;     /* of the message */
    struct err *err;
    char *user, *password, *ca_file;
    char origin[ORIGIN];
    char curl_words[CURL_ERROR_SIZE];
    bool is_local, is_smtps;
    bool has_named_recipient, is_sent, is_late, is_over;
    char reply[MOST_REPLY + 1]; /* the last line that came before it was over */
};

/* --- the URL --- */

static bool has_part(const struct libcurl *curl, CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl->url_get(url, part, &text, 0) == CURLUE_OK && strcmp(text, "/") != 0;

    curl->free(text);
    return has;
}

/* Nothing but scheme, host and port. */
static bool is_bare(const struct libcurl *curl, CURLU *url)
{
    static const CURLUPart others[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                        CURLUPART_PATH, CURLUPART_QUERY,    CURLUPART_FRAGMENT };

    for (size_t i = 0; i < COUNT(others); i++)
        if (has_part(curl, url, others[i]))
            return false;
    return true;
}

static bool read_url(struct transfer *transfer)
{
    const struct libcurl *curl = transfer->curl;
    char *url = heap_str(transfer->settings->url), *scheme = NULL, *host = NULL, *port = NULL;
    bool ok = curl->url_set(transfer->url, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl->url_get(transfer->url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl->url_get(transfer->url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              is_bare(curl, transfer->url);

    if (ok) {
        transfer->is_smtps = strcmp(scheme, "smtps") == 0;
        transfer->is_local = libcurl_is_loopback(host);
        ok = transfer->is_smtps || strcmp(scheme, "smtp") == 0;
        curl->url_get(transfer->url, CURLUPART_PORT, &port, 0);
        snprintf(transfer->origin, ORIGIN, "%s://%s%s%s", scheme, quote(str_of(host)).text,
                 port ? ":" : "", port ? port : "");
    }
    free(url);
    curl->free(scheme);
    curl->free(host);
    curl->free(port);
    return ok;
}

static bool needs_starttls(const struct transfer *transfer)
{
    return !transfer->is_smtps && !transfer->is_local && !transfer->settings->is_tls_off;
}

static int check_url(struct transfer *transfer)
{
    if (!read_url(transfer))
        return err_set(transfer->err, EINVAL,
                       "the URL of the mail server is not of the form smtp://HOST:PORT, "
                       "smtps://HOST:PORT or sendmail:PATH; user and password have their own "
                       "settings");
    if (transfer->settings->user.n && !transfer->is_smtps && !transfer->is_local &&
        transfer->settings->is_tls_off)
        return err_set(transfer->err, EINVAL,
                       "the password for %s would be sent without TLS: allow TLS, or use no "
                       "password",
                       transfer->origin);
    return 0;
}

/* --- the transfer --- */

static size_t on_read(char *to, size_t size, size_t n, void *ctx)
{
    struct transfer *transfer = ctx;
    struct str piece = str_head(transfer->rest, size * n);

    memcpy(to, piece.p, piece.n);
    transfer->rest = str_skip(transfer->rest, piece.n);
    if (!transfer->rest.n) {
        transfer->is_sent = true;
        LIBCURL_SETOPT(transfer->curl, transfer->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT,
                       (long)LAST_WORD_SECONDS);
    }
    return piece.n;
}

static int on_progress(void *ctx, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    struct transfer *transfer = ctx;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    transfer->is_late = !transfer->is_sent && clock_mono(&clock_real) > transfer->deadline_ns;
    return transfer->is_late || (transfer->cancelled && atomic_load(transfer->cancelled));
}

/* Of what is sent no more is looked at than whether it is one of these: a password is sent too. */
static void note_command(struct transfer *transfer, struct str line)
{
    if (str_starts(line, STR("RCPT TO:")) || str_starts(line, STR("DATA\r\n")))
        transfer->has_named_recipient = true;
    else if (str_starts(line, STR("QUIT\r\n"))) {
        transfer->is_over = true;
        LIBCURL_SETOPT(transfer->curl, transfer->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT,
                       (long)GOODBYE_SECONDS);
    }
}

static void note_reply(struct transfer *transfer, struct str line)
{
    if (!transfer->is_over)
        transfer->reply[str_copy_printable(transfer->reply, MOST_REPLY, str_trim(line))] = '\0';
}

static int on_talk(CURL *easy, curl_infotype type, char *bytes, size_t n, void *ctx)
{
    (void)easy;
    if (type == CURLINFO_HEADER_OUT)
        note_command(ctx, (struct str){ bytes, n });
    else if (type == CURLINFO_HEADER_IN)
        note_reply(ctx, (struct str){ bytes, n });
    return 0;
}

#define SET(option, value)                                                                         \
    ok = LIBCURL_SETOPT(transfer->curl, transfer->easy, option, value) == CURLE_OK && ok

static bool set_limits(struct transfer *transfer, int64_t timeout_ms)
{
    const int64_t most = 24 * 3600;
    int64_t seconds = timeout_ms / 1000 < most ? (timeout_ms + 999) / 1000 : most;
    bool ok = true;

#if CURL_AT_LEAST_VERSION(7, 85, 0)
    SET(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_SMTP | CURLPROTO_SMTPS));
#endif
#if CURL_AT_LEAST_VERSION(7, 87, 0)
    /* Not to wait past the deadline for a name server that hangs; older ones wait for it. */
    SET(CURLOPT_QUICK_EXIT, 1L);
#endif
    SET(CURLOPT_NOSIGNAL, 1L);
    transfer->deadline_ns = clock_mono(&clock_real) + seconds * NS_PER_SEC;
    SET(CURLOPT_CONNECTTIMEOUT, (long)seconds);
    SET(CURLOPT_TIMEOUT, (long)seconds + LAST_WORD_SECONDS);
    /* The goodbye is said within the transfer if the connection is not kept. */
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)seconds);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, transfer);
    SET(CURLOPT_NOPROGRESS, 0L);
    return ok;
}

static bool set_peer(struct transfer *transfer)
{
    bool ok = true;

    SET(CURLOPT_CURLU, transfer->url);
    SET(CURLOPT_ERRORBUFFER, transfer->curl_words);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_USE_SSL, (long)(needs_starttls(transfer) ? CURLUSESSL_ALL : CURLUSESSL_NONE));
    if (transfer->ca_file) {
        SET(CURLOPT_CAINFO, transfer->ca_file);
        SET(CURLOPT_CAPATH, NULL);
    }
    if (transfer->password) {
        SET(CURLOPT_USERNAME, transfer->user);
        SET(CURLOPT_PASSWORD, transfer->password);
    }
    SET(CURLOPT_VERBOSE, 1L);
    SET(CURLOPT_DEBUGFUNCTION, on_talk);
    SET(CURLOPT_DEBUGDATA, transfer);
    return ok;
}

static bool set_mail(struct transfer *transfer, const char *from, const char *to)
{
    bool ok = true;

    transfer->recipients = transfer->curl->slist_append(NULL, to);
    if (!transfer->recipients)
        abort();
    SET(CURLOPT_MAIL_FROM, from);
    SET(CURLOPT_MAIL_RCPT, transfer->recipients);
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, transfer);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)transfer->rest.n);
    return ok;
}

/* The path of the URL is what libcurl calls itself. */
static bool set_hello(struct transfer *transfer)
{
    struct buf path;
    bool ok;

    if (!transfer->settings->hello.n)
        return true;
    buf_init(&path, MOST_HELLO);
    buf_byte(&path, '/');
    buf_url(&path, transfer->settings->hello);
    ok = !path.over &&
         transfer->curl->url_set(transfer->url, CURLUPART_PATH, path.p, 0) == CURLUE_OK;
    buf_free(&path);
    return ok;
}

/* --- what became of it --- */

static int refuse_connection(struct transfer *transfer)
{
    long number = 0;

    LIBCURL_GETINFO(transfer->curl, transfer->easy, CURLINFO_OS_ERRNO, &number);
    return err_set(transfer->err, ECONNREFUSED,
                   "cannot connect to %s: %s; is it running, and listening there?",
                   transfer->origin, number ? err_words((int)number) : "no connection");
}

static int refuse_tls(struct transfer *transfer, const char *words)
{
    if (transfer->curl_words[0])
        words = transfer->curl_words;
    return err_set(
        transfer->err, EACCES,
        "no trusted TLS connection to %s: %s; name the certificate of its authority with "
        "mail.ca-file, and the server as its certificate does",
        transfer->origin, quote(str_trim(str_of(words))).text);
}

static bool is_about_login(struct str reply)
{
    static const struct str codes[] = { STR_INIT("530"), STR_INIT("534"), STR_INIT("535"),
                                        STR_INIT("538") };

    for (size_t i = 0; i < COUNT(codes); i++)
        if (str_starts(reply, codes[i]))
            return true;
    return false;
}

static int refuse_login(struct transfer *transfer)
{
    return err_set(transfer->err, EACCES,
                   "%s does not let us in: %s; check mail.user and mail.password-file",
                   transfer->origin, quote(str_of(transfer->reply)).text);
}

/* About the recipient or the mail itself; what is said before says that no mail goes, but for 552,
 * that this one is too large, and 421 that the server is about to end. */
static bool is_about_mail(const struct transfer *transfer)
{
    struct str reply = str_of(transfer->reply);

    return (transfer->has_named_recipient && !str_starts(reply, STR("421"))) ||
           str_starts(reply, STR("552"));
}

static int judge_reply(struct transfer *transfer, const char *words)
{
    struct str reply = str_of(transfer->reply);
    char kind = reply.n ? reply.p[0] : '\0';

    if (kind != '4' && kind != '5')
        return err_set(transfer->err, EREMOTEIO, "sending through %s failed: %s", transfer->origin,
                       words);
    if (is_about_login(reply))
        return refuse_login(transfer);
    if (!is_about_mail(transfer))
        return err_set(transfer->err, EREMOTEIO, "%s takes no mail from us: %s", transfer->origin,
                       quote(reply).text);
    return err_set(transfer->err, kind == '5' ? EPERM : EAGAIN, "%s %s the mail: %s",
                   transfer->origin, kind == '5' ? "refuses" : "does not take", quote(reply).text);
}

static int refuse_late(struct transfer *transfer)
{
    return err_set(transfer->err, ETIMEDOUT, "%s did not answer in time", transfer->origin);
}

static int judge(struct transfer *transfer, CURLcode result)
{
    const char *words = transfer->curl->easy_strerror(result);

    switch (result) {
    case CURLE_OK:
        return 0;
    case CURLE_ABORTED_BY_CALLBACK:
        if (transfer->is_late)
            return refuse_late(transfer);
        return err_set(transfer->err, ECANCELED, "sending through %s was stopped",
                       transfer->origin);
    case CURLE_COULDNT_RESOLVE_HOST:
        return err_set(transfer->err, ENOENT,
                       "the host name of %s is not known; check its spelling and the name service",
                       transfer->origin);
    case CURLE_COULDNT_CONNECT:
        return refuse_connection(transfer);
    case CURLE_OPERATION_TIMEDOUT:
        return refuse_late(transfer);
    case CURLE_USE_SSL_FAILED:
        return err_set(transfer->err, EACCES,
                       "%s offers no STARTTLS, and mail goes to another host in no other way; use "
                       "smtps://, or say mail.tls=off if the way there is safe",
                       transfer->origin);
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(transfer->err, EACCES, "cannot read certificates from %s",
                       quote(transfer->settings->ca_file).text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
        return refuse_tls(transfer, words);
    case CURLE_LOGIN_DENIED:
        return refuse_login(transfer);
    default:
        return judge_reply(transfer, words);
    }
}

/* --- both together --- */

static int begin(struct transfer *transfer)
{
    int code = libcurl_open(&transfer->curl, transfer->err);

    if (code < 0)
        return code;
    transfer->url = transfer->curl->url();
    if (!transfer->url)
        abort();
    return check_url(transfer);
}

static void end(struct transfer *transfer)
{
    if (!transfer->curl)
        return;
    if (transfer->easy)
        transfer->curl->easy_cleanup(transfer->easy);
    transfer->curl->slist_free_all(transfer->recipients);
    transfer->curl->url_cleanup(transfer->url);
    secret_free(transfer->password);
    free(transfer->user);
    free(transfer->ca_file);
}

static int check_ca_file(const struct post_settings *settings, struct err *err)
{
    char *path;
    int code = 0;

    if (!settings->ca_file.n)
        return 0;
    path = heap_str(settings->ca_file);
    if (access(path, R_OK) < 0)
        code = err_set(err, errno, "cannot read certificates from %s: %s",
                       quote(settings->ca_file).text, err_words(errno));
    free(path);
    return code;
}

int smtp_check(const struct post_settings *settings, struct err *err)
{
    struct err unwanted;
    struct transfer transfer = { .settings = settings, .err = err ? err : &unwanted };
    int code = begin(&transfer);

    end(&transfer);
    return code < 0 ? code : check_ca_file(settings, err);
}

static int read_password(struct transfer *transfer)
{
    char *path;
    int code;

    if (!transfer->settings->user.n)
        return 0;
    path = heap_str(transfer->settings->password_file);
    code = secret_read(path, "password", &transfer->password, transfer->err);
    free(path);
    /* -EPERM and -EAGAIN would be about the mail. */
    return code < 0 ? -EACCES : 0;
}

static int send_mail(struct transfer *transfer, const char *from, const char *to,
                     int64_t timeout_ms)
{
    const struct post_settings *settings = transfer->settings;
    int code = read_password(transfer);

    if (code < 0)
        return code;
    transfer->easy = transfer->curl->easy_init();
    if (settings->user.n)
        transfer->user = heap_str(settings->user);
    if (settings->ca_file.n)
        transfer->ca_file = heap_str(settings->ca_file);
    if (!transfer->easy || !set_hello(transfer) || !set_limits(transfer, timeout_ms) ||
        !set_peer(transfer) || !set_mail(transfer, from, to))
        return err_set(transfer->err, ENOTSUP,
                       "the installed libcurl cannot send mail to %s; %s or newer is needed, with "
                       "SMTP and TLS",
                       transfer->origin, LIBCURL_VERSION);
    return judge(transfer, transfer->curl->easy_perform(transfer->easy));
}

int smtp_send(const struct post_settings *settings, const char *from, const char *to,
              struct str message, int64_t timeout_ms, const atomic_bool *cancelled, struct err *err)
{
    struct err unwanted;
    struct transfer transfer = {
        .settings = settings, .err = err ? err : &unwanted, .rest = message, .cancelled = cancelled
    };
    int code;

    if (timeout_ms <= 0)
        return err_set(err, ETIMEDOUT, "no time is left to send a mail");
    code = begin(&transfer);
    if (code == 0)
        code = send_mail(&transfer, from, to, timeout_ms);
    end(&transfer);
    return code;
}
