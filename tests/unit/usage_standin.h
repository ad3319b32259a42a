/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collectors of usage for tests of what is done with them, in place of the real ones: each writes
 * so many samples as there are jobs, whose values are the number of the tick. */
#ifndef SONDE_TESTS_USAGE_STANDIN_H
#define SONDE_TESTS_USAGE_STANDIN_H

#include "collector/usage.h"

enum { STANDIN_ALPHA, STANDIN_BETA, STANDIN_GAMMA /* is_off */, STANDINS };

#define STANDIN_ALL (((usage_collector_set)1 << STANDINS) - 1)

#endif
