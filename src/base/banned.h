/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that have no ceiling, depend on the locale or hide state: using one is a compile error.
 * Included in every file by the compiler's -include flag (see meson.build). */
#ifndef SONDE_BANNED_H
#define SONDE_BANNED_H

/* The declarations must come first, or poisoning the names would break these headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* no ceiling on what is written */
#pragma GCC poison strcpy strcat strncat stpcpy sprintf vsprintf gets
/* does not end its result, or ends it with padding nobody asked for */
#pragma GCC poison strncpy
/* hidden state shared by threads */
#pragma GCC poison strtok strerror localtime gmtime ctime asctime rand srand
/* accept any garbage as a number, or follow the locale: base/num reads numbers */
#pragma GCC poison atoi atol atoll atof sscanf
/* start a shell: base/spawn runs commands */
#pragma GCC poison system popen
/* a wait that nothing can end: wait for the event */
#pragma GCC poison sleep usleep

#endif
