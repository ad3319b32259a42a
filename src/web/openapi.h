/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The API as OpenAPI 3.1 describes it (spec.openapis.org/oas/v3.1.0), made of the same tables that
 * answer. docs/openapi.json is this text; a test compares. */
#ifndef SONDE_WEB_OPENAPI_H
#define SONDE_WEB_OPENAPI_H

#include "base/buf.h"

void openapi_put(struct buf *out);

#endif
