/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics from a command of the site's own: sdiag(1), in text or --json. */
#include "source/cli.h"
#include "source/foreign.h"

static void begin(struct answer *answer)
{
    foreign_begin(answer, &answer_sdiag, &answer_json_diag);
}

const struct answer_class answer_foreign_diag = FOREIGN_CLASS(begin);
