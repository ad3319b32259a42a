/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the place of what the plugin takes from Slurm: a table of options, a log, TRES and lists. */
#ifndef SONDE_TESTS_PLUGIN_STANDIN_H
#define SONDE_TESTS_PLUGIN_STANDIN_H

#include <stdbool.h>

/* "KEY=VALUE" of acct_gather.conf; it must stay where it is. */
void standin_add_line(char *line);

/* As Slurm's daemons would: whether all keys are among the options that the plugin told. */
bool standin_knows_all_keys(void);

/* "gres/gpumem,gres/gpuutil": what AccountingStorageTRES has beside the usual. */
void standin_set_tres(const char *tres);

/* What was logged since the last call, a line each; nothing is kept of it. */
void standin_print_log(void);

/* What the plugin appended to the list of its configuration, as "name = value"; then it is freed.
 */
void standin_print_pairs(void);

#endif
