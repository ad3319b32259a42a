/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs that have ended, as the store has counted them: what Slurm forgets, and a restart with it,
 * stays counted. */
#include "collector/collector.h"

enum { ENDED };

enum { MOST_ROWS = 20000 };

static const struct family families[] = {
    [ENDED] = { "slurm_jobs_ended_total",
                METRIC_COUNTER,
                "Jobs that have ended, by the state that they ended in: all that slurmdbd has told "
                "of; of a cluster without it, those that were seen since the store was begun. "
                "Every task of a job array and every run of a requeued job counts, as sacct -X -D "
                "--array lists them. Tasks that were canceled together while pending count when "
                "slurmdbd has had 10 minutes to learn how many they were. One that never "
                "started, and could have in several partitions, is of the partition several. Of "
                "more than 20000 series, accounts are added up as other, for good; if there are "
                "still more, partitions as well.",
                { "state", "partition", "account" } },
};

/* Jobs added up by state, and by partition if those are told apart. */
struct cell {
    symbol state, partition;
    uint64_t count;
};

struct cells {
    struct arena arena;
    struct map places;
    struct cell *cell;
    size_t n, room;
};

static void cells_add(struct cells *cells, struct cell cell)
{
    symbol key[] = { cell.state, cell.partition };
    size_t place = map_index(&cells->places, (struct str){ (const char *)key, sizeof(key) });

    if (place == cells->n) {
        cells->cell = heap_grow(cells->cell, cells->n, &cells->room, sizeof(*cells->cell));
        cells->cell[cells->n++] = cell;
    } else {
        cells->cell[place].count += cell.count;
    }
}

static void cells_init(struct cells *cells, const struct ended *ended, bool by_partition)
{
    *cells = (struct cells){ 0 };
    map_init(&cells->places, &cells->arena);
    for (size_t i = 0; i < ended->n; i++)
        cells_add(cells, (struct cell){ .state = ended->row[i].state,
                                        .partition = by_partition ? ended->row[i].partition : 0,
                                        .count = ended->row[i].count });
}

static void cells_free(struct cells *cells)
{
    map_free(&cells->places);
    arena_clear(&cells->arena);
    free(cells->cell);
}

static void write_all(const struct section *section, struct metric_writer *writer)
{
    for (size_t i = 0; i < section->ended.n; i++) {
        const struct ended_jobs *row = &section->ended.row[i];

        metric_u64(writer,
                   METRIC_VALUES(section_text(section, row->state),
                                 section_text(section, row->partition),
                                 section_text(section, row->account)),
                   row->count);
    }
}

static void write_cells(const struct section *section, const struct cells *cells, bool by_partition,
                        struct metric_writer *writer)
{
    for (size_t i = 0; i < cells->n; i++) {
        const struct cell *cell = &cells->cell[i];

        metric_u64(
            writer,
            METRIC_VALUES(section_text(section, cell->state),
                          by_partition ? section_text(section, cell->partition) : STR("other"),
                          STR("other")),
            cell->count);
    }
}

/* A counter must never go back. If the smallest were added up, one that grows would leave other,
 * and one that comes in would make it jump. So it is all of a label or nothing: rows only ever
 * become more, so that what is once added up stays so, and each of those series counts all its jobs
 * from its first sample on. */
static void write_sums(const struct section *section, struct metric_writer *writer)
{
    bool by_partition = true;
    struct cells cells;

    cells_init(&cells, &section->ended, by_partition);
    if (cells.n > MOST_ROWS) {
        cells_free(&cells);
        by_partition = false;
        cells_init(&cells, &section->ended, by_partition);
    }
    write_cells(section, &cells, by_partition, writer);
    writer->folded += section->ended.n - cells.n;
    cells_free(&cells);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    metric_begin(writer, ENDED);
    if (section->ended.n <= MOST_ROWS)
        write_all(section, writer);
    else
        write_sums(section, writer);
}

const struct collector collector_ended = {
    .name = "ended",
    .help = "jobs that have ended, by final state, partition and account",
    .kind = KIND_ENDED,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
