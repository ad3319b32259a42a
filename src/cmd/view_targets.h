/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which view each cluster gets. */
#ifndef SONDE_CMD_VIEW_TARGETS_H
#define SONDE_CMD_VIEW_TARGETS_H

#include "base/option.h"
#include "cmd/view_survey.h"

struct view_target {
    struct str cluster;
    struct str view;
    const char *left_out; /* why it gets none; NULL: it does */
};

struct view_targets {
    struct view_target *target;
    size_t n;
};

/* Of the named clusters, or of all if none is named. -ENOENT with a sentence for a cluster that is
 * not there, or if there is none at all; -EEXIST if a name is taken by somebody else's view. Lives
 * in the arena. */
int view_targets_choose(const struct view_survey *survey, struct str database,
                        struct option_list names, struct arena *arena, struct view_targets *ret,
                        struct err *err);

#endif
