/* SPDX-License-Identifier: GPL-2.0-or-later */
/* munge(3), munge_ctx(3): the ABI of libmunge.so.2, whose functions and numbers are written down
 * here, so that its header is not needed to build. docs/decisions/munge.md */
#include "base/munge.h"

#include "base/arena.h"
#include "base/quote.h"

#include <dlfcn.h>
#include <pthread.h>

struct munge_ctx;

enum { MUNGE_OPT_ADDR4 = 5, MUNGE_OPT_SOCKET = 8 };

static struct {
    struct munge_ctx *(*ctx_create)(void);
    void (*ctx_destroy)(struct munge_ctx *ctx);
    int (*ctx_get)(struct munge_ctx *ctx, int option, ...);
    int (*ctx_set)(struct munge_ctx *ctx, int option, ...);
    const char *(*ctx_strerror)(struct munge_ctx *ctx); /* of the last call that had this ctx */
    int (*encode)(char **ret, struct munge_ctx *ctx, const void *payload, int n);
    /* Gives the payload also of credentials that it refuses because of their age. */
    int (*decode)(const char *credential, struct munge_ctx *ctx, void **ret_payload, int *ret_n,
                  uid_t *ret_uid, gid_t *ret_gid);
    struct err err; /* why it could not be loaded */
} libmunge;

static const struct {
    const char *symbol;
    void *place;
} functions[] = {
    { "munge_ctx_create", &libmunge.ctx_create },
    { "munge_ctx_destroy", &libmunge.ctx_destroy },
    { "munge_ctx_get", &libmunge.ctx_get },
    { "munge_ctx_set", &libmunge.ctx_set },
    { "munge_encode", &libmunge.encode },
    { "munge_decode", &libmunge.decode },
    { "munge_ctx_strerror", &libmunge.ctx_strerror },
};

static void load(void)
{
    void *library = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        err_set(&libmunge.err, ENOENT,
                "libmunge.so.2 cannot be loaded; install munge's library (Debian: libmunge2) and "
                "start again");
        return;
    }
    for (size_t i = 0; i < COUNT(functions); i++) {
        void *function = dlsym(library, functions[i].symbol);

        if (!function) {
            err_set(&libmunge.err, ENOENT, "libmunge.so.2 has no %s; install munge's own library",
                    functions[i].symbol);
            return;
        }
        memcpy(functions[i].place, &function, sizeof(function));
    }
}

int munge_find(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (libmunge.err.code)
        return err_set(err, libmunge.err.code, "%s", libmunge.err.text);
    return 0;
}

static int open_munge(const char *socket, struct munge_ctx **ret, struct err *err)
{
    struct munge_ctx *ctx;
    int code = munge_find(err);

    if (code < 0)
        return code;
    ctx = libmunge.ctx_create();
    if (!ctx || (socket && libmunge.ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != 0)) {
        libmunge.ctx_destroy(ctx);
        return err_set(err, ENOMEM, "libmunge has no memory");
    }
    *ret = ctx;
    return 0;
}

/* What is told apart of munge_strerror(3)'s numbers. */
enum {
    BAD_ARGUMENT = 2, /* an empty credential */
    BAD_LENGTH = 3,
    NO_MEMORY = 5,
    NO_SOCKET = 6,
    BAD_CREDENTIAL = 8, /* up to BAD_REALM: not a credential, or of a kind that is not taken here */
    BAD_VERSION = 9,
    BAD_CIPHER = 10,
    BAD_MAC = 11,
    BAD_ZIP = 12,
    BAD_REALM = 13,
    INVALID = 14,
    EXPIRED = 15,
    REWOUND = 16, /* made in the future */
    REPLAYED = 17,
    UNAUTHORIZED = 18,
};

static const struct outcome {
    int code;
    const char *advice;
} outcomes[] = {
    [BAD_ARGUMENT] = { EACCES, "send it whole, as munge made it" },
    [BAD_LENGTH] = { EFBIG, "send less at once" },
    [NO_MEMORY] = { ENOMEM, "is there a limit on memory?" },
    [NO_SOCKET] = { ENOENT, "is munged running, and is this its socket?" },
    [BAD_CREDENTIAL] = { EACCES, "send it whole, as munge made it" },
    [BAD_VERSION] = { EACCES, "does munge have the same version on both hosts?" },
    [BAD_CIPHER] = { EACCES, "does munge know the same ciphers on both hosts?" },
    [BAD_MAC] = { EACCES, "does munge know the same hashes on both hosts?" },
    [BAD_ZIP] = { EACCES, "does munge know the same compression on both hosts?" },
    [BAD_REALM] = { EACCES, "is it from another realm?" },
    [INVALID] = { EACCES, "do both hosts have the same munge key?" },
    [EXPIRED] = { EACCES, "do the clocks of both hosts agree?" },
    [REWOUND] = { EACCES, "do the clocks of both hosts agree?" },
    [REPLAYED] = { EACCES, "each is good for one use" },
    [UNAUTHORIZED] = { EACCES, "it was made for another user to open" },
};

static int refuse(struct munge_ctx *ctx, int number, const char *failed, struct err *err)
{
    struct outcome outcome = { EIO, "see munged's log" };
    const char *words = libmunge.ctx_strerror(ctx);

    if (number > 0 && (size_t)number < COUNT(outcomes) && outcomes[number].code)
        outcome = outcomes[number];
    return err_set(err, outcome.code, "%s: %s; %s", failed,
                   quote(str_of(words ? words : "munge does not say why")).text, outcome.advice);
}

int munge_seal(const char *socket, struct str payload, char **ret, struct err *err)
{
    struct munge_ctx *ctx;
    char *credential = NULL;
    int code, number;

    if (payload.n > INT32_MAX)
        return err_set(err, EFBIG, "%zu bytes are too many for a munge credential", payload.n);
    code = open_munge(socket, &ctx, err);
    if (code < 0)
        return code;
    number = libmunge.encode(&credential, ctx, payload.p, (int)payload.n);
    if (number)
        code = refuse(ctx, number, "munge makes no credential", err);
    else
        *ret = credential;
    libmunge.ctx_destroy(ctx);
    return code;
}

int munge_unseal(const char *socket, struct str credential, struct buf *to,
                 struct munge_origin *ret, struct err *err)
{
    struct munge_origin origin = { 0 };
    struct munge_ctx *ctx;
    char *text;
    void *payload = NULL;
    int n = 0, code, number;
    gid_t gid;

    /* libmunge takes a text that ends at its NUL: what follows one would go unseen. */
    if (str_find(credential, '\0') < credential.n)
        return err_set(err, EACCES, "the munge credential holds a NUL; %s",
                       outcomes[BAD_CREDENTIAL].advice);
    code = open_munge(socket, &ctx, err);
    if (code < 0)
        return code;
    text = heap_str(credential);
    number = libmunge.decode(text, ctx, &payload, &n, &origin.uid, &gid);
    if (number)
        code = refuse(ctx, number, "the munge credential is refused", err);
    else
        buf_put(to, (struct str){ payload, (size_t)n });
    libmunge.ctx_get(ctx, MUNGE_OPT_ADDR4, &origin.address);
    if (!code && to->over)
        code = err_set(err, EFBIG, "the munge credential holds more than %zu bytes", to->max);
    if (!code)
        *ret = origin;
    free(payload);
    free(text);
    libmunge.ctx_destroy(ctx);
    return code;
}
