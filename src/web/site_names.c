/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses and links of named things, and the page when a name is not found. */
#include "web/site_names.h"

#include "base/quote.h"

enum { NEAREST = 5 };

static bool each_user(const struct site_call *call, const struct board_cluster *cluster,
                      bool (*see)(void *ctx, struct str name), void *ctx)
{
    for (size_t i = 0; i < cluster->sums.n_users; i++)
        if (viewer_may_see_user(&call->viewer, cluster->sums.user[i].name) &&
            !see(ctx, cluster->sums.user[i].name))
            return false;
    return true;
}

static bool each_account(const struct site_call *call, const struct board_cluster *cluster,
                         bool (*see)(void *ctx, struct str name), void *ctx)
{
    for (size_t i = 0; i < cluster->sums.n_accounts; i++)
        if (viewer_may_see_account(&call->viewer, cluster->sums.account[i].name) &&
            !see(ctx, cluster->sums.account[i].name))
            return false;
    return true;
}

static bool each_node(const struct site_call *call, const struct board_cluster *cluster,
                      bool (*see)(void *ctx, struct str name), void *ctx)
{
    const struct section *section = cluster->section[KIND_NODES];

    if (viewer_is_denied(&call->viewer, cluster, PRIVATE_NODES))
        return true;
    for (size_t i = 0; section && i < section->nodes.n; i++)
        if (!see(ctx, section_text(section, section->nodes.node[i].name)))
            return false;
    return true;
}

static bool each_partition(const struct site_call *call, const struct board_cluster *cluster,
                           bool (*see)(void *ctx, struct str name), void *ctx)
{
    const struct section *section = cluster->section[KIND_NODES];

    if (viewer_is_denied(&call->viewer, cluster, PRIVATE_PARTITIONS))
        return true;
    for (size_t i = 0; section && i < section->nodes.n_partitions; i++)
        if (!see(ctx, section_text(section, section->nodes.partition[i].name)))
            return false;
    return true;
}

static bool each_reservation(const struct site_call *call, const struct board_cluster *cluster,
                             bool (*see)(void *ctx, struct str name), void *ctx)
{
    const struct section *section = cluster->section[KIND_RESERVATIONS];

    if (viewer_is_denied(&call->viewer, cluster, PRIVATE_RESERVATIONS))
        return true;
    for (size_t i = 0; section && i < section->reservations.n; i++)
        if (!see(ctx, section_text(section, section->reservations.reservation[i].name)))
            return false;
    return true;
}

static bool each_cluster(const struct site_call *call, const struct board_cluster *cluster,
                         bool (*see)(void *ctx, struct str name), void *ctx)
{
    (void)call;
    return see(ctx, cluster->name);
}

const struct site_kind site_kinds[SITE_KINDS] = {
    { "user", "Users", "/user/", NULL, each_user },
    { "account", "Accounts", "/account/", NULL, each_account },
    { "node", "Nodes", "/node/", NULL, each_node },
    { "partition", "Partitions", "/jobs", "partition", each_partition },
    { "reservation", "Reservations", "/jobs", "reservation", each_reservation },
    { "cluster", "Clusters", "/", "cluster", each_cluster },
};

/* What a cluster is called in an address that leads to it. */
static struct str cluster_argument(const struct site_kind *kind, struct str cluster)
{
    return kind->each == each_cluster ? (struct str){ "", 0 } : cluster;
}

void site_kind_address(const struct site_kind *kind, struct str name, struct str cluster,
                       struct buf *to)
{
    struct str argument = cluster_argument(kind, cluster);

    buf_text(to, kind->path);
    if (kind->argument)
        buf_printf(to, "?%s=", kind->argument);
    buf_url(to, name);
    if (argument.n) {
        buf_text(to, kind->argument ? "&cluster=" : "?cluster=");
        buf_url(to, argument);
    }
}

void site_kind_link(const struct site_kind *kind, struct str name, struct str cluster,
                    struct buf *to)
{
    struct html_address link = html_begin_link(to, kind->path);

    if (kind->argument)
        html_argument(&link, kind->argument, name);
    else
        html_part(&link, name);
    html_argument(&link, "cluster", cluster_argument(kind, cluster));
    html_end_link(&link, name);
}

/* The names with the fewest edits to the one that was asked for, the nearest first. */
struct nearest {
    struct str wanted, cluster;
    size_t n;
    struct {
        struct str name, cluster;
        size_t distance;
    } found[NEAREST];
};

static bool rank(void *ctx, struct str name)
{
    struct nearest *nearest = ctx;
    size_t distance = str_distance(nearest->wanted, name), at = nearest->n;

    if (!name.n || distance > nearest->wanted.n / 2 + 1)
        return true;
    while (at && nearest->found[at - 1].distance > distance)
        at--;
    if (at == NEAREST)
        return true;
    nearest->n += nearest->n < NEAREST;
    memmove(&nearest->found[at + 1], &nearest->found[at],
            (nearest->n - at - 1) * sizeof(nearest->found[0]));
    nearest->found[at].name = name;
    nearest->found[at].cluster = nearest->cluster;
    nearest->found[at].distance = distance;
    return true;
}

static void put_nearest(struct site_call *call, const struct site_kind *kind, struct str name)
{
    struct nearest nearest = { .wanted = str_head(name, QUOTE_MAX) };

    for (size_t i = 0; i < call->board->n_clusters; i++) {
        nearest.cluster = call->board->cluster[i].name;
        kind->each(call, &call->board->cluster[i], rank, &nearest);
    }
    if (!nearest.n)
        return;
    buf_text(&call->out, "<p>Did you mean one of these?</p>\n<ul>\n");
    for (size_t i = 0; i < nearest.n; i++) {
        buf_text(&call->out, "<li>");
        site_kind_link(kind, nearest.found[i].name, nearest.found[i].cluster, &call->out);
        buf_text(&call->out, "</li>\n");
    }
    buf_text(&call->out, "</ul>\n");
}

int site_not_found(struct site_call *call, const char *what, struct str name)
{
    int status = site_refuse(call, 404, "there is no %s %s", what, quote(name).text);

    for (size_t i = 0; call->board && i < SITE_KINDS; i++)
        if (strcmp(site_kinds[i].what, what) == 0)
            put_nearest(call, &site_kinds[i], name);
    return status;
}
