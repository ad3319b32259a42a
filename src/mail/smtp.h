/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SMTP (RFC 5321) by libcurl, for mail/post.h. */
#ifndef SONDE_MAIL_SMTP_H
#define SONDE_MAIL_SMTP_H

#include "mail/post.h"

int smtp_check(const struct post_settings *settings, struct err *err);
int smtp_send(const struct post_settings *settings, const char *from, const char *to,
              struct str message, int64_t timeout_ms, const atomic_bool *cancelled,
              struct err *err);

#endif
