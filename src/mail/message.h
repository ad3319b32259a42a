/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mail as it is sent: RFC 5322 and MIME, with text, HTML and attachments. Header values may hold
 * anything; line breaks and bytes that are not ASCII never leave as themselves (RFC 2047). */
#ifndef SONDE_MAIL_MESSAGE_H
#define SONDE_MAIL_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"

struct message_file {
    const char *name; /* "job-4711.pdf" */
    const char *type; /* "application/pdf" */
    struct str bytes;
};

struct message {
    struct str from, to, reply_to; /* addresses; reply_to may be empty */
    struct str subject;
    int64_t date;          /* UTC seconds */
    struct str id;         /* left of the @ of Message-ID: unique and stable, so that a mail sent
                            * twice is recognised */
    struct str host;       /* right of it; empty: "localhost" */
    struct str text, html; /* UTF-8; html may be empty */
    const struct message_file *file;
    size_t n_files;
};

/* -EINVAL with a sentence for an address that cannot be one, -EFBIG past the ceiling of `to`. Lines
 * end with CR LF and have at most 78 bytes, but for those of addresses and ids. */
int message_put(struct buf *to, const struct message *message, struct err *err);

/* "who@host": one address, no spaces, quotes, brackets, line breaks; a name without @ gets the
 * domain, if there is one. What a shell, an old mail server or a command line could take for
 * something else is refused as well. */
int message_address(struct buf *to, struct str name, struct str domain, struct err *err);

#endif
