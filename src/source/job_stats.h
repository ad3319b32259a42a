/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Lustre target counts for each job id, read in pieces with no more memory than one entry
 * takes: job_stats of obdfilter (OSTs) and mdt, as Lustre 2.10 and later print it (Lustre manual,
 * "Lustre Jobstats"; lustre/obdclass/lprocfs_jobstats.c). */
#ifndef SONDE_SOURCE_JOB_STATS_H
#define SONDE_SOURCE_JOB_STATS_H

#include "model/lustre_use.h"

enum {
    JOB_STATS_ID = 256,       /* bytes of an id; Lustre's own limit is 32 to 64 */
    JOB_STATS_NAME = 32,      /* of an operation's name */
    JOB_STATS_OPERATIONS = 48 /* of one entry; more are left out and counted */
};

struct job_stats_operation {
    char name[JOB_STATS_NAME]; /* "open", "getattr"; also "read" and "write", which Lustre counts in
                                * microseconds beside read_bytes and write_bytes */
    uint64_t samples;
};

struct job_stats_entry {
    struct str target; /* of the last "obdfilter.TARGET.job_stats=" line; empty: there was none */
    bool is_mdt;       /* likewise; of files it is for the caller to know */
    struct str id;     /* unquoted: any bytes; never longer than JOB_STATS_ID, may be empty; spaces
                        * around one that has no quotes are none of it */
    struct lustre_io read, write;
    struct job_stats_operation operations[JOB_STATS_OPERATIONS]; /* each name once */
    size_t n_operations;
};

struct job_stats_parser;

/* Called with each entry that is complete; it lasts until it returns. */
typedef void (*job_stats_sink)(void *ctx, const struct job_stats_entry *entry);

struct job_stats_parser *job_stats_parser_new(job_stats_sink sink, void *ctx);
struct job_stats_parser *job_stats_parser_free(struct job_stats_parser *parser); /* returns NULL */

/* Called with each line that names a target, "obdfilter.TARGET.job_stats=", which lasts until it
 * returns; before its first entry, if it has any. */
typedef void (*job_stats_target_sink)(void *ctx, struct str target, bool is_mdt);

void job_stats_tell_targets(struct job_stats_parser *parser, job_stats_target_sink sink);

/* Ready for another file; what was begun and not finished is dropped, counts stay. */
void job_stats_reset(struct job_stats_parser *parser);

/* How the text was cut into pieces makes no difference. What cannot be read is left out, a line at
 * a time, and counted: garbage, a counter that is negative or does not fit or is there again, a
 * line without end. An entry whose id cannot be read is left out as a whole and counts as one line;
 * so do all entries of a target whose "obdfilter.TARGET.job_stats=" line cannot be read. */
void job_stats_feed(struct job_stats_parser *parser, struct str piece);

/* The text has come to its end: with a whole line, or cut off, in which case the last line is left
 * out and counted. Gives the last entry; then ready for another file. */
void job_stats_finish(struct job_stats_parser *parser);

uint64_t job_stats_bad_lines(const struct job_stats_parser *parser); /* left out so far */

#endif
