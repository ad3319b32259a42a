/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages and API, as `sonde web` and `sonde up` serve them alike. */
#ifndef SONDE_CMD_WEB_SERVING_H
#define SONDE_CMD_WEB_SERVING_H

#include "cmd/prometheus_options.h"
#include "cmd/web_options.h"
#include "web/api.h"
#include "web/site.h"

struct web_serving;

/* Texts are copied. */
struct web_serving_config {
    const struct web_options *options;
    struct str web_config; /* of --web.config.file; or empty */
    struct board_source boards;
    struct str store;                         /* URL; empty: none is kept */
    struct str series_path, allocations_file; /* or empty */
    const struct prometheus_options *prometheus;
    const struct option_list *matchers; /* as they were given */
    bool is_up;
    const char *motd;                                     /* as site_config's */
    struct str (*health)(void *ctx, struct arena *arena); /* or NULL */
    struct str (*notice)(void *ctx, struct arena *arena); /* likewise; both as site_config's */
    void *health_ctx;
    const struct clock *clock;
    struct log *log;
};

int web_serving_new(const struct web_serving_config *config, struct web_serving **ret,
                    struct err *err);
struct web_serving *web_serving_free(struct web_serving *serving); /* returns NULL; not before the
                                                                    * server has stopped */

enum { WEB_SERVING_ROUTES = API_ROUTES + SITE_ROUTES };

/* Fills in rows of a server's table; returns how many. */
size_t web_serving_routes(struct web_serving *serving, struct http_route to[WEB_SERVING_ROUTES]);

/* Decides who may ask, by the sockets that there are, also those of systemd; until then nobody is
 * answered. -EINVAL with a sentence: everybody would see everything, and nobody said so. */
int web_serving_open(struct web_serving *serving, const struct http_server *server,
                     struct err *err);

/* Whether it is staff that asks. */
bool web_serving_is_for_staff(const struct web_serving *serving, const struct http_exchange *x);

/* Whether that file has users; one that cannot be read has none. */
bool web_serving_has_users(struct str web_config);

/* As api_check_store. */
int web_serving_check_store(struct web_serving *serving, struct err *err);

#endif
