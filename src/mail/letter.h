/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The short mail: what Slurm itself said of a job, in words. */
#ifndef SONDE_MAIL_LETTER_H
#define SONDE_MAIL_LETTER_H

#include "mail/spool.h"

/* "4711", "4711_7", "4711+1"; nothing if it is not known. */
void letter_put_job(struct buf *to, const struct mail_entry *entry);

/* "Job 4711 (name) on beluga began"; of a job that is not known, what Slurm wrote. */
void letter_put_subject(struct buf *to, const struct mail_entry *entry);
void letter_put_text(struct buf *to, const struct mail_entry *entry);

#endif
