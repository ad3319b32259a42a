/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends a mail by SMTP or sendmail. */
#include "mail/post.h"

#include "base/buf.h"
#include "base/secret.h"
#include "base/arena.h"
#include "mail/message.h"
#include "mail/sendmail.h"
#include "mail/smtp.h"

enum { MOST_ADDRESS = 300 };

static bool is_sendmail(const struct post_settings *settings)
{
    return str_starts(settings->url, STR(SENDMAIL_SCHEME));
}

static int check_password(const struct post_settings *settings, struct err *err)
{
    char *path;
    int code;

    if (!settings->user.n != !settings->password_file.n)
        return err_set(err, EINVAL,
                       "a mail server wants both a user and a file with the password, or neither");
    if (!settings->user.n)
        return 0;
    path = heap_str(settings->password_file);
    code = secret_check(path, "password", err);
    free(path);
    return code;
}

int post_settings_check(const struct post_settings *settings, struct err *err)
{
    int code;

    if (is_sendmail(settings))
        return sendmail_check(settings, err);
    code = check_password(settings, err);
    return code < 0 ? code : smtp_check(settings, err);
}

int post_send(const struct post_settings *settings, struct str from, struct str to,
              struct str message, int64_t timeout_ms, const atomic_bool *cancelled, struct err *err)
{
    struct buf sender, recipient;
    int code;

    /* Whatever got here, no command is made of an address. */
    buf_init(&sender, MOST_ADDRESS);
    buf_init(&recipient, MOST_ADDRESS);
    code = message_address(&sender, from, STR(""), err);
    if (code == 0 && message_address(&recipient, to, STR(""), err) < 0)
        code = err_set(err, EPERM, "the recipient is no mail address");
    if (code == 0)
        code = (is_sendmail(settings) ? sendmail_send : smtp_send)(
            settings, sender.p, recipient.p, message, timeout_ms, cancelled, err);
    buf_free(&sender);
    buf_free(&recipient);
    return code;
}
