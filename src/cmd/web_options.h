/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags of pages and API, for `sonde web` and `sonde up`. */
#ifndef SONDE_CMD_WEB_OPTIONS_H
#define SONDE_CMD_WEB_OPTIONS_H

#include "base/option.h"
#include "web/viewer.h"

/* A command's settings have one of these somewhere. */
struct web_options {
    struct str auth, proxy_header;
    struct option_list proxies, staff, coordinators, hosts;
    bool allows_anonymous;
    int64_t timeout_ns;
    struct str checks_file;
};

enum { WEB_OPTIONS = 9 }; /* rows; those of the group "Web" come first */

/* Writes the rows of the table, for options that stand at that offset of the settings. */
void web_options_rows(size_t offset, struct option rows[WEB_OPTIONS]);

/* -EINVAL with a sentence if they cannot be used. `has_users`: --web.config.file has any. */
int web_options_check(const struct web_options *options, bool has_users, struct err *err);

/* Whose texts are those of the options. */
struct viewer_config web_options_viewer(const struct web_options *options, bool has_users);

bool web_options_equal(const struct web_options *a, const struct web_options *b);

/* The same with texts of the arena. */
struct web_options web_options_copy(const struct web_options *options, struct arena *arena);

#endif
