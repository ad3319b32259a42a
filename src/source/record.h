/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections written down as JSON documents, one a file: docs/recording.md. */
#ifndef SONDE_SOURCE_RECORD_H
#define SONDE_SOURCE_RECORD_H

#include "base/err.h"
#include "source/pseudonyms.h"

enum {
    RECORD_FORMAT = 1,
    RECORD_LOOKS_MAX = 999999, /* as many as fit in the names of the files */
    RECORD_TEXT_MAX = 1 << 17, /* a longer text is left out: escaped, it must be read again */
    RECORD_NAME_MAX = 32,
};

#define RECORD_TIME_MAX INT64_C(7258118400) /* seconds: the year 2200 */

/* What a document says of itself, besides. */
struct record_about {
    enum kind kind;
    const char *door; /* what the facts came through: "cli"; not read back */
    bool is_simulated;
    int64_t wall_ns; /* when Slurm was asked */
};

/* Writes the section as a document. With pseudonyms, these stand in it for names; NULL: none. */
int record_write(int fd, const struct section *section, const struct record_about *about,
                 struct pseudonyms *pseudonyms, uint64_t *ret_bytes, struct err *err);

/* Adds the same document to a buffer. Returns where in it that begins which is not said of the
 * document itself: of two sections that tell the same, the rest is the same. */
size_t record_put(struct buf *out, const struct section *section, const struct record_about *about);

/* Of what can be recorded. */
bool record_kind_parse(struct str name, enum kind *ret);

/* "000001-jobs.json": what the look of that number told of that kind. They sort by time. */
void record_name(unsigned look, enum kind kind, char ret[RECORD_NAME_MAX]);
bool record_name_parse(const char *name, unsigned *ret_look, enum kind *ret_kind);

/* A directory for a recording, made if there is none: its descriptor, or -EEXIST with a sentence if
 * it holds a recording already. */
int record_directory(const char *path, struct err *err);

/* Puts the section into the directory as what the look of that number told. The file is there whole
 * or not at all. */
int record_add(int directory, unsigned look, const struct section *section,
               const struct record_about *about, struct pseudonyms *pseudonyms, uint64_t *ret_bytes,
               struct err *err);

#endif
