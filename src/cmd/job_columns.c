/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Columns of the tables that `sonde jobs` prints. */
#include "cmd/job_columns.h"

#include "base/moment.h"
#include "base/quote.h"
#include "web/api_key.h"
#include "web/api_run.h"

#include <ctype.h>
#include <math.h>

void job_put_id(struct buf *out, const struct job_row *row)
{
    const struct job_record *record = &row->record;

    if (record->array_job_id && record->array_task_id != MODEL_UNKNOWN_U32)
        buf_printf(out, "%u_%u", record->array_job_id, record->array_task_id);
    else if (record->array_job_id)
        buf_printf(out, "%u_*", record->array_job_id);
    else if (record->het_job_id)
        buf_printf(out, "%u+%u", record->het_job_id, record->het_offset);
    else
        buf_u64(out, record->id);
}

static void put_exit(struct buf *out, const struct job_row *row)
{
    if (row->record.exit_code == MODEL_UNKNOWN_U32)
        return;
    buf_printf(out, "%u:%u", row->record.exit_code,
               row->record.exit_signal == MODEL_UNKNOWN_U32 ? 0 : row->record.exit_signal);
}

/* Those that are made of several fields; the fields of the API come behind them. */
static const struct {
    const char *name;
    void (*put)(struct buf *out, const struct job_row *row);
} made[] = {
    { "id", job_put_id },
    { "exit", put_exit },
};

static const char *name_of(size_t which)
{
    return which < COUNT(made) ? made[which].name : api_job_fields[which - COUNT(made)].name;
}

static size_t n_names(void)
{
    return COUNT(made) + n_api_job_fields;
}

void job_columns_list(struct buf *out)
{
    for (size_t i = 0; i < n_names(); i++) {
        buf_text(out, i ? ", " : "");
        buf_text(out, name_of(i));
    }
}

void job_put_span(struct buf *out, uint64_t seconds)
{
    uint64_t days = seconds / 86400;

    if (days)
        buf_printf(out, "%llu-", (unsigned long long)days);
    buf_printf(out, "%02d:%02d:%02d", (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60),
               (int)(seconds % 60));
}

/* "512", "1.5K", "3.0G": powers of 1024. */
static void put_bytes(struct buf *out, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    double amount = (double)bytes;
    size_t unit = 0;

    if (bytes < 1024) {
        buf_u64(out, bytes);
        return;
    }
    for (amount /= 1024; amount >= 1024 && units[unit + 1]; unit++)
        amount /= 1024;
    buf_printf(out, "%.1f%c", amount, units[unit]);
}

static void put_count(struct buf *out, const char *name, uint64_t value, bool is_csv)
{
    if (!is_csv && str_ends(str_of(name), STR("_bytes")))
        put_bytes(out, value);
    else if (!is_csv && str_ends(str_of(name), STR("_seconds")))
        job_put_span(out, value);
    else
        buf_u64(out, value);
}

static void put_real(struct buf *out, const char *name, double value, bool is_csv)
{
    if (!isfinite(value))
        return;
    if (!is_csv && str_ends(str_of(name), STR("_efficiency")))
        buf_printf(out, "%.0f%%", value * 100);
    else if (!is_csv && str_ends(str_of(name), STR("_seconds")) && value >= 0 && value < 1e15)
        job_put_span(out, (uint64_t)value);
    else
        buf_double(out, value);
}

static void put_moment(struct buf *out, int64_t moment, bool is_csv)
{
    if (moment && is_csv)
        moment_put_zoned(out, moment);
    else if (moment)
        moment_put(out, moment);
}

static void put_field(struct buf *out, const struct api_field *field, const struct job_row *row,
                      bool is_csv)
{
    const void *value = (const char *)row + field->offset;
    uint32_t small = field->type == API_ID || field->type == API_U32 || field->type == API_MINUTES
                         ? *(const uint32_t *)value
                         : 0;

    switch (field->type) {
    case API_TEXT:
        buf_put(out, *(const struct str *)value);
        break;
    case API_ID:
        if (small)
            buf_u64(out, small);
        break;
    case API_U32:
        if (small != MODEL_UNKNOWN_U32)
            put_count(out, field->name, small, is_csv);
        break;
    case API_MINUTES:
        if (small != MODEL_UNKNOWN_U32)
            put_count(out, field->name, (uint64_t)small * 60, is_csv);
        break;
    case API_U64:
        if (*(const uint64_t *)value != MODEL_UNKNOWN_U64)
            put_count(out, field->name, *(const uint64_t *)value, is_csv);
        break;
    case API_TIME:
        put_moment(out, *(const int64_t *)value, is_csv);
        break;
    case API_SPAN:
        if (*(const int64_t *)value >= 0)
            put_count(out, field->name, *(const uint64_t *)value, is_csv);
        break;
    case API_NUMBER:
        put_real(out, field->name, *(const double *)value, is_csv);
        break;
    case API_STATE:
        job_state_put(out, *(const struct job_state *)value);
        break;
    case API_ORIGIN:
        buf_text(out, row->record.origin == RECORD_ACCOUNTED ? "accounted" : "seen");
        break;
    case API_GPU_TYPES:
        buf_put(out, row->gpu_types);
        break;
    case API_RUN_KEY:
        api_key_put_run(out, &row->key);
        break;
    case API_HET:
        if (row->record.het_job_id)
            buf_u64(out, row->record.het_offset);
        break;
    case API_FLAG:
        buf_text(out, *(const bool *)value ? "true" : "false");
        break;
    }
}

/* Whether anything but a person's words stands in it, which is not cut. */
static bool is_number(size_t which)
{
    enum api_field_type type;

    if (which < COUNT(made))
        return true;
    type = api_job_fields[which - COUNT(made)].type;
    return type != API_TEXT && type != API_STATE && type != API_ORIGIN && type != API_GPU_TYPES;
}

/* Slurm's own words, of which each is short. */
static bool is_whole(size_t which)
{
    return which >= COUNT(made) && api_job_fields[which - COUNT(made)].type == API_STATE;
}

/* "elapsed_seconds" as "ELAPSED". */
static void put_title(size_t which, char to[40])
{
    static const struct str units[] = { STR_INIT("_seconds"), STR_INIT("_bytes"),
                                        STR_INIT("_time") };
    struct str name = str_of(name_of(which));
    size_t n = 0;

    if (str_eq(name, STR("id")))
        name = STR("jobid");
    if (str_eq(name, STR("cpu_efficiency")))
        name = STR("efficiency");
    for (size_t i = 0; i < COUNT(units); i++)
        if (str_ends(name, units[i]))
            name.n -= units[i].n;
    for (; n < name.n && n < 39; n++)
        to[n] = (char)toupper((unsigned char)name.p[n]);
    to[n] = '\0';
}

static void add(struct job_columns *columns, size_t which)
{
    size_t i = columns->n++;

    columns->which[i] = which;
    if (columns->is_csv)
        snprintf(columns->titles[i], sizeof(columns->titles[i]), "%s", name_of(which));
    else
        put_title(which, columns->titles[i]);
    columns->columns[i] = (struct table_column){ .title = columns->titles[i],
                                                 .is_number = is_number(which),
                                                 .is_whole = is_whole(which) };
}

static int add_named(struct job_columns *columns, struct str name, struct err *err)
{
    for (size_t i = 0; i < n_names(); i++) {
        if (!str_eq_nocase(name, str_of(name_of(i))))
            continue;
        if (columns->n == JOB_COLUMNS_MAX)
            return err_set(err, EINVAL, "--columns: at most %d", JOB_COLUMNS_MAX);
        add(columns, i);
        return 0;
    }
    return err_set(err, EINVAL, "--columns: there is no \"%s\"; sonde-jobs(1) lists them",
                   quote(name).text);
}

int job_columns_choose(struct str names, bool is_csv, struct job_columns *ret, struct err *err)
{
    int r = 0;

    *ret = (struct job_columns){ .is_csv = is_csv };
    if (str_eq_nocase(names, STR("all"))) {
        for (size_t i = 0; i < n_names() && i < JOB_COLUMNS_MAX; i++)
            add(ret, i);
        return 0;
    }
    for (struct str rest = names; rest.p && r == 0;) {
        struct str name = str_trim(str_cut(&rest, ','));

        if (name.n)
            r = add_named(ret, name, err);
    }
    if (r == 0 && !ret->n)
        r = err_set(err, EINVAL, "--columns: name one at least; sonde-jobs(1) lists them");
    return r;
}

void job_columns_choose_usual(bool has_clusters, bool is_csv, struct job_columns *ret)
{
    static const struct {
        const char *name;
        unsigned char spare;
    } usual[] = {
        { "cluster", 0 },         { "id", 0 },   { "user", 0 },  { "account", 4 },
        { "partition", 3 },       { "name", 0 }, { "state", 0 }, { "start_time", 2 },
        { "elapsed_seconds", 0 }, { "cpus", 0 }, { "gpus", 0 },  { "cpu_efficiency", 5 },
        { "nodes", 1 },
    };

    *ret = (struct job_columns){ .is_csv = is_csv };
    for (size_t i = has_clusters ? 0 : 1; i < COUNT(usual); i++) {
        add_named(ret, str_of(usual[i].name), NULL);
        ret->columns[ret->n - 1].spare = usual[i].spare;
    }
}

void job_columns_put(const struct job_columns *columns, const struct job_row *row,
                     struct table *table)
{
    struct buf cell;

    buf_init(&cell, 1 << 17);
    for (size_t i = 0; i < columns->n; i++) {
        size_t which = columns->which[i];

        buf_reset(&cell);
        if (which < COUNT(made))
            made[which].put(&cell, row);
        else
            put_field(&cell, &api_job_fields[which - COUNT(made)], row, columns->is_csv);
        table_cell(table, buf_str(&cell));
    }
    buf_free(&cell);
}
