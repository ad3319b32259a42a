/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Credentials of munge (munge(7)): a text that proves to any host of the cluster which user made
 * it. libmunge is loaded when it is first needed, so that nothing here depends on its being
 * installed. Each call asks munged: 0.1 ms, or seconds if munged hangs. */
#ifndef SONDE_BASE_MUNGE_H
#define SONDE_BASE_MUNGE_H

#include "base/buf.h"
#include "base/err.h"

#include <netinet/in.h>
#include <sys/types.h>

/* `socket` is where munged listens, or NULL for its usual place: a slurm.conf with
 * AuthInfo=socket=… names another. */

/* Seals a payload: *ret is a text to be freed. -ENOENT if libmunge or munged is not there, -EFBIG
 * if the payload is larger than munged takes (1 MB). */
int munge_seal(const char *socket, struct str payload, char **ret, struct err *err);

/* Who made a credential, and where. */
struct munge_origin {
    uid_t uid;
    struct in_addr address; /* of the host, as its munged has it; 0.0.0.0 if that is unknown */
};

/* Opens a credential: appends its payload to `to`. -EACCES if it is forged, damaged, expired or was
 * opened on this host before; -ENOENT as above; -EFBIG if it does not fit. */
int munge_unseal(const char *socket, struct str credential, struct buf *to,
                 struct munge_origin *ret, struct err *err);

/* Whether libmunge is installed: -ENOENT if not. munged is not asked. */
int munge_find(struct err *err);

#endif
