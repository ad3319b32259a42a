/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends requests to a Pushgateway and reads its list of groups. */
#include "push/gateway.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/secret.h"

enum { MOST_ANSWER = 1 << 20 };

/* A label value that is not UTF-8 makes a Pushgateway refuse the pushes of all others. */
static void put_utf8(struct buf *to, struct str s)
{
    while (s.n) {
        size_t length = str_utf8_len(s);

        buf_put(to, length ? str_head(s, length) : STR("\xef\xbf\xbd"));
        s = str_skip(s, length ? length : 1);
    }
}

/* Not "." or "..", which are taken out of paths on the way. */
static bool is_plain_in_path(struct str s)
{
    size_t n_dots = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!is_letter && c != '-' && c != '_' && c != '.')
            return false;
        n_dots += c == '.';
    }
    return n_dots < s.n;
}

/* A slash is not taken even as %2F, and an empty value is a single "=". */
void gateway_put_label(struct buf *to, const char *name, struct str value)
{
    struct buf utf8;

    if (is_plain_in_path(value)) {
        buf_printf(to, "/%s/%.*s", name, STR_ARG(value));
        return;
    }
    buf_init(&utf8, 3 * value.n);
    put_utf8(&utf8, value);
    buf_printf(to, "/%s@base64/", name);
    base64_put_web(to, buf_str(&utf8));
    if (!value.n)
        buf_byte(to, '=');
    buf_free(&utf8);
}

static int check_password(const struct gateway *gateway, struct err *err)
{
    char *password = NULL;
    int code;

    if (!gateway->password_file)
        return 0;
    if (!gateway->base.user)
        return err_set(err, EINVAL,
                       "there is a password file, but no user in the URL: http://USER@%s…",
                       strstr(gateway->base.origin, "://") + 3);
    code = secret_read(gateway->password_file, "password", &password, err);
    secret_free(password);
    return code;
}

static char *copy_or_null(const char *text)
{
    return text ? heap_str(str_of(text)) : NULL;
}

int gateway_open(const char *url, const char *password_file, const char *ca_file,
                 struct gateway *ret, struct err *err)
{
    struct gateway gateway = { 0 };
    int code;

    if (strlen(url) > GATEWAY_URL)
        return err_set(err, EINVAL, "the URL is too long for a Pushgateway");
    code = fetch_base_of(url, &gateway.base, err);
    if (code < 0)
        return code;
    gateway.password_file = copy_or_null(password_file);
    gateway.ca_file = copy_or_null(ca_file);
    code = check_password(&gateway, err);
    if (code < 0)
        gateway_close(&gateway);
    else
        *ret = gateway;
    return code;
}

void gateway_close(struct gateway *gateway)
{
    fetch_line_free(gateway->line);
    fetch_base_clear(&gateway->base);
    free(gateway->password_file);
    free(gateway->ca_file);
    *gateway = (struct gateway){ 0 };
}

int gateway_fetch(const struct gateway *gateway, struct fetch *fetch, struct fetch_result *ret,
                  struct err *err)
{
    char *password = NULL;
    int code = 0;

    if (gateway->password_file)
        code = secret_read(gateway->password_file, "password", &password, err);
    if (code < 0)
        return code;
    fetch->user = gateway->base.user;
    fetch->password = gateway->password_file ? password : gateway->base.password;
    fetch->ca_file = gateway->ca_file;
    fetch->line = gateway->line;
    code = fetch_run(fetch, ret, err);
    secret_free(password);
    fetch->password = NULL;
    return code;
}

static int keep_words(void *ctx, struct str piece, struct err *err)
{
    struct gateway_words *words = ctx;

    (void)err;
    piece = str_head(piece, sizeof(words->text) - words->n);
    memcpy(words->text + words->n, piece.p, piece.n);
    words->n += piece.n;
    return 0;
}

int gateway_request(const struct gateway *gateway, struct fetch *fetch,
                    struct gateway_words *ret_words, long *ret_status, struct err *err)
{
    struct fetch_result result;
    int code;

    *ret_words = (struct gateway_words){ .n = 0 };
    fetch->max_answer = MOST_ANSWER;
    fetch->sink = keep_words;
    fetch->ctx = ret_words;
    code = gateway_fetch(gateway, fetch, &result, err);
    if (code == 0)
        *ret_status = result.status;
    return code;
}

static const struct status {
    long status;
    bool is_passing; /* the same request may be taken later */
    const char *advice;
} statuses[] = {
    { 400, false, "it finds what was pushed wrong, or at odds with what others have pushed" },
    { 401, false, "are the user and the password right?" },
    { 403, false, "is this user allowed to push?" },
    { 404, false, "is the path right, and a Pushgateway there?" },
    { 405, false, "is the path right, and a Pushgateway there?" },
    { 408, true, "is it slow, or the network?" },
    { 413, true, "what takes the requests there must take larger ones" },
    { 429, true, "it has too much to do" },
    { 507, true, "it is full" },
};

static struct status find_status(long number)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].status == number)
            return statuses[i];
    return (struct status){ number, number >= 500, "see its log" };
}

enum gateway_verdict gateway_judge(const struct gateway *gateway, long number, struct err *err)
{
    struct status status = find_status(number);

    if (number / 100 == 2)
        return GATEWAY_TAKEN;
    err_set(err, EREMOTEIO, "%s answered with status %ld; %s", gateway->base.origin, number,
            status.advice);
    return status.is_passing ? GATEWAY_FAILED : GATEWAY_REFUSED;
}
