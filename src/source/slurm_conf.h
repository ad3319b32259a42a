/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of "Key = value", as in Slurm's configuration files (slurm.conf(5), acct_gather.conf(5))
 * and in what "scontrol show config" prints. */
#ifndef SONDE_SOURCE_SLURM_CONF_H
#define SONDE_SOURCE_SLURM_CONF_H

#include "base/str.h"

struct slurm_conf_line {
    unsigned number;  /* from 1 up */
    struct str key;   /* "Include" for that directive; compared without regard to case */
    struct str value; /* without quotation marks; of a line that goes on, what is on its first */
};

/* Takes the next line that has a key off *rest; *number is that of the last one taken, 0 at first.
 * Comments, and lines that continue another, are passed over. False: there is no more. */
bool slurm_conf_next(struct str *rest, unsigned *number, struct slurm_conf_line *ret);

#endif
