/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stranger's text inside a sentence: short, and unable to move the cursor or end the line.
 *     err_set(err, EINVAL, "unknown key %s", quote(key).text) */
#ifndef SONDE_BASE_QUOTE_H
#define SONDE_BASE_QUOTE_H

#include "base/str.h"

enum { QUOTE_MAX = 80 }; /* bytes; what is cut off is marked by an ellipsis */

struct quote {
    char text[QUOTE_MAX + sizeof("…")];
};

/* Control characters and bytes that are not UTF-8 are written as \n, \t or \x1b. No quotation marks
 * are added. The text lives as long as the full expression that calls this. */
struct quote quote(struct str s);

#endif
