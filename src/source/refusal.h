/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurmrestd, or a proxy before it, says instead of an answer. */
#ifndef SONDE_SOURCE_REFUSAL_H
#define SONDE_SOURCE_REFUSAL_H

#include "base/str.h"

#include <stdint.h>

struct refusal {
    char words[200]; /* fit for a sentence */
    int64_t number;  /* Slurm's, or 0 */
};

/* From the beginning of the body: the first of Slurm's "errors", or plain text. */
void refusal_read(struct str body, const char *content_type, struct refusal *ret);

/* Whether a body of that type is a page for people. */
bool refusal_is_page(const char *content_type);

/* Whether Slurm means that it does not take the token: ESLURM_PROTOCOL_AUTHENTICATION_ERROR. */
bool refusal_is_of_token(const struct refusal *refusal);

/* Whether it could mean that: slurmctld's own word does not always come through. */
bool refusal_may_be_of_token(const struct refusal *refusal);

#endif
