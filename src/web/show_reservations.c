/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reservations: when, which nodes, for whom. */
#include "web/job_rows.h"
#include "web/cluster_pages.h"
#include "web/show_cluster.h"
#include "web/show_more.h"

enum column { NAME, STATE, START, END, NODES, HOSTS, CORES, PARTITION, WHOM, FLAGS };

static const struct html_column columns[] = {
    [NAME] = { "reservation", NULL, false }, [STATE] = { "state", NULL, false },
    [START] = { "from", NULL, false },       [END] = { "to", NULL, false },
    [NODES] = { "nodes", NULL, true },       [HOSTS] = { "names", NULL, false },
    [CORES] = { "cores", NULL, true },       [PARTITION] = { "partition", NULL, false },
    [WHOM] = { "for", NULL, false },         [FLAGS] = { "flags", NULL, false },
};

static const struct show_list reservations = { "reservations", "reservations", 100 };

struct part {
    struct site_call *call;
    const struct board_cluster *cluster;
    const struct section *section;
    struct html_table table;
};

/* Of a list with commas those that may be seen; returns how many may not. "-name" and "+name" are
 * how Slurm writes who is kept out and who is added. */
static size_t put_names(struct part *part, symbol list, const char *path,
                        bool (*may_see)(const struct viewer *viewer, struct str name),
                        const char **between)
{
    struct buf *out = part->table.to;
    size_t n_hidden = 0;

    for (struct str rest = section_text(part->section, list); rest.p;) {
        struct str word = str_trim(str_cut(&rest, ','));
        bool has_sign = word.n && (word.p[0] == '-' || word.p[0] == '+');
        struct str name = str_skip(word, has_sign);

        if (!name.n)
            continue;
        if (!may_see(&part->call->viewer, name)) {
            n_hidden++;
            continue;
        }
        buf_text(out, *between);
        *between = ", ";
        buf_text(out, has_sign && word.p[0] == '-' ? "not " : "");
        html_link(out, path, name, show_word(part->call, part->cluster));
    }
    return n_hidden;
}

static void put_whom(struct part *part, const struct reservation *reservation)
{
    const char *between = "";
    size_t n_hidden = put_names(part, reservation->users, "/user/", viewer_may_see_user, &between);

    n_hidden +=
        put_names(part, reservation->accounts, "/account/", viewer_may_see_account, &between);
    if (n_hidden)
        buf_printf(part->table.to, "%s%zu that you may not see", between, n_hidden);
}

static void put_times(struct part *part, const struct reservation *reservation)
{
    struct html_table *table = &part->table;

    html_begin_cell(table, STATE);
    buf_text(table->to, reservation->is_active                      ? "active"
                        : reservation->start_time > part->call->now ? "to come"
                                                                    : "not active");
    html_begin_cell(table, START);
    html_time(table->to, reservation->start_time);
    html_begin_cell(table, END);
    html_time(table->to, reservation->end_time);
}

static void put_row(struct part *part, const struct reservation *reservation)
{
    struct html_table *table = &part->table;
    struct str name = section_text(part->section, reservation->name);
    struct str hosts = section_text(part->section, reservation->nodes);

    html_begin_row(table);
    html_begin_cell(table, NAME);
    show_link(
        table->to,
        show_address(part->call, part->cluster, "/jobs", SHOW_ARGUMENTS({ "reservation", name })),
        name);
    put_times(part, reservation);
    html_begin_cell(table, NODES);
    if (show_is_private(part->call, part->cluster, PRIVATE_NODES))
        html_number(table->to, job_known_u32(reservation->node_count));
    else
        show_count(
            table->to,
            show_address(part->call, part->cluster, "/nodes", SHOW_ARGUMENTS({ "name", hosts })),
            job_known_u32(reservation->node_count));
    html_begin_cell(table, HOSTS);
    if (!show_is_private(part->call, part->cluster, PRIVATE_NODES))
        html_text(table->to, hosts);
    html_begin_cell(table, CORES);
    html_number(table->to, job_known_u32(reservation->core_count));
    html_begin_cell(table, PARTITION);
    if (!show_is_private(part->call, part->cluster, PRIVATE_PARTITIONS))
        html_text(table->to, section_text(part->section, reservation->partition));
    html_begin_cell(table, WHOM);
    put_whom(part, reservation);
    html_begin_cell(table, FLAGS);
    html_text(table->to, section_text(part->section, reservation->flags));
    html_end_row(table);
}

static void put_cluster(struct site_call *call, const struct board_cluster *cluster)
{
    struct part part = { .call = call,
                         .cluster = cluster,
                         .section = cluster->section[KIND_RESERVATIONS] };

    show_begin_cluster(call, cluster);
    if (show_is_private(call, cluster, PRIVATE_RESERVATIONS)) {
        show_private(call, cluster, "Reservations");
    } else if (!part.section) {
        html_empty(&call->out, "Nothing is known of reservations at present.");
    } else if (!part.section->reservations.n) {
        html_empty(&call->out, "There are no reservations.");
    } else {
        html_begin_table(&part.table, &call->out, "Reservations", columns, COUNT(columns), STR(""),
                         false, STR(""));
        for (size_t i = 0; i < part.section->reservations.n && i < show_most(call, &reservations);
             i++)
            put_row(&part, &part.section->reservations.reservation[i]);
        html_end_table(&part.table);
        show_rest(call, &reservations, part.section->reservations.n, show_word(call, cluster));
    }
    show_end_cluster(call);
}

static int show(struct site_call *call)
{
    call->title = STR("Reservations");
    buf_text(&call->out, "<h1>Reservations</h1>\n");
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (site_shows(call, &call->board->cluster[i]))
            put_cluster(call, &call->board->cluster[i]);
    return 0;
}

const struct site_page show_reservations = {
    .path = "/reservations",
    .nav = "Reservations",
    .needs = SITE_BOARD,
    .show = show,
};
