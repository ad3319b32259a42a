/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys of runs and nodes as the API gives and takes them: text that goes into a path or a query as
 * it is, whatever bytes a cluster or node is named by. */
#ifndef SONDE_WEB_API_KEY_H
#define SONDE_WEB_API_KEY_H

#include "base/buf.h"
#include "web/api_param.h"

enum { API_KEY_MAX = 1024 }; /* bytes of such a text */

void api_key_put_run(struct buf *out, const struct run_key *key);
void api_key_put_node(struct buf *out, const struct api_node_key *key);

/* False: no such text was ever given. What is in it lives in the arena. */
bool api_key_read_run(struct str text, struct arena *arena, struct run_key *ret);
bool api_key_read_node(struct str text, struct arena *arena, struct api_node_key *ret);

#endif
