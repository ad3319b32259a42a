/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regular expressions that an administrator writes in the configuration, in Perl's syntax (PCRE2,
 * pcre2syntax(3)), of which RE2, that Go's programs take, is nearly a part. */
#ifndef SONDE_BASE_PATTERN_H
#define SONDE_BASE_PATTERN_H

#include "base/err.h"
#include "base/str.h"

struct pattern;

/* -EINVAL with a sentence that says where the mistake is. */
int pattern_new(struct str text, struct pattern **ret, struct err *err);
struct pattern *pattern_free(struct pattern *pattern); /* returns NULL */

/* Whether it is found anywhere in the text. One that takes too long to tell counts as not found. */
bool pattern_finds(const struct pattern *pattern, struct str text);

#endif
