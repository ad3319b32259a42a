/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lustre's job ids taken apart: the formats of its parameter jobid_name (Lustre manual, "Lustre
 * Jobstats"). */
#ifndef SONDE_SOURCE_LUSTRE_IDS_H
#define SONDE_SOURCE_LUSTRE_IDS_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Pieces of a format: text, or one of %e %g %h %H %j %p %u. */
struct lustre_format;

/* "%j", "%e.%u", "%j:%e:%H"; quotes around it are taken off, and white space, as Lustre does.
 * -EINVAL with a sentence if a code is not known or is there twice (%h and %H are one), two codes
 * could not be told apart because they touch, a digit stands beside a number, or it has none of %j,
 * %e and %u. */
int lustre_format_new(struct str text, struct lustre_format **ret, struct err *err);
struct lustre_format *lustre_format_free(struct lustre_format *format); /* returns NULL */

struct lustre_parts {
    bool has_job, has_user;
    uint32_t job_id; /* %j: digits, not 0; has_job is false where it is empty */
    uint32_t user_id;
    struct str process; /* %e, or empty */
};

/* Whether the id has this format and says whose it is. A name may hold what stands between the
 * codes: numbers are numbers, hosts have letters, digits, '-', '_' and (%h) dots, and of several
 * ways to cut it the one with the longest name first holds. Linear in the length of the id for
 * formats with one name, and never more than its square; of more than 256 bytes it has none. */
bool lustre_format_read(const struct lustre_format *format, struct str id,
                        struct lustre_parts *ret);

/* As Lustre has it without a format, and as every one that knows one has beside it: digits are a
 * job, anything else is NAME.UID, cut at its last dot. False: neither. */
bool lustre_id_read(struct str id, struct lustre_parts *ret);

#endif
