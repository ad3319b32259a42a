/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each node: its state, why it is out of service, what it has and what of it is allocated. A family
 * costs a series a node, so there is one only for what cannot be had from another. */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/node_gres.h"

enum {
    INFO,
    STATE,
    FLAG,
    REASON_INFO,
    REASON_TIME,
    CPUS,
    CPUS_ALLOCATED,
    CPU_LOAD,
    MEMORY,
    MEMORY_ALLOCATED,
    GPUS,
    GPUS_ALLOCATED,
    GRES,
    GRES_ALLOCATED,
};

static const struct family families[] = {
    [INFO] = { "slurm_node_info",
               METRIC_GAUGE,
               "Always 1; the labels tell a node's features and the version of its slurmd.",
               { "node", "features", "version" } },
    [STATE] = { "slurm_node_state",
                METRIC_GAUGE,
                "Always 1; the label tells the base state in which a node is now.",
                { "node", "state" } },
    [FLAG] = { "slurm_node_flag",
               METRIC_GAUGE,
               "1 for each flag that a node has beside its base state, such as drain, "
               "not_responding, maintenance.",
               { "node", "flag" } },
    [REASON_INFO] = { "slurm_node_reason_info",
                      METRIC_GAUGE,
                      "Always 1; the labels tell why a node was taken out of service, and who said "
                      "so.",
                      { "node", "reason", "user" } },
    [REASON_TIME] = { "slurm_node_reason_time_seconds",
                      METRIC_GAUGE,
                      "When the reason was given, since unix epoch in seconds.",
                      { "node" } },
    [CPUS] = { "slurm_node_cpus", METRIC_GAUGE, "CPUs of a node.", { "node" } },
    [CPUS_ALLOCATED] = { "slurm_node_cpus_allocated",
                         METRIC_GAUGE,
                         "CPUs of a node that are allocated to jobs.",
                         { "node" } },
    [CPU_LOAD] = { "slurm_node_cpu_load",
                   METRIC_GAUGE,
                   "Load average that a node has told Slurm, up to some minutes ago.",
                   { "node" } },
    [MEMORY] = { "slurm_node_memory_bytes", METRIC_GAUGE, "Memory of a node.", { "node" } },
    [MEMORY_ALLOCATED] = { "slurm_node_memory_allocated_bytes",
                           METRIC_GAUGE,
                           "Memory of a node that is allocated to jobs, used or not.",
                           { "node" } },
    [GPUS] = { "slurm_node_gpus",
               METRIC_GAUGE,
               "GPUs of a node by type: none where Slurm names no type.",
               { "node", "type" } },
    [GPUS_ALLOCATED] = { "slurm_node_gpus_allocated",
                         METRIC_GAUGE,
                         "GPUs of a node that are allocated to jobs.",
                         { "node", "type" } },
    [GRES] = { "slurm_node_gres",
               METRIC_GAUGE,
               "GRES of a node by name and type, GPUs included: none where Slurm names no type.",
               { "node", "gres", "type" } },
    [GRES_ALLOCATED] = { "slurm_node_gres_allocated",
                         METRIC_GAUGE,
                         "GRES of a node that are allocated to jobs; those of a no_consume GRES "
                         "are never allocated.",
                         { "node", "gres", "type" } },
};

static uint64_t cpus(const struct node *node)
{
    return known_u32(node->cpus);
}

static uint64_t cpus_allocated(const struct node *node)
{
    return known_u32(node->cpus_alloc);
}

static uint64_t memory(const struct node *node)
{
    return node->memory_bytes;
}

static uint64_t memory_allocated(const struct node *node)
{
    return node->memory_alloc_bytes;
}

static const struct {
    size_t family;
    uint64_t (*of)(const struct node *node);
} amounts[] = {
    { CPUS, cpus },
    { CPUS_ALLOCATED, cpus_allocated },
    { MEMORY, memory },
    { MEMORY_ALLOCATED, memory_allocated },
};

static struct str node_name(const struct section *section, const struct node *node)
{
    return section_text(section, node->name);
}

static void write_info(const struct section *section, struct metric_writer *writer)
{
    metric_begin(writer, INFO);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        metric_u64(writer,
                   METRIC_VALUES(node_name(section, node), section_text(section, node->features),
                                 section_text(section, node->version)),
                   1);
    }
}

static void write_states(const struct section *section, struct metric_writer *writer)
{
    struct str flags[NODE_FLAGS];

    for (unsigned bit = 0; bit < NODE_FLAGS; bit++)
        flags[bit] = node_flag_word(1u << bit);
    metric_begin(writer, STATE);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        metric_u64(writer,
                   METRIC_VALUES(node_name(section, node), node_base_word(node->state.base)), 1);
    }
    metric_begin(writer, FLAG);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        for (unsigned bit = 0; node->state.flags >> bit && bit < NODE_FLAGS; bit++)
            if (node->state.flags >> bit & 1)
                metric_u64(writer, METRIC_VALUES(node_name(section, node), flags[bit]), 1);
    }
}

static void write_reasons(const struct section *section, struct metric_writer *writer)
{
    metric_begin(writer, REASON_INFO);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        if (node->reason)
            metric_u64(writer,
                       METRIC_VALUES(node_name(section, node), section_text(section, node->reason),
                                     section_text(section, node->reason_user)),
                       1);
    }
    metric_begin(writer, REASON_TIME);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        if (node->reason)
            known_write_time(writer, METRIC_VALUES(node_name(section, node)), node->reason_time);
    }
}

static void write_amounts(const struct section *section, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(amounts); k++) {
        metric_begin(writer, amounts[k].family);
        for (size_t i = 0; i < section->nodes.n; i++) {
            const struct node *node = &section->nodes.node[i];

            known_write(writer, METRIC_VALUES(node_name(section, node)), amounts[k].of(node));
        }
    }
}

static void write_loads(const struct section *section, struct metric_writer *writer)
{
    metric_begin(writer, CPU_LOAD);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        /* The bounds of the sums, see node_sums.c. */
        if (node->cpu_load >= 0 && node->cpu_load < 1e9)
            known_write_double(writer, METRIC_VALUES(node_name(section, node)), node->cpu_load);
    }
}

/* A family of what the nodes have, or of what is allocated of it. */
static void write_gres(const struct section *section, struct metric_writer *writer,
                       struct gres_reader *reader, size_t family, bool is_allocated)
{
    struct node_gres gres;

    metric_begin(writer, family);
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        node_gres_read(reader, node, &gres);
        for (size_t k = 0; k < gres.n; k++) {
            const struct node_gres_item *item = &gres.item[k];
            struct str type = gres_type_label(reader, item->type);

            known_write(writer,
                        reader->name.n ? METRIC_VALUES(node_name(section, node), type)
                                       : METRIC_VALUES(node_name(section, node),
                                                       gres_name(reader, item->type), type),
                        is_allocated ? item->allocated : item->count);
        }
    }
}

static void write_named_gres(const struct section *section, struct metric_writer *writer,
                             struct str name, size_t all, size_t allocated)
{
    struct gres_reader reader;

    gres_reader_init(&reader, section, name);
    write_gres(section, writer, &reader, all, false);
    write_gres(section, writer, &reader, allocated, true);
    gres_reader_free(&reader);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    write_info(section, writer);
    write_states(section, writer);
    write_reasons(section, writer);
    write_amounts(section, writer);
    write_loads(section, writer);
    write_named_gres(section, writer, STR("gpu"), GPUS, GPUS_ALLOCATED);
    write_named_gres(section, writer, STR(""), GRES, GRES_ALLOCATED);
}

const struct collector collector_node = {
    .name = "node",
    .help =
        "each node's state, reason, CPUs, memory, GPUs and other GRES: some eight series a node",
    .kind = KIND_NODES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
