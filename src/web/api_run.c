/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a run as JSON. */
#include "web/api_run.h"

#define ROW(name, type, member)                                                                    \
    {                                                                                              \
        name, type, offsetof(struct job_row, member)                                               \
    }

const struct api_field api_job_fields[] = {
    ROW("key", API_RUN_KEY, key),
    ROW("cluster", API_TEXT, key.cluster),
    ROW("job_id", API_U32, record.id),
    ROW("submit_time", API_TIME, record.submit_time),
    ROW("first_submit_time", API_TIME, first_submit_time),
    ROW("restarts", API_U32, record.restarts),
    ROW("array_job_id", API_ID, record.array_job_id),
    ROW("array_task_id", API_U32, record.array_task_id),
    ROW("tasks", API_U32, record.tasks),
    ROW("het_job_id", API_ID, record.het_job_id),
    ROW("het_offset", API_HET, record),
    ROW("user", API_TEXT, record.user),
    ROW("user_id", API_U32, record.user_id),
    ROW("account", API_TEXT, record.account),
    ROW("partition", API_TEXT, record.partition),
    ROW("qos", API_TEXT, record.qos),
    ROW("name", API_TEXT, record.name),
    ROW("reservation", API_TEXT, record.reservation),
    ROW("state", API_STATE, record.state),
    ROW("reason", API_TEXT, record.reason),
    ROW("nodes", API_TEXT, record.nodes),
    ROW("eligible_time", API_TIME, record.eligible_time),
    ROW("start_time", API_TIME, record.start_time),
    ROW("end_time", API_TIME, record.end_time),
    ROW("wait_seconds", API_SPAN, wait_seconds),
    ROW("elapsed_seconds", API_SPAN, elapsed_seconds),
    ROW("suspended_seconds", API_U64, record.suspended_seconds),
    ROW("time_limit_seconds", API_MINUTES, record.time_limit_minutes),
    ROW("exit_code", API_U32, record.exit_code),
    ROW("exit_signal", API_U32, record.exit_signal),
    ROW("priority", API_U64, record.priority),
    ROW("node_count", API_U32, record.node_count),
    ROW("cpus", API_U32, record.cpus),
    ROW("memory_bytes", API_U64, record.memory_bytes),
    ROW("gpus", API_U64, gpus),
    { "gpus_by_type", API_GPU_TYPES, 0 },
    ROW("billing", API_U64, billing),
    ROW("tres", API_TEXT, record.tres),
    ROW("tres_requested", API_TEXT, record.tres_requested),
    ROW("cpu_seconds", API_NUMBER, record.cpu_seconds),
    ROW("user_seconds", API_NUMBER, record.user_seconds),
    ROW("system_seconds", API_NUMBER, record.system_seconds),
    ROW("cpu_efficiency", API_NUMBER, cpu_efficiency),
    ROW("memory_peak_bytes", API_U64, record.memory_peak_bytes),
    ROW("read_bytes", API_U64, record.read_bytes),
    ROW("write_bytes", API_U64, record.write_bytes),
    ROW("energy_joules", API_U64, record.energy_joules),
    ROW("origin", API_ORIGIN, record.origin),
    ROW("as_of", API_TIME, record.as_of),
};
const size_t n_api_job_fields = COUNT(api_job_fields);

#define MOMENT(name, type, member)                                                                 \
    {                                                                                              \
        name, type, offsetof(struct job_moment, member)                                            \
    }
#define FINAL(name, type, member)                                                                  \
    {                                                                                              \
        name, type, offsetof(struct final_record, member)                                          \
    }

const struct api_field api_moment_fields[] = {
    MOMENT("time", API_TIME, time),
    MOMENT("state", API_TEXT, state),
    MOMENT("reason", API_TEXT, reason),
};
const size_t n_api_moment_fields = COUNT(api_moment_fields);

const struct api_field api_final_fields[] = {
    FINAL("node", API_TEXT, node),
    FINAL("begin_time", API_TIME, begin_time),
    FINAL("end_time", API_TIME, end_time),
};
const size_t n_api_final_fields = COUNT(api_final_fields);

static const struct api_member whole_members[] = {
    { "extra", API_MEMBER_BY_NAME, true,
      "Every other field of Slurm's, under the name that sacct(1) gives it.", NULL },
};
static const struct api_member final_members[] = {
    { "counted", API_MEMBER_ANY, true, "What the agent counted: docs/store.md.", NULL },
};
const struct api_shape api_row_shape = { api_job_fields, COUNT(api_job_fields), NULL, 0 };
const struct api_shape api_whole_shape = { api_job_fields, COUNT(api_job_fields), whole_members,
                                           COUNT(whole_members) };
const struct api_shape api_moment_shape = { api_moment_fields, COUNT(api_moment_fields), NULL, 0 };
const struct api_shape api_final_shape = { api_final_fields, COUNT(api_final_fields), final_members,
                                           COUNT(final_members) };

static void put_extra(struct buf *out, const struct job_record *record)
{
    if (!record->n_extra)
        return;
    api_json_name(out, "extra");
    buf_byte(out, '{');
    for (size_t i = 0; i < record->n_extra; i++) {
        api_json_next(out);
        buf_json(out, record->extra[i].name);
        buf_byte(out, ':');
        buf_json(out, record->extra[i].value);
    }
    buf_byte(out, '}');
}

void api_put_run(struct buf *out, const struct job_row *row)
{
    api_json_fields(out, api_job_fields, n_api_job_fields, row);
    put_extra(out, &row->record);
}

int api_put_life(struct buf *out, struct store_reader *reader, const struct run_key *key,
                 struct arena *arena, struct err *err)
{
    struct job_moment *moments;
    size_t n;
    int code = store_life(reader, key, arena, &moments, &n, err);

    if (code < 0)
        return code;
    api_json_name(out, "life");
    buf_byte(out, '[');
    for (size_t i = 0; i < n; i++) {
        api_json_next(out);
        buf_byte(out, '{');
        api_json_fields(out, api_moment_fields, n_api_moment_fields, &moments[i]);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
    return 0;
}

static void put_counted(struct buf *out, struct str document)
{
    size_t before = out->n;

    api_json_name(out, "counted");
    if (!api_json_object(out, document))
        api_json_undo(out, before);
}

int api_put_agents(struct buf *out, struct store_reader *reader, const struct run_key *key,
                   struct arena *arena, struct err *err)
{
    struct final_record *finals;
    size_t n;
    int code = store_finals(reader, key, arena, &finals, &n, err);

    if (code < 0)
        return code;
    api_json_name(out, "agents");
    buf_byte(out, '[');
    for (size_t i = 0; i < n && !out->over; i++) {
        api_json_next(out);
        buf_byte(out, '{');
        api_json_fields(out, api_final_fields, n_api_final_fields, &finals[i]);
        put_counted(out, finals[i].document);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
    return 0;
}
