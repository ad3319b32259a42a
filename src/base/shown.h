/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stranger's text on a terminal: what of it can be shown, and how wide that is. */
#ifndef SONDE_BASE_SHOWN_H
#define SONDE_BASE_SHOWN_H

#include "base/buf.h"

/* The next character of *rest as it may be shown: "?" for a control character, for bytes that are
 * not UTF-8, and for what is invisible or changes the direction of others. */
struct str shown_take(struct str *rest);

/* All of it. */
void shown_put(struct buf *to, struct str text);

/* In columns. */
size_t shown_width(struct str text);

/* As much as fits in `room` columns, ended by an ellipsis if that is not all. Returns its width. */
size_t shown_put_cut(struct buf *to, struct str text, size_t room);

#endif
