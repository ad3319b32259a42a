/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readers of one store, as many as threads ask at once: each is used by one at a time, kept open
 * for the next, and given up once there is another file in its place. */
#ifndef SONDE_WEB_API_READERS_H
#define SONDE_WEB_API_READERS_H

#include "store/query.h"

#include <sys/types.h>

struct api_readers;

struct api_reader {
    struct store_reader *store;
    dev_t device; /* of the file that was there when it was opened */
    ino_t inode;
    struct api_reader *next; /* of those that nobody uses */
};

struct api_readers *api_readers_new(const char *url);              /* copied */
struct api_readers *api_readers_free(struct api_readers *readers); /* returns NULL; all are back */

/* One of the file that is there now. Whoever takes one gives it back. */
int api_readers_take(struct api_readers *readers, int64_t deadline_ns, struct api_reader **ret,
                     struct err *err);

/* is_good: no question of it has failed. Takes NULL too. */
void api_readers_give(struct api_readers *readers, struct api_reader *reader, bool is_good);

#endif
