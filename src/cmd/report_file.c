/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds the default configuration file to the flags of sonde report and sonde-mail. */
#include "cmd/report_file.h"

#include <errno.h>
#include <unistd.h>

char **report_file_argv(int *argc, char **argv, struct arena *arena)
{
    static char flag[] = "--config.file=" REPORT_FILE;
    char **longer;

    if (access(REPORT_FILE, F_OK) < 0 && errno == ENOENT)
        return argv;
    longer = ARENA_ARRAY(arena, char *, (size_t)*argc + 2);
    longer[0] = argv[0];
    longer[1] = flag;
    memcpy(longer + 2, argv + 1, (size_t)*argc * sizeof(*argv)); /* with the NULL */
    ++*argc;
    return longer;
}
