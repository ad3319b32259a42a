/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records in a directory until somebody has taken them: files that are only added to, one record a
 * line, each with its checksum and the time when it was put there:
 *     CRC32 SECONDS JSON\n
 * A file is as much as is handed in at once. Whatever ends the process, what was synced is there
 * afterwards, and half a line is none. One thread at a time may use it. */
#ifndef SONDE_AGENT_SPOOL_DISK_H
#define SONDE_AGENT_SPOOL_DISK_H

#include "base/buf.h"
#include "base/err.h"

struct spool_disk;

struct spool_disk_config {
    const char *directory;
    uint64_t max_bytes;   /* of all files: past it the oldest go */
    size_t segment_bytes; /* of one file, but for a single record that is larger */
    size_t segment_records;
};

/* Makes the directory (0700) if it is not there, and finds what an earlier process has left. -EBUSY
 * if another process has it, -EPERM if others may write into it, or what the system says. */
int spool_disk_open(const struct spool_disk_config *config, struct spool_disk **ret,
                    struct err *err);
struct spool_disk *spool_disk_close(struct spool_disk *disk); /* returns NULL */

/* Adds a record, which holds no line end; spool_disk_sync makes all that were added durable. After
 * a failure of either, those that were added since the last sync are to be added again. */
int spool_disk_put(struct spool_disk *disk, struct str record, int64_t seconds, struct err *err);
int spool_disk_sync(struct spool_disk *disk, struct err *err);

struct spool_record {
    struct str text;
    int64_t seconds;
};

/* The records of the oldest file, in *text; nothing is added to that one any more. Returns how many
 * there are, at most segment_records, none if it holds nothing that is whole; -ENOENT if there is
 * no file. */
int spool_disk_oldest(struct spool_disk *disk, struct buf *text, struct spool_record *records,
                      struct err *err);

/* Removes the file that spool_disk_oldest looked at, unless max_bytes has removed it meanwhile. */
void spool_disk_remove_oldest(struct spool_disk *disk);

struct spool_disk_stats {
    uint64_t records, bytes; /* that are there */
    uint64_t dropped;        /* records that had to go for max_bytes */
};
void spool_disk_stats(const struct spool_disk *disk, struct spool_disk_stats *ret);

#endif
