/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hands a mail to a server (SMTP, by libcurl) or to sendmail(8). */
#ifndef SONDE_MAIL_POST_H
#define SONDE_MAIL_POST_H

#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

struct post_settings {
    struct str url;  /* "smtp://host:587", "smtps://host", or "sendmail:/usr/sbin/sendmail". With
                      * smtp it is STARTTLS or nothing, unless the host is this one */
    bool is_tls_off; /* none with smtp, whatever the host; a password does not go there */
    struct str user, password_file; /* of the server; or empty. The file is read each time */
    struct str ca_file;             /* certificates to trust instead of the system's; or empty */
    struct str hello;               /* what to call ourselves; empty: the host's name */
};

/* Whether mails can be sent with these, as far as that shows without sending one. */
int post_settings_check(const struct post_settings *settings, struct err *err);

/* timeout_ms is for all but the server's last word on the mail, which may take ten minutes.
 * 0: it has been taken. -EPERM: this mail was refused for good (the sentence has the server's
 * words), do not try again. -EAGAIN: this mail was refused for now. Anything else: no mail can be
 * sent now. `from` and `to` are bare addresses; lines of the message end with CR LF. */
int post_send(const struct post_settings *settings, struct str from, struct str to,
              struct str message, int64_t timeout_ms, const atomic_bool *cancelled,
              struct err *err);

#endif
