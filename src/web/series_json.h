/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A chart over time as numbers, for the script that draws it:
 *     {"title":"CPUs","unit":"number","labels":["time","idle","promised: 40"],"colours":[3,0],
 *      "points":[[1790000000,3.5,40],[1790000060,null,40],…]}
 * A colour is one of the palette's eight; 0 is the dashed line of a limit, which is the last. */
#ifndef SONDE_WEB_SERIES_JSON_H
#define SONDE_WEB_SERIES_JSON_H

#include "report/time_chart.h"

void series_json(struct buf *to, const struct time_chart *chart, struct arena *arena);

#endif
