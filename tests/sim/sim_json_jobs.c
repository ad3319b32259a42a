/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The jobs of the simulated cluster as squeue --json prints them in Slurm 22.05 (v0.0.38) and 24.11
 * (v0.0.42): members, order and white space. */
#include "sim_json.h"

static void put_state(const struct sim_json_record *record)
{
    static const enum job_flag shown[] = { JOB_CONFIGURING, JOB_COMPLETING };
    const struct sim_job_view *view = record->view;
    struct job_state state = view->job->state;
    struct sim_json_list list = sim_json_list_begin(&record->out->buf, true);

    sim_json_list_add(&list, job_state_words[state.base]);
    for (size_t i = 0; i < COUNT(shown); i++)
        if (state.flags & shown[i])
            sim_json_list_add(&list, job_state_word((struct job_state){ state.base, shown[i] }));
    sim_json_list_end(&list);
}

static void put_job_flags(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    struct sim_json_list list = sim_json_list_begin(&record->out->buf, record->is_42);

    if (view->job->nodes)
        sim_json_list_add(&list,
                          record->is_42 ? STR("ACCRUE_COUNT_CLEARED") : STR("JOB_ACCRUE_OVER"));
    if (view->job->state.base == JOB_RUNNING)
        sim_json_list_add(&list, STR("JOB_WAS_RUNNING"));
    if (record->is_42)
        sim_json_list_add(&list, STR("USING_DEFAULT_WCKEY"));
    sim_json_list_end(&list);
}

/* Signals and codes of wait(2). */
static void put_exit_code(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    int64_t code = view->exit_code >> 8, signal = view->exit_code & 0x7f;
    struct buf *buf = &record->out->buf;

    buf_printf(buf,
               "{" IN "  \"status\": [" IN "    \"%s\"" IN "  ]," IN "  \"return_code\": {" IN
               "    \"set\": true," IN "    \"infinite\": false," IN "    \"number\": %lld" IN
               "  }," IN "  \"signal\": {" IN "    \"id\": {" IN "      \"set\": %s," IN
               "      \"infinite\": false," IN "      \"number\": %lld" IN "    }," IN
               "    \"name\": \"%s\"" IN "  }" IN "}",
               signal ? "SIGNALED"
               : code ? "ERROR"
                      : "SUCCESS",
               (long long)code, signal ? "true" : "false", (long long)signal,
               signal == 15 ? "Terminated" : "");
}

static void put_no_exit_code(const struct sim_json_record *record)
{
    const struct sim_job_view none = { .exit_code = 0 };
    struct sim_json_record other = *record;

    other.view = &none;
    put_exit_code(&other);
}

static void put_billable(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    struct buf *buf = &record->out->buf;
    bool is_known = view->billing != SIM_ABSENT;

    if (!record->is_42 && !is_known)
        buf_text(buf, "null");
    else if (!record->is_42)
        buf_printf(buf, "%lld.0", (long long)view->billing);
    else
        buf_printf(buf,
                   "{" IN "  \"set\": %s," IN "  \"infinite\": false," IN "  \"number\": %lld.0" IN
                   "}",
                   is_known ? "true" : "false", is_known ? (long long)view->billing : 0);
}

static void put_hold(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;

    buf_text(&record->out->buf, view->priority == 0 ? "true" : "false");
}

/* The cores of a job on each of its nodes; both formats group them by socket. */
struct cores {
    uint32_t first, n, per_socket;
};

static struct cores cores_of(const struct sim_job *job)
{
    const struct sim_kind *kind = &sim_kinds[job->kind];

    return (struct cores){ job->first_cpu, job->cpus / job->node_count,
                           kind->cpus / kind->sockets };
}

static void put_sockets_38(struct buf *buf, const struct sim_job *job)
{
    struct cores cores = cores_of(job);

    for (uint32_t i = 0; i < cores.n; i++) {
        uint32_t core = cores.first + i;
        bool opens = i == 0 || core % cores.per_socket == 0;
        bool closes = i + 1 == cores.n || (core + 1) % cores.per_socket == 0;

        if (opens)
            buf_printf(buf, "%s" IN "        \"%u\": {" IN "          \"cores\": {", i ? "," : "",
                       core / cores.per_socket);
        buf_printf(buf, "%s" IN "            \"%u\": \"allocated\"", opens ? "" : ",",
                   core % cores.per_socket);
        if (closes)
            buf_put(buf, STR(IN "          }" IN "        }"));
    }
}

static void put_sockets_42(struct buf *buf, const struct sim_job *job)
{
    struct cores cores = cores_of(job);

    for (uint32_t i = 0; i < cores.n; i++) {
        uint32_t core = cores.first + i;
        bool opens = i == 0 || core % cores.per_socket == 0;
        bool closes = i + 1 == cores.n || (core + 1) % cores.per_socket == 0;

        if (opens)
            buf_printf(buf,
                       "%s" IN "          {" IN "            \"index\": %u," IN
                       "            \"cores\": [",
                       i ? "," : "", core / cores.per_socket);
        buf_printf(buf,
                   "%s" IN "              {" IN "                \"index\": %u," IN
                   "                \"status\": [" IN "                  \"ALLOCATED\"" IN
                   "                ]" IN "              }",
                   opens ? "" : ",", core % cores.per_socket);
        if (closes)
            buf_put(buf, STR(IN "            ]" IN "          }"));
    }
}

static void put_node_of_38(const struct sim_json_record *record, uint32_t i)
{
    const struct sim_job_view *view = record->view;
    struct buf *buf = &record->out->buf;

    buf_text(buf,
             i ? "," IN "    {" IN "      \"sockets\": {" : IN "    {" IN "      \"sockets\": {");
    put_sockets_38(buf, view->job);
    buf_put(buf, STR(IN "      }," IN "      \"nodename\": \""));
    sim_put_node(buf, record->cluster, view->job->nodes[i]);
    buf_printf(buf,
               "\"," IN "      \"cpus_used\": 0," IN "      \"memory_used\": 0," IN
               "      \"memory_allocated\": %llu" IN "    }",
               (unsigned long long)view->job->memory_mib / view->job->node_count);
}

/* A job on many nodes may be larger than the output's buffer should get. */
static void put_nodes_of(const struct sim_json_record *record,
                         void (*put)(const struct sim_json_record *record, uint32_t i))
{
    const struct sim_job_view *view = record->view;

    for (uint32_t i = 0; i < view->job->node_count; i++) {
        put(record, i);
        sim_out_pass(record->out);
    }
}

static void put_resources_38(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    struct buf *buf = &record->out->buf;

    buf_put(buf, STR("{" IN "  \"nodes\": "));
    sim_json_put_string(buf, view->nodes);
    buf_printf(buf,
               "," IN "  \"allocated_cores\": %lld," IN "  \"allocated_hosts\": %lld," IN
               "  \"allocated_nodes\": [",
               (long long)view->cpus, (long long)view->node_count);
    put_nodes_of(record, put_node_of_38);
    buf_put(buf, STR(IN "  ]" IN "}"));
}

static void put_node_of_42(const struct sim_json_record *record, uint32_t i)
{
    const struct sim_job_view *view = record->view;
    struct buf *buf = &record->out->buf;

    buf_printf(buf, "%s" IN "      {" IN "        \"index\": %u," IN "        \"name\": \"",
               i ? "," : "", i);
    sim_put_node(buf, record->cluster, view->job->nodes[i]);
    buf_printf(buf,
               "\"," IN "        \"cpus\": {" IN "          \"count\": %u," IN
               "          \"used\": 0" IN "        }," IN "        \"memory\": {" IN
               "          \"used\": 0," IN "          \"allocated\": %llu" IN "        }," IN
               "        \"sockets\": [",
               view->job->cpus / view->job->node_count,
               (unsigned long long)view->job->memory_mib / view->job->node_count);
    put_sockets_42(buf, view->job);
    buf_put(buf, STR(IN "        ]" IN "      }"));
}

static void put_resources_42(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    struct buf *buf = &record->out->buf;

    if (!view->job->nodes) {
        buf_put(buf, STR("null"));
        return;
    }
    buf_printf(buf,
               "{" IN "  \"select_type\": [" IN "    \"CORE\"" IN "  ]," IN "  \"nodes\": {" IN
               "    \"count\": %lld," IN "    \"select_type\": [" IN "      \"ONE_ROW\"" IN
               "    ]," IN "    \"list\": ",
               (long long)view->node_count);
    sim_json_put_string(buf, view->nodes);
    buf_put(buf, STR("," IN "    \"whole\": false," IN "    \"allocation\": ["));
    put_nodes_of(record, put_node_of_42);
    buf_printf(buf,
               IN "    ]" IN "  }," IN "  \"cpus\": %lld," IN "  \"threads_per_core\": {" IN
                  "    \"set\": false," IN "    \"infinite\": false," IN "    \"number\": 0" IN
                  "  }" IN "}",
               (long long)view->cpus);
}

/* 24.11 writes "gres/gpu:a100:2" where 22.05 wrote "gres:gpu:a100:2". */
static void put_gres_request_42(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    struct str rest = view->gres_request;

    str_cut(&rest, ':');
    buf_text(&record->out->buf, rest.n ? "\"gres\\/" : "\"");
    buf_put(&record->out->buf, rest);
    buf_byte(&record->out->buf, '"');
}

/* One for each node, all alike; none once the job has ended. */
static void put_gres_detail(const struct sim_json_record *record)
{
    const struct sim_job_view *view = record->view;
    struct sim_json_list list = sim_json_list_begin(&record->out->buf, record->is_42);
    bool is_held = view->job->state.base == JOB_RUNNING || view->job->state.base == JOB_SUSPENDED;

    for (uint32_t i = 0; is_held && view->gres_detail.n && i < view->job->node_count; i++)
        sim_json_list_add(&list, view->gres_detail);
    sim_json_list_end(&list);
}

#define JOB(key, shape, member)                                                                    \
    {                                                                                              \
        key, shape, offsetof(struct sim_job_view, member), NULL, NULL                              \
    }

static const struct sim_json_member job_members_38[] = {
    JOB("account", TEXT, account),
    JOB("accrue_time", PLAIN, accrue),
    AS_IS("admin_comment", EMPTY),
    JOB("array_job_id", PLAIN, array_id),
    JOB("array_task_id", PLAIN, task),
    JOB("array_max_tasks", PLAIN, throttle),
    JOB("array_task_string", TEXT, task_list),
    JOB("association_id", PLAIN, association),
    AS_IS("batch_features", EMPTY),
    AS_IS("batch_flag", "true"),
    JOB("batch_host", TEXT, first_host),
    BY("flags", put_job_flags),
    AS_IS("burst_buffer", EMPTY),
    AS_IS("burst_buffer_state", EMPTY),
    AS_IS("cluster", "\"simulated\""),
    AS_IS("cluster_features", EMPTY),
    AS_IS("command", EMPTY),
    AS_IS("comment", EMPTY),
    AS_IS("container", EMPTY),
    AS_IS("contiguous", "false"),
    AS_IS("core_spec", "null"),
    AS_IS("thread_spec", "null"),
    AS_IS("cores_per_socket", "null"),
    BY("billable_tres", put_billable),
    AS_IS("cpus_per_task", "null"),
    AS_IS("cpu_frequency_minimum", "null"),
    AS_IS("cpu_frequency_maximum", "null"),
    AS_IS("cpu_frequency_governor", "null"),
    AS_IS("cpus_per_tres", EMPTY),
    AS_IS("deadline", "0"),
    AS_IS("delay_boot", "0"),
    AS_IS("dependency", EMPTY),
    AS_IS("derived_exit_code", "0"),
    JOB("eligible_time", PLAIN, eligible),
    JOB("end_time", PLAIN, end),
    AS_IS("excluded_nodes", EMPTY),
    JOB("exit_code", PLAIN, exit_code),
    JOB("features", TEXT, features),
    AS_IS("federation_origin", EMPTY),
    AS_IS("federation_siblings_active", EMPTY),
    AS_IS("federation_siblings_viable", EMPTY),
    BY("gres_detail", put_gres_detail),
    JOB("group_id", PLAIN, user_id),
    JOB("group_name", TEXT, user),
    JOB("job_id", PLAIN, id),
    BY("job_resources", put_resources_38),
    JOB("job_state", TEXT, state),
    JOB("last_sched_evaluation", PLAIN, evaluated),
    JOB("licenses", TEXT, licenses),
    AS_IS("max_cpus", "0"),
    AS_IS("max_nodes", "0"),
    AS_IS("mcs_label", EMPTY),
    AS_IS("memory_per_tres", EMPTY),
    JOB("name", TEXT, name),
    JOB("nodes", TEXT, nodes),
    AS_IS("nice", "null"),
    AS_IS("tasks_per_core", "null"),
    AS_IS("tasks_per_node", "0"),
    AS_IS("tasks_per_socket", "null"),
    AS_IS("tasks_per_board", "0"),
    JOB("cpus", PLAIN, cpus),
    JOB("node_count", PLAIN, node_count),
    JOB("tasks", PLAIN, tasks),
    JOB("het_job_id", PLAIN, het_id),
    JOB("het_job_id_set", TEXT, het_ids),
    JOB("het_job_offset", PLAIN, het_offset),
    JOB("partition", TEXT, partition),
    AS_IS("prefer", EMPTY),
    JOB("memory_per_node", PLAIN, memory_per_node),
    JOB("memory_per_cpu", PLAIN, memory_per_cpu),
    AS_IS("minimum_cpus_per_node", "1"),
    AS_IS("minimum_tmp_disk_per_node", "0"),
    AS_IS("preempt_time", "0"),
    AS_IS("pre_sus_time", "0"),
    JOB("priority", PLAIN, priority),
    AS_IS("profile", "null"),
    JOB("qos", TEXT, qos),
    AS_IS("reboot", "false"),
    AS_IS("required_nodes", EMPTY),
    AS_IS("requeue", "true"),
    AS_IS("resize_time", "0"),
    JOB("restart_cnt", PLAIN, restarts),
    JOB("resv_name", TEXT, reservation),
    AS_IS("shared", "null"),
    AS_IS("show_flags",
          "[" IN "  \"SHOW_ALL\"," IN "  \"SHOW_DETAIL\"," IN "  \"SHOW_LOCAL\"" IN "]"),
    AS_IS("sockets_per_board", "0"),
    AS_IS("sockets_per_node", "null"),
    JOB("start_time", PLAIN, start),
    JOB("state_description", TEXT, description),
    JOB("state_reason", TEXT, reason_word),
    AS_IS("standard_error", EMPTY),
    AS_IS("standard_input", "\"\\/dev\\/null\""),
    JOB("standard_output", TEXT, std_out),
    JOB("submit_time", PLAIN, submit),
    AS_IS("suspend_time", "0"),
    AS_IS("system_comment", EMPTY),
    JOB("time_limit", PLAIN, limit_minutes),
    AS_IS("time_minimum", "0"),
    AS_IS("threads_per_core", "null"),
    AS_IS("tres_bind", EMPTY),
    AS_IS("tres_freq", EMPTY),
    AS_IS("tres_per_job", EMPTY),
    JOB("tres_per_node", TEXT, gres_request),
    AS_IS("tres_per_socket", EMPTY),
    AS_IS("tres_per_task", EMPTY),
    JOB("tres_req_str", TEXT, tres_requested),
    JOB("tres_alloc_str", TEXT, tres_allocated),
    JOB("user_id", PLAIN, user_id),
    JOB("user_name", TEXT, user),
    AS_IS("wckey", EMPTY),
    JOB("current_working_directory", TEXT, work_dir),
};

static const struct sim_json_member job_members_42[] = {
    JOB("account", TEXT, account),
    JOB("accrue_time", OBJECT, accrue),
    AS_IS("admin_comment", EMPTY),
    JOB("allocating_node", TEXT, login),
    JOB("array_job_id", OBJECT, array_id),
    JOB("array_task_id", OBJECT, task),
    JOB("array_max_tasks", OBJECT, throttle),
    JOB("array_task_string", TEXT, task_list),
    JOB("association_id", PLAIN, association),
    AS_IS("batch_features", EMPTY),
    AS_IS("batch_flag", "true"),
    JOB("batch_host", TEXT, first_host),
    BY("flags", put_job_flags),
    AS_IS("burst_buffer", EMPTY),
    AS_IS("burst_buffer_state", EMPTY),
    AS_IS("cluster", "\"simulated\""),
    AS_IS("cluster_features", EMPTY),
    AS_IS("command", EMPTY),
    AS_IS("comment", EMPTY),
    AS_IS("container", EMPTY),
    AS_IS("container_id", EMPTY),
    AS_IS("contiguous", "false"),
    AS_IS("core_spec", "0"),
    AS_IS("thread_spec", "32766"),
    AS_IS("cores_per_socket", UNSET),
    BY("billable_tres", put_billable),
    AS_IS("cpus_per_task", NUMBER_OBJECT("true", "false", "1")),
    AS_IS("cpu_frequency_minimum", UNSET),
    AS_IS("cpu_frequency_maximum", UNSET),
    AS_IS("cpu_frequency_governor", UNSET),
    AS_IS("cpus_per_tres", EMPTY),
    AS_IS("cron", EMPTY),
    AS_IS("deadline", ZERO),
    AS_IS("delay_boot", ZERO),
    AS_IS("dependency", EMPTY),
    BY("derived_exit_code", put_no_exit_code),
    JOB("eligible_time", OBJECT, eligible),
    JOB("end_time", OBJECT, end),
    AS_IS("excluded_nodes", EMPTY),
    BY("exit_code", put_exit_code),
    AS_IS("extra", EMPTY),
    AS_IS("failed_node", EMPTY),
    JOB("features", TEXT, features),
    AS_IS("federation_origin", EMPTY),
    AS_IS("federation_siblings_active", EMPTY),
    AS_IS("federation_siblings_viable", EMPTY),
    BY("gres_detail", put_gres_detail),
    JOB("group_id", PLAIN, user_id),
    JOB("group_name", TEXT, user),
    JOB("het_job_id", OBJECT, het_id),
    JOB("het_job_id_set", TEXT, het_ids),
    JOB("het_job_offset", OBJECT, het_offset),
    JOB("job_id", PLAIN, id),
    BY("job_resources", put_resources_42),
    AS_IS("job_size_str", "[]"),
    BY("job_state", put_state),
    JOB("last_sched_evaluation", OBJECT, evaluated),
    JOB("licenses", TEXT, licenses),
    AS_IS("mail_type", "[]"),
    JOB("mail_user", TEXT, user),
    AS_IS("max_cpus", ZERO),
    AS_IS("max_nodes", ZERO),
    AS_IS("mcs_label", EMPTY),
    AS_IS("memory_per_tres", EMPTY),
    JOB("name", TEXT, name),
    AS_IS("network", EMPTY),
    JOB("nodes", TEXT, nodes),
    AS_IS("nice", "0"),
    AS_IS("tasks_per_core", UNLIMITED),
    AS_IS("tasks_per_tres", ZERO),
    AS_IS("tasks_per_node", ZERO),
    AS_IS("tasks_per_socket", UNLIMITED),
    AS_IS("tasks_per_board", ZERO),
    JOB("cpus", OBJECT, cpus),
    JOB("node_count", OBJECT, node_count),
    JOB("tasks", OBJECT, tasks),
    JOB("partition", TEXT, partition),
    AS_IS("prefer", EMPTY),
    JOB("memory_per_cpu", OBJECT, memory_per_cpu),
    JOB("memory_per_node", OBJECT, memory_per_node),
    AS_IS("minimum_cpus_per_node", NUMBER_OBJECT("true", "false", "1")),
    AS_IS("minimum_tmp_disk_per_node", ZERO),
    AS_IS("power", "{" IN "  \"flags\": []" IN "}"),
    AS_IS("preempt_time", ZERO),
    AS_IS("preemptable_time", ZERO),
    AS_IS("pre_sus_time", ZERO),
    BY("hold", put_hold),
    JOB("priority", OBJECT, priority),
    AS_IS("priority_by_partition", "[]"),
    AS_IS("profile", "[" IN "  \"NOT_SET\"" IN "]"),
    JOB("qos", TEXT, qos),
    AS_IS("reboot", "false"),
    AS_IS("required_nodes", EMPTY),
    AS_IS("required_switches", "0"),
    AS_IS("requeue", "true"),
    AS_IS("resize_time", ZERO),
    JOB("restart_cnt", PLAIN, restarts),
    JOB("resv_name", TEXT, reservation),
    AS_IS("scheduled_nodes", EMPTY),
    AS_IS("selinux_context", EMPTY),
    AS_IS("shared", "[]"),
    AS_IS("sockets_per_board", "0"),
    AS_IS("sockets_per_node", UNSET),
    JOB("start_time", OBJECT, start),
    JOB("state_description", TEXT, description),
    JOB("state_reason", TEXT, reason_word),
    AS_IS("standard_error", EMPTY),
    AS_IS("standard_input", "\"\\/dev\\/null\""),
    JOB("standard_output", TEXT, std_out),
    JOB("submit_time", OBJECT, submit),
    AS_IS("suspend_time", ZERO),
    AS_IS("system_comment", EMPTY),
    JOB("time_limit", OBJECT, limit_minutes),
    AS_IS("time_minimum", ZERO),
    AS_IS("threads_per_core", UNSET),
    AS_IS("tres_bind", EMPTY),
    AS_IS("tres_freq", EMPTY),
    AS_IS("tres_per_job", EMPTY),
    BY("tres_per_node", put_gres_request_42),
    AS_IS("tres_per_socket", EMPTY),
    AS_IS("tres_per_task", EMPTY),
    JOB("tres_req_str", TEXT, tres_requested),
    JOB("tres_alloc_str", TEXT, tres_allocated),
    JOB("user_id", PLAIN, user_id),
    JOB("user_name", TEXT, user),
    AS_IS("maximum_switch_wait_time", "0"),
    AS_IS("wckey", EMPTY),
    JOB("current_working_directory", TEXT, work_dir),
};

static void put_job(struct sim_out *out, const struct sim_cluster *cluster,
                    const struct sim_job_view *view, void *ctx)
{
    struct sim_json_document *document = ctx;
    struct sim_json_record record = { out, cluster, view, document->is_42 };
    size_t split = 0;

    sim_json_begin_record(document, &out->buf);
    if (document->is_42) {
        sim_json_put_members(&record, job_members_42, COUNT(job_members_42));
    } else if (view->job->nodes) {
        sim_json_put_members(&record, job_members_38, COUNT(job_members_38));
    } else {
        /* 22.05 leaves out the resources of a job that has none. */
        while (job_members_38[split].put != put_resources_38)
            split++;
        sim_json_put_members(&record, job_members_38, split);
        buf_byte(&out->buf, ',');
        sim_json_put_members(&record, job_members_38 + split + 1,
                             COUNT(job_members_38) - split - 1);
    }
    buf_put(&out->buf, STR("\n    }"));
}

void sim_json_jobs(struct sim_out *out, const struct sim_cluster *cluster, int64_t time, bool is_42)
{
    struct sim_json_document document = { .is_42 = is_42 };

    if (is_42)
        buf_text(&out->buf, "{\n  \"jobs\": [");
    else
        sim_json_put_document_38(out, "jobs");
    sim_view_jobs(out, cluster, time, put_job, &document);
    buf_text(&out->buf, document.has_records || !is_42 ? "\n  ]" : "]");
    if (is_42) {
        buf_text(&out->buf, ",\n");
        sim_json_put_update_time(&out->buf, "last_backfill", time - time % 30);
        sim_json_put_update_time(&out->buf, "last_update", time);
        sim_json_put_end_42(out, "squeue");
    } else {
        buf_text(&out->buf, "\n}");
    }
}
