/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which jobs of a user or an account held most that they did not use: CPU-, GPU- and memory-hours.
 * What was not measured is not counted. */
#include "base/clock.h"
#include "report/gather_runs.h"
#include "report/words.h"
#include "web/html.h"
#include "web/job_find.h"
#include "web/job_people.h"

#include <math.h>

enum { WORST = 10, JOBS_MOST = 2000, DAYS = 30 };

/* Many jobs must not hold up the page: this part of its time is for them. */
enum { TIME_PART = 32 };

/* Of one run: what it wasted, as its ratio says. */
struct waste {
    struct job_row row; /* of its texts, cluster, name and user; in the call's arena */
    double hours, ratio;
};

enum waste_kind { WASTE_CPU, WASTE_GPU, WASTE_MEMORY, WASTES };

static const struct {
    const char *title, *column;
} kinds[WASTES] = {
    [WASTE_CPU] = { "CPU-hours that were held and not used", "CPU-hours" },
    [WASTE_GPU] = { "GPU-hours that were held and not used", "GPU-hours" },
    [WASTE_MEMORY] = { "Memory that was held and not used", "GiB-hours" },
};

struct ranking {
    struct waste worst[WORST]; /* the worst first */
    size_t n;
    double sum;
};

struct looking {
    struct site_call *call;
    struct gather gather;
    struct ranking ranking[WASTES];
    size_t n_jobs;
};

/* What is shown of it; the rest is gone with the row. */
static struct job_row keep_row(struct arena *arena, const struct job_row *row)
{
    struct job_row kept = {
        .key = row->key,
        .record = { .id = row->record.id,
                    .array_job_id = row->record.array_job_id,
                    .array_task_id = row->record.array_task_id,
                    .het_job_id = row->record.het_job_id,
                    .het_offset = row->record.het_offset,
                    .end_time = row->record.end_time },
    };

    kept.key.cluster = arena_str(arena, row->key.cluster);
    kept.record.name = arena_str(arena, row->record.name);
    kept.record.user = arena_str(arena, row->record.user);
    return kept;
}

static void rank(struct looking *looking, enum waste_kind kind, const struct job_row *row,
                 double held_hours, double ratio)
{
    struct ranking *ranking = &looking->ranking[kind];
    double hours = held_hours * (1 - (ratio < 1 ? ratio : 1));
    size_t at = ranking->n;

    if (!(hours > 0) || !isfinite(hours))
        return;
    ranking->sum += hours;
    while (at && ranking->worst[at - 1].hours < hours)
        at--;
    if (at == WORST)
        return;
    if (ranking->n < WORST)
        ranking->n++;
    memmove(&ranking->worst[at + 1], &ranking->worst[at],
            (ranking->n - at - 1) * sizeof(*ranking->worst));
    ranking->worst[at] = (struct waste){ keep_row(&looking->call->arena, row), hours, ratio };
}

static void rank_all(struct looking *looking, const struct job_facts *facts)
{
    double hours = (double)facts->row.elapsed_seconds / 3600;
    const struct use_facts *total = &facts->total;

    rank(looking, WASTE_CPU, &facts->row, total->cpus * hours, facts->cpu_ratio);
    rank(looking, WASTE_GPU, &facts->row, total->gpus * hours, facts->gpu_ratio);
    rank(looking, WASTE_MEMORY, &facts->row, total->memory_bytes / 0x1p30 * hours,
         facts->memory_ratio);
}

static int look_at(void *ctx, const struct job_row *row)
{
    struct looking *looking = ctx;
    struct arena scratch = { 0 };
    struct job_facts facts;
    int code;

    if (row->elapsed_seconds <= 0)
        return 0;
    job_facts_clear(&facts);
    facts_take_row(&facts, &scratch, row, looking->call->now);
    code = runs_take_kept(&looking->gather, &facts, &scratch, &looking->call->err);
    if (code == 0) {
        facts_finish(&facts);
        rank_all(looking, &facts);
    }
    arena_clear(&scratch);
    if (code < 0)
        return code;
    return ++looking->n_jobs == JOBS_MOST ? -ECANCELED : 0;
}

static void put_worst(struct looking *looking, enum waste_kind kind)
{
    const struct html_column columns[] = {
        { "Job", NULL, false },
        { "Name", NULL, false },
        { "User", NULL, false },
        { "Ended", NULL, false },
        { kinds[kind].column, NULL, true },
        { "Used", NULL, true },
    };
    const struct ranking *ranking = &looking->ranking[kind];
    struct site_call *call = looking->call;
    struct html_table table;

    if (!ranking->n)
        return;
    html_begin_table(&table, &call->out, kinds[kind].title, columns, COUNT(columns), STR(""), false,
                     STR(""));
    for (size_t i = 0; i < ranking->n; i++) {
        const struct waste *waste = &ranking->worst[i];

        html_begin_row(&table);
        html_begin_cell(&table, 0);
        job_put_link(&call->out, call, &waste->row, true);
        html_begin_cell(&table, 1);
        html_text(&call->out, waste->row.record.name);
        html_begin_cell(&table, 2);
        html_link(&call->out, "/user/", waste->row.record.user, STR(""));
        html_begin_cell(&table, 3);
        html_time(&call->out, waste->row.record.end_time);
        html_begin_cell(&table, 4);
        html_number(&call->out, waste->hours);
        html_begin_cell(&table, 5);
        words_percent(&call->out, waste->ratio);
        html_end_row(&table);
    }
    html_end_table(&table);
}

/* "Of 120 jobs: 34 CPU-hours, 12 GiB-hours." */
static void put_sums(const struct looking *looking, bool is_cut)
{
    struct buf *out = &looking->call->out;
    bool has_any = false;

    buf_text(out, is_cut ? "<p>Of the last " : "<p>Of ");
    words_number(out, (double)looking->n_jobs);
    buf_text(out, looking->n_jobs == 1 ? " job that ended" : " jobs that ended");
    buf_text(out, " in the last 30 days:");
    for (size_t i = 0; i < WASTES; i++) {
        if (!(looking->ranking[i].sum > 0))
            continue;
        buf_text(out, has_any ? ", " : " ");
        words_number(out, looking->ranking[i].sum);
        buf_printf(out, " %s", kinds[i].column);
        if (i == WASTE_MEMORY)
            buf_text(out, " of memory");
        has_any = true;
    }
    buf_text(out, has_any ? ".</p>\n" : " nothing that was measured.</p>\n");
}

int people_put_waste(const struct job_people *people)
{
    struct site_call *call = people->call;
    struct looking *looking = ARENA_NEW(&call->arena, struct looking);
    int64_t now = clock_mono(&clock_real), left = call->deadline_ns - now;
    struct job_filter filter;
    int code;

    looking->call = call;
    looking->gather = (struct gather){ .store = call->reader, .now = call->now };
    people_filter(people, &filter);
    filter.from = call->now - (int64_t)DAYS * 86400;
    filter.to = call->now + 1;
    filter.by_end = true;
    store_reader_deadline(call->reader, left > 0 ? now + left / TIME_PART : call->deadline_ns);
    code = store_jobs(call->reader, &filter, &(struct job_order){ 0 }, call->now, look_at, looking,
                      &call->err);
    store_reader_deadline(call->reader, call->deadline_ns);
    if (code < 0 && code != -ECANCELED && code != -ETIMEDOUT)
        return code;
    buf_text(&call->out, "<section><h2>Held and not used</h2>\n");
    put_sums(looking, code < 0);
    for (size_t i = 0; i < WASTES; i++)
        put_worst(looking, (enum waste_kind)i);
    buf_text(&call->out, "</section>\n");
    return 0;
}
