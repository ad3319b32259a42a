/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reservations: for whom, when, how much, and which nodes. */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/once.h"
#include "model/hostlist.h"

enum { INFO, ACTIVE, START_TIME, END_TIME, NODES, CORES, NODE_INFO };

enum { MOST_NODES = 20000 }; /* of all reservations together */

static const struct family families[] = {
    [INFO] = { "slurm_reservation_info",
               METRIC_GAUGE,
               "Always 1; the labels tell who may use a reservation, in which partition, and its "
               "flags.",
               { "reservation", "users", "accounts", "partition", "flags" } },
    [ACTIVE] = { "slurm_reservation_active",
                 METRIC_GAUGE,
                 "1 while a reservation is in effect, 0 while it is still to come.",
                 { "reservation" } },
    [START_TIME] = { "slurm_reservation_start_time_seconds",
                     METRIC_GAUGE,
                     "When a reservation begins or began, since unix epoch in seconds.",
                     { "reservation" } },
    [END_TIME] = { "slurm_reservation_end_time_seconds",
                   METRIC_GAUGE,
                   "When a reservation ends, since unix epoch in seconds.",
                   { "reservation" } },
    [NODES] = { "slurm_reservation_nodes",
                METRIC_GAUGE,
                "Nodes of a reservation.",
                { "reservation" } },
    [CORES] = { "slurm_reservation_cores",
                METRIC_GAUGE,
                "Cores of a reservation.",
                { "reservation" } },
    [NODE_INFO] = { "slurm_reservation_node_info",
                    METRIC_GAUGE,
                    "Always 1; the labels tell that a reservation has a node. A reservation that "
                    "would make more than 20,000 of these has none.",
                    { "reservation", "node" } },
};

static uint64_t active(const struct reservation *reservation)
{
    return reservation->is_active;
}

static uint64_t start_time(const struct reservation *reservation)
{
    return reservation->start_time > 0 ? (uint64_t)reservation->start_time : MODEL_UNKNOWN_U64;
}

static uint64_t end_time(const struct reservation *reservation)
{
    return reservation->end_time > 0 ? (uint64_t)reservation->end_time : MODEL_UNKNOWN_U64;
}

static uint64_t nodes(const struct reservation *reservation)
{
    return known_u32(reservation->node_count);
}

static uint64_t cores(const struct reservation *reservation)
{
    return known_u32(reservation->core_count);
}

static const struct {
    size_t family;
    uint64_t (*of)(const struct reservation *reservation);
} amounts[] = {
    { ACTIVE, active }, { START_TIME, start_time }, { END_TIME, end_time },
    { NODES, nodes },   { CORES, cores },
};

static void write_info(const struct section *section, const struct reservation *reservation,
                       struct metric_writer *writer)
{
    const struct str labels[] = {
        section_text(section, reservation->name),     section_text(section, reservation->users),
        section_text(section, reservation->accounts), section_text(section, reservation->partition),
        section_text(section, reservation->flags),
    };

    metric_u64(writer, labels, 1);
}

/* Returns how many nodes were named, at most `most`. A list that cannot be read gives none. */
static size_t write_nodes(const struct section *section, const struct reservation *reservation,
                          size_t most, struct metric_writer *writer)
{
    struct str name = section_text(section, reservation->name);
    struct str text = section_text(section, reservation->nodes);
    struct hostlist list = { .n = 0 };
    struct arena arena = { 0 };
    struct once once;
    uint64_t count;

    once_init(&once);
    if (hostlist_expand(text, &arena, most, &list, NULL) == -EFBIG &&
        hostlist_count(text, &count, NULL) == 0)
        writer->folded += count;
    for (size_t i = 0; i < list.n; i++)
        if (once_text(&once, list.hosts[i]))
            metric_u64(writer, METRIC_VALUES(name, list.hosts[i]), 1);
    once_free(&once);
    arena_clear(&arena);
    return list.n;
}

/* Each name once. */
static size_t pick(const struct reservations *reservations, const struct reservation **rows)
{
    struct once once;
    size_t n = 0;

    once_init(&once);
    for (size_t i = 0; i < reservations->n; i++)
        if (once_numbers(&once, reservations->reservation[i].name))
            rows[n++] = &reservations->reservation[i];
    once_free(&once);
    return n;
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct reservation **rows = heap_array(section->reservations.n + 1, sizeof(const void *));
    size_t n = pick(&section->reservations, rows), n_nodes = 0;

    metric_begin(writer, INFO);
    for (size_t i = 0; i < n; i++)
        write_info(section, rows[i], writer);
    for (size_t k = 0; k < COUNT(amounts); k++) {
        metric_begin(writer, amounts[k].family);
        for (size_t i = 0; i < n; i++)
            known_write(writer, METRIC_VALUES(section_text(section, rows[i]->name)),
                        amounts[k].of(rows[i]));
    }
    metric_begin(writer, NODE_INFO);
    for (size_t i = 0; i < n; i++)
        n_nodes += write_nodes(section, rows[i], MOST_NODES - n_nodes, writer);
    free(rows);
}

const struct collector collector_reservations = {
    .name = "reservations",
    .help = "reservations with their times, nodes and who may use them",
    .kind = KIND_RESERVATIONS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
