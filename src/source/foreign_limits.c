/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits from a command of the site's own: sacctmgr(1) show assoc --noheader --parsable2 with
 * format=User,Account,GrpCPU,GrpMem,GrpJobs,GrpSubmit, as prometheus-slurm-exporter asks for it. */
#include "model/units.h"
#include "source/cli.h"
#include "source/foreign.h"

enum { USER, ACCOUNT, CPUS, MEMORY, JOBS, SUBMITTED, FIELDS };

/* The columns that are limits. GrpMem counts megabytes. */
static const struct limit_column {
    unsigned field;
    enum limit_kind kind;
    struct str tres;
    uint64_t unit;
} limit_columns[] = {
    { CPUS, LIMIT_TRES, STR_INIT("cpu"), 1 },
    { MEMORY, LIMIT_TRES, STR_INIT("mem"), 1 << 20 },
    { JOBS, LIMIT_JOBS, STR_INIT(""), 1 },
    { SUBMITTED, LIMIT_SUBMITTED, STR_INIT(""), 1 },
};

struct limit_lines {
    struct lined lined;
    size_t associations_room, limits_room;
    struct map known; /* "user|account" of the rows so far */
};

static void add_limit(struct limit_lines *all, const struct limit_column *column, uint64_t limit)
{
    struct associations *to = &all->lined.answer.section->associations;

    to->limit = section_grow(all->lined.answer.section, to->limit, to->n_limits, &all->limits_room,
                             sizeof(*to->limit));
    to->limit[to->n_limits++] = (struct limit){
        .kind = (uint8_t)column->kind,
        .tres = symbols_put(&all->lined.answer.section->symbols, column->tres),
        .limit = limit,
        .used = MODEL_UNKNOWN_U64,
    };
}

/* An empty field is no limit; one that cannot be read is left out alone. */
static void read_limits(struct limit_lines *all, const struct str *fields, struct str line)
{
    for (size_t i = 0; i < COUNT(limit_columns); i++) {
        const struct limit_column *column = &limit_columns[i];
        struct str field = fields[column->field];
        uint64_t limit;

        if (!field.n)
            continue;
        if (units_memory(field, column->unit, &limit, NULL))
            add_limit(all, column, limit);
        else
            answer_leave_out(&all->lined.answer, line);
    }
}

static bool cut_columns(struct str line, struct str *fields)
{
    struct str rest = line;

    for (size_t i = 0; i < FIELDS; i++) {
        if (!rest.p)
            return false;
        fields[i] = str_trim(str_cut(&rest, '|'));
    }
    return !rest.n; /* --parsable ends a row with the separator as well */
}

/* An association may come once more, of another cluster or partition, which the columns do not
 * tell: the first counts. */
static void read_line(void *ctx, struct str line)
{
    struct limit_lines *all = ctx;
    struct associations *to = &all->lined.answer.section->associations;
    struct str fields[FIELDS];
    size_t n_known = all->known.n;
    struct association *association;

    line = str_trim(line);
    if (!line.n)
        return;
    if (!cut_columns(line, fields) || !fields[ACCOUNT].n) {
        answer_leave_out(&all->lined.answer, line);
        return;
    }
    if (map_index(&all->known, str_span(line.p, fields[ACCOUNT].p + fields[ACCOUNT].n)) < n_known)
        return;
    to->association = section_grow(all->lined.answer.section, to->association, to->n,
                                   &all->associations_room, sizeof(*to->association));
    association = &to->association[to->n++];
    *association = (struct association){
        .account = answer_name(&all->lined.answer, fields[ACCOUNT]),
        .user = answer_name(&all->lined.answer, fields[USER]),
        .first_limit = (uint32_t)to->n_limits,
    };
    read_limits(all, fields, line);
    association->n_limits = (uint32_t)to->n_limits - association->first_limit;
}

static void begin(struct answer *answer)
{
    struct limit_lines *all = (struct limit_lines *)answer;

    lined_begin(answer, read_line);
    map_init(&all->known, &answer->section->arena);
}

static int end(struct answer *answer, struct err *err)
{
    lines_end(&((struct lined *)answer)->lines);
    return lined_end(answer, &answer->section->associations.n, err);
}

static void release(struct answer *answer)
{
    struct limit_lines *all = (struct limit_lines *)answer;
    struct section *section = answer->section;

    lined_free(answer);
    map_free(&all->known);
    arena_adopt(&section->arena, section->associations.association);
    arena_adopt(&section->arena, section->associations.limit);
}

const struct answer_class answer_foreign_limits = {
    .size = sizeof(struct limit_lines),
    .begin = begin,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
