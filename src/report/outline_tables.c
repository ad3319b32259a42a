/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the tables of a report's outline. */
#include "report/outline_tables.h"

#include "base/shown.h"
#include "report/choose.h"
#include "report/idle.h"
#include "report/words.h"

#include <math.h>
#include <stdlib.h>

enum {
    NODE_ROWS = 16,
    CORE_ROWS = 32,
    GPU_ROWS = 16,
    PROCESS_ROWS = 10,
    LIFE_ROWS = 20,
    NAME_MAX_COLUMNS = 40,
    CELL_MAX = 1024,
};

/* Cells are written one after the other, each from what `words` has. */
struct filler {
    struct outline_table *table;
    struct arena *arena;
    struct buf words;
    size_t n_cells;
};

static void begin_table(struct filler *filler, struct outline_table *table, struct arena *arena,
                        const char *const *title, size_t n_columns, size_t n_rows)
{
    *table = (struct outline_table){ .title = title, .n_columns = n_columns, .n_rows = n_rows };
    table->cell = ARENA_ARRAY(arena, struct str, n_rows * n_columns);
    *filler = (struct filler){ .table = table, .arena = arena };
    buf_init(&filler->words, CELL_MAX);
}

static void end_cell(struct filler *filler)
{
    filler->table->cell[filler->n_cells++] = arena_str(filler->arena, buf_str(&filler->words));
    buf_reset(&filler->words);
}

static void put_name(struct filler *filler, struct str name)
{
    shown_put_cut(&filler->words, name, NAME_MAX_COLUMNS);
}

static void number_cell(struct filler *filler, void (*put)(struct buf *to, double value),
                        double value)
{
    put(&filler->words, value);
    end_cell(filler);
}

static bool is_empty_column(const struct outline_table *table, size_t column)
{
    for (size_t i = 0; i < table->n_rows; i++)
        if (table->cell[i * table->n_columns + column].n)
            return false;
    return true;
}

/* Without the columns of which nothing is known; without any rows if names are all there is. */
static void end_table(struct filler *filler, size_t n_all, const char *which)
{
    struct outline_table *table = filler->table;
    size_t n = table->n_columns, kept = 0, n_cells = 0;
    const char **title = ARENA_ARRAY(filler->arena, const char *, n);
    bool *is_empty = ARENA_ARRAY(filler->arena, bool, n);

    for (size_t i = 0; i < n; i++) {
        is_empty[i] = is_empty_column(table, i);
        if (!is_empty[i])
            title[kept++] = table->title[i];
    }
    for (size_t i = 0; i < table->n_rows * n; i++)
        if (!is_empty[i % n])
            table->cell[n_cells++] = table->cell[i];
    table->n_left_out = n_all - table->n_rows;
    table->which = which;
    table->title = title;
    table->n_columns = kept;
    if (kept < 2)
        *table = (struct outline_table){ 0 };
    buf_free(&filler->words);
}

static int by_place(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

/* All places, or the `most` of the lowest values, in their own order. */
static size_t *places_of(struct arena *arena, const double *value, size_t n, size_t most,
                         size_t *ret_n)
{
    size_t *places;

    if (n > most) {
        *ret_n = choose_lowest(arena, value, n, most, &places);
        if (*ret_n)
            qsort(places, *ret_n, sizeof(*places), by_place);
        return places;
    }
    places = ARENA_ARRAY(arena, size_t, n + 1);
    for (size_t i = 0; i < n; i++)
        places[i] = i;
    *ret_n = n;
    return places;
}

/* What is not known counts as nothing: it stands out too. */
static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static size_t without_repeats(size_t *places, size_t n)
{
    size_t kept = 0;

    qsort(places, n, sizeof(*places), by_place);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || places[i] != places[i - 1])
            places[kept++] = places[i];
    return kept;
}

/* Of many: half by CPU time, the least; half by memory, the most. */
static size_t *choose_nodes(struct arena *arena, const struct job_facts *facts, size_t *ret_n)
{
    size_t n = facts->n_nodes, *idle, *hungry, n_idle, n_hungry;
    double *value = ARENA_ARRAY(arena, double, n + 1);

    for (size_t i = 0; i < n; i++)
        value[i] = or_zero(facts->node[i].use.cpu_seconds);
    if (n <= NODE_ROWS)
        return places_of(arena, value, n, NODE_ROWS, ret_n);
    n_idle = choose_lowest(arena, value, n, NODE_ROWS, &idle);
    for (size_t i = 0; i < n; i++)
        value[i] = facts->node[i].use.memory_peak_bytes;
    n_hungry = choose_highest(arena, value, n, NODE_ROWS / 2, &hungry);
    memcpy(idle + n_idle - n_hungry, hungry, n_hungry * sizeof(*hungry));
    *ret_n = without_repeats(idle, n_idle);
    return idle;
}

void outline_nodes(struct outline_table *to, struct arena *arena, const struct job_facts *facts)
{
    static const char *const titles[] = { "Node", "CPUs",      "CPU use", "Memory peak",
                                          "of",   "Processes", "Read",    "Written" };
    size_t n, *place = choose_nodes(arena, facts, &n);
    struct filler filler;

    begin_table(&filler, to, arena, titles, COUNT(titles), n);
    for (size_t i = 0; i < n; i++) {
        const struct node_facts *node = &facts->node[place[i]];

        put_name(&filler, node->name);
        end_cell(&filler);
        number_cell(&filler, words_number, node->use.cpus);
        number_cell(&filler, words_percent, idle_node_ratio(facts, node));
        number_cell(&filler, words_bytes, node->use.memory_peak_bytes);
        number_cell(&filler, words_bytes, node->use.memory_bytes);
        number_cell(&filler, words_number, node->use.processes_peak);
        number_cell(&filler, words_bytes, node->use.read_bytes);
        number_cell(&filler, words_bytes, node->use.written_bytes);
    }
    end_table(&filler, facts->n_nodes,
              "those that used their CPUs least, and those with most memory in use");
}

struct core_place {
    const struct node_facts *node;
    const struct core_facts *core;
};

static size_t list_cores(struct arena *arena, const struct job_facts *facts,
                         struct core_place **ret, double **ret_seconds, double *ret_sum)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < facts->n_nodes; i++)
        n += facts->node[i].n_cores;
    *ret = ARENA_ARRAY(arena, struct core_place, n + 1);
    *ret_seconds = ARENA_ARRAY(arena, double, n + 1);
    *ret_sum = 0;
    for (size_t i = 0; i < facts->n_nodes; i++) {
        const struct node_facts *node = &facts->node[i];

        for (size_t j = 0; j < node->n_cores; j++, at++) {
            (*ret)[at] = (struct core_place){ node, &node->core[j] };
            (*ret_seconds)[at] = or_zero(node->core[j].seconds);
            *ret_sum += or_zero(node->core[j].seconds);
        }
    }
    return n;
}

void outline_cores(struct outline_table *to, struct arena *arena, const struct job_facts *facts)
{
    static const char *const titles[] = { "Core", "CPU time", "Share of all" };
    struct core_place *core;
    double *seconds, sum;
    size_t n_cores = list_cores(arena, facts, &core, &seconds, &sum), n;
    size_t *place = places_of(arena, seconds, n_cores, CORE_ROWS, &n);
    struct filler filler;

    begin_table(&filler, to, arena, titles, COUNT(titles), n);
    for (size_t i = 0; i < n; i++) {
        const struct core_place *at = &core[place[i]];

        put_name(&filler, at->node->name);
        buf_printf(&filler.words, " core %u", at->core->core);
        end_cell(&filler);
        number_cell(&filler, words_duration, at->core->seconds);
        number_cell(&filler, words_percent, sum > 0 ? at->core->seconds / sum : NAN);
    }
    end_table(&filler, n_cores, "the least used");
}

/* "3 / 45 / 98 %": the unit once, if all three have the same. */
static void spread_cell(struct filler *filler, const struct spread *spread,
                        void (*put)(struct buf *to, double value), const char *unit)
{
    const double values[] = { spread->min, spread->mean, spread->max };
    size_t begin = filler->words.n;

    for (size_t i = 0; i < COUNT(values); i++) {
        if (isnan(values[i]))
            continue;
        buf_text(&filler->words, filler->words.n > begin ? " / " : "");
        put(&filler->words, values[i]);
    }
    if (filler->words.n > begin)
        buf_text(&filler->words, unit);
    end_cell(filler);
}

static void put_bare_percent(struct buf *to, double ratio)
{
    words_number(to, round(ratio * 100));
}

static void put_bare_gib(struct buf *to, double bytes)
{
    words_number(to, bytes / 0x1p30);
}

static void put_whole(struct buf *to, double number)
{
    words_number(to, round(number));
}

void outline_gpus(struct outline_table *to, struct arena *arena, const struct job_facts *facts)
{
    static const char *const titles[] = { "GPU",       "In use",      "Memory", "Power",
                                          "Processes", "Temperature", "Energy" };
    double *use = ARENA_ARRAY(arena, double, facts->n_gpus + 1);
    struct filler filler;
    size_t n, *place;

    for (size_t i = 0; i < facts->n_gpus; i++)
        use[i] = or_zero(facts->gpu[i].utilization_ratio.mean);
    place = places_of(arena, use, facts->n_gpus, GPU_ROWS, &n);
    begin_table(&filler, to, arena, titles, COUNT(titles), n);
    for (size_t i = 0; i < n; i++) {
        const struct gpu_facts *gpu = &facts->gpu[place[i]];

        put_name(&filler, gpu->node);
        buf_byte(&filler.words, ' ');
        put_name(&filler, gpu->gpu);
        end_cell(&filler);
        spread_cell(&filler, &gpu->utilization_ratio, put_bare_percent, " %");
        spread_cell(&filler, &gpu->memory_used_bytes, put_bare_gib, " GiB");
        spread_cell(&filler, &gpu->power_watts, put_whole, " W");
        number_cell(&filler, words_number, gpu->processes_peak);
        spread_cell(&filler, &gpu->temperature_celsius, put_whole, " °C");
        if (isfinite(gpu->energy_joules)) {
            words_number(&filler.words, gpu->energy_joules / 3.6e6);
            buf_text(&filler.words, " kWh");
        }
        end_cell(&filler);
    }
    to->note = "Lowest / mean / highest of each.";
    end_table(&filler, facts->n_gpus, "the least used");
}

void outline_processes(struct outline_table *to, struct arena *arena, const struct job_facts *facts)
{
    static const char *const titles[] = { "Program", "At once", "Threads", "CPU time" };
    double *idle = ARENA_ARRAY(arena, double, facts->n_processes + 1);
    struct filler filler;
    size_t n, *place;

    for (size_t i = 0; i < facts->n_processes; i++)
        idle[i] = -or_zero(facts->process[i].cpu_seconds);
    place = places_of(arena, idle, facts->n_processes, PROCESS_ROWS, &n);
    begin_table(&filler, to, arena, titles, COUNT(titles), n);
    for (size_t i = 0; i < n; i++) {
        const struct process_facts *process = &facts->process[place[i]];

        put_name(&filler, process->name);
        end_cell(&filler);
        number_cell(&filler, words_number, process->instances_peak);
        number_cell(&filler, words_number, process->threads_peak);
        number_cell(&filler, words_duration, process->cpu_seconds);
    }
    end_table(&filler, facts->n_processes, "those that used most CPU time");
}

void outline_life(struct outline_table *to, struct arena *arena, const struct job_facts *facts)
{
    static const char *const titles[] = { "Time", "State", "Reason" };
    size_t n = facts->n_life < LIFE_ROWS ? facts->n_life : LIFE_ROWS;
    struct filler filler;

    begin_table(&filler, to, arena, titles, COUNT(titles), n);
    for (size_t i = facts->n_life - n; i < facts->n_life; i++) {
        const struct job_moment *moment = &facts->life[i];

        words_time(&filler.words, moment->time);
        end_cell(&filler);
        put_name(&filler, moment->state);
        end_cell(&filler);
        put_name(&filler, moment->reason);
        end_cell(&filler);
    }
    to->is_text = true;
    end_table(&filler, facts->n_life, "the last ones");
}

void outline_put_notes(struct buf *to, const struct outline_table *table)
{
    buf_text(to, table->note ? table->note : "");
    if (!table->n_left_out)
        return;
    buf_text(to, table->note ? " " : "");
    words_number(to, (double)table->n_left_out);
    buf_printf(to, " more %s left out; these are %s.", table->n_left_out == 1 ? "is" : "are",
               table->which);
}
