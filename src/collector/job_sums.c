/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up jobs by user, partition and the like. */
#include "collector/job_sums.h"

#include "collector/tally.h"
#include "collector/top.h"

/* What the rows of a plan need. */
struct needs {
    bool any, cells, gres;
};

struct job_sums {
    const struct job_sums_plan *plan;
    struct needs by_state, holding;
    size_t holding_column; /* after those of the states */
    bool *is_live;         /* by state: its jobs request or hold resources */
    bool *says_zero;       /* by state: also of a group that has no job in it */
    bool *is_folded;       /* by group: it is part of another */
    struct groups groups;
    struct tally tally;
    struct gres_tally gres;
};

static void init(struct job_sums *sums, const struct job_sums_plan *plan,
                 const struct section *section)
{
    *sums = (struct job_sums){
        .plan = plan,
        .holding_column = n_job_state_words,
        .is_live = heap_alloc(n_job_state_words * sizeof(bool)),
        .says_zero = heap_alloc(n_job_state_words * sizeof(bool)),
    };
    for (size_t i = 0; i < plan->n_rows; i++) {
        struct needs *needs = plan->rows[i].part == HOLDING ? &sums->holding : &sums->by_state;

        needs->any = true;
        needs->cells |= plan->rows[i].amount < AMOUNT_GPUS;
        needs->gres |= plan->rows[i].amount >= AMOUNT_GPUS;
    }
    sums->is_live[JOB_PENDING] = sums->is_live[JOB_RUNNING] = true;
    sums->says_zero[JOB_PENDING] = sums->says_zero[JOB_RUNNING] = plan->known != NULL;
    groups_init(&sums->groups, section, plan->cut);
    tally_init(&sums->tally, n_job_state_words + 1);
    gres_tally_init(&sums->gres, section, STR(""), n_job_state_words + 1);
}

static void clear(struct job_sums *sums)
{
    groups_free(&sums->groups);
    tally_free(&sums->tally);
    gres_tally_free(&sums->gres);
    free(sums->is_live);
    free(sums->says_zero);
    free(sums->is_folded);
}

static void add_to(struct job_sums *sums, const struct needs *needs, size_t group, size_t column,
                   const struct job *job)
{
    if (needs->cells)
        tally_add(tally_at(&sums->tally, group, column), job);
    if (needs->gres)
        gres_tally_add(&sums->gres, group, column, job);
}

static void add(struct job_sums *sums, const struct job *job)
{
    bool is_holding = job_holds_resources(job->state);
    size_t state = job_state_index(job->state);
    struct group_list list;
    symbol key;

    if (!sums->by_state.any && !is_holding)
        return;
    memcpy(&key, (const char *)job + sums->plan->key, sizeof(key));
    list = groups_of(&sums->groups, key);
    for (size_t i = 0; i < list.n; i++) {
        if (sums->by_state.any)
            add_to(sums, &sums->by_state, list.group[i], state, job);
        if (sums->holding.any && is_holding)
            add_to(sums, &sums->holding, list.group[i], sums->holding_column, job);
    }
    sums->is_live[state] |= is_holding || job_requests_resources(job->state);
    sums->says_zero[state] = sums->plan->known != NULL;
}

/* Makes a group of each name, with jobs or without. */
static void meet_known(struct job_sums *sums, const struct jobs *jobs)
{
    struct job_sums_names known = sums->plan->known(jobs);

    for (size_t i = 0; i < known.n; i++)
        if (known.name[i])
            groups_of(&sums->groups, known.name[i]);
}

/* Adds all but the most frequent groups to the one called other, which may have been there. */
static size_t fold(struct job_sums *sums)
{
    size_t n = sums->groups.names.n, n_folded = 0, other;
    struct top_row *rows = heap_array(n, sizeof(*rows));
    bool *is_top = heap_alloc(n * sizeof(*is_top));

    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct top_row){ groups_name(&sums->groups, i), 0 };
        for (size_t column = 0; column <= sums->holding_column; column++)
            rows[i].amount += tally_get(&sums->tally, i, column)->jobs;
    }
    top_mark(rows, n, JOB_SUMS_MOST, is_top);
    other = map_index(&sums->groups.names, STR("other"));
    sums->is_folded = heap_alloc((n + 1) * sizeof(bool));
    for (size_t i = 0; i < n; i++) {
        sums->is_folded[i] = !is_top[i] && i != other;
        if (sums->is_folded[i])
            tally_fold(&sums->tally, i, other);
        n_folded += sums->is_folded[i];
    }
    free(is_top);
    free(rows);
    return n_folded;
}

static void write_cell(struct metric_writer *writer, enum job_amount amount,
                       const struct tally_cell *cell, const struct str *labels)
{
    if (amount == AMOUNT_JOBS)
        metric_u64(writer, labels, cell->jobs);
    else
        known_sum_write(writer, amount == AMOUNT_CPUS ? &cell->cpus : &cell->memory_bytes,
                        cell->jobs, 0, labels);
}

static bool is_shown(const struct job_sums *sums, const struct job_sums_row *row, size_t state,
                     bool is_there)
{
    return (is_there || sums->says_zero[state]) &&
           (row->amount == AMOUNT_JOBS || sums->is_live[state]);
}

static void write_group(const struct job_sums *sums, const struct job_sums_row *row, size_t group,
                        struct metric_writer *writer)
{
    struct str name = groups_name(&sums->groups, group);

    if (row->part == HOLDING) {
        write_cell(writer, row->amount, tally_get(&sums->tally, group, sums->holding_column),
                   &name);
        return;
    }
    for (size_t state = 0; state < n_job_state_words; state++) {
        const struct tally_cell *cell = tally_get(&sums->tally, group, state);

        if (is_shown(sums, row, state, cell->jobs))
            write_cell(writer, row->amount, cell, METRIC_VALUES(name, job_state_words[state]));
    }
}

/* Of a type that no job of the group has, not even zero is said. */
static bool has_gres(const struct job_sums *sums, size_t type, size_t group)
{
    for (size_t column = 0; column <= sums->holding_column; column++)
        if (gres_tally_get(&sums->gres, type, group, column)->n)
            return true;
    return false;
}

/* Of which GRES an amount is; empty: of all, with a label for the name. */
static struct str gres_of(enum job_amount amount)
{
    return amount == AMOUNT_GPUS         ? STR("gpu")
           : amount == AMOUNT_GPU_SHARDS ? STR("shard")
                                         : STR("");
}

static void write_gres_of_type(const struct job_sums *sums, const struct job_sums_row *row,
                               size_t type, size_t group, struct metric_writer *writer)
{
    const struct gres_reader *reader = &sums->gres.reader;
    struct str labels[4] = { groups_name(&sums->groups, group) };
    size_t n = 1;

    if (row->amount == AMOUNT_GRES)
        labels[n++] = gres_name(reader, type);
    labels[n++] = gres_type_label(reader, type);
    if (row->part == HOLDING) {
        known_sum_write(writer, gres_tally_get(&sums->gres, type, group, sums->holding_column), 0,
                        0, labels);
        return;
    }
    for (size_t state = 0; state < n_job_state_words; state++) {
        const struct known_sum *sum = gres_tally_get(&sums->gres, type, group, state);

        labels[n] = job_state_words[state];
        if (is_shown(sums, row, state, sum->n))
            known_sum_write(writer, sum, 0, 0, labels);
    }
}

static void write_gres(const struct job_sums *sums, const struct job_sums_row *row,
                       struct metric_writer *writer)
{
    const struct gres_reader *reader = &sums->gres.reader;
    struct str name = gres_of(row->amount);

    for (size_t group = 0; group < sums->groups.names.n; group++)
        for (size_t type = 0; type < reader->n_types; type++)
            if ((!name.n || str_eq(gres_name(reader, type), name)) && has_gres(sums, type, group))
                write_gres_of_type(sums, row, type, group, writer);
}

static void write_row(const struct job_sums *sums, const struct job_sums_row *row,
                      struct metric_writer *writer)
{
    metric_begin(writer, row->family);
    if (row->amount >= AMOUNT_GPUS) {
        write_gres(sums, row, writer);
        return;
    }
    for (size_t group = 0; group < sums->groups.names.n; group++)
        if (!sums->is_folded || !sums->is_folded[group])
            write_group(sums, row, group, writer);
}

void job_sums_collect(const struct job_sums_plan *plan, const struct section *section,
                      struct metric_writer *writer)
{
    struct job_sums sums;

    init(&sums, plan, section);
    for (size_t i = 0; i < section->jobs.n; i++)
        add(&sums, &section->jobs.job[i]);
    if (plan->known)
        meet_known(&sums, &section->jobs);
    if (plan->is_bounded && sums.groups.names.n > JOB_SUMS_MOST)
        writer->folded += fold(&sums) * plan->n_rows;
    for (size_t i = 0; i < plan->n_rows; i++)
        write_row(&sums, &plan->rows[i], writer);
    clear(&sums);
}
