/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports as mails: one at once, or those that wait in the spool. */
#ifndef SONDE_CMD_REPORT_MAIL_H
#define SONDE_CMD_REPORT_MAIL_H

#include "cmd/report_maker.h"

/* To the job's user, or to whom the settings say. */
int report_mail_send(struct report_maker *maker, const struct job_report *report,
                     struct arena *arena, struct err *err);

/* Sends what waits, with `follows` until a signal sets `stopped`. */
int report_mail_drain(struct report_maker *maker, atomic_bool *stopped, struct err *err);

#endif
