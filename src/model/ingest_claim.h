/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the munge credential of a post to /ingest contains. A credential is checked before the body
 * is read, so it cannot contain the body; it contains the body's SHA-256 instead, and is of no use
 * for another post. docs/decisions/munge.md. */
#ifndef SONDE_MODEL_INGEST_CLAIM_H
#define SONDE_MODEL_INGEST_CLAIM_H

#include "base/err.h"
#include "base/str.h"

enum { INGEST_CLAIM_SIZE = 80 }; /* with its NUL */

/* "sonde ingest 64 hexadecimal digits". -EIO if GnuTLS cannot compute it. */
int ingest_claim(struct str body, char to[INGEST_CLAIM_SIZE], struct err *err);

#endif
