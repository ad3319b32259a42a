/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sacct(1), sreport(1), sacctmgr(1): options and columns that 20.11 to 26.05 have. */
#include "source/audit.h"

#include "base/num.h"
#include "base/quote.h"
#include "model/tres.h"
#include "model/units.h"
#include "source/lines.h"
#include "source/slurm_command.h"

#include <ctype.h>
#include <time.h>

enum {
    WORDS_MAX = 24,
    COLUMNS_MAX = 16,
    TIME_MAX = 40,
    CLUSTER_MAX = 200,
    DAY = 86400,
};

struct audit {
    struct audit_config config;
    struct slurm_commands commands;
    pid_t stuck;
};

const struct str audit_tres_names[AUDIT_TRES] = {
    [AUDIT_CPU] = STR_INIT("cpu"),
    [AUDIT_GPU] = STR_INIT("gres/gpu"),
    [AUDIT_BILLING] = STR_INIT("billing"),
};

/* Times are given and printed in UTC. */
static const char *const environment[] = {
    "SACCT_*", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "TZ=UTC", NULL,
};

int audit_new(const struct audit_config *config, struct audit **ret, struct err *err)
{
    struct slurm_commands commands;
    int code = slurm_commands_open(&config->source, &commands, err);

    if (code < 0)
        return code;
    *ret = heap_alloc(sizeof(**ret));
    (*ret)->config = *config;
    (*ret)->commands = commands;
    return 0;
}

struct audit *audit_free(struct audit *audit)
{
    if (audit) {
        slurm_commands_close(&audit->commands);
        free(audit);
    }
    return NULL;
}

/* A command under way: each line is cut into columns and handed to `row`. */
struct reading {
    size_t n_columns;
    int (*row)(void *ctx, const struct str *columns, struct err *err);
    void *ctx;
    struct lines lines;
    int code;
    struct err err;
};

static void read_line(void *ctx, struct str line)
{
    struct reading *reading = ctx;
    struct str columns[COLUMNS_MAX], rest = line;
    size_t n = 0;

    if (reading->code < 0 || !str_trim(line).n)
        return;
    while (rest.p && n < COLUMNS_MAX)
        columns[n++] = str_cut(&rest, '|');
    reading->code =
        n == reading->n_columns && !rest.p
            ? reading->row(reading->ctx, columns, &reading->err)
            : err_set(&reading->err, EBADMSG, "the line \"%s\" has %zu columns, not %zu",
                      quote(line).text, n, reading->n_columns);
}

static int feed(void *ctx, struct str piece, struct err *err)
{
    struct reading *reading = ctx;

    lines_feed(&reading->lines, piece);
    if (reading->code < 0)
        *err = reading->err;
    return reading->code;
}

/* words[0] is the command's name. */
static int run(struct audit *audit, const char **words, struct reading *reading, struct err *err)
{
    char **path = slurm_command_words(&audit->config.source, words[0]);
    const char *name = words[0];
    struct spawn spawn = {
        .argv = words,
        .env = environment,
        .deadline_ns = clock_mono(&clock_real) + audit->config.timeout_ns,
        .max_output = audit->config.source.max_answer,
        .cancelled = audit->config.cancelled,
        .stuck = &audit->stuck,
        .sink = feed,
        .ctx = reading,
    };
    struct spawn_result result;
    int code;

    words[0] = path[0];
    lines_init(&reading->lines, read_line, reading);
    reading->code = 0;
    code = slurm_command_run(&audit->commands, &spawn, NULL, &result, err);
    if (code == 0) {
        lines_end(&reading->lines);
        code = reading->code;
        if (code < 0)
            *err = reading->err;
    }
    if (code == -EBADMSG)
        err_prefix(err, "cannot read the output of %s", name);
    lines_free(&reading->lines);
    free(path);
    return code;
}

static void put_time(char to[TIME_MAX], const char *before, int64_t seconds)
{
    time_t time = (time_t)seconds;
    size_t n = strlen(before);
    struct tm tm;

    memcpy(to, before, n + 1);
    if (gmtime_r(&time, &tm))
        strftime(to + n, TIME_MAX - n, "%Y-%m-%dT%H:%M:%S", &tm);
}

enum {
    JOB_ID_RAW,
    JOB_ID,
    SUBMIT,
    STATE,
    START,
    END,
    ELAPSED,
    SUSPENDED,
    TRES,
    ACCOUNT,
    USER,
    PARTITION,
    JOB_COLUMNS,
};
static const char job_columns[] = "JobIDRaw,JobID,Submit,State,Start,End,ElapsedRaw,Suspended,"
                                  "AllocTRES,Account,User,Partition";

struct job_reading {
    int (*job)(void *ctx, const struct audit_job *job);
    void *ctx;
};

static int64_t time_of(struct str text)
{
    int64_t time;

    return units_timestamp(text, &time) ? time : 0;
}

/* "7_[1-6%2]": as many as the brackets name. */
static uint32_t tasks_of(struct str id)
{
    size_t open = str_find(id, '[');
    uint64_t n;

    if (open == id.n || !str_ends(id, STR("]")))
        return 1;
    return units_array_tasks((struct str){ id.p + open + 1, id.n - open - 2 }, &n) && n < UINT32_MAX
               ? (uint32_t)n
               : 0;
}

static uint64_t or_zero(uint64_t amount)
{
    return amount == MODEL_UNKNOWN_U64 ? 0 : amount;
}

static int take_job(void *ctx, const struct str *columns, struct err *err)
{
    const struct job_reading *to = ctx;
    uint64_t id, elapsed = 0;
    double suspended = 0;
    struct tres tres;
    struct audit_job job = {
        .tasks = tasks_of(columns[JOB_ID]),
        .submit = time_of(columns[SUBMIT]),
        .end = time_of(columns[END]),
        .state = str_head(columns[STATE], str_find(columns[STATE], ' ')),
        .account = columns[ACCOUNT],
        .user = columns[USER],
        .partition = columns[PARTITION],
    };

    if (!num_get_u64(columns[JOB_ID_RAW], &id) || id > UINT32_MAX || !job.submit || !job.tasks ||
        !num_get_u64(columns[ELAPSED], &elapsed))
        return err_set(err, EBADMSG, "\"%s\" is not a job", quote(columns[JOB_ID_RAW]).text);
    job.id = (uint32_t)id;
    tres_parse(columns[TRES], &tres);
    /* One that never ran has nothing allocated; some releases give it its end as its start. */
    if (columns[TRES].n) {
        job.start = time_of(columns[START]);
        job.elapsed = elapsed;
        units_elapsed(columns[SUSPENDED], &suspended);
        job.suspended = (uint64_t)suspended;
        job.cpus = or_zero(tres.cpus);
        job.gpus = or_zero(tres.gpus);
        job.billing = or_zero(tres.billing);
    }
    return to->job(to->ctx, &job);
}

/* Without --state sacct leaves out jobs that were never eligible; with it, those that changed their
 * size. */
int audit_jobs(struct audit *audit, int64_t from, int64_t to,
               int (*job)(void *ctx, const struct audit_job *job), void *ctx, struct err *err)
{
    struct job_reading taking = { job, ctx };
    char start[TIME_MAX], end[TIME_MAX];
    int code = 0;

    put_time(start, "", from);
    put_time(end, "", to);
    for (int i = 0; i < 2 && code == 0; i++) {
        struct reading reading = { .n_columns = JOB_COLUMNS, .row = take_job, .ctx = &taking };
        const char *words[WORDS_MAX] = {
            "sacct",
            "--local",
            "--allusers",
            "--allocations",
            "--duplicates",
            "--noheader",
            "--parsable2",
            "--starttime",
            start,
            "--endtime",
            end,
            "--format",
            job_columns,
            i ? "--state" : NULL,
            "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,RV,S,TO",
        };

        code = run(audit, words, &reading, err);
    }
    return code;
}

/* One of sreport's, with its options. */
struct report {
    const char *kind, *name, *format;
    int64_t from, to;
};

static int run_report(struct audit *audit, const struct report *report, struct reading *reading,
                      struct err *err)
{
    char start[TIME_MAX], end[TIME_MAX];
    const char *words[WORDS_MAX] = {
        "sreport",    "-n",         "-P",  "-t", "Seconds",     "--tres", "cpu,gres/gpu,billing",
        report->kind, report->name, start, end,  report->format
    };

    put_time(start, "start=", report->from);
    put_time(end, "end=", report->to);
    return run(audit, words, reading, err);
}

static bool find_tres(struct str name, enum audit_tres *ret)
{
    for (int i = 0; i < AUDIT_TRES; i++) {
        if (str_eq(name, audit_tres_names[i])) {
            *ret = (enum audit_tres)i;
            return true;
        }
    }
    return false;
}

static int read_amount(struct str text, uint64_t *ret, struct err *err)
{
    return num_get_u64(text, ret)
               ? 0
               : err_set(err, EBADMSG, "\"%s\" is not a number of seconds", quote(text).text);
}

struct usage_reading {
    int (*used)(void *ctx, const struct audit_used *used);
    void *ctx;
};

/* Rows without a user are sums over an account. */
static int take_usage(void *ctx, const struct str *columns, struct err *err)
{
    const struct usage_reading *to = ctx;
    struct audit_used used = { .account = columns[0], .user = columns[1] };
    int code;

    if (!used.user.n || !find_tres(columns[2], &used.tres))
        return 0;
    code = read_amount(columns[3], &used.seconds, err);
    return code < 0 ? code : to->used(to->ctx, &used);
}

int audit_usage(struct audit *audit, int64_t from, int64_t to,
                int (*used)(void *ctx, const struct audit_used *used), void *ctx, struct err *err)
{
    struct usage_reading taking = { used, ctx };
    struct reading reading = { .n_columns = 4, .row = take_usage, .ctx = &taking };
    const struct report report = { "cluster", "AccountUtilizationByUser",
                                   "format=Account,Login,TresName,Used", from, to };

    return run_report(audit, &report, &reading, err);
}

static int note_row(void *ctx, const struct str *columns, struct err *err)
{
    (void)columns;
    (void)err;
    *(bool *)ctx = true;
    return 0;
}

int audit_is_rolled_up(struct audit *audit, int64_t hour, bool *ret, struct err *err)
{
    struct reading reading = { .n_columns = 2, .row = note_row, .ctx = ret };
    const struct report report = { "cluster", "Utilization", "format=Cluster,Reported", hour,
                                   hour + 3600 };

    *ret = false;
    return run_report(audit, &report, &reading, err);
}

struct idle_reading {
    int (*idle)(void *ctx, const struct audit_idle *idle);
    void *ctx;
};

static int take_idle(void *ctx, const struct str *columns, struct err *err)
{
    const struct idle_reading *to = ctx;
    struct audit_idle idle = { .associations = columns[0] };
    int code;

    if (!find_tres(columns[1], &idle.tres))
        return 0;
    code = read_amount(columns[2], &idle.seconds, err);
    return code < 0 ? code : to->idle(to->ctx, &idle);
}

int audit_idle(struct audit *audit, int64_t from, int64_t to,
               int (*idle)(void *ctx, const struct audit_idle *idle), void *ctx, struct err *err)
{
    struct idle_reading taking = { idle, ctx };
    struct reading reading = { .n_columns = 3, .row = take_idle, .ctx = &taking };
    const struct report report = { "reservation", "Utilization",
                                   "format=Associations,TresName,Idle", from, to };

    return run_report(audit, &report, &reading, err);
}

struct association_reading {
    int (*association)(void *ctx, const struct audit_association *association);
    void *ctx;
};

static int take_association(void *ctx, const struct str *columns, struct err *err)
{
    const struct association_reading *to = ctx;
    struct audit_association association = { .account = columns[1], .user = columns[2] };

    if (!num_get_u64(columns[0], &association.id))
        return err_set(err, EBADMSG, "\"%s\" is not an id of an association",
                       quote(columns[0]).text);
    return to->association(to->ctx, &association);
}

int audit_associations(struct audit *audit, struct str cluster,
                       int (*association)(void *ctx, const struct audit_association *association),
                       void *ctx, struct err *err)
{
    struct association_reading taking = { association, ctx };
    struct reading reading = { .n_columns = 3, .row = take_association, .ctx = &taking };
    char of_cluster[CLUSTER_MAX];
    const char *words[WORDS_MAX] = { "sacctmgr", "-n",           "-P",
                                     "show",     "associations", "format=ID,Account,User",
                                     of_cluster };

    snprintf(of_cluster, sizeof(of_cluster), "cluster=%.*s", STR_ARG(cluster));
    return run(audit, words, &reading, err);
}

/* "NONE", "12 months", "365days", "48hours*": a number and a unit. */
static int64_t purge_of(struct str text)
{
    static const struct {
        struct str unit;
        int64_t seconds;
    } units[] = { { STR_INIT("hour"), 3600 },
                  { STR_INIT("day"), DAY },
                  { STR_INIT("month"), 28 * DAY } };
    size_t n = 0;
    uint64_t count;

    while (n < text.n && isdigit((unsigned char)text.p[n]))
        n++;
    if (!num_get_u64(str_head(text, n), &count) || count > 100000)
        return 0;
    for (size_t i = 0; i < COUNT(units); i++)
        if (str_starts(str_trim(str_skip(text, n)), units[i].unit))
            return (int64_t)count * units[i].seconds;
    return (int64_t)count * 28 * DAY;
}

/* "PurgeJobAfter          = NONE"; both of slurm.conf and of slurmdbd.conf are there. */
static int take_setting(void *ctx, const struct str *columns, struct err *err)
{
    struct audit_settings *settings = ctx;
    struct str value = columns[0], name = str_trim(str_cut(&value, '='));

    (void)err;
    value = str_trim(value);
    if (str_eq(name, STR("PurgeJobAfter")))
        settings->purge_seconds = purge_of(value);
    if (str_eq(name, STR("PrivateData")) &&
        (str_find_str(value, STR("jobs")) < value.n || str_find_str(value, STR("usage")) < value.n))
        settings->hides_jobs = true;
    return 0;
}

int audit_settings(struct audit *audit, struct audit_settings *ret, struct err *err)
{
    struct reading reading = { .n_columns = 1, .row = take_setting, .ctx = ret };
    const char *words[WORDS_MAX] = { "sacctmgr", "show", "configuration" };

    *ret = (struct audit_settings){ 0 };
    return run(audit, words, &reading, err);
}
