/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde usage: what jobs held of a time, as sreport(1) counts it, from the store. */
#include "base/clock.h"
#include "base/moment.h"
#include "base/process.h"
#include "base/quote.h"
#include "cmd/job_columns.h"
#include "cmd/promises.h"
#include "cmd/question.h"
#include "web/api_json.h"

#include <math.h>

struct settings {
    struct question_options question;
    struct option_list by;
    struct str unit, format, allocations_file;
};

#define SETTING(member) offsetof(struct settings, member)

enum {
    MOST_ROWS = 1000000,
    MOST_CELLS = USAGE_KEYS + 8,
    ROW_MAX = 1 << 20,
    USUAL_SECONDS = 30 * 86400,
};

static const struct option own_rows[] = {
    { "by", OPTION_LIST, SETTING(by), "KEYS", "account", NULL, NULL, "Output",
      "A row for each of these together, separated by commas: cluster, account, user, partition, "
      "qos, gpu_type, state. By gpu_type, a job with GPUs of two types counts in both, each with "
      "its own GPUs; in the sums it counts once." },
    { "unit", OPTION_CHOICE, SETTING(unit), "UNIT", "hours", NULL, "hours seconds", "Output",
      "CPU-hours, or CPU-seconds, which are exact." },
    { "format", OPTION_CHOICE, SETTING(format), "FORMAT", "table", NULL, "table csv json", "Output",
      "A table for people, CSV (RFC 4180), or JSON: with --unit=seconds under "
      "the names of /api/v1/usage." },
    { "allocations.file", OPTION_STRING, SETTING(allocations_file), "FILE", NULL, NULL, NULL,
      "Output",
      "What accounts were promised (docs/allocations.md): adds which share of what they were "
      "promised of that time they used, and a row for those that used nothing. With --by=account, "
      "or more; where the store has several "
      "clusters and --cluster does not name one, rows are by cluster too, as promises are." },
};

static bool is_for_lists(const struct option *row)
{
    return strcmp(row->name, "all-users") == 0 || strcmp(row->name, "a") == 0;
}

static void make_rows(struct option *rows)
{
    struct option question[QUESTION_OPTIONS];
    size_t n = 0;

    question_options_rows(SETTING(question), question);
    for (size_t i = 0; i < QUESTION_OPTIONS; i++)
        if (!is_for_lists(&question[i]))
            rows[n++] = question[i];
    memcpy(rows + n, own_rows, sizeof(own_rows));
}

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 struct err *err)
{
    struct option rows[QUESTION_OPTIONS + COUNT(own_rows) + 1] = { 0 };
    const struct option_command command = {
        .name = "sonde usage",
        .summary = "tell what jobs held of a time",
        .description =
            "Adds up what jobs held of a time, of the last 30 days without --from and --to: "
            "CPU-hours, GPU-hours, and what was billed, as sreport does. A job that began before "
            "the time or ends after it counts with the part that lies in it; one that runs counts "
            "until now, or until its time limit. While a job is suspended its CPUs do not count; "
            "its GPUs and its billing do. (slurmdbd gives only how long a job was suspended. When "
            "it was is known to the interval of polls; if no poll has shown it, the suspended time "
            "is spread evenly over the job.)\n\n"
            "Idle time of reservations is not included. sreport adds it to the accounts and users "
            "that may use a reservation: sreport reservation Utilization shows how much.\n\n"
            "Jobs are those that ran in the time. The wait is the mean of those that started in "
            "it, from when they could have run. Efficiency is the CPU time used by the CPU time "
            "held of those that ended in it and whose use is known.",
        .shares_file = true,
        .options = rows,
    };
    char **rest;
    int outcome;

    make_rows(rows);
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    if (outcome == OPTION_GO_ON && rest[0])
        return err_set(err, EINVAL, "\"%s\" is too much: sonde usage takes flags only",
                       quote(str_of(rest[0])).text);
    return outcome;
}

/* The question, and its answer. */
struct answer {
    const struct settings *settings;
    struct usage_question question;
    enum usage_key keys[USAGE_KEYS];
    struct usage_row *rows, total;
    size_t n;
    struct promises *promises; /* NULL: none are asked for */
    struct cluster_row *clusters;
    size_t n_clusters;
    struct arena arena;
    struct err *err;
};

static int read_keys(struct answer *answer)
{
    struct words words = question_words(&answer->settings->by, &answer->arena);
    size_t n = 0, at;

    answer->question.keys = answer->keys;
    for (size_t i = 0; i < words.n; i++) {
        enum usage_key key;

        if (!usage_key_find(words.word[i], &key))
            return err_set(answer->err, EINVAL,
                           "--by: there is no \"%s\"; take cluster, account, user, partition, qos, "
                           "gpu_type or state",
                           quote(words.word[i]).text);
        if (question_has_key(&answer->question, key, &at))
            continue;
        answer->keys[n++] = key;
        answer->question.n_keys = n;
    }
    return n ? 0 : err_set(answer->err, EINVAL, "--by: name one key at least");
}

static int read_promises(struct answer *answer)
{
    struct str path = answer->settings->allocations_file;
    size_t at;

    if (!path.n)
        return 0;
    if (!question_has_key(&answer->question, USAGE_ACCOUNT, &at))
        return err_set(answer->err, EINVAL, "--allocations.file: add account to --by");
    return promises_read(path.p, &answer->arena, &answer->promises, answer->err);
}

/* A number of a row, in the units that are wanted. */
enum value_kind { VALUE_COUNT, VALUE_HELD, VALUE_SPAN, VALUE_RATIO };

struct value {
    enum value_kind kind;
    const char *title; /* for people */
    const char *name;  /* "cpu" becomes cpu_hours or cpu_seconds */
    uint64_t count;    /* also held, in seconds */
    double real;       /* span, ratio; NAN: unknown */
};

enum { MOST_VALUES = 8 };

static double share_of(const struct answer *answer, const struct usage_row *row,
                       enum allocation_of what)
{
    return answer->promises && row != &answer->total ? promises_share(answer->promises, row, what)
                                                     : NAN;
}

static size_t values_of(const struct answer *answer, const struct usage_row *row,
                        struct value to[MOST_VALUES])
{
    const struct value values[MOST_VALUES] = {
        { VALUE_COUNT, "JOBS", "jobs", row->jobs, 0 },
        { VALUE_HELD, "CPU", "cpu", row->cpu_seconds, 0 },
        { VALUE_HELD, "GPU", "gpu", row->gpu_seconds, 0 },
        { VALUE_HELD, "BILLING", "billing", row->billing_seconds, 0 },
        { VALUE_SPAN, "WAIT", "mean_wait_seconds", 0,
          row->waited ? (double)row->wait_seconds / (double)row->waited : NAN },
        { VALUE_RATIO, "EFFICIENCY", "cpu_efficiency", 0,
          row->of_cpu_seconds > 0 ? row->used_cpu_seconds / row->of_cpu_seconds : NAN },
        { VALUE_RATIO, "CPU-SHARE", "cpu_share", 0, share_of(answer, row, ALLOCATION_CPUS) },
        { VALUE_RATIO, "GPU-SHARE", "gpu_share", 0, share_of(answer, row, ALLOCATION_GPUS) },
    };

    memcpy(to, values, sizeof(values));
    return answer->promises ? MOST_VALUES : MOST_VALUES - 2;
}

static bool counts_hours(const struct answer *answer)
{
    return str_eq(answer->settings->unit, STR("hours"));
}

/* cpu_hours, cpu_seconds, jobs. */
static void put_name(const struct answer *answer, const struct value *value, struct buf *out)
{
    buf_text(out, value->name);
    if (value->kind == VALUE_HELD)
        buf_text(out, counts_hours(answer) ? "_hours" : "_seconds");
}

/* "CPU-HOURS" */
static void put_title(const struct answer *answer, const struct value *value, struct buf *out)
{
    buf_text(out, value->title);
    if (value->kind == VALUE_HELD)
        buf_text(out, counts_hours(answer) ? "-HOURS" : "-SECONDS");
}

/* For programs; nothing if it is unknown. */
static void put_plain(const struct answer *answer, const struct value *value, struct buf *out)
{
    if (value->kind == VALUE_COUNT || (value->kind == VALUE_HELD && !counts_hours(answer)))
        buf_u64(out, value->count);
    else if (value->kind == VALUE_HELD)
        buf_double(out, (double)value->count / 3600);
    else if (isfinite(value->real))
        buf_double(out, value->real);
}

static void put_for_people(const struct answer *answer, const struct value *value, struct buf *out)
{
    if (value->kind == VALUE_HELD && counts_hours(answer))
        buf_printf(out, "%.1f", (double)value->count / 3600);
    else if (value->kind == VALUE_SPAN && isfinite(value->real))
        job_put_span(out, (uint64_t)(value->real + 0.5));
    else if (value->kind == VALUE_RATIO && isfinite(value->real))
        buf_printf(out, "%.1f%%", value->real * 100);
    else if (value->kind == VALUE_COUNT || value->kind == VALUE_HELD)
        buf_u64(out, value->count);
}

static void put_cells(const struct answer *answer, const struct usage_row *row, bool is_csv,
                      struct table *table)
{
    struct value values[MOST_VALUES];
    size_t n = values_of(answer, row, values);
    struct buf cell;

    for (size_t i = 0; i < answer->question.n_keys; i++)
        table_cell(table, row == &answer->total && i == 0 ? STR("TOTAL") : row->keys[i]);
    buf_init(&cell, 256);
    for (size_t i = 0; i < n; i++) {
        buf_reset(&cell);
        if (is_csv)
            put_plain(answer, &values[i], &cell);
        else
            put_for_people(answer, &values[i], &cell);
        table_cell(table, buf_str(&cell));
    }
    buf_free(&cell);
}

static struct str upper(struct arena *arena, struct str text)
{
    char *copy = ARENA_ARRAY(arena, char, text.n + 1);

    for (size_t i = 0; i < text.n; i++)
        copy[i] = text.p[i] >= 'a' && text.p[i] <= 'z' ? (char)(text.p[i] - 32) : text.p[i];
    return (struct str){ copy, text.n };
}

static size_t make_columns(struct answer *answer, bool is_csv, struct table_column to[MOST_CELLS])
{
    struct value values[MOST_VALUES];
    size_t n_values = values_of(answer, &answer->total, values), n = 0;
    struct buf name;

    for (; n < answer->question.n_keys; n++) {
        struct str word = usage_key_words[answer->keys[n]];

        to[n] = (struct table_column){ .title = is_csv ? word.p : upper(&answer->arena, word).p };
    }
    buf_init(&name, 256);
    for (size_t i = 0; i < n_values; i++) {
        buf_reset(&name);
        if (is_csv)
            put_name(answer, &values[i], &name);
        else
            put_title(answer, &values[i], &name);
        to[n++] = (struct table_column){ .title = arena_str(&answer->arena, buf_str(&name)).p,
                                         .is_number = true };
    }
    buf_free(&name);
    return n;
}

/* The time, in the reader's zone. */
static void put_period(const struct answer *answer)
{
    const struct job_filter *filter = &answer->question.filter;
    struct buf line;

    buf_init(&line, 256);
    buf_text(&line, "From ");
    moment_put_zoned(&line, filter->from);
    buf_text(&line, " to ");
    moment_put_zoned(&line, filter->to);
    buf_text(&line, "\n\n");
    fwrite(line.p, 1, line.n, stdout);
    buf_free(&line);
}

/* CSV has no sums: who adds up a column would count them again. */
static int write_table(struct answer *answer, bool is_csv)
{
    struct table_column columns[MOST_CELLS];
    struct table_settings settings = {
        .format = is_csv ? TABLE_CSV : TABLE_TEXT,
        .columns = columns,
        .width = is_csv ? 0 : table_terminal_width(stdout),
        .to = stdout,
    };
    struct table *table;
    int r;

    settings.n_columns = make_columns(answer, is_csv, columns);
    if (!is_csv)
        put_period(answer);
    table = table_new(&settings);
    for (size_t i = 0; i < answer->n; i++)
        put_cells(answer, &answer->rows[i], is_csv, table);
    if (!is_csv)
        put_cells(answer, &answer->total, is_csv, table);
    r = table_end(table, !is_csv, answer->err);
    if (r == 0 && !is_csv)
        puts("\nIdle time of reservations is not included; sreport adds it to their accounts.");
    return r;
}

static void put_object(const struct answer *answer, const struct usage_row *row, struct buf *out)
{
    struct value values[MOST_VALUES];
    size_t n = values_of(answer, row, values);

    buf_byte(out, '{');
    for (size_t i = 0; i < answer->question.n_keys && row != &answer->total; i++) {
        if (!row->keys[i].n)
            continue;
        api_json_name(out, usage_key_words[answer->keys[i]].p);
        buf_json(out, row->keys[i]);
    }
    for (size_t i = 0; i < n; i++) {
        bool is_known = values[i].kind < VALUE_SPAN || isfinite(values[i].real);

        if (!is_known)
            continue;
        api_json_next(out);
        buf_byte(out, '"');
        put_name(answer, &values[i], out);
        buf_text(out, "\":");
        put_plain(answer, &values[i], out);
    }
    buf_byte(out, '}');
}

static int write_json(struct answer *answer)
{
    const struct job_filter *filter = &answer->question.filter;
    struct buf out;
    bool ok = true;

    buf_init(&out, ROW_MAX);
    buf_printf(&out, "{\"from\":%lld,\"to\":%lld,\"rows\":[", (long long)filter->from,
               (long long)filter->to);
    for (size_t i = 0; i < answer->n && ok; i++) {
        buf_text(&out, i ? ",\n" : "\n");
        put_object(answer, &answer->rows[i], &out);
        ok = !out.over && fwrite(out.p, 1, out.n, stdout) == out.n;
        buf_reset(&out);
    }
    buf_text(&out, answer->n ? "\n],\"total\":" : "],\"total\":");
    put_object(answer, &answer->total, &out);
    buf_text(&out, "}\n");
    ok = ok && !out.over && fwrite(out.p, 1, out.n, stdout) == out.n && fflush(stdout) == 0;
    buf_free(&out);
    return ok ? 0 : err_set(answer->err, errno ? errno : EIO, "cannot write: %s", err_words(errno));
}

static int write_answer(struct answer *answer)
{
    if (str_eq(answer->settings->format, STR("json")))
        return write_json(answer);
    return write_table(answer, str_eq(answer->settings->format, STR("csv")));
}

static int make_question(struct answer *answer, int64_t now)
{
    struct job_filter *filter = &answer->question.filter;
    int r = question_filter(&answer->settings->question, now, &answer->arena, filter, answer->err);

    if (r == 0)
        r = read_keys(answer);
    if (r == 0)
        r = read_promises(answer);
    if (r < 0)
        return r;
    if (!filter->to)
        filter->to = filter->from > now ? filter->from + 1 : now;
    if (!filter->from)
        filter->from = filter->to - USUAL_SECONDS;
    answer->question.now = now;
    answer->question.most = MOST_ROWS;
    answer->question.total = &answer->total;
    return 0;
}

/* What is promised is promised on one cluster: no row may have the use of two. */
static void part_clusters(struct answer *answer)
{
    struct job_filter *filter = &answer->question.filter;
    size_t at;

    if (filter->clusters.n == 1 || question_has_key(&answer->question, USAGE_CLUSTER, &at))
        return;
    if (answer->n_clusters == 1 && !filter->clusters.n) {
        filter->clusters = (struct words){ &answer->clusters[0].name, 1 };
        return;
    }
    memmove(answer->keys + 1, answer->keys, answer->question.n_keys * sizeof(answer->keys[0]));
    answer->keys[0] = USAGE_CLUSTER;
    answer->question.n_keys++;
}

static int find_rows(struct answer *answer, struct store_reader *reader)
{
    int r = 0;

    if (answer->promises)
        r = store_clusters(reader, &answer->arena, &answer->clusters, &answer->n_clusters,
                           answer->err);
    if (r == 0 && answer->promises)
        part_clusters(answer);
    if (r == 0)
        r = store_usage(reader, &answer->question, &answer->arena, &answer->rows, &answer->n,
                        answer->err);
    if (r == 0 && answer->promises)
        promises_add_rows(answer->promises, &answer->question, answer->clusters, answer->n_clusters,
                          &answer->rows, &answer->n);
    return r;
}

static int answer_question(const struct settings *settings, struct err *err)
{
    int64_t now = clock_wall(clock_of_environment()) / NS_PER_SEC;
    struct answer answer = { .settings = settings, .err = err };
    struct store_reader *reader = NULL;
    int r = make_question(&answer, now);

    if (r == 0)
        r = store_reader_open(settings->question.store, &reader, err);
    if (r == 0)
        r = find_rows(&answer, reader);
    if (r == 0)
        r = write_answer(&answer);
    store_reader_close(reader);
    promises_free(answer.promises);
    arena_clear(&answer.arena);
    return r;
}

int main(int argc, char **argv)
{
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    int code;

    process_keep_standard_fds();
    code = parse(argc, argv, &arena, &settings, &err);
    if (code == OPTION_GO_ON)
        code = answer_question(&settings, &err);
    else if (code == OPTION_EXIT_OK)
        code = 0;
    if (code < 0 && code != -EPIPE)
        fprintf(stderr, "sonde usage: %s\n", err.text);
    arena_clear(&arena);
    return question_exit_status(code);
}
