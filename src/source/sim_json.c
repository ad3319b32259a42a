/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated cluster as squeue --json, sinfo --json (Slurm 22.05, v0.0.38) and squeue --json,
 * scontrol --json show nodes (Slurm 24.11, v0.0.42) print it: members, order and white space. */
#include "source/sim_print.h"

/* In the members of a record, which stand at this depth in every document. */
#define IN "\n      "

#define NUMBER_OBJECT(set, infinite, number)                                                       \
    "{" IN "  \"set\": " set "," IN "  \"infinite\": " infinite "," IN "  \"number\": " number IN  \
    "}"
#define UNSET     NUMBER_OBJECT("false", "false", "0")
#define ZERO      NUMBER_OBJECT("true", "false", "0")
#define UNLIMITED NUMBER_OBJECT("false", "true", "0")

/* As json-c does it: a slash is escaped, and what is not ASCII stands as it came. */
static void put_string(struct buf *buf, struct str s)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    size_t plain = 0;

    buf_byte(buf, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c >= 0x20 && c != '"' && c != '\\' && c != '/')
            continue;
        buf_put(buf, (struct str){ s.p + plain, i - plain });
        plain = i + 1;
        if (c >= 0x20 || letters[c])
            buf_put(buf, (struct str){ (char[]){ '\\', c < 0x20 ? letters[c] : (char)c }, 2 });
        else
            buf_printf(buf, "\\u%04x", c);
    }
    buf_put(buf, (struct str){ s.p + plain, s.n - plain });
    buf_byte(buf, '"');
}

/* A null, a plain number or an object that says whether there is one. */
static void put_plain(struct buf *buf, int64_t number)
{
    if (number == SIM_ABSENT || number == SIM_INFINITE)
        buf_put(buf, STR("null"));
    else
        buf_i64(buf, number);
}

static void put_object(struct buf *buf, int64_t number)
{
    if (number == SIM_ABSENT) {
        buf_put(buf, STR(UNSET));
    } else if (number == SIM_INFINITE) {
        buf_put(buf, STR(UNLIMITED));
    } else {
        buf_put(buf,
                STR("{" IN "  \"set\": true," IN "  \"infinite\": false," IN "  \"number\": "));
        buf_i64(buf, number);
        buf_put(buf, STR(IN "}"));
    }
}

/* Takes the words of a list one at a time; 22.05 breaks the line in an empty one. */
struct list {
    struct buf *buf;
    bool is_42, has_items;
};

static struct list list_begin(struct buf *buf, bool is_42)
{
    buf_byte(buf, '[');
    return (struct list){ buf, is_42, false };
}

static void list_add(struct list *list, struct str word)
{
    if (list->has_items)
        buf_byte(list->buf, ',');
    buf_put(list->buf, STR(IN "  "));
    put_string(list->buf, word);
    list->has_items = true;
}

static void list_end(struct list *list)
{
    if (list->has_items || !list->is_42)
        buf_put(list->buf, STR(IN));
    buf_byte(list->buf, ']');
}

static void put_list_of_one(struct buf *buf, struct str word, bool is_42)
{
    struct list list = list_begin(buf, is_42);

    if (word.n)
        list_add(&list, word);
    list_end(&list);
}

static void list_add_upper(struct list *list, struct str word)
{
    char upper[32];
    size_t n = word.n < sizeof(upper) ? word.n : sizeof(upper);

    for (size_t i = 0; i < n; i++)
        upper[i] = word.p[i] >= 'a' && word.p[i] <= 'z' ? (char)(word.p[i] - 'a' + 'A') : word.p[i];
    list_add(list, (struct str){ upper, n });
}

/* What a printer of one member gets. */
struct record {
    struct sim_out *out;
    const struct sim_cluster *cluster;
    const void *view;
    bool is_42;
};

struct member {
    const char *key;
    enum { FIXED, TEXT, TEXT_OR_NULL, PLAIN, OBJECT, LIST_OF_ONE, MADE } shape;
    size_t offset;
    const char *fixed;
    void (*put)(const struct record *record);
};

static void put_value(const struct record *record, const struct member *member)
{
    struct buf *buf = &record->out->buf;
    const void *at = (const char *)record->view + member->offset;
    struct str text;
    int64_t number;

    switch (member->shape) {
    case FIXED:
        buf_text(buf, member->fixed);
        break;
    case TEXT:
    case TEXT_OR_NULL:
        memcpy(&text, at, sizeof(text));
        if (member->shape == TEXT_OR_NULL && !text.n)
            buf_put(buf, STR("null"));
        else
            put_string(buf, text);
        break;
    case LIST_OF_ONE:
        memcpy(&text, at, sizeof(text));
        put_list_of_one(buf, text, record->is_42);
        break;
    case PLAIN:
        memcpy(&number, at, sizeof(number));
        put_plain(buf, number);
        break;
    case OBJECT:
        memcpy(&number, at, sizeof(number));
        put_object(buf, number);
        break;
    case MADE:
        member->put(record);
        break;
    }
}

static void put_members(const struct record *record, const struct member *members, size_t n)
{
    struct buf *buf = &record->out->buf;

    for (size_t i = 0; i < n; i++) {
        buf_text(buf, i ? "," IN "\"" : IN "\"");
        buf_text(buf, members[i].key);
        buf_text(buf, "\": ");
        put_value(record, &members[i]);
    }
}

static void put_state(const struct record *record)
{
    static const enum job_flag shown[] = { JOB_CONFIGURING, JOB_COMPLETING };
    const struct sim_job_view *view = record->view;
    struct job_state state = view->job->state;
    struct list list = list_begin(&record->out->buf, true);

    list_add(&list, job_state_words[state.base]);
    for (size_t i = 0; i < COUNT(shown); i++)
        if (state.flags & shown[i])
            list_add(&list, job_state_word((struct job_state){ state.base, shown[i] }));
    list_end(&list);
}

static void put_job_flags(const struct record *record)
{
    const struct sim_job_view *view = record->view;
    struct list list = list_begin(&record->out->buf, record->is_42);

    if (view->job->nodes)
        list_add(&list, record->is_42 ? STR("ACCRUE_COUNT_CLEARED") : STR("JOB_ACCRUE_OVER"));
    if (view->job->state.base == JOB_RUNNING)
        list_add(&list, STR("JOB_WAS_RUNNING"));
    if (record->is_42)
        list_add(&list, STR("USING_DEFAULT_WCKEY"));
    list_end(&list);
}

/* Signals and codes of wait(2). */
static void put_exit_code(const struct record *record)
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

static void put_no_exit_code(const struct record *record)
{
    const struct sim_job_view none = { .exit_code = 0 };
    struct record other = *record;

    other.view = &none;
    put_exit_code(&other);
}

static void put_billable(const struct record *record)
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

static void put_hold(const struct record *record)
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

static void put_node_of_38(const struct record *record, uint32_t i)
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
static void put_nodes_of(const struct record *record,
                         void (*put)(const struct record *record, uint32_t i))
{
    const struct sim_job_view *view = record->view;

    for (uint32_t i = 0; i < view->job->node_count; i++) {
        put(record, i);
        sim_out_pass(record->out);
    }
}

static void put_resources_38(const struct record *record)
{
    const struct sim_job_view *view = record->view;
    struct buf *buf = &record->out->buf;

    buf_put(buf, STR("{" IN "  \"nodes\": "));
    put_string(buf, view->nodes);
    buf_printf(buf,
               "," IN "  \"allocated_cores\": %lld," IN "  \"allocated_hosts\": %lld," IN
               "  \"allocated_nodes\": [",
               (long long)view->cpus, (long long)view->node_count);
    put_nodes_of(record, put_node_of_38);
    buf_put(buf, STR(IN "  ]" IN "}"));
}

static void put_node_of_42(const struct record *record, uint32_t i)
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

static void put_resources_42(const struct record *record)
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
    put_string(buf, view->nodes);
    buf_put(buf, STR("," IN "    \"whole\": false," IN "    \"allocation\": ["));
    put_nodes_of(record, put_node_of_42);
    buf_printf(buf,
               IN "    ]" IN "  }," IN "  \"cpus\": %lld," IN "  \"threads_per_core\": {" IN
                  "    \"set\": false," IN "    \"infinite\": false," IN "    \"number\": 0" IN
                  "  }" IN "}",
               (long long)view->cpus);
}

/* 24.11 writes "gres/gpu:a100:2" where 22.05 wrote "gres:gpu:a100:2". */
static void put_gres_request_42(const struct record *record)
{
    const struct sim_job_view *view = record->view;
    struct str rest = view->gres_request;

    str_cut(&rest, ':');
    buf_text(&record->out->buf, rest.n ? "\"gres\\/" : "\"");
    buf_put(&record->out->buf, rest);
    buf_byte(&record->out->buf, '"');
}

#define JOB(key, shape, member)                                                                    \
    {                                                                                              \
        key, shape, offsetof(struct sim_job_view, member), NULL, NULL                              \
    }
#define AS_IS(key, text)                                                                           \
    {                                                                                              \
        key, FIXED, 0, text, NULL                                                                  \
    }
#define BY(key, function)                                                                          \
    {                                                                                              \
        key, MADE, 0, NULL, function                                                               \
    }
#define EMPTY "\"\""

static const struct member job_members_38[] = {
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
    JOB("gres_detail", LIST_OF_ONE, gres_detail),
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

static const struct member job_members_42[] = {
    JOB("account", TEXT, account),
    JOB("accrue_time", OBJECT, accrue),
    AS_IS("admin_comment", EMPTY),
    AS_IS("allocating_node", "\"login1\""),
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
    JOB("gres_detail", LIST_OF_ONE, gres_detail),
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

/* A document: what stands before its records and after them, and whether one has come. */
struct document {
    bool is_42, has_records;
};

static void begin_record(struct document *document, struct buf *buf)
{
    buf_text(buf, document->has_records ? ",\n    {" : "\n    {");
    document->has_records = true;
}

static void put_job(struct sim_out *out, const struct sim_cluster *cluster,
                    const struct sim_job_view *view, void *ctx)
{
    struct document *document = ctx;
    struct record record = { out, cluster, view, document->is_42 };
    size_t split = 0;

    begin_record(document, &out->buf);
    if (document->is_42) {
        put_members(&record, job_members_42, COUNT(job_members_42));
    } else if (view->job->nodes) {
        put_members(&record, job_members_38, COUNT(job_members_38));
    } else {
        /* 22.05 leaves out the resources of a job that has none. */
        while (job_members_38[split].put != put_resources_38)
            split++;
        put_members(&record, job_members_38, split);
        buf_byte(&out->buf, ',');
        put_members(&record, job_members_38 + split + 1, COUNT(job_members_38) - split - 1);
    }
    buf_put(&out->buf, STR("\n    }"));
}

static void put_document_38(struct sim_out *out, const char *list)
{
    buf_printf(&out->buf,
               "{\n  \"meta\": {\n    \"plugin\": {\n      \"type\": \"openapi\\/v0.0.38\",\n"
               "      \"name\": \"Slurm OpenAPI v0.0.38\"\n    },\n    \"Slurm\": {\n"
               "      \"version\": {\n        \"major\": 22,\n        \"micro\": 8,\n"
               "        \"minor\": 5\n      },\n      \"release\": \"22.05.8\"\n    }\n  },\n"
               "  \"errors\": [\n  ],\n  \"%s\": [",
               list);
}

static void put_update_time(struct buf *buf, const char *key, int64_t time)
{
    buf_printf(buf,
               "  \"%s\": {\n    \"set\": true,\n    \"infinite\": false,\n"
               "    \"number\": %lld\n  },\n",
               key, (long long)time);
}

static void put_end_42(struct sim_out *out, const char *command)
{
    buf_printf(&out->buf,
               "  \"meta\": {\n    \"plugin\": {\n      \"type\": \"\",\n      \"name\": \"\",\n"
               "      \"data_parser\": \"data_parser\\/v0.0.42\",\n"
               "      \"accounting_storage\": \"accounting_storage\\/slurmdbd\"\n    },\n"
               "    \"client\": {\n      \"source\": \"\",\n      \"user\": \"root\",\n"
               "      \"group\": \"root\"\n    },\n    \"command\": [\n      \"%s\"\n    ],\n"
               "    \"slurm\": {\n      \"version\": {\n        \"major\": \"24\",\n"
               "        \"micro\": \"5\",\n        \"minor\": \"11\"\n      },\n"
               "      \"release\": \"24.11.5\",\n      \"cluster\": \"simulated\"\n    }\n  },\n"
               "  \"errors\": [],\n  \"warnings\": []\n}\n",
               command);
}

void sim_json_jobs(struct sim_out *out, const struct sim_cluster *cluster, int64_t time, bool is_42)
{
    struct document document = { .is_42 = is_42 };

    if (is_42)
        buf_text(&out->buf, "{\n  \"jobs\": [");
    else
        put_document_38(out, "jobs");
    sim_view_jobs(out, cluster, time, put_job, &document);
    buf_text(&out->buf, document.has_records || !is_42 ? "\n  ]" : "]");
    if (is_42) {
        buf_text(&out->buf, ",\n");
        put_update_time(&out->buf, "last_backfill", time - time % 30);
        put_update_time(&out->buf, "last_update", time);
        put_end_42(out, "squeue");
    } else {
        buf_text(&out->buf, "\n}");
    }
}

static void add_node_flags(struct list *list, struct node_state state)
{
    for (uint32_t flags = state.flags; flags; flags &= flags - 1)
        list_add_upper(list, node_flag_word((enum node_flag)(flags & -flags)));
}

static void put_node_flags(const struct record *record)
{
    const struct sim_node_view *view = record->view;
    struct list list = list_begin(&record->out->buf, record->is_42);

    add_node_flags(&list, view->node->state);
    list_end(&list);
}

static void put_node_state(const struct record *record)
{
    const struct sim_node_view *view = record->view;
    struct str base = node_base_word((enum node_base)view->node->state.base);
    struct list list;

    if (!record->is_42) {
        put_string(&record->out->buf, base);
        return;
    }
    list = list_begin(&record->out->buf, true);
    list_add_upper(&list, base);
    add_node_flags(&list, view->node->state);
    list_end(&list);
}

static void put_node_partitions(const struct record *record)
{
    const struct sim_node_view *view = record->view;
    const struct nodes *nodes = &view->section->nodes;
    struct list list = list_begin(&record->out->buf, record->is_42);

    for (uint32_t i = 0; i < view->node->n_partitions; i++) {
        uint32_t partition = nodes->membership[view->node->first_partition + i];

        list_add(&list, section_text(view->section, nodes->partition[partition].name));
    }
    list_end(&list);
}

static void put_node_features(const struct record *record)
{
    const struct sim_node_view *view = record->view;
    struct list list = list_begin(&record->out->buf, true);

    for (struct str rest = view->features; rest.p;)
        list_add(&list, str_cut(&rest, ','));
    list_end(&list);
}

/* The numbers that stand where slurmd told none differ: NO_VAL of 32 bits, -2, 0. */
static void put_load(const struct record *record)
{
    const struct sim_node_view *view = record->view;
    int64_t unknown = record->is_42 ? 0 : 4294967294;

    buf_i64(&record->out->buf, view->load_percent == SIM_ABSENT ? unknown : view->load_percent);
}

static void put_free_memory_38(const struct record *record)
{
    const struct sim_node_view *view = record->view;

    buf_i64(&record->out->buf, view->memory_free_mib == SIM_ABSENT ? -2 : view->memory_free_mib);
}

static void put_weighted(const struct record *record)
{
    const struct sim_node_view *view = record->view;

    buf_printf(&record->out->buf, "%lld.0", (long long)view->cpus_alloc);
}

#define NODE(key, shape, member)                                                                   \
    {                                                                                              \
        key, shape, offsetof(struct sim_node_view, member), NULL, NULL                             \
    }

static const struct member node_members_38[] = {
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

static const struct member node_members_42[] = {
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
    struct document *document = ctx;
    struct record record = { out, NULL, view, document->is_42 };

    begin_record(document, &out->buf);
    if (document->is_42)
        put_members(&record, node_members_42, COUNT(node_members_42));
    else
        put_members(&record, node_members_38, COUNT(node_members_38));
    buf_put(&out->buf, STR("\n    }"));
}

void sim_json_nodes(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                    bool is_42)
{
    struct document document = { .is_42 = is_42 };

    if (is_42)
        buf_text(&out->buf, "{\n  \"nodes\": [");
    else
        put_document_38(out, "nodes");
    sim_view_nodes(out, cluster, time, put_node, &document);
    buf_text(&out->buf, "\n  ]");
    if (is_42) {
        buf_text(&out->buf, ",\n");
        put_update_time(&out->buf, "last_update", time);
        put_end_42(out, "show");
    } else {
        buf_text(&out->buf, "\n}");
    }
}
