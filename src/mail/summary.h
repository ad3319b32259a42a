/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One mail in the place of many: a list of what they were about. It is kept in the spool as a file
 * of its own that names those whose place it has taken, so that none is told twice or forgotten
 * whenever the power fails. */
#ifndef SONDE_MAIL_SUMMARY_H
#define SONDE_MAIL_SUMMARY_H

#include "base/map.h"
#include "mail/spool.h"

enum { SUMMARY_ROWS = 200 };

struct summary_maker {
    struct arena arena;
    struct map states; /* how many of each, as counts */
    struct buf rows, names;
    struct str cluster;
    bool has_clusters; /* more than one */
    size_t n;
};

void summary_begin(struct summary_maker *maker);
void summary_add(struct summary_maker *maker, const char *file, const struct mail_entry *entry);

/* The document, of what was added since summary_begin, which is then forgotten. */
void summary_end(struct summary_maker *maker, struct str to, int64_t now, struct buf *document);

struct summary {
    struct str to, subject, text;
    int64_t written_time;
    struct str *files; /* that it has taken the place of */
    size_t n_files;
};

int summary_read(struct str document, struct arena *arena, struct summary *ret, struct err *err);

#endif
