/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde jobs: the runs that the store has, as sacct(1) lists those of slurmdbd. */
#include "base/clock.h"
#include "base/moment.h"
#include "base/process.h"
#include "cmd/job_columns.h"
#include "cmd/question.h"
#include "model/job_name.h"
#include "web/api_key.h"
#include "web/api_run.h"

struct settings {
    struct question_options question;
    bool is_by_end;
    uint64_t limit;
    struct str after, format, columns;
    bool shows_life, is_whole;
};

#define SETTING(member) offsetof(struct settings, member)

enum { ROW_MAX = 8 << 20, DESCRIPTION_MAX = 1 << 14 };

static const struct option own_rows[] = {
    { "ended", OPTION_BOOL, SETTING(is_by_end), NULL, NULL, NULL, NULL, "Which jobs",
      "Of the time from --from to --to, only those that ended in it." },
    { "limit", OPTION_UINT, SETTING(limit), "ROWS", "0", NULL, NULL, "Output",
      "At most so many; 0: all. If there are more, the key to go on with is told." },
    { "after", OPTION_STRING, SETTING(after), "KEY", NULL, NULL, NULL, "Output",
      "Go on behind this one: what was told when --limit had been reached." },
    { "format", OPTION_CHOICE, SETTING(format), "FORMAT", "table", NULL, "table csv json", "Output",
      "A table for people, CSV (RFC 4180, names of columns in the first line), or JSON as from "
      "/api/v1/jobs." },
    { "columns", OPTION_STRING, SETTING(columns), "NAMES", NULL, NULL, NULL, "Output",
      "Which columns the table or CSV has, separated by commas, or all. sonde-jobs(1) lists "
      "them." },
    { "life", OPTION_BOOL, SETTING(shows_life), NULL, NULL, NULL, NULL, "Output",
      "Show when each job was in which state, and why, a line for each moment." },
    { "json", OPTION_BOOL, SETTING(is_whole), NULL, NULL, NULL, NULL, "Output",
      "As JSON with all that is known: also Slurm's rare fields, the life of each job, and what "
      "agents counted." },
};

static const char description[] =
    "Lists jobs that sonde exporter --store keeps: those that wait or run, and every one that has "
    "ended, also when Slurm has long forgotten it. Each run of a job that was requeued is a job of "
    "its own here, as is each task of an array and each component of a heterogeneous job. The "
    "newest stand first. As with sacct, without JOBID, --from and --to they are those since "
    "midnight, and without JOBID, --user and --all-users those of who asks; root is shown all. "
    "A JOBID is 4711, a task of an array 4711_7, a component 4711+1; of one cluster of several, "
    "beluga:4711.\n\n"
    "What can be read is decided by who may read the file of the "
    "store, which is all or nothing.\n\n"
    "On a terminal, long texts are cut to its width and end with an ellipsis, and columns for "
    "which there is no room at all are left out, unless --columns names them; elsewhere nothing is "
    "cut. What cannot be printed is shown as a question mark. In CSV, a text that a spreadsheet "
    "would take for a formula, as it begins with = + - or @, has an apostrophe in front; JSON has "
    "all texts as they are. Times are local; in CSV with their offset from UTC, in JSON in seconds "
    "of UTC.\n\n"
    "Columns are: ";

/* What follows the common rows are ours; "Which jobs" stands together. */
static void make_rows(struct option rows[QUESTION_OPTIONS + COUNT(own_rows) + 1])
{
    question_options_rows(SETTING(question), rows);
    memcpy(rows + QUESTION_OPTIONS, own_rows, sizeof(own_rows));
}

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 char ***ret_rest, struct err *err)
{
    struct option rows[QUESTION_OPTIONS + COUNT(own_rows) + 1] = { 0 };
    struct option_command command = {
        .name = "sonde jobs",
        .summary = "list jobs that are kept",
        .arguments = "[JOBID…]",
        .shares_file = true,
        .options = rows,
    };
    struct buf text;
    int outcome;

    buf_init(&text, DESCRIPTION_MAX);
    buf_text(&text, description);
    job_columns_list(&text);
    buf_byte(&text, '.');
    command.description = text.p;
    make_rows(rows);
    outcome = option_parse(&command, argc, argv, environ, arena, settings, ret_rest, err);
    buf_free(&text);
    return outcome;
}

/* Where the rows go. */
struct output {
    const struct settings *settings;
    struct store_reader *reader;
    struct job_columns columns;
    struct table *table; /* NULL: JSON */
    struct buf json;     /* of one row */
    struct arena arena;  /* of one row */
    struct buf last;     /* key of the last row */
    uint64_t n_rows, limit;
    bool has_clusters; /* more than one */
    bool has_more;
    struct err *err;
};

/* For people, without the first where there is but one cluster; and as CSV. */
static const struct table_column life_columns[] = {
    { .title = "CLUSTER" },
    { .title = "JOBID", .is_number = true },
    { .title = "TIME", .is_number = true },
    { .title = "STATE", .is_whole = true },
    { .title = "REASON" },
};
static const struct table_column life_names[] = {
    { .title = "cluster" },
    { .title = "id", .is_number = true },
    { .title = "submit_time", .is_number = true },
    { .title = "time", .is_number = true },
    { .title = "state" },
    { .title = "reason" },
};

static int put_life_rows(struct output *output, const struct job_row *row)
{
    bool is_csv = output->columns.is_csv;
    struct job_moment *moments;
    struct buf id, submit, time;
    size_t n;
    int r = store_life(output->reader, &row->key, &output->arena, &moments, &n, output->err);

    if (r < 0)
        return r;
    buf_init(&id, 64);
    buf_init(&submit, 64);
    buf_init(&time, 64);
    job_put_id(&id, row);
    moment_put_zoned(&submit, row->key.submit_time);
    for (size_t i = 0; i < n; i++) {
        buf_reset(&time);
        if (is_csv)
            moment_put_zoned(&time, moments[i].time);
        else
            moment_put(&time, moments[i].time);
        if (output->has_clusters || is_csv)
            table_cell(output->table, row->key.cluster);
        table_cell(output->table, buf_str(&id));
        if (is_csv)
            table_cell(output->table, buf_str(&submit));
        table_cell(output->table, buf_str(&time));
        table_cell(output->table, moments[i].state);
        table_cell(output->table, moments[i].reason);
    }
    buf_free(&id);
    buf_free(&submit);
    buf_free(&time);
    return 0;
}

static int write_json(struct output *output)
{
    if (output->json.over)
        return err_set(output->err, EFBIG, "a job has more than %d MB to tell", ROW_MAX >> 20);
    if (fwrite(output->json.p, 1, output->json.n, stdout) != output->json.n)
        return err_set(output->err, errno ? errno : EIO, "cannot write: %s", err_words(errno));
    buf_reset(&output->json);
    return 0;
}

static int put_json_row(struct output *output, const struct job_row *row)
{
    const struct settings *settings = output->settings;
    struct buf *json = &output->json;
    int r = 0;

    buf_text(json, output->n_rows ? ",\n{" : "\n{");
    api_put_run(json, row);
    if (settings->is_whole || settings->shows_life)
        r = api_put_life(json, output->reader, &row->key, &output->arena, output->err);
    if (r == 0 && settings->is_whole)
        r = api_put_agents(json, output->reader, &row->key, &output->arena, output->err);
    buf_byte(json, '}');
    return r < 0 ? r : write_json(output);
}

static int put_row(void *ctx, const struct job_row *row)
{
    struct output *output = ctx;
    int r = 0;

    if (output->limit && output->n_rows == output->limit) {
        output->has_more = true;
        return -ECANCELED;
    }
    arena_clear(&output->arena);
    if (!output->table)
        r = put_json_row(output, row);
    else if (output->settings->shows_life)
        r = put_life_rows(output, row);
    else
        job_columns_put(&output->columns, row, output->table);
    output->n_rows++;
    buf_reset(&output->last);
    api_key_put_run(&output->last, &row->key);
    return r;
}

static int ask(struct output *output, const struct job_filter *filter,
               const struct job_order *order, int64_t now)
{
    int r;

    if (output->has_more)
        return 0;
    r = store_jobs(output->reader, filter, order, now, put_row, output, output->err);
    return r == -ECANCELED ? 0 : r;
}

static int ask_named(struct output *output, const struct job_filter *filter,
                     const struct job_order *order, int64_t now, char **names)
{
    int r = 0;

    for (; *names && r == 0; names++) {
        for (struct str rest = str_of(*names); rest.p && r == 0;) {
            struct job_filter of_one = *filter;
            struct job_name named;

            r = job_name_read(str_cut(&rest, ','), &named, output->err);
            if (r < 0)
                break;
            of_one.ids = &named.id;
            of_one.n_ids = 1;
            of_one.array_task_id = named.task;
            of_one.het_offset = named.offset;
            if (named.cluster.n)
                of_one.clusters = (struct words){ &named.cluster, 1 };
            r = ask(output, &of_one, order, now);
        }
    }
    return r;
}

/* Names first: a mistake in the last one is told before rows are. */
static int check_names(char **names, struct err *err)
{
    int r = 0;

    for (; *names && r == 0; names++)
        for (struct str rest = str_of(*names); rest.p && r == 0;)
            r = job_name_read(str_cut(&rest, ','), &(struct job_name){ 0 }, err);
    return r;
}

static void choose_life(const struct output *output, struct table_settings *table)
{
    size_t skip = output->has_clusters ? 0 : 1;

    table->columns = output->columns.is_csv ? life_names : life_columns + skip;
    table->n_columns = output->columns.is_csv ? COUNT(life_names) : COUNT(life_columns) - skip;
}

static int begin_output(struct output *output)
{
    const struct settings *settings = output->settings;
    struct table_settings table = { .to = stdout };
    bool is_csv = str_eq(settings->format, STR("csv"));
    struct cluster_row *clusters;
    size_t n_clusters = 1;
    int r = 0;

    if (!is_csv && (!settings->columns.n || settings->shows_life))
        r = store_clusters(output->reader, &output->arena, &clusters, &n_clusters, output->err);
    if (r < 0)
        return r;
    output->has_clusters = n_clusters > 1;
    if (!settings->columns.n)
        job_columns_choose_usual(output->has_clusters || is_csv, is_csv, &output->columns);
    if (settings->is_whole || str_eq(settings->format, STR("json"))) {
        buf_text(&output->json, "{\"jobs\":[");
        return 0;
    }
    table.format = is_csv ? TABLE_CSV : TABLE_TEXT;
    table.width = is_csv ? 0 : table_terminal_width(stdout);
    table.columns = output->columns.columns;
    table.n_columns = output->columns.n;
    if (settings->shows_life)
        choose_life(output, &table);
    output->table = table_new(&table);
    return 0;
}

static int end_output(struct output *output)
{
    struct str last = output->has_more ? buf_str(&output->last) : STR("");
    int r;

    if (output->table) {
        r = table_end(output->table, false, output->err);
        output->table = NULL;
        if (r == 0 && last.n)
            fprintf(stderr, "there are more: --after=%.*s\n", STR_ARG(last));
        return r;
    }
    buf_text(&output->json, output->n_rows ? "\n]" : "]");
    buf_text(&output->json, ",\"next\":");
    if (last.n)
        buf_json(&output->json, last);
    else
        buf_text(&output->json, "null");
    buf_text(&output->json, "}\n");
    r = write_json(output);
    if (r == 0 && fflush(stdout) != 0)
        r = err_set(output->err, errno, "cannot write: %s", err_words(errno));
    return r;
}

/* Whose jobs, and since when, where that was not said. */
static int complete_filter(const struct settings *settings, bool has_names, int64_t now,
                           struct arena *arena, struct job_filter *filter, struct err *err)
{
    struct str *own = ARENA_NEW(arena, struct str);

    filter->by_end = settings->is_by_end;
    if (has_names)
        return 0;
    *own = question_own_user(arena);
    if (!settings->question.all_users && !filter->users.n && own->n)
        filter->users = (struct words){ own, 1 };
    if (!filter->from && !filter->to)
        return moment_parse(STR("today"), now, &filter->from, err);
    return 0;
}

static int make_question(const struct settings *settings, char **names, int64_t now,
                         struct arena *arena, struct job_filter *filter, struct job_order *order,
                         struct job_columns *columns, struct err *err)
{
    int r = question_filter(&settings->question, now, arena, filter, err);

    if (r == 0)
        r = check_names(names, err);
    if (r == 0 && settings->columns.n)
        r = job_columns_choose(settings->columns, str_eq(settings->format, STR("csv")), columns,
                               err);
    if (r == 0)
        r = complete_filter(settings, names[0], now, arena, filter, err);
    if (r < 0)
        return r;
    *order = (struct job_order){
        .limit = settings->limit ? settings->limit + 1 : 0,
        .wants_extra = settings->is_whole || str_eq(settings->columns, STR("all")) ||
                       str_find_str(settings->columns, STR("tres")) < settings->columns.n,
    };
    if (settings->after.n && !api_key_read_run(settings->after, arena, &order->after))
        return err_set(err, EINVAL, "--after: this is no key; take the one that was told");
    if (settings->after.n && names[0] && (names[1] || strchr(names[0], ',')))
        return err_set(err, EINVAL, "--after goes on with one JOBID, or with none");
    return 0;
}

static int list(const struct settings *settings, char **names, struct arena *arena, struct err *err)
{
    int64_t now = clock_wall(clock_of_environment()) / NS_PER_SEC;
    struct output output = { .settings = settings, .limit = settings->limit, .err = err };
    struct job_filter filter;
    struct job_order order;
    int r = make_question(settings, names, now, arena, &filter, &order, &output.columns, err);

    if (r == 0)
        r = store_reader_open(settings->question.store, &output.reader, err);
    if (r < 0)
        return r;
    buf_init(&output.json, ROW_MAX);
    buf_init(&output.last, API_KEY_MAX);
    r = begin_output(&output);
    if (r == 0)
        r = names[0] ? ask_named(&output, &filter, &order, now, names)
                     : ask(&output, &filter, &order, now);
    if (r == 0)
        r = end_output(&output);
    else if (output.table && output.n_rows)
        table_end(output.table, false, NULL);
    else if (output.table)
        table_free(output.table);
    store_reader_close(output.reader);
    buf_free(&output.json);
    buf_free(&output.last);
    arena_clear(&output.arena);
    return r;
}

int main(int argc, char **argv)
{
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **rest;
    int code;

    process_keep_standard_fds();
    code = parse(argc, argv, &arena, &settings, &rest, &err);
    if (code == OPTION_GO_ON)
        code = list(&settings, rest, &arena, &err);
    else if (code == OPTION_EXIT_OK)
        code = 0;
    if (code < 0 && code != -EPIPE)
        fprintf(stderr, "sonde jobs: %s\n", err.text);
    arena_clear(&arena);
    return question_exit_status(code);
}
