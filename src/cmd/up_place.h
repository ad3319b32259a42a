/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where `sonde up` keeps things, and as whom it runs. */
#ifndef SONDE_CMD_UP_PLACE_H
#define SONDE_CMD_UP_PLACE_H

#include "cmd/up_settings.h"

#include <limits.h>
#include <sys/types.h>

struct up_place {
    char directory[PATH_MAX]; /* empty: not made yet */
    char agent_socket[PATH_MAX + 16];
    char user[64]; /* whom root becomes; empty: it was not root */
    uid_t uid;
    gid_t gid;
    bool was_root;
    bool has_capabilities; /* the agent's, as root or from the unit */
    bool is_temporary;     /* of --demo: removed at the end */
};

/* Makes the directory, and gives it to whom we will be. */
int up_place_make(struct up_place *place, const struct up_settings *settings, struct err *err);

/* Root becomes that user, without any capability, for ever. Before there is any thread. */
int up_place_drop_privileges(const struct up_place *place, struct err *err);

/* Removes what is temporary. */
void up_place_clear(const struct up_place *place);

#endif
