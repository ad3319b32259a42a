/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes of the simulated cluster as sinfo --json prints them in Slurm 22.05 (v0.0.38), and
 * scontrol --json show nodes in 24.11 (v0.0.42): members, order and white space. */
#include "sim_json.h"

static void add_node_flags(struct sim_json_list *list, struct node_state state)
{
    for (uint32_t flags = state.flags; flags; flags &= flags - 1)
        sim_json_list_add_upper(list, node_flag_word((enum node_flag)(flags & -flags)));
}

static void put_node_flags(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;
    struct sim_json_list list = sim_json_list_begin(&record->out->buf, record->is_42);

    add_node_flags(&list, view->node->state);
    sim_json_list_end(&list);
}

static void put_node_state(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;
    struct str base = node_base_word((enum node_base)view->node->state.base);
    struct sim_json_list list;

    if (!record->is_42) {
        sim_json_put_string(&record->out->buf, base);
        return;
    }
    list = sim_json_list_begin(&record->out->buf, true);
    sim_json_list_add_upper(&list, base);
    add_node_flags(&list, view->node->state);
    sim_json_list_end(&list);
}

static void put_node_partitions(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;
    const struct nodes *nodes = &view->section->nodes;
    struct sim_json_list list = sim_json_list_begin(&record->out->buf, record->is_42);

    for (uint32_t i = 0; i < view->node->n_partitions; i++) {
        uint32_t partition = nodes->membership[view->node->first_partition + i];

        sim_json_list_add(&list, section_text(view->section, nodes->partition[partition].name));
    }
    sim_json_list_end(&list);
}

static void put_node_features(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;
    struct sim_json_list list = sim_json_list_begin(&record->out->buf, true);

    for (struct str rest = view->features; rest.p;)
        sim_json_list_add(&list, str_cut(&rest, ','));
    sim_json_list_end(&list);
}

/* The numbers that stand where slurmd told none differ: NO_VAL of 32 bits, -2, 0. */
static void put_load(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;
    int64_t unknown = record->is_42 ? 0 : 4294967294;

    buf_i64(&record->out->buf, view->load_percent == SIM_ABSENT ? unknown : view->load_percent);
}

static void put_free_memory_38(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;

    buf_i64(&record->out->buf, view->memory_free_mib == SIM_ABSENT ? -2 : view->memory_free_mib);
}

static void put_weighted(const struct sim_json_record *record)
{
    const struct sim_node_view *view = record->view;

    buf_printf(&record->out->buf, "%lld.0", (long long)view->cpus_alloc);
}

#define NODE(key, shape, member)                                                                   \
    {                                                                                              \
        key, shape, offsetof(struct sim_node_view, member), NULL, NULL                             \
    }

static const struct sim_json_member node_members_38[] = {
    NODE("architecture", TEXT, architecture),
    AS_IS("burstbuffer_network_address", EMPTY),
    AS_IS("boards", "1"),
    NODE("boot_time", PLAIN, boot_time),
    AS_IS("comment", EMPTY),
    NODE("cores", PLAIN, cores),
    AS_IS("cpu_binding", "0"),
    BY("cpu_load", put_load),
    AS_IS("extra", EMPTY),
    BY("free_memory", put_free_memory_38),
    NODE("cpus", PLAIN, cpus),
    NODE("last_busy", PLAIN, last_busy),
    NODE("features", TEXT, features),
    NODE("active_features", TEXT, features),
    NODE("gres", TEXT, gres),
    AS_IS("gres_drained", "\"N\\/A\""),
    NODE("gres_used", TEXT, gres_used),
    AS_IS("mcs_label", EMPTY),
    NODE("name", TEXT, name),
    AS_IS("next_state_after_reboot", "\"invalid\""),
    NODE("address", TEXT, name),
    NODE("hostname", TEXT, name),
    BY("state", put_node_state),
    BY("state_flags", put_node_flags),
    AS_IS("next_state_after_reboot_flags", "[" IN "]"),
    NODE("operating_system", TEXT, kernel),
    AS_IS("owner", "null"),
    BY("partitions", put_node_partitions),
    NODE("port", PLAIN, port),
    NODE("real_memory", PLAIN, memory_mib),
    NODE("reason", TEXT, reason),
    NODE("reason_changed_at", PLAIN, reason_time),
    NODE("reason_set_by_user", TEXT_OR_NULL, reason_user),
    NODE("slurmd_start_time", PLAIN, started),
    AS_IS("sockets", "2"),
    AS_IS("threads", "1"),
    AS_IS("temporary_disk", "0"),
    NODE("weight", PLAIN, weight),
    NODE("tres", TEXT, tres),
    NODE("slurmd_version", TEXT, version),
    NODE("alloc_memory", PLAIN, memory_alloc_mib),
    NODE("alloc_cpus", PLAIN, cpus_alloc),
    NODE("idle_cpus", PLAIN, cpus_free),
    NODE("tres_used", TEXT_OR_NULL, tres_used),
    BY("tres_weighted", put_weighted),
};

static const struct sim_json_member node_members_42[] = {
    NODE("architecture", TEXT, architecture),
    AS_IS("burstbuffer_network_address", EMPTY),
    AS_IS("boards", "1"),
    NODE("boot_time", OBJECT, boot_time),
    AS_IS("cluster_name", EMPTY),
    NODE("cores", PLAIN, cores),
    AS_IS("specialized_cores", "0"),
    AS_IS("cpu_binding", "0"),
    BY("cpu_load", put_load),
    NODE("free_mem", OBJECT, memory_free_mib),
    NODE("cpus", PLAIN, cpus),
    NODE("effective_cpus", PLAIN, cpus),
    AS_IS("specialized_cpus", EMPTY),
    AS_IS("energy",
          "{" IN "  \"average_watts\": 0," IN "  \"base_consumed_energy\": 0," IN
          "  \"consumed_energy\": 0," IN "  \"current_watts\": {" IN "    \"set\": true," IN
          "    \"infinite\": false," IN "    \"number\": 0" IN "  }," IN
          "  \"previous_consumed_energy\": 0," IN "  \"last_collected\": 0" IN "}"),
    AS_IS("external_sensors", "{}"),
    AS_IS("extra", EMPTY),
    AS_IS("power", "{}"),
    BY("features", put_node_features),
    BY("active_features", put_node_features),
    AS_IS("gpu_spec", EMPTY),
    NODE("gres", TEXT, gres),
    AS_IS("gres_drained", "\"N\\/A\""),
    NODE("gres_used", TEXT, gres_used),
    AS_IS("instance_id", EMPTY),
    AS_IS("instance_type", EMPTY),
    NODE("last_busy", OBJECT, last_busy),
    AS_IS("mcs_label", EMPTY),
    AS_IS("specialized_memory", "0"),
    NODE("name", TEXT, name),
    AS_IS("next_state_after_reboot", "[" IN "  \"INVALID\"" IN "]"),
    NODE("address", TEXT, name),
    NODE("hostname", TEXT, name),
    BY("state", put_node_state),
    NODE("operating_system", TEXT, kernel),
    AS_IS("owner", EMPTY),
    BY("partitions", put_node_partitions),
    NODE("port", PLAIN, port),
    NODE("real_memory", PLAIN, memory_mib),
    AS_IS("res_cores_per_gpu", "0"),
    AS_IS("comment", EMPTY),
    NODE("reason", TEXT, reason),
    NODE("reason_changed_at", OBJECT, reason_time),
    NODE("reason_set_by_user", TEXT, reason_user),
    AS_IS("resume_after", ZERO),
    NODE("reservation", TEXT, reservation),
    NODE("alloc_memory", PLAIN, memory_alloc_mib),
    NODE("alloc_cpus", PLAIN, cpus_alloc),
    NODE("alloc_idle_cpus", PLAIN, cpus_free),
    NODE("tres_used", TEXT, tres_used),
    BY("tres_weighted", put_weighted),
    NODE("slurmd_start_time", OBJECT, started),
    AS_IS("sockets", "2"),
    AS_IS("threads", "1"),
    AS_IS("temporary_disk", "0"),
    NODE("weight", PLAIN, weight),
    NODE("tres", TEXT, tres),
    NODE("version", TEXT, version),
};

static void put_node(struct sim_out *out, const struct sim_node_view *view, void *ctx)
{
    struct sim_json_document *document = ctx;
    struct sim_json_record record = { out, NULL, view, document->is_42 };

    sim_json_begin_record(document, &out->buf);
    if (document->is_42)
        sim_json_put_members(&record, node_members_42, COUNT(node_members_42));
    else
        sim_json_put_members(&record, node_members_38, COUNT(node_members_38));
    buf_put(&out->buf, STR("\n    }"));
}

void sim_json_nodes(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                    bool is_42)
{
    struct sim_json_document document = { .is_42 = is_42 };

    if (is_42)
        buf_text(&out->buf, "{\n  \"nodes\": [");
    else
        sim_json_put_document_38(out, "nodes");
    sim_view_nodes(out, cluster, time, put_node, &document);
    buf_text(&out->buf, "\n  ]");
    if (is_42) {
        buf_text(&out->buf, ",\n");
        sim_json_put_update_time(&out->buf, "last_update", time);
        sim_json_put_end_42(out, "show");
    } else {
        buf_text(&out->buf, "\n}");
    }
}
