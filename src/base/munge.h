/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Credentials of munge (munge(7)): a text that proves to any host of the cluster which user made
 * it. libmunge is loaded when it is first needed, so that nothing here depends on its being
 * installed. Each call asks munged and may take milliseconds. */
#ifndef SONDE_BASE_MUNGE_H
#define SONDE_BASE_MUNGE_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* Seals a payload: *ret is a text to be freed. -ENOENT if libmunge or munged is not there. */
int munge_seal(struct str payload, char **ret, struct err *err);

/* Opens a credential: appends its payload to `to` and tells who made it. -EACCES if it is forged,
 * damaged, expired or was opened here before; -ENOENT as above; -EFBIG if it does not fit. */
int munge_unseal(struct str credential, struct buf *to, uid_t *ret_uid, struct err *err);

#endif
