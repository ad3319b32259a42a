/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sacct(1): how it is asked, and what its refusals mean. */
#include "source/sacct.h"

#include "base/quote.h"
#include "source/slurm_command.h"

#include <ctype.h>

enum {
    FORMAT_MAX = 4096,
    LIST_MAX = 64 * 1024,
    HELP_MAX = 64 * 1024,
    TIME_MAX = 32,
    CLUSTER_NAME_MAX = 64,
    CLUSTER_MAX = CLUSTER_NAME_MAX + 16,
    ARGUMENTS_MAX = 24,
};

struct sacct {
    struct slurm_commands commands;
    char **words;               /* the command */
    size_t max_output;          /* bytes of one answer */
    pid_t stuck;                /* see base/spawn.h */
    struct sacct_fields fields; /* of the release at hand; n = 0: not asked yet */
};

/* Nothing of our user's own settings may change what is printed; times are given and told in UTC,
 * whatever the zone of the host where it runs. */
static const char *const environment[] = {
    "SACCT_*", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "TZ=UTC", NULL,
};

/* What slurmdbd or sacct says on standard error, of any release. */
static const struct {
    struct str words;
    int code;
    const char *advice;
} refusals[] = {
    { STR_INIT("accounting storage is disabled"), EOPNOTSUPP,
      "this cluster keeps no accounting: it has no slurmdbd" },
    { STR_INIT("Too wide of a date range"), E2BIG, "slurmdbd's MaxQueryTimeRange" },
    { STR_INIT("ermission denied"), EACCES, "slurmdbd tells our user nothing" },
    { STR_INIT("Connection refused"), EREMOTEIO, "is slurmdbd running?" },
};

int sacct_new(const struct source_settings *settings, struct sacct **ret, struct err *err)
{
    struct slurm_commands commands;
    int code = slurm_commands_open(settings, &commands, err);

    if (code < 0)
        return code;
    *ret = heap_alloc(sizeof(**ret));
    (*ret)->commands = commands;
    (*ret)->max_output = settings->max_answer;
    (*ret)->words = slurm_command_words(settings, "sacct");
    return 0;
}

struct sacct *sacct_free(struct sacct *sacct)
{
    if (sacct) {
        slurm_commands_close(&sacct->commands);
        free(sacct->words);
        free(sacct);
    }
    return NULL;
}

/* A refusal has a code of its own, that tells what to do about it. */
static int explain(struct sacct *sacct, int code, const struct spawn_result *result,
                   struct err *err)
{
    struct str said = str_of(result->warning);

    if (code == -EFBIG) {
        err->code = E2BIG;
        return err_prefix(err, "more than --slurm.max-answer for one question");
    }
    if (code != -EREMOTEIO)
        return code;
    /* Slurm may have been upgraded, or gone back. */
    if (str_find_str(said, STR("Invalid field")) < said.n)
        sacct->fields.n = 0;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        if (str_find_str(said, refusals[i].words) < said.n) {
            err->code = refusals[i].code;
            return err_prefix(err, "%s", refusals[i].advice);
        }
    }
    return code;
}

static int run(struct sacct *sacct, struct spawn *spawn, const char *secret,
               struct spawn_result *ret, struct err *err)
{
    int code;

    spawn->env = environment;
    spawn->max_output = sacct->max_output;
    spawn->stuck = &sacct->stuck;
    code = slurm_command_run(&sacct->commands, spawn, secret, ret, err);
    return code < 0 ? explain(sacct, code, ret, err) : 0;
}

static int collect(void *ctx, struct str piece, struct err *err)
{
    struct buf *text = ctx;

    buf_put(text, piece);
    return text->over ? err_set(err, EBADMSG, "sacct --helpformat does not end") : 0;
}

/* Which fields there are depends on the release; it is not slurmdbd that is asked. */
static int learn_fields(struct sacct *sacct, const struct sacct_question *question, struct err *err)
{
    const char *argv[] = { sacct->words[0], "--helpformat", NULL };
    struct buf text;
    struct spawn spawn = {
        .argv = argv,
        .deadline_ns = question->deadline_ns,
        .cancelled = question->cancelled,
        .sink = collect,
        .ctx = &text,
    };
    struct spawn_result result;
    int code;

    buf_init(&text, HELP_MAX);
    code = run(sacct, &spawn, NULL, &result, err);
    if (code == 0)
        code = sacct_fields_read(buf_str(&text), &sacct->fields, err);
    if (code < 0)
        sacct->fields.n = 0;
    buf_free(&text);
    return code;
}

/* As sacct reads it in the zone that `environment` sets. */
static void put_time(char to[TIME_MAX], int64_t seconds)
{
    time_t time = (time_t)seconds;
    struct tm tm;

    to[0] = '\0';
    if (gmtime_r(&time, &tm))
        strftime(to, TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
}

/* Which jobs. */
struct choice {
    const char *states; /* NULL: of any */
    char from[TIME_MAX], to[TIME_MAX];
    char cluster[CLUSTER_MAX]; /* the flag that says of which */
    struct buf ids;
};

/* A comma would name several, and some words stand for all. */
static int put_cluster(struct choice *choice, struct str cluster, struct err *err)
{
    bool is_name = cluster.n < CLUSTER_NAME_MAX && !str_eq_nocase(cluster, STR("all")) &&
                   !str_eq(cluster, STR("-1"));

    for (size_t i = 0; i < cluster.n && is_name; i++)
        is_name = isalnum((unsigned char)cluster.p[i]) || strchr("-_.", cluster.p[i]);
    if (!is_name)
        return err_set(err, EINVAL, "no cluster is called \"%s\"", quote(cluster).text);
    if (cluster.n)
        snprintf(choice->cluster, sizeof(choice->cluster), "--clusters=%.*s", STR_ARG(cluster));
    else
        snprintf(choice->cluster, sizeof(choice->cluster), "--local");
    return 0;
}

static size_t put_choice(const struct choice *choice, const char **argv)
{
    size_t n = 0;

    if (choice->ids.n) {
        argv[n++] = "--jobs";
        argv[n++] = choice->ids.p;
        return n;
    }
    argv[n++] = "--starttime";
    argv[n++] = choice->from;
    argv[n++] = "--endtime";
    argv[n++] = choice->to;
    if (choice->states) {
        argv[n++] = "--state";
        argv[n++] = choice->states;
    }
    return n;
}

static int feed(void *ctx, struct str piece, struct err *err)
{
    return sacct_answer_feed(ctx, piece, err);
}

/* The format is told by the environment, which only we and root can read: which field stands where
 * is known to nobody who could name a job after it. The delimiter can be given as an argument only.
 */
static int ask(struct sacct *sacct, const struct sacct_question *question,
               const struct choice *choice, struct sacct_result *result, struct err *err)
{
    const char *argv[ARGUMENTS_MAX] = { sacct->words[0], choice->cluster, "--allusers",
                                        "--duplicates",  "--noconvert",   "--noheader",
                                        "--parsable",    "--delimiter" };
    struct sacct_fields fields = sacct->fields;
    struct sacct_answer *answer = sacct_answer_new(&(struct sacct_answer_config){
        .fields = &fields,
        .as_of = question->as_of,
        .only_ineligible = choice->states,
        .record = question->record,
        .ctx = question->ctx,
    });
    struct spawn spawn = {
        .argv = argv,
        .deadline_ns = question->deadline_ns,
        .cancelled = question->cancelled,
        .sink = feed,
        .ctx = answer,
    };
    struct spawn_result ran;
    struct buf format;
    size_t n = 8;
    int code;

    sacct_fields_shuffle(&fields);
    buf_init(&format, FORMAT_MAX);
    buf_text(&format, "SACCT_FORMAT=");
    sacct_fields_put(&fields, &format);
    argv[n++] = sacct_answer_token(answer);
    put_choice(choice, argv + n);
    code = run(sacct, &spawn, format.p, &ran, err);
    if (code == 0)
        code = sacct_answer_end(answer, err);
    if (code == -EBADMSG)
        err_prefix(err, "cannot read what %s printed", sacct->words[0]);
    sacct_answer_count(answer, &result->counts);
    result->bytes += ran.output_bytes;
    if (code == 0 && !result->warning[0])
        snprintf(result->warning, sizeof(result->warning), "%s", ran.warning);
    sacct_answer_free(answer);
    buf_free(&format);
    return code;
}

/* sacct's own choice is of jobs that could have run in that time. Those that ended before they ever
 * could (held, or waiting for something that did not come) it tells only when asked for their
 * states. */
static int ask_of_time(struct sacct *sacct, const struct sacct_question *question,
                       struct sacct_result *result, struct err *err)
{
    static const char *const states[] = { NULL, "CANCELLED,DEADLINE,REQUEUED,REVOKED" };
    struct choice choice = { 0 };
    int code = put_cluster(&choice, question->cluster, err);

    put_time(choice.from, question->from);
    put_time(choice.to, question->to);
    for (size_t i = 0; i < COUNT(states) && code == 0; i++) {
        choice.states = states[i];
        code = ask(sacct, question, &choice, result, err);
    }
    return code;
}

static int ask_of_ids(struct sacct *sacct, const struct sacct_question *question,
                      struct sacct_result *result, struct err *err)
{
    struct choice choice = { 0 };
    int code = put_cluster(&choice, question->cluster, err);

    if (code < 0)
        return code;
    buf_init(&choice.ids, LIST_MAX);
    for (size_t i = 0; i < question->n_ids; i++)
        buf_printf(&choice.ids, "%s%u", i ? "," : "", (unsigned)question->ids[i]);
    code = choice.ids.over
               ? err_set(err, EINVAL, "%zu are too many jobs for one question", question->n_ids)
               : ask(sacct, question, &choice, result, err);
    buf_free(&choice.ids);
    return code;
}

int sacct_ask(struct sacct *sacct, const struct sacct_question *question, struct sacct_result *ret,
              struct err *err)
{
    int code = 0;

    *ret = (struct sacct_result){ 0 };
    if (!sacct->fields.n)
        code = learn_fields(sacct, question, err);
    if (code < 0)
        return code;
    return question->n_ids ? ask_of_ids(sacct, question, ret, err)
                           : ask_of_time(sacct, question, ret, err);
}
