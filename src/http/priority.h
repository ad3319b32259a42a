/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Go's names of TLS versions, cipher suites and curves, which the web configuration uses, in the
 * words of GnuTLS (its manual, "Priority strings"). */
#ifndef SONDE_HTTP_PRIORITY_H
#define SONDE_HTTP_PRIORITY_H

#include "base/buf.h"
#include "base/yaml.h"

struct priority_settings {
    size_t min_version, max_version; /* rows of priority_versions */
    const struct yaml_node *ciphers; /* lists of names that priority_find knows; NULL: default */
    const struct yaml_node *curves;
    bool prefers_server;
};

struct priority_name {
    const char *name;
    const char *words[3]; /* NULL: nothing to say */
};

/* Ended by name = NULL. Versions from the oldest to the newest. */
extern const struct priority_name priority_versions[], priority_ciphers[], priority_curves[];

/* The row with that name, or NULL and the name that is nearest to it. */
const struct priority_name *priority_find(const struct priority_name *names, struct str name,
                                          const char **ret_nearest);

void priority_write(struct buf *out, const struct priority_settings *settings);

#endif
