/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody is entitled to: fair share, and limits. */
#include "model/units.h"
#include "report/words.h"
#include "web/html.h"
#include "web/job_people.h"
#include "web/job_rows.h"
#include "web/show_more.h"

#include <math.h>

static const struct show_list shares = { "shares", "shares", SHOW_FEW };
static const struct show_list limits_of_all = { "limits", "limits", SHOW_FEW };

static bool is_of(const struct job_people *people, const struct section *section, symbol account,
                  symbol user)
{
    return str_eq(section_text(section, people->is_account ? account : user), people->name);
}

static void put_share(struct html_table *table, const struct section *section,
                      const struct share *share)
{
    const double numbers[] = { share->is_parent ? NAN : job_known_u64(share->raw_shares),
                               share->normalised_shares, share->effective_usage, share->factor,
                               share->level };

    html_begin_row(table);
    html_begin_cell(table, 0);
    html_link(table->to, "/account/", section_text(section, share->account), STR(""));
    html_begin_cell(table, 1);
    if (share->user)
        html_link(table->to, "/user/", section_text(section, share->user), STR(""));
    else
        buf_text(table->to, "all");
    for (size_t i = 0; i < COUNT(numbers); i++) {
        html_begin_cell(table, i + 2);
        if (i == 0 && share->is_parent)
            buf_text(table->to, "parent's");
        else
            html_value(table->to, numbers[i], i == 0 ? words_number : words_fraction);
    }
    html_end_row(table);
}

void people_put_shares(const struct job_people *people)
{
    static const struct html_column columns[] = {
        { "Account", NULL, false }, { "User", NULL, false },       { "Shares", NULL, true },
        { "of all", NULL, true },   { "Used of all", NULL, true }, { "Fair share", NULL, true },
        { "Level", NULL, true },
    };
    struct site_call *call = people->call;
    size_t n = 0, most = show_most(call, &shares);
    struct html_table table;

    for (size_t i = 0; call->board && i < call->board->n_clusters; i++) {
        const struct section *section = call->board->cluster[i].section[KIND_SHARES];

        for (size_t j = 0; section && j < section->shares.n; j++) {
            const struct share *share = &section->shares.share[j];

            if (!is_of(people, section, share->account, share->user) ||
                !site_shows(call, &call->board->cluster[i]))
                continue;
            if (!n++) {
                buf_printf(&call->out, "<section%s><h2>Fair share</h2>\n",
                           show_list_id(call, &shares));
                html_begin_table(&table, &call->out, "Fair share", columns, COUNT(columns), STR(""),
                                 false, STR(""));
            }
            if (n <= most)
                put_share(&table, section, share);
        }
    }
    if (n) {
        html_end_table(&table);
        show_rest(call, &shares, n, STR(""));
        buf_text(&call->out, "</section>\n");
    }
}

static void put_seconds(struct buf *to, double seconds)
{
    html_span(to, seconds);
}

/* Of a TRES that is memory, a number is bytes. */
static const struct {
    const char *words;
    void (*put)(struct buf *to, double value);
    double unit;
} limits[LIMITS] = {
    [LIMIT_JOBS] = { "Jobs that run at once", html_number, 1 },
    [LIMIT_SUBMITTED] = { "Jobs that run or wait", html_number, 1 },
    [LIMIT_WALL_SECONDS] = { "Wall time", put_seconds, 1 },
    [LIMIT_TRES] = { "At once", html_number, 1 },
    [LIMIT_TRES_SECONDS] = { "Hours used", html_number, 3600 },
    [LIMIT_TRES_RUN_SECONDS] = { "Hours that running jobs may still use", html_number, 3600 },
    [LIMIT_USER_JOBS] = { "Jobs of one user that run at once", html_number, 1 },
    [LIMIT_USER_SUBMITTED] = { "Jobs of one user that run or wait", html_number, 1 },
    [LIMIT_USER_TRES] = { "Of one user, at once", html_number, 1 },
};

static void put_limit(struct html_table *table, const struct section *section,
                      const struct association *association, const struct limit *limit)
{
    struct str tres = section_text(section, limit->tres);
    bool is_bytes = str_eq(tres, STR("mem")) && limits[limit->kind].put == html_number;
    void (*put)(struct buf * to, double value) = is_bytes ? html_bytes : limits[limit->kind].put;
    double most = job_known_u64(limit->limit) / limits[limit->kind].unit;
    double used = job_known_u64(limit->used) / limits[limit->kind].unit;

    html_begin_row(table);
    html_begin_cell(table, 0);
    html_link(table->to, "/account/", section_text(section, association->account), STR(""));
    html_begin_cell(table, 1);
    html_text(table->to, association->user ? section_text(section, association->user) : STR("all"));
    html_begin_cell(table, 2);
    html_textz(table->to, limits[limit->kind].words);
    if (tres.n) {
        buf_text(table->to, ": ");
        html_text(table->to, tres);
    }
    html_begin_cell(table, 3);
    put(table->to, used);
    html_begin_cell(table, 4);
    put(table->to, most);
    html_end_row(table);
}

/* The table is begun by its first row. */
struct limit_table {
    struct site_call *call;
    struct html_table html;
    size_t n, most; /* that there are; that are shown */
};

static void put_limits_of(struct limit_table *table, const struct section *section,
                          const struct association *association)
{
    static const struct html_column columns[] = {
        { "Account", NULL, false }, { "User", NULL, false },   { "Limit", NULL, false },
        { "Used", NULL, true },     { "At most", NULL, true },
    };

    for (uint32_t i = 0; i < association->n_limits; i++) {
        if (!table->n++) {
            buf_printf(&table->call->out, "<section%s><h2>Limits</h2>\n",
                       show_list_id(table->call, &limits_of_all));
            html_begin_table(&table->html, &table->call->out, "Limits", columns, COUNT(columns),
                             STR(""), false, STR(""));
        }
        if (table->n <= table->most)
            put_limit(&table->html, section, association,
                      &section->associations.limit[association->first_limit + i]);
    }
}

void people_put_limits(const struct job_people *people)
{
    struct site_call *call = people->call;
    struct limit_table table = { .call = call, .most = show_most(call, &limits_of_all) };

    for (size_t i = 0; call->board && i < call->board->n_clusters; i++) {
        const struct section *section = call->board->cluster[i].section[KIND_ASSOCIATIONS];

        for (size_t j = 0; section && j < section->associations.n; j++) {
            const struct association *association = &section->associations.association[j];

            if (is_of(people, section, association->account, association->user) &&
                site_shows(call, &call->board->cluster[i]))
                put_limits_of(&table, section, association);
        }
    }
    if (table.n) {
        html_end_table(&table.html);
        show_rest(call, &limits_of_all, table.n, STR(""));
        buf_text(&call->out, "</section>\n");
    }
}
