/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes reports: holds what they are made from, opened once for many. */
#ifndef SONDE_CMD_REPORT_MAKER_H
#define SONDE_CMD_REPORT_MAKER_H

#include "cmd/report_options.h"
#include "report/gather.h"
#include "report/report.h"

enum { ARRAY_TASKS_MAX = 100000 };

struct report_maker {
    const struct report_settings *settings;
    const struct clock *clock; /* of wall time */
    const atomic_bool *cancelled;
    struct store_reader *store; /* or NULL: store_trouble tells why */
    struct err store_trouble;
    struct ticks_reader *series; /* or NULL */
    struct sacct *sacct;
    struct prometheus *prometheus; /* or NULL */
    int64_t prometheus_at;         /* monotonic: it took too long, and is left alone until then; */
    char *why_no_series;           /* that it did; or NULL */
    struct check_settings checks;
    struct arena arena; /* of the checks */
};

/* -EINVAL with a sentence for settings that cannot be used. A store that cannot be read is none.
 */
int report_maker_open(struct report_maker *maker, const struct report_settings *settings,
                      const atomic_bool *cancelled, struct err *err);
void report_maker_close(struct report_maker *maker);

/* A store that could not be read may have come since. */
void report_maker_look_for_store(struct report_maker *maker);

/* As gather_job and gather_array. What is made lives in the arena. */
int report_make(struct report_maker *maker, const struct job_name *name, bool wants_plots,
                struct arena *arena, struct job_report *ret, struct err *err);
int report_make_array(struct report_maker *maker, const struct job_name *name, struct arena *arena,
                      struct array_report *ret, struct err *err);

#endif
