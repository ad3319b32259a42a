/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every program that serves metrics says of itself: its build, its collectors, its HTTP
 * server, its process. */
#ifndef SONDE_COLLECTOR_PROGRAM_H
#define SONDE_COLLECTOR_PROGRAM_H

#include "base/process.h"
#include "metric/writer.h"

/* A collector that is switched on. */
struct program_collector {
    const char *name;
    struct str const_labels; /* of the cluster that it is of; empty: those of the program */
    bool is_shown;           /* in this exposition; what follows is of its last rendering */
    bool is_over;            /* past the ceiling on its text: nothing of it is shown */
    double seconds;
    uint64_t samples, duplicates, folded;
};

struct program {
    const struct program_collector *collectors;
    size_t n_collectors;
    struct process process;
    uint64_t http_requests, http_connections;
    uint64_t scrapes_in_flight, scrapes_answered, scrapes_refused; /* of the metrics themselves */
    uint64_t http_busy, http_unauthorized, http_timed_out, http_evicted; /* refused or ended */
};

/* Its families are rows in the table of whoever has more to say: program.inc. */
enum program_family {
    PROGRAM_BUILD_INFO,
    PROGRAM_COLLECTOR_DURATION,
    PROGRAM_COLLECTOR_SUCCESS,
    PROGRAM_COLLECTOR_SAMPLES,
    PROGRAM_COLLECTOR_DUPLICATES,
    PROGRAM_COLLECTOR_FOLDED,
    PROGRAM_HTTP_REQUESTS,
    PROGRAM_HTTP_CONNECTIONS,
    PROGRAM_HTTP_REFUSED,
    PROGRAM_PROMHTTP_IN_FLIGHT,
    PROGRAM_PROMHTTP_REQUESTS,
    PROGRAM_PROCESS_CPU,
    PROGRAM_PROCESS_RESIDENT,
    PROGRAM_PROCESS_VIRTUAL,
    PROGRAM_PROCESS_VIRTUAL_MAX,
    PROGRAM_PROCESS_START,
    PROGRAM_PROCESS_FDS,
    PROGRAM_PROCESS_MAX_FDS,
    PROGRAM_PROCESS_THREADS,
    PROGRAM_FAMILIES,
};

/* `first` is the index of the first row. */
void program_collect(const struct program *program, struct metric_writer *writer, size_t first);

#endif
