/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of "Name=value Name=value …", as scontrol(1) prints them. Nothing is quoted there, so a
 * value ends before the next word that an equals sign follows. */
#ifndef SONDE_SOURCE_PAIRS_H
#define SONDE_SOURCE_PAIRS_H

#include "base/str.h"

struct pair {
    struct str key, value;
};

/* Takes the first pair off *rest; false when there is none. */
bool pairs_next(struct str *rest, struct pair *ret);

/* Reads a record into values[i] for keys[i]; what is not there gets p = NULL, of what is there
 * twice the first counts. The record begins with the pair of keys[0], a name that may hold anything
 * up to " keys[1]=", which follows it. False if it does not. */
bool pairs_read(struct str line, const struct str *keys, size_t n, struct str *values);

/* "alice(2001)" without its number, which goes to *ret_number (may be NULL), empty if there is
 * none.
 */
struct str pairs_name(struct str value, struct str *ret_number);

#endif
