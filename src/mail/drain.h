/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Empties the spool: makes a mail of each entry and sends it. A report waits a bounded time until
 * accounting knows of the end. What cannot be sent is tried again, ever more rarely, and given up
 * after a day with a line in the log. Many mails to one person become summaries, at a bounded rate.
 * The spool holds all there is to know, so that a restart loses nothing; it repeats a mail only if
 * it came between the server's taking it and our removing it, and then under the same Message-ID.
 */
#ifndef SONDE_MAIL_DRAIN_H
#define SONDE_MAIL_DRAIN_H

#include "base/clock.h"
#include "base/log.h"
#include "mail/message.h"
#include "mail/post.h"
#include "mail/spool.h"

/* What the drain asks for: the report of an entry's job as a mail. The texts live in the arena. */
struct drain_report {
    struct str text, html, pdf; /* html and pdf may be empty */
    struct str subject;         /* empty: that of the short mail */
};

struct drain_config {
    const char *directory;
    const struct post_settings *post;
    struct str from, domain; /* address; of users without one, or empty */
    int64_t wait_ns;         /* for accounting: 2 minutes */
    int64_t give_up_ns;      /* a day */
    uint64_t mails_per_hour; /* to one address, before they become summaries; at most 1000 */
    const struct clock *clock;
    struct log *log;
    const atomic_bool *stopped;
    /* Asked again, if it fails, until wait_ns have passed; then once more with `is_last`: take what
     * there is. If it fails even so, the short mail is sent instead. */
    int (*report)(void *ctx, const struct mail_entry *entry, bool is_last, struct arena *arena,
                  struct drain_report *ret, struct err *err);
    void *ctx;
};

/* Entries. */
struct drain_result {
    uint64_t sent;       /* as a mail of their own */
    uint64_t summarised; /* put into summaries, whether these have gone or wait */
    uint64_t given_up, left;
};

/* Everything that can be done now; with `follow`, until it is stopped. Two at once on one directory
 * are refused (-EBUSY), and settings with which no mail could be sent (-EINVAL, …). A server that
 * is away is told in the log, and what is left is not an error. */
int drain_run(const struct drain_config *config, bool follow, struct drain_result *ret,
              struct err *err);

#endif
