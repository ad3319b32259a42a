/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The spool (mail/spool.h) as whoever sends sees it: the files that wait, in order. What is to be
 * remembered of one stands in its name. Whatever else lies in the directory is never followed nor
 * waited for; what looks like an entry and is none is moved to "bad". */
#ifndef SONDE_MAIL_QUEUE_H
#define SONDE_MAIL_QUEUE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "mail/spool.h"

#define QUEUE_SUMMARY_SUFFIX ".summary"

enum {
    QUEUE_NAME = MAIL_ENTRY_ID + 1 + 20 + sizeof(QUEUE_SUMMARY_SUFFIX),
    QUEUE_SUMMARY_MAX = 16 << 20, /* bytes; it names all that it stands for */
    QUEUE_ASIDE_MAX = 10000, /* files in each of the directories below; past it they are lost */
};

enum queue_place { QUEUE_BAD, QUEUE_GIVEN_UP, QUEUE_PLACES }; /* "bad", "given-up" */

struct queue_item {
    char name[QUEUE_NAME]; /* of its file; empty: it is gone */
    bool is_summary;
    bool was_tried;       /* to send it, and it failed */
    bool is_done;         /* only its file could not be removed */
    int64_t next_time;    /* not to be looked at before, UTC seconds; of the name if it was tried */
    int64_t written_time; /* this and what follows are the reader's */
    size_t who;
};

struct queue {
    int directory, lock;
    uid_t owner; /* of the directory */
    struct log *log;
    struct queue_item *items; /* the oldest first */
    size_t n, n_room;
    size_t n_aside[QUEUE_PLACES];
    size_t n_unreadable; /* as of the last look */
    int64_t seen_ns;     /* when the directory had changed as of the last look; 0: look again */
};

/* -EBUSY if another has it, -EPERM if everybody may write into it. */
int queue_open(const char *directory, struct log *log, struct queue **ret, struct err *err);
struct queue *queue_close(struct queue *queue); /* returns NULL */

/* Forgets all items: the next scan finds them anew. */
void queue_forget(struct queue *queue);

/* Looks for new ones, if the directory has changed, and lets `load` fill in written_time and who;
 * what it refuses is bad. */
int queue_scan(struct queue *queue,
               int (*load)(void *ctx, struct str document, struct queue_item *item,
                           struct err *err),
               void *ctx, struct err *err);

/* Its file. -EBADMSG, -EFBIG, -EPERM: it is bad; -EAGAIN: it cannot be read now; -ENOENT: it is
 * gone. */
int queue_read(const struct queue *queue, const struct queue_item *item, struct buf *to,
               struct err *err);

/* If the file cannot be removed, it is at least not waiting any more until the next start. */
void queue_remove(struct queue *queue, struct queue_item *item);
void queue_postpone(struct queue *queue, struct queue_item *item, int64_t next_time);
void queue_set_aside(struct queue *queue, struct queue_item *item, enum queue_place place);

/* Whether or not it is known already. */
void queue_remove_entry(struct queue *queue, struct str name);

/* Adds a summary; its item comes with the next scan. */
int queue_add_summary(struct queue *queue, struct str document, struct err *err);

static inline bool queue_is_waiting(const struct queue_item *item)
{
    return item->name[0] && !item->is_done;
}

/* Without the suffix and what was added to the name: what a mail is known by. */
static inline struct str queue_id(const struct queue_item *item)
{
    return (struct str){ item->name, MAIL_ENTRY_ID };
}

#endif
