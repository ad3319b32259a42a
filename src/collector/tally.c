/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts jobs in a table of rows and columns that grow as needed. */
#include "collector/tally.h"

void tally_init(struct tally *tally, size_t n_columns)
{
    *tally = (struct tally){
        .n_columns = n_columns,
        .columns = heap_alloc(n_columns * sizeof(*tally->columns)),
    };
}

void tally_free(struct tally *tally)
{
    for (size_t i = 0; i < tally->n_columns; i++)
        free(tally->columns[i].cells);
    free(tally->columns);
}

struct tally_cell *tally_make(struct tally *tally, size_t row, size_t column)
{
    struct tally_column *of = &tally->columns[column];

    while (of->n <= row) {
        of->cells = heap_grow(of->cells, of->n, &of->room, sizeof(*of->cells));
        of->cells[of->n++] = (struct tally_cell){ .jobs = 0 };
    }
    return &of->cells[row];
}

const struct tally_cell *tally_get(const struct tally *tally, size_t row, size_t column)
{
    static const struct tally_cell none = { .jobs = 0 };
    const struct tally_column *of = &tally->columns[column];

    return row < of->n ? &of->cells[row] : &none;
}

static void add(struct known_sum *sum, uint64_t amount, uint32_t tasks)
{
    if (amount == MODEL_UNKNOWN_U64)
        return;
    sum->n++;
    sum->is_over |= __builtin_mul_overflow(amount, tasks, &amount) ||
                    __builtin_add_overflow(sum->total, amount, &sum->total);
}

void tally_add(struct tally_cell *cell, const struct job *job)
{
    bool is_pending = job_requests_resources(job->state);

    cell->jobs += job->tasks;
    if (!is_pending && !job_holds_resources(job->state))
        return;
    add(&cell->cpus, is_pending || job_holds_cpus(job->state) ? known_u32(job->cpus) : 0,
        job->tasks);
    add(&cell->memory_bytes, job->memory_bytes, job->tasks);
}

static void fold(struct known_sum *into, const struct known_sum *sum)
{
    into->n += sum->n;
    into->is_over |= sum->is_over || __builtin_add_overflow(into->total, sum->total, &into->total);
}

void tally_fold(struct tally *tally, size_t row, size_t into)
{
    for (size_t i = 0; i < tally->n_columns; i++) {
        struct tally_cell *to = tally_at(tally, into, i);
        const struct tally_cell *from = tally_get(tally, row, i);

        to->jobs += from->jobs;
        fold(&to->cpus, &from->cpus);
        fold(&to->memory_bytes, &from->memory_bytes);
    }
}

void gres_tally_init(struct gres_tally *tally, const struct section *section, struct str name,
                     size_t n_columns)
{
    *tally = (struct gres_tally){ .n_columns = n_columns };
    gres_reader_init(&tally->reader, section, name);
}

void gres_tally_free(struct gres_tally *tally)
{
    for (size_t type = 0; type < COUNT(tally->columns); type++) {
        for (size_t i = 0; tally->columns[type] && i < tally->n_columns; i++)
            free(tally->columns[type][i].sums);
        free(tally->columns[type]);
    }
    gres_reader_free(&tally->reader);
}

static struct known_sum *gpu_sum(struct gres_tally *tally, size_t type, size_t row, size_t column)
{
    struct gres_tally_column *of;

    if (!tally->columns[type])
        tally->columns[type] = heap_alloc(tally->n_columns * sizeof(*of));
    of = &tally->columns[type][column];
    while (of->n <= row) {
        of->sums = heap_grow(of->sums, of->n, &of->room, sizeof(*of->sums));
        of->sums[of->n++] = (struct known_sum){ .n = 0 };
    }
    return &of->sums[row];
}

static void add_list(struct gres_tally *tally, size_t row, size_t column, symbol text,
                     uint32_t tasks)
{
    const struct gres_list *list = gres_read(&tally->reader, text);

    for (size_t i = 0; i < list->n; i++) {
        struct known_sum *sum = gpu_sum(tally, list->item[i].type, row, column);

        if (list->item[i].count == MODEL_UNKNOWN_U64)
            sum->is_over = true;
        add(sum, list->item[i].count, tasks);
    }
}

void gres_tally_add(struct gres_tally *tally, size_t row, size_t column, const struct job *job)
{
    add_list(tally, row, column, job->tres, job->tasks);
    add_list(tally, row, column, job->gres, job->tasks);
}

const struct known_sum *gres_tally_get(const struct gres_tally *tally, size_t type, size_t row,
                                       size_t column)
{
    static const struct known_sum none = { .n = 0 };
    const struct gres_tally_column *of = tally->columns[type];

    return of && row < of[column].n ? &of[column].sums[row] : &none;
}
