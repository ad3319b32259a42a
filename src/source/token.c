/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The claims that Slurm's auth/jwt plugin reads: exp, iat, and sun or username for the user. */
#include "source/token.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/quote.h"

#include <fcntl.h>

enum { DAY_SECONDS = 24 * 3600 };

struct token *token_new(struct str path)
{
    struct token *token = heap_alloc(sizeof(*token));

    token->path = heap_str(path);
    return token;
}

static void forget(struct token *token)
{
    if (token->text)
        explicit_bzero(token->text, strlen(token->text));
    free(token->text);
    token->text = NULL;
}

struct token *token_free(struct token *token)
{
    if (token) {
        forget(token);
        free(token->path);
        free(token);
    }
    return NULL;
}

/* Fit for a header: no line break, no blank, nothing that needs an encoding. */
static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return text.n > 0;
}

struct claims {
    int64_t expires, issued;
    char user[TOKEN_USER];
    bool has_sun; /* which counts for more than "username" */
};

static void take_time(const struct json *json, int64_t *field)
{
    double seconds;

    if (json_double(json, &seconds) && seconds > 0 && seconds < 0x1p53)
        *field = (int64_t)seconds;
}

static void take_user(struct claims *claims, struct str name, bool is_sun)
{
    if (!is_plain(name) || name.n >= sizeof(claims->user) || (claims->has_sun && !is_sun))
        return;
    snprintf(claims->user, sizeof(claims->user), "%.*s", STR_ARG(name));
    claims->has_sun |= is_sun;
}

enum claim { CLAIM_OTHER, CLAIM_EXPIRES, CLAIM_ISSUED, CLAIM_SUN, CLAIM_USERNAME };

static enum claim claim_of(struct str key)
{
    static const struct str keys[] = {
        [CLAIM_EXPIRES] = STR_INIT("exp"),
        [CLAIM_ISSUED] = STR_INIT("iat"),
        [CLAIM_SUN] = STR_INIT("sun"),
        [CLAIM_USERNAME] = STR_INIT("username"),
    };

    for (enum claim claim = CLAIM_EXPIRES; claim < COUNT(keys); claim++)
        if (str_eq(keys[claim], key))
            return claim;
    return CLAIM_OTHER;
}

static void take_value(struct claims *claims, struct json *json, enum json_event event,
                       enum claim claim)
{
    if (event == JSON_NUMBER && claim == CLAIM_EXPIRES)
        take_time(json, &claims->expires);
    else if (event == JSON_NUMBER && claim == CLAIM_ISSUED)
        take_time(json, &claims->issued);
    else if (event == JSON_STRING && (claim == CLAIM_SUN || claim == CLAIM_USERNAME))
        take_user(claims, json_text(json), claim == CLAIM_SUN);
    else if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(json);
}

/* Of an object; what cannot be read is not said. */
static void read_payload(struct str payload, struct claims *ret)
{
    struct json *json = json_new();
    struct claims claims = { 0 };
    enum claim claim = CLAIM_OTHER;
    enum json_event event;

    json_feed(json, payload);
    json_finish(json);
    if (json_next(json) == JSON_OBJECT) {
        while ((event = json_next(json)) > JSON_END) {
            if (event == JSON_KEY)
                claim = claim_of(json_text(json));
            else
                take_value(&claims, json, event, claim);
        }
        if (event == JSON_END)
            *ret = claims;
    }
    json_free(json);
}

/* HEADER.PAYLOAD.SIGNATURE, each in base64. */
static void read_claims(struct str token, struct claims *ret)
{
    char *payload = heap_array(TOKEN_MAX, 1);
    size_t n;

    *ret = (struct claims){ 0 };
    str_cut(&token, '.');
    if (token.p && base64_decode(str_cut(&token, '.'), payload, TOKEN_MAX, &n))
        read_payload((struct str){ payload, n }, ret);
    free(payload);
}

/* What scontrol prints is taken as well: SLURM_JWT=TOKEN. */
static struct str strip(struct str text)
{
    text = str_trim(text);
    return str_starts(text, STR("SLURM_JWT=")) ? str_skip(text, strlen("SLURM_JWT=")) : text;
}

static int take(struct token *token, struct str text, const struct stat *found, struct err *err)
{
    struct claims claims;

    text = strip(text);
    if (!is_plain(text))
        return err_set(err, EINVAL,
                       "%s holds no token, but %s: put there the one line that scontrol token "
                       "prints",
                       quote(str_of(token->path)).text,
                       text.n ? "something that a token cannot be" : "nothing");
    read_claims(text, &claims);
    forget(token);
    token->text = heap_str(text);
    token->expires = claims.expires;
    token->issued = claims.issued;
    memcpy(token->user, claims.user, sizeof(token->user));
    token->is_exposed = found->st_mode & (S_IROTH | S_IWOTH);
    return 0;
}

/* Up to one byte more than there may be. */
static ssize_t read_whole(int fd, char *to, size_t room)
{
    size_t n = 0;

    while (n < room) {
        ssize_t got = read(fd, to + n, room - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int read_file(struct token *token, int fd, struct err *err)
{
    struct quote path = quote(str_of(token->path));
    char *bytes;
    ssize_t n;
    int code;

    if (fstat(fd, &token->seen) < 0 || !S_ISREG(token->seen.st_mode))
        return err_set(err, EINVAL, "the token file %s is not a file", path.text);
    bytes = heap_array(TOKEN_MAX + 1, 1);
    n = read_whole(fd, bytes, TOKEN_MAX + 1);
    if (n < 0)
        code = err_set(err, (int)-n, "cannot read the token file %s: %s", path.text,
                       err_words((int)-n));
    else if (n > TOKEN_MAX)
        code = err_set(err, EFBIG,
                       "the token file %s is larger than %d bytes: it holds more than a "
                       "token",
                       path.text, TOKEN_MAX);
    else
        code = take(token, (struct str){ bytes, (size_t)n }, &token->seen, err);
    explicit_bzero(bytes, TOKEN_MAX + 1);
    free(bytes);
    return code;
}

static int read_again(struct token *token, struct err *err)
{
    int fd = open(token->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int code;

    token->seen = (struct stat){ 0 };
    if (fd < 0)
        return err_set(err, errno, "cannot open the token file %s: %s",
                       quote(str_of(token->path)).text, err_words(errno));
    code = read_file(token, fd, err);
    close(fd);
    return code;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int token_refresh(struct token *token, struct err *err)
{
    struct stat now;

    if (token->seen.st_ino && stat(token->path, &now) == 0 && is_same(&now, &token->seen)) {
        if (token->text)
            return 0;
    } else {
        token->err = (struct err){ 0 };
        read_again(token, &token->err);
    }
    if (!token->text)
        *err = token->err;
    return token->text ? 0 : -token->err.code;
}

bool token_reread(struct token *token)
{
    char *before = token->text ? heap_str(str_of(token->text)) : NULL;
    bool is_other;

    token->err = (struct err){ 0 };
    is_other = read_again(token, &token->err) == 0 && (!before || strcmp(before, token->text) != 0);
    if (before)
        explicit_bzero(before, strlen(before));
    free(before);
    return is_other;
}

bool token_has_expired(const struct token *token, int64_t now_seconds)
{
    return token->expires && token->expires <= now_seconds;
}

static bool expires_soon(const struct token *token, int64_t now_seconds)
{
    int64_t warning_seconds = DAY_SECONDS;

    if (token->issued && token->issued < token->expires &&
        (token->expires - token->issued) / 10 < warning_seconds)
        warning_seconds = (token->expires - token->issued) / 10;
    return token->expires && token->expires - now_seconds <= warning_seconds;
}

struct token_time token_end(const struct token *token)
{
    struct token_time end = { "" };
    time_t seconds = token->expires;
    struct tm tm;

    /* Years that do not fit are not worth a sentence. */
    if (gmtime_r(&seconds, &tm))
        strftime(end.text, sizeof(end.text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return end;
}

void token_warn(const struct token *token, int64_t now_seconds, char *ret, size_t size)
{
    struct quote path = quote(str_of(token->path));

    ret[0] = '\0';
    if (token->err.code)
        snprintf(ret, size, "%s; the token that was read before is still in use", token->err.text);
    else if (expires_soon(token, now_seconds))
        snprintf(ret, size,
                 "the token in %s expires at %s: put a new one there, made with scontrol token "
                 "username=%s lifespan=SECONDS",
                 path.text, token_end(token).text, token->user[0] ? token->user : "NAME");
    else if (token->is_exposed)
        snprintf(ret, size,
                 "anybody on this machine can read or change %s, and ask Slurm in its user's name: "
                 "chmod o-rw it",
                 path.text);
}
