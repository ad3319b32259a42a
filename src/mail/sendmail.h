/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command that every mail server of this host brings, for mail/post.h. */
#ifndef SONDE_MAIL_SENDMAIL_H
#define SONDE_MAIL_SENDMAIL_H

#include "mail/post.h"

#define SENDMAIL_SCHEME "sendmail:"

int sendmail_check(const struct post_settings *settings, struct err *err);
int sendmail_send(const struct post_settings *settings, const char *from, const char *to,
                  struct str message, int64_t timeout_ms, const atomic_bool *cancelled,
                  struct err *err);

#endif
