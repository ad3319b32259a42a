/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics that every serving program has about itself. */
#include "collector/program.h"

static void collector_sample(struct metric_writer *writer, enum program_family family,
                             const struct program_collector *collector)
{
    struct str name = str_of(collector->name);

    switch (family) {
    case PROGRAM_COLLECTOR_DURATION:
        if (collector->is_shown)
            metric_double(writer, &name, collector->seconds);
        break;
    case PROGRAM_COLLECTOR_SUCCESS:
        metric_u64(writer, &name, collector->is_shown && !collector->is_over);
        break;
    case PROGRAM_COLLECTOR_SAMPLES:
        metric_u64(writer, &name, collector->is_shown ? collector->samples : 0);
        break;
    case PROGRAM_COLLECTOR_DUPLICATES:
        metric_u64(writer, &name, collector->is_shown ? collector->duplicates : 0);
        break;
    case PROGRAM_COLLECTOR_FOLDED:
        metric_u64(writer, &name, collector->is_shown ? collector->folded : 0);
        break;
    default:
        break;
    }
}

/* Those of several clusters are told apart. */
static void collect_collectors(const struct program *program, struct metric_writer *writer,
                               size_t first)
{
    struct str const_labels = writer->const_labels;

    for (enum program_family family = PROGRAM_COLLECTOR_DURATION;
         family <= PROGRAM_COLLECTOR_FOLDED; family++) {
        metric_begin(writer, first + family);
        for (size_t i = 0; i < program->n_collectors; i++) {
            const struct program_collector *collector = &program->collectors[i];

            metric_const_labels(writer,
                                collector->const_labels.n ? collector->const_labels : const_labels);
            collector_sample(writer, family, collector);
        }
    }
    metric_const_labels(writer, const_labels);
}

static void collect_http(const struct program *program, struct metric_writer *writer, size_t first)
{
    metric_begin(writer, first + PROGRAM_HTTP_REQUESTS);
    metric_u64(writer, NULL, program->http_requests);
    metric_begin(writer, first + PROGRAM_HTTP_CONNECTIONS);
    metric_u64(writer, NULL, program->http_connections);
    metric_begin(writer, first + PROGRAM_HTTP_REFUSED);
    metric_u64(writer, METRIC_VALUES(STR("busy")), program->http_busy);
    metric_u64(writer, METRIC_VALUES(STR("unauthorized")), program->http_unauthorized);
    metric_u64(writer, METRIC_VALUES(STR("timeout")), program->http_timed_out);
    metric_u64(writer, METRIC_VALUES(STR("evicted")), program->http_evicted);
    metric_begin(writer, first + PROGRAM_PROMHTTP_IN_FLIGHT);
    metric_u64(writer, NULL, program->scrapes_in_flight);
    metric_begin(writer, first + PROGRAM_PROMHTTP_REQUESTS);
    metric_u64(writer, METRIC_VALUES(STR("200")), program->scrapes_answered);
    metric_u64(writer, METRIC_VALUES(STR("400")), program->scrapes_refused);
    metric_u64(writer, METRIC_VALUES(STR("500")), 0);
    metric_u64(writer, METRIC_VALUES(STR("503")), 0);
}

static void collect_process(const struct process *process, struct metric_writer *writer,
                            size_t first)
{
    metric_begin(writer, first + PROGRAM_PROCESS_CPU);
    metric_double(writer, NULL, process->cpu_seconds);
    metric_begin(writer, first + PROGRAM_PROCESS_RESIDENT);
    metric_u64(writer, NULL, process->resident_bytes);
    metric_begin(writer, first + PROGRAM_PROCESS_VIRTUAL);
    metric_u64(writer, NULL, process->virtual_bytes);
    metric_begin(writer, first + PROGRAM_PROCESS_VIRTUAL_MAX);
    metric_u64(writer, NULL, process->virtual_max_bytes);
    metric_begin(writer, first + PROGRAM_PROCESS_START);
    metric_double(writer, NULL, process->start_time_seconds);
    metric_begin(writer, first + PROGRAM_PROCESS_FDS);
    if (process->open_fds)
        metric_u64(writer, NULL, process->open_fds);
    metric_begin(writer, first + PROGRAM_PROCESS_MAX_FDS);
    metric_u64(writer, NULL, process->max_fds);
    metric_begin(writer, first + PROGRAM_PROCESS_THREADS);
    metric_u64(writer, NULL, process->threads);
}

void program_collect(const struct program *program, struct metric_writer *writer, size_t first)
{
    metric_begin(writer, first + PROGRAM_BUILD_INFO);
    metric_u64(writer, METRIC_VALUES(STR(SONDE_VERSION)), 1);
    collect_collectors(program, writer, first);
    collect_http(program, writer, first);
    collect_process(&program->process, writer, first);
}
