/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the long texts of a store are packed: the rare fields of a job (job.rest), and the documents
 * of agents (final.document). A packed text is one byte, 0: plain, or the number of the dictionary
 * with which it was deflated (RFC 1951); the length of the plain text as a number of 7 bits a byte,
 * the lowest first; then its bytes. The rare fields, before they are packed, are texts that each
 * end with a NUL: tres, tres_requested, then name and value of each extra, in the order of names.
 * For a name that is often used stands one byte below 32, with nothing between it and the value. */
#ifndef SONDE_STORE_REST_H
#define SONDE_STORE_REST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/record.h"

/* Of one value, of one plain text, and of fields: what is past them is left out. */
enum { REST_VALUE_MAX = 1 << 16, REST_MAX = 1 << 20, REST_EXTRAS_MAX = 256 };

/* What it takes to pack, made once. One thread at a time. */
struct packer;
struct packer *packer_new(void);
struct packer *packer_free(struct packer *packer); /* returns NULL */

/* What a text is deflated with; the numbers stand in stores. */
enum rest_dictionary { REST_PLAIN = 0, REST_JOBS = 1, REST_DOCUMENTS = 2 };

/* Adds the packed text to `out`; text.n is at most REST_MAX. */
void rest_pack(struct packer *packer, enum rest_dictionary dictionary, struct str text,
               struct buf *out);

/* The plain text, in the arena. -EBADMSG if it cannot be unpacked. */
int rest_unpack(struct str packed, struct arena *arena, struct str *ret, struct err *err);

/* tres, tres_requested and extra of a record, as a plain text; nothing if all are empty. */
void rest_encode(const struct job_record *record, struct buf *out);

/* And back from the packed one: sets these members, which live in the arena. An empty one sets
 * them empty. */
int rest_decode(struct str packed, struct arena *arena, struct job_record *record, struct err *err);

#endif
