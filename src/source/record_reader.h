/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Documents of a recording, read back into sections: docs/recording.md. They come from strangers:
 * whatever is in them, the section is one that collectors can work with, or there is none. */
#ifndef SONDE_SOURCE_RECORD_READER_H
#define SONDE_SOURCE_RECORD_READER_H

#include "source/record.h"

struct record_reader;

/* Of a document of up to that many bytes; what is made of it takes no more memory than a small
 * multiple of that. */
struct record_reader *record_reader_new(size_t max_bytes);
struct record_reader *record_reader_free(struct record_reader *reader); /* returns NULL */

/* Pieces of any size. -EBADMSG or -EFBIG with a sentence. */
int record_reader_feed(struct record_reader *reader, struct str piece, struct err *err);

/* What the document says of itself: false as long as too little of it has come. */
bool record_reader_about(const struct record_reader *reader, struct record_about *ret);

/* All has come: a section with nothing but its time left to be set. */
int record_reader_end(struct record_reader *reader, struct section **ret, struct err *err);

/* Moves every time in it. One that is then before 1970 or after 2200 is unknown. */
void record_move_times(struct section *section, int64_t seconds);

#endif
