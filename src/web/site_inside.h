/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the site share; the pages do not need it. */
#ifndef SONDE_WEB_SITE_INSIDE_H
#define SONDE_WEB_SITE_INSIDE_H

#include "web/assets.h"
#include "web/site.h"

#include <stdatomic.h>

enum { SITE_ANSWER_BYTES = 16 << 20 };

#define SITE_HTML "text/html; charset=utf-8"

struct api_readers;

/* A route of the server's table leads here: which page, of which site. */
struct site_route {
    struct site *site;
    const struct site_page *page;
};

struct site {
    struct site_config config;
    struct api_readers *readers; /* NULL: there is no store */
    struct trends *trends;
    struct report_child *report_child;
    struct arena arena; /* of the next */
    struct check_settings checks;
    struct assets *assets;
    struct site_route route[SITE_ROUTES];
    atomic_bool is_anonymous_allowed, is_host_checked;
    atomic_size_t sending_bytes; /* answers that clients have not taken yet */
};

extern const struct site_page site_search;

/* site_frame.c: a whole page around what stands in call->out; page may be NULL. */
void site_frame(const struct site_call *call, const struct site_page *page, struct buf *to);

/* site_reply.c: the answer, on any thread. A refusal has the sentence of call->err. */
void site_reply(struct site_call *call, const struct site_page *page, const char *type);
void site_reply_refusal(struct site_call *call, const struct site_page *page, unsigned status);
void site_reply_failure(struct site_call *call, const struct site_page *page, int code);

#endif
