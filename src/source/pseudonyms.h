/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that stand for names, so that a recording can be given away: docs/recording.md. The same
 * name has the same pseudonym for as long as these are kept, whatever field it stands in. */
#ifndef SONDE_SOURCE_PSEUDONYMS_H
#define SONDE_SOURCE_PSEUDONYMS_H

#include "base/buf.h"
#include "model/fields.h"

struct pseudonyms;

struct pseudonyms *pseudonyms_new(void);
struct pseudonyms *pseudonyms_free(struct pseudonyms *pseudonyms); /* returns NULL */

/* Adds what stands for the text of a field of that sense. */
void pseudonyms_put(struct pseudonyms *pseudonyms, enum field_sense sense, struct str text,
                    struct buf *to);

/* What stands for a user's number. */
uint32_t pseudonyms_user_id(struct pseudonyms *pseudonyms, uint32_t id);

#endif
