/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times in a query: RFC 3339, a day in UTC, or UTC seconds. Nothing that depends on where the
 * server stands, or on when it is asked. */
#ifndef SONDE_WEB_API_TIME_H
#define SONDE_WEB_API_TIME_H

#include "base/str.h"

#include <stdint.h>

/* "2026-10-01", "2026-10-01T12:30:00Z", "2026-10-01T14:30+02:00" (with a space for the plus, which
 * a query may have made of it), "1790812800". False: none of these, or before 1973, where a short
 * number is rather a mistake. */
bool api_time_read(struct str text, int64_t *ret);

#endif
