/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Licences from a command of the site's own: scontrol(1) show licenses, with --oneliner or without,
 * or
 * --json. */
#include "source/cli.h"
#include "source/foreign.h"

static void begin(struct answer *answer)
{
    foreign_begin(answer, &answer_licenses, &answer_json_licenses);
}

const struct answer_class answer_foreign_licenses = FOREIGN_CLASS(begin);
