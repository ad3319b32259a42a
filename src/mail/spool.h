/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mails that Slurm wants sent, as files in a directory: written by sonde-mail on the controller,
 * read by whoever sends them. An entry is JSON in a file of its own, whole or not there. */
#ifndef SONDE_MAIL_SPOOL_H
#define SONDE_MAIL_SPOOL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define MAIL_SPOOL        "/var/spool/sonde/mail" /* unless something else is said */
#define MAIL_ENTRY_SUFFIX ".mail"

/* What Slurm says of a mail: from its environment, never from the subject, in which the job's name
 * stands. Unknown: empty, 0. */
struct mail_entry {
    struct str to;      /* as Slurm gives it: a user's name or an address */
    struct str subject; /* of Slurm's; for mails of which nothing else is known, made harmless */
    struct str event;   /* "Ended", "Failed", "Began", "Invalid dependency", … */
    struct str cluster, name, user, account, partition, state, exit_code, nodes;
    uint32_t job_id, array_job_id, array_task_id, het_job_id, het_offset; /* MODEL_UNKNOWN_U32 */
    bool is_array;        /* of a whole array: it has no task, state or exit code of its own */
    int64_t written_time; /* UTC seconds */
    struct str run_time, queued_time;
};

enum {
    MAIL_ENTRY_MAX = 16 * 1024,
    MAIL_SPOOL_MAX = 200000, /* entries */
    MAIL_ADDRESS_MAX = 254,  /* RFC 5321 */
    /* The name of an entry's file: when it was written, as hexadecimal nanoseconds, so that names
     * are in order; a dash; what nobody can guess. The suffix follows. */
    MAIL_ENTRY_ID = 16 + 1 + 16,
};

/* Of the environment that slurmctld gives. The texts are those of the arguments. */
void mail_entry_of_environment(char *const *env, const char *subject, const char *to, int64_t now,
                               struct mail_entry *ret);

/* Appears in the directory whole, synced, under a name of its own. -ENOSPC also past
 * MAIL_SPOOL_MAX, -EINVAL for a recipient that is none. Longer texts than any are cut. */
int mail_spool_add(const char *directory, const struct mail_entry *entry, struct err *err);

/* The same for a document that is not Slurm's. */
int mail_spool_write(int directory, const char *name, struct str document, struct err *err);

void mail_entry_new_id(char id[MAIL_ENTRY_ID + 1]);

int mail_entry_read(struct str document, struct arena *arena, struct mail_entry *ret,
                    struct err *err);

#endif
