/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What it exits with is in sysexits.h(3head). */
#include "mail/sendmail.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/quote.h"
#include "base/spawn.h"

#include <sysexits.h>

enum { MOST_OUTPUT = 64 * 1024 };

/* The others are about the command, not about the mail. */
static const struct {
    int status, code;
} statuses[] = {
    { EX_DATAERR, EPERM }, { EX_NOUSER, EPERM },    { EX_NOHOST, EPERM },
    { EX_NOINPUT, EPERM }, { EX_TEMPFAIL, EAGAIN }, { EX_OK, 0 },
};

static char *path_of(const struct post_settings *settings)
{
    return heap_str(str_skip(settings->url, strlen(SENDMAIL_SCHEME)));
}

int sendmail_check(const struct post_settings *settings, struct err *err)
{
    char *path = path_of(settings);
    int code = 0;

    if (path[0] != '/')
        code = err_set(err, EINVAL,
                       "\"%s\" is no path from the root: write " SENDMAIL_SCHEME
                       "/usr/sbin/sendmail, or where it is",
                       quote(str_of(path)).text);
    else if (!spawn_exists(path))
        code = err_set(err, ENOENT,
                       "there is no program \"%s\": install one, or name a server by "
                       "--mail.url=smtp://HOST:587 (mail.url in /etc/sonde/report.yml)",
                       quote(str_of(path)).text);
    free(path);
    return code;
}

static int ignore(void *ctx, struct str piece, struct err *err)
{
    (void)ctx;
    (void)piece;
    (void)err;
    return 0;
}

/* It takes the line ends of this host; the message has no other CR. */
static void put_lines(struct buf *to, struct str message)
{
    while (message.n) {
        struct str piece = str_cut(&message, '\r');

        buf_put(to, piece);
    }
}

static int code_of(int code, int status)
{
    for (size_t i = 0; code == -EREMOTEIO && i < COUNT(statuses); i++)
        if (statuses[i].status == status)
            return -statuses[i].code;
    /* These two are for mails; the command itself never says them. */
    return code == -EPERM || code == -EAGAIN ? -EREMOTEIO : code;
}

int sendmail_send(const struct post_settings *settings, const char *from, const char *to,
                  struct str message, int64_t timeout_ms, const atomic_bool *cancelled,
                  struct err *err)
{
    char *path = path_of(settings);
    struct buf input;
    struct spawn spawn = {
        .argv = (const char *const[]){ path, "-i", "-f", from, "--", to, NULL },
        .deadline_ns = clock_mono(&clock_real) + timeout_ms * NS_PER_MS,
        .max_output = MOST_OUTPUT,
        .cancelled = cancelled,
        .sink = ignore,
    };
    struct spawn_result result;
    int code;

    buf_init(&input, message.n);
    put_lines(&input, message);
    spawn.input = buf_str(&input);
    code = spawn_run(&spawn, &result, err);
    if (code < 0) {
        code = code_of(code, result.status);
        if (err)
            err->code = -code;
    }
    buf_free(&input);
    free(path);
    return code;
}
