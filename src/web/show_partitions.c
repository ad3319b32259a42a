/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partitions: what each has, what is free, and who waits. */
#include "web/cluster_pages.h"
#include "web/show_cluster.h"
#include "web/show_more.h"

enum column {
    NAME,
    STATE,
    LIMIT,
    NODES,
    UNUSABLE,
    CPUS,
    IDLE_CPUS,
    GPUS,
    USED_GPUS,
    HOLDING,
    PENDING,
};

static const struct html_column columns[] = {
    [NAME] = { "partition", NULL, false },          [STATE] = { "state", NULL, false },
    [LIMIT] = { "time limit", NULL, true },         [NODES] = { "nodes", NULL, true },
    [UNUSABLE] = { "nodes unusable", NULL, true },  [CPUS] = { "CPUs", NULL, true },
    [IDLE_CPUS] = { "CPUs idle", NULL, true },      [GPUS] = { "GPUs", NULL, true },
    [USED_GPUS] = { "GPUs allocated", NULL, true }, [HOLDING] = { "jobs run", NULL, true },
    [PENDING] = { "jobs wait", NULL, true },
};

static const struct show_list partitions = { "partitions", "partitions", 100 };

struct part {
    struct site_call *call;
    const struct board_cluster *cluster;
    const struct section *section;
    struct html_table table;
    struct str name; /* of the row at hand */
};

/* The row at hand: what its numbers are made of. Sorted nodes are a table, which has them. */
struct of {
    const char *state, *gpu, *sort;
};

static const char *address_of(const struct part *part, const char *path, struct of of)
{
    return show_address(part->call, part->cluster, path,
                        SHOW_ARGUMENTS({ "partition", part->name }, { "state", str_of(of.state) },
                                       { "gpu", str_of(of.gpu) },
                                       { "view", of.sort ? STR("table") : STR("") },
                                       { "sort", str_of(of.sort) }));
}

static void put_settings(struct part *part, const struct partition *partition)
{
    struct html_table *table = &part->table;
    bool lacks_settings = part->section->nodes.lacks_settings;

    html_begin_cell(table, NAME);
    show_link(table->to, address_of(part, "/nodes", (struct of){ 0 }), part->name);
    html_begin_cell(table, STATE);
    if (!lacks_settings) {
        buf_text(table->to, partition->is_up ? "up" : "down");
        buf_text(table->to, partition->is_default ? ", default" : "");
    }
    html_begin_cell(table, LIMIT);
    if (partition->time_limit_minutes != MODEL_UNKNOWN_U32)
        html_span(table->to, 60.0 * partition->time_limit_minutes);
    else
        buf_text(table->to, lacks_settings ? "" : "unlimited");
}

static void put_row(struct part *part, const struct sums_partition *row)
{
    const struct {
        enum column column;
        const char *path;
        struct of of;
        double value;
    } cells[] = {
        { NODES, "/nodes", { .state = "" }, (double)row->nodes },
        { UNUSABLE, "/nodes", { .state = "unusable" }, (double)row->nodes_unusable },
        { CPUS, "/nodes", { .sort = "-cpus" }, row->cpus.total },
        { IDLE_CPUS, "/nodes", { .state = "free", .sort = "-cpus" }, row->cpus.idle },
        { GPUS, "/nodes", { .gpu = "any", .sort = "-gpus" }, row->gpus },
        { USED_GPUS, "/nodes", { .gpu = "any", .sort = "-gpus" }, row->gpus_allocated },
        { HOLDING, "/jobs", { .state = SHOW_HOLDING }, row->jobs.holding.jobs },
        { PENDING, "/jobs", { .state = "PENDING" }, row->jobs.pending.jobs },
    };
    struct html_table *table = &part->table;

    part->name = section_text(part->section, row->partition->name);
    html_begin_row(table);
    put_settings(part, row->partition);
    for (size_t i = 0; i < COUNT(cells); i++) {
        html_begin_cell(table, cells[i].column);
        show_count(table->to, address_of(part, cells[i].path, cells[i].of), cells[i].value);
    }
    html_end_row(table);
}

static void put_cluster(struct site_call *call, const struct board_cluster *cluster)
{
    struct part part = { .call = call,
                         .cluster = cluster,
                         .section = cluster->section[KIND_NODES] };

    show_begin_cluster(call, cluster);
    if (show_is_private(call, cluster, PRIVATE_PARTITIONS)) {
        show_private(call, cluster, "Partitions");
    } else if (!part.section) {
        html_empty(&call->out, "Nothing is known of the partitions at present.");
    } else if (!cluster->sums.n_partitions) {
        html_empty(&call->out, "There are no partitions.");
    } else {
        html_begin_table(&part.table, &call->out, "Partitions", columns, COUNT(columns), STR(""),
                         false, STR(""));
        for (size_t i = 0; i < cluster->sums.n_partitions && i < show_most(call, &partitions); i++)
            put_row(&part, &cluster->sums.partition[i]);
        html_end_table(&part.table);
        show_rest(call, &partitions, cluster->sums.n_partitions, show_word(call, cluster));
    }
    show_end_cluster(call);
}

static int show(struct site_call *call)
{
    call->title = STR("Partitions");
    buf_text(&call->out, "<h1>Partitions</h1>\n");
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (site_shows(call, &call->board->cluster[i]))
            put_cluster(call, &call->board->cluster[i]);
    return 0;
}

const struct site_page show_partitions = {
    .path = "/partitions",
    .nav = "Partitions",
    .needs = SITE_BOARD,
    .show = show,
};
