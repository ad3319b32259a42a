/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that sonde report and sonde-mail read unless --config.file names another. */
#ifndef SONDE_CMD_REPORT_FILE_H
#define SONDE_CMD_REPORT_FILE_H

#include "base/arena.h"

#define REPORT_FILE "/etc/sonde/report.yml"

/* argv with --config.file=REPORT_FILE before all other flags, where one of those beats it; as it is
 * if there is no such file. */
char **report_file_argv(int *argc, char **argv, struct arena *arena);

#endif
