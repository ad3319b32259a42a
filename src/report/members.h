/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of a JSON object that is being written, with the comma before them. What is unknown is
 * left out. */
#ifndef SONDE_REPORT_MEMBERS_H
#define SONDE_REPORT_MEMBERS_H

#include "base/buf.h"

void member_number(struct buf *to, const char *name, double value);  /* NAN: unknown */
void member_text(struct buf *to, const char *name, struct str text); /* empty: unknown */
void member_truth(struct buf *to, const char *name, bool value);
void member_whole(struct buf *to, const char *name, int64_t value);
void member_time(struct buf *to, const char *name, int64_t moment);  /* 0: unknown */
void member_span(struct buf *to, const char *name, int64_t seconds); /* -1: unknown */
void member_u32(struct buf *to, const char *name, uint32_t value);   /* MODEL_UNKNOWN_U32 */
void member_u64(struct buf *to, const char *name, uint64_t value);   /* MODEL_UNKNOWN_U64 */
void member_begin(struct buf *to, const char *name, char bracket);   /* '{' or '[' */
void member_item(struct buf *to, size_t which);                      /* an object of a list */

#endif
