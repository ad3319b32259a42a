/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Style sheet, scripts and icon: built into the program, compressed, under names that change with
 * what they hold, so that a browser asks for each once. scripts/assets.py makes the table. */
#ifndef SONDE_WEB_ASSETS_H
#define SONDE_WEB_ASSETS_H

#include "http/server.h"

enum asset {
    ASSET_STYLE,
    ASSET_SCRIPT,
    ASSET_ICON,
    ASSET_DYGRAPH_SCRIPT, /* these two only if the build found them */
    ASSET_DYGRAPH_STYLE,
    ASSETS,
};

struct assets;

struct assets *assets_new(void);
struct assets *assets_free(struct assets *assets); /* returns NULL; once the server has stopped */

/* "/static/sonde-0123456789.css"; NULL: the build left it out. */
const char *asset_address(enum asset asset);

/* Answers a request for a path under /static/: 200, 304 or 404. Never blocks. */
void assets_serve(const struct assets *assets, struct http_exchange *x);

#endif
