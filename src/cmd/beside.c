/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds sonde's other programs in the directory of this one. */
#include "cmd/beside.h"

#include "base/arena.h"

#include <limits.h>
#include <unistd.h>

char *program_beside_us(const char *name)
{
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    snprintf(path, sizeof(path), "%s/%s", self, name);
    return heap_str(str_of(path));
}
