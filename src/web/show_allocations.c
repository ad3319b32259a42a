/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocations: promised, used, left, and when nothing will be left. docs/allocations.md. */
#include "report/words.h"
#include "web/allocation_rows.h"
#include "web/cluster_pages.h"
#include "web/show_cluster.h"
#include "web/show_more.h"

#include <math.h>

enum column { ACCOUNT, OF, PROMISED, USED, LEFT, STEADY, RATE, FROM, TO, EMPTY };

static const struct html_column columns[] = {
    [ACCOUNT] = { "account", NULL, false },
    [OF] = { "of", NULL, false },
    [PROMISED] = { "years promised", NULL, true },
    [USED] = { "years used", NULL, false },
    [LEFT] = { "years left", NULL, true },
    [STEADY] = { "if used evenly", NULL, true },
    [RATE] = { "in use of late", NULL, true },
    [FROM] = { "from", NULL, false },
    [TO] = { "to", NULL, false },
    [EMPTY] = { "runs out", NULL, false },
};

static const char *const kinds[ALLOCATION_KINDS] = {
    [ALLOCATION_CPUS] = "CPUs",
    [ALLOCATION_GPUS] = "GPUs",
};

static const char *const kinds_of_one[ALLOCATION_KINDS] = {
    [ALLOCATION_CPUS] = "CPU",
    [ALLOCATION_GPUS] = "GPU",
};

/* Told as 1. */
static bool is_one(double number)
{
    return number >= 0.95 && number < 1.05;
}

static const struct show_list allocations = { "allocations", "allocations", 100 };

struct part {
    struct site_call *call;
    const struct board_cluster *cluster;
    struct html_table table;
    int64_t now;
};

static double years(double seconds)
{
    return seconds / (double)ALLOCATION_YEAR_SECONDS;
}

static void put_used(struct buf *out, const struct allocation *allocation, enum allocation_of what)
{
    double used = allocation->used[what], ratio = used / allocation->seconds[what];
    struct buf words;

    if (isnan(used)) {
        html_number(out, used);
        return;
    }
    buf_init(&words, 200);
    words_part(&words, years(used));
    buf_text(&words, " (");
    words_percent(&words, ratio);
    buf_byte(&words, ')');
    html_meter(out, ratio,
               ratio >= 1     ? "critical"
               : ratio >= 0.9 ? "warning"
                              : NULL,
               buf_str(&words));
    buf_free(&words);
}

static void put_empty(struct buf *out, const struct allocation *allocation, enum allocation_of what,
                      int64_t now)
{
    double left = allocation_left(allocation, what);
    double at = allocation_empty_at(allocation, what, now);

    if (isnan(left))
        return;
    if (left <= 0)
        buf_text(out, "nothing is left");
    else if (isnan(at))
        buf_text(out, "not before its end");
    else
        html_time(out, (int64_t)at);
}

static void put_cells(struct part *part, const struct allocation *allocation,
                      enum allocation_of what)
{
    struct html_table *table = &part->table;

    html_begin_cell(table, OF);
    buf_text(table->to, kinds[what]);
    html_begin_cell(table, PROMISED);
    html_value(table->to, years(allocation->seconds[what]), words_part);
    html_begin_cell(table, USED);
    put_used(table->to, allocation, what);
    html_begin_cell(table, LEFT);
    html_value(table->to, years(allocation_left(allocation, what)), words_part);
    html_begin_cell(table, STEADY);
    html_number(table->to, allocation_steady(allocation, what));
    html_begin_cell(table, RATE);
    html_number(table->to, allocation->rate[what]);
    html_begin_cell(table, FROM);
    if (allocation->from)
        html_time(table->to, allocation->from);
    html_begin_cell(table, TO);
    if (allocation->to)
        html_time(table->to, allocation->to);
    else
        buf_text(table->to, "for good");
    html_begin_cell(table, EMPTY);
    put_empty(table->to, allocation, what, part->now);
}

static void put_row(struct part *part, const struct allocation_row *row)
{
    for (enum allocation_of i = 0; i < ALLOCATION_KINDS; i++) {
        if (isnan(row->allocation.seconds[i]))
            continue;
        html_begin_row(&part->table);
        html_begin_cell(&part->table, ACCOUNT);
        html_link(part->table.to, "/account/", row->account, show_word(part->call, part->cluster));
        put_cells(part, &row->allocation, i);
        html_end_row(&part->table);
    }
}

/* In use of late by all to whom any are promised; NAN if that is not known of one. */
static double rate_of_all(const struct allocation_rows *rows, enum allocation_of what)
{
    double sum = 0;

    for (size_t i = 0; i < rows->n; i++)
        if (!isnan(rows->row[i].allocation.seconds[what]))
            sum += rows->row[i].allocation.rate[what];
    return sum;
}

/* Without a name: for everybody to see. */
static void put_total(struct site_call *call, const struct allocation_rows *rows)
{
    for (enum allocation_of what = 0; what < ALLOCATION_KINDS; what++) {
        double promised = allocation_rows_steady(rows, what), rate = rate_of_all(rows, what);

        if (isnan(promised))
            continue;
        buf_text(&call->out, "<p>");
        words_number(&call->out, promised);
        buf_printf(&call->out, " %s %s promised at all times",
                   is_one(promised) ? kinds_of_one[what] : kinds[what],
                   is_one(promised) ? "is" : "are");
        if (!isnan(rate)) {
            buf_text(&call->out, "; of late ");
            words_number(&call->out, rate);
            buf_text(&call->out, is_one(rate) ? " was" : " were");
            buf_text(&call->out, " in use by the accounts that they are promised to");
        }
        buf_text(&call->out, ".</p>\n");
    }
}

static void put_table(struct part *part, const struct allocation_rows *rows)
{
    size_t n = 0, most = show_most(part->call, &allocations);

    for (size_t i = 0; i < rows->n; i++)
        n += viewer_may_see_account(&part->call->viewer, rows->row[i].account);
    if (!n) {
        html_empty(&part->call->out, rows->n ? "None of these accounts is yours to see."
                                             : "No allocation holds at present.");
        return;
    }
    html_begin_table(&part->table, &part->call->out, "Allocations", columns, COUNT(columns),
                     STR(""), false, STR(""));
    for (size_t i = 0, n_shown = 0; i < rows->n && n_shown < most; i++)
        if (viewer_may_see_account(&part->call->viewer, rows->row[i].account)) {
            put_row(part, &rows->row[i]);
            n_shown++;
        }
    html_end_table(&part->table);
    show_rest(part->call, &allocations, n, show_word(part->call, part->cluster));
}

static void put_cluster(struct site_call *call, const struct board_cluster *cluster)
{
    struct part part = { .call = call, .cluster = cluster };
    struct allocation_rows rows;

    allocation_rows_find(call, cluster, &rows);
    part.now = rows.now;
    show_begin_cluster(call, cluster);
    if (rows.is_known) {
        put_total(call, &rows);
        put_table(&part, &rows);
    }
    if (rows.lack)
        html_empty(&call->out, rows.lack);
    show_end_cluster(call);
}

static int show(struct site_call *call)
{
    call->title = STR("Allocations");
    buf_text(&call->out, "<h1>Allocations</h1>\n");
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (site_shows(call, &call->board->cluster[i]))
            put_cluster(call, &call->board->cluster[i]);
    return 0;
}

const struct site_page show_allocations = {
    .path = "/allocations",
    .nav = "Allocations",
    .needs = SITE_BOARD | SITE_MAY_STORE,
    .show = show,
};
