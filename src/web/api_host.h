/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By which names this host may be called where it listens to itself only. Somebody else's name that
 * was made to lead to 127.0.0.1 (DNS rebinding) lets his page, in a browser here, read our answers.
 */
#ifndef SONDE_WEB_API_HOST_H
#define SONDE_WEB_API_HOST_H

#include "base/str.h"

/* The header Host, with or without a port: localhost, a loopback address, one of these names, or
 * nothing, which no browser sends. */
bool api_host_is_ours(struct str host, const struct str *names, size_t n);

#endif
