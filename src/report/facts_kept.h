/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the embedded series tell of a run: numbers and plots, as facts_series has them of a
 * Prometheus. */
#ifndef SONDE_REPORT_FACTS_KEPT_H
#define SONDE_REPORT_FACTS_KEPT_H

#include "report/facts.h"
#include "store/ticks.h"

/* After facts_take_row, before facts_finish. Never makes a known number smaller. */
int facts_take_kept(struct job_facts *facts, struct arena *arena, struct ticks_reader *series,
                    bool wants_plots, struct err *err);

#endif
