/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm through its commands: which one is asked for each kind of thing, and what reads its answer.
 */
#include "source/cli.h"

#include "base/quote.h"
#include "base/spawn.h"

enum { FLAGS_MAX = 6, FORMAT_MAX = 8192 };

/* A kind, and how to ask for it. */
static const struct question {
    const char *command;
    const char *flags[FLAGS_MAX]; /* ended by NULL; the format follows, if there is one */
    const char *format_variable;  /* "NAME=": the format goes into the environment instead */
    const struct answer_class *answer;
    const struct answer_class *foreign; /* reads what a command of the site's own prints, and JSON;
                                           NULL: there is no such choice */
    const char *json_flags[FLAGS_MAX];  /* of the same command, to be answered in JSON */
} questions[KINDS] = {
    /* --local: a federation may be set up to show the siblings' jobs and nodes as well
     * (FederationParameters=fed_display).
     * Each task of an array that waits has a reason of its own; without --array they are told as
     * one, with the reasons of all.
     * A job's owner decides its name, and can see the arguments of every process on this host. So
     * that the token stays unknown until squeue has asked for the names, it is told the format by
     * its environment, which only we and root can read. */
    [KIND_JOBS] = { .command = "squeue",
                    .flags = { "--noheader", "--all", "--local", "--states=all", "--array" },
                    .format_variable = "SQUEUE_FORMAT2=",
                    .answer = &answer_squeue,
                    .foreign = &answer_foreign_jobs,
                    .json_flags = { "--all", "--local", "--states=all", "--json" } },
    /* sinfo takes no format from its environment; what it prints is written by administrators only.
     */
    [KIND_NODES] = { .command = "sinfo",
                     .flags = { "--noheader", "--all", "--local", "--Node", "--Format" },
                     .answer = &answer_sinfo,
                     .foreign = &answer_foreign_nodes,
                     .json_flags = { "--all", "--local", "--json" } },
    [KIND_RESERVATIONS] = { .command = "scontrol",
                            .flags = { "--oneliner", "show", "reservations" },
                            .answer = &answer_reservations },
    [KIND_LICENSES] = { .command = "scontrol",
                        .flags = { "--oneliner", "show", "licenses" },
                        .answer = &answer_licenses,
                        .foreign = &answer_foreign_licenses,
                        .json_flags = { "show", "licenses", "--json" } },
    [KIND_DIAG] = { .command = "sdiag",
                    .answer = &answer_sdiag,
                    .foreign = &answer_foreign_diag,
                    .json_flags = { "--json" } },
    [KIND_SHARES] = { .command = "sshare",
                      .flags = { "--all", "--noheader", "--parsable2", "--format" },
                      .answer = &answer_sshare },
    [KIND_ASSOCIATIONS] = { .command = "scontrol",
                            .flags = { "show", "assoc_mgr", "flags=assoc,qos" },
                            .answer = &answer_associations,
                            .foreign = &answer_foreign_limits },
    [KIND_CONFIG] = { .command = "scontrol",
                      .flags = { "show", "config" },
                      .answer = &answer_config },
};

/* Whether we are an operator. All users and not only ours: his name would have to be asked of a
 * directory that may not answer, and his number is in the answer. */
static const char *const user_flags[] = { "show", "assoc_mgr", "flags=users", NULL };

/* Nodes in JSON once sinfo has been found to group them, as it does from 23.02 on. scontrol has no
 * JSON before that. */
static const char *const ungrouped_flags[] = {
    "--all", "--local", "show", "nodes", "--json", NULL
};

struct cli {
    struct source source;
    struct route {
        char **words;             /* of the command, ended by NULL; one heap block */
        const char *const *flags; /* what follows them, ended by NULL */
        const char *format_variable;
        const struct answer_class *answer;
        pid_t stuck; /* see base/spawn.h */
    } routes[KINDS];
    struct route others[KINDS]; /* take the place of those that turn out to have no JSON, or groups
                                   of nodes in it; without words when they have, or there is none */
    struct route user;          /* the second question for the configuration */
    size_t max_output;
};

void framed_put_format(const struct answer *answer, const char *const *fields, size_t n,
                       struct buf *to)
{
    const struct framed *framed = (const struct framed *)answer;

    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s%s:%s", i ? "," : "", fields[i], framed->frame.token);
}

int framed_feed(struct answer *answer, struct str piece, struct err *err)
{
    return frame_feed(&((struct framed *)answer)->frame, piece, err);
}

int framed_end(struct answer *answer, struct err *err)
{
    struct framed *framed = (struct framed *)answer;
    int code = frame_finish(&framed->frame, err);

    answer->section->skipped += framed->frame.records_skipped;
    return code;
}

void lined_begin(struct answer *answer, void (*line)(void *ctx, struct str line))
{
    lines_init(&((struct lined *)answer)->lines, line, answer);
}

int lined_feed(struct answer *answer, struct str piece, struct err *err)
{
    (void)err;
    lines_feed(&((struct lined *)answer)->lines, piece);
    return 0;
}

int lined_end(struct answer *answer, const size_t *n_read, struct err *err)
{
    const struct lines *lines = &((struct lined *)answer)->lines;
    struct section *section = answer->section;

    if (lines->rest.n || lines->skipping)
        return err_set(err, EBADMSG, "it ends in the middle of a line");
    section->skipped += lines->skipped;
    if (!n_read || *n_read || !section->skipped)
        return 0;
    return err_set(err, EBADMSG, "none of its lines can be read, the first of %llu is \"%s\"",
                   (unsigned long long)section->skipped, quote(section->skipped_example).text);
}

void lined_free(struct answer *answer)
{
    lines_free(&((struct lined *)answer)->lines);
}

static int feed(void *ctx, struct str piece, struct err *err)
{
    struct answer *answer = ctx;

    return answer->class->feed(answer, piece, err);
}

/* Says what the administrator can do about it. */
static void explain(int code, const char *command, const struct spawn *spawn, int64_t began,
                    struct err *err)
{
    if (code == -EBADMSG || code == -EOPNOTSUPP)
        err_prefix(err, "cannot read what %s printed", command);
    else if (code == -ETIMEDOUT)
        err_prefix(err, "no answer within --slurm.timeout (%d s), is slurmctld busy or down?",
                   (int)((spawn->deadline_ns - began + NS_PER_SEC - 1) / NS_PER_SEC));
    else if (code == -EFBIG)
        err_prefix(err, "if the cluster is that large, raise --slurm.max-answer");
}

/* The words of `words`, then `flags`, then `last` unless it is NULL; ended by NULL. */
static const char **make_argv(char *const *words, const char *const *flags, const char *last)
{
    const char **argv;
    size_t n = 0, n_flags = 0;

    while (words[n])
        n++;
    while (flags[n_flags])
        n_flags++;
    argv = heap_array(n + n_flags + 2, sizeof(*argv));
    memcpy(argv, words, n * sizeof(*argv));
    memcpy(argv + n, flags, n_flags * sizeof(*argv));
    argv[n + n_flags] = last;
    argv[n + n_flags + 1] = NULL;
    return argv;
}

/* Nothing of our user's own settings for these commands may change what is printed, and a list of
 * array tasks is not to be cut short. */
static int run(struct cli *cli, struct route *route, struct answer *answer, int64_t deadline_ns,
               char ret_warning[SOURCE_WARNING], struct err *err)
{
    const char *env[] = { "SQUEUE_*",           "SINFO_*", "SCONTROL_*", "SLURM_TIME_FORMAT=%s",
                          "SLURM_BITSTR_LEN=0", NULL,      NULL };
    int64_t began = clock_mono(&clock_real);
    struct spawn_result result;
    struct spawn spawn = {
        .env = env,
        .deadline_ns = deadline_ns,
        .max_output = cli->max_output,
        .cancelled = &cli->source.cancelled,
        .stuck = &route->stuck,
        .sink = feed,
        .ctx = answer,
    };
    const char **argv;
    struct buf format;
    int code;

    buf_init(&format, FORMAT_MAX);
    if (route->format_variable)
        buf_text(&format, route->format_variable);
    if (answer->class->put_format)
        answer->class->put_format(answer, &format);
    if (route->format_variable)
        env[COUNT(env) - 2] = format.p;
    spawn.argv = argv = make_argv(route->words, route->flags,
                                  format.n && !route->format_variable ? format.p : NULL);
    code = spawn_run(&spawn, &result, err);
    if (code == 0)
        code = answer->class->end(answer, err);
    if (code < 0)
        explain(code, argv[0], &spawn, began, err);
    answer->section->bytes_read += result.output_bytes;
    snprintf(ret_warning, SOURCE_WARNING, "%s", code == 0 ? result.warning : "");
    free(argv);
    buf_free(&format);
    return code;
}

static int read_kind(struct cli *cli, enum kind kind, int64_t deadline_ns, struct section **ret,
                     char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct route *route = &cli->routes[kind];
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(route->answer, section);
    int code = run(cli, route, answer, deadline_ns, ret_warning, err);

    answer_free(answer);
    if (code < 0) {
        section_unref(section);
        return code;
    }
    *ret = section;
    return 0;
}

static bool says(const struct err *err, struct str words)
{
    struct str text = str_of(err->text);

    return str_find_str(text, words) < text.n;
}

/* Says what only the kind explains. To a user whom it does not know, and from whom PrivateData
 * hides something, slurmctld answers with an error; that of 22.05 cannot read its own. */
static int advise(enum kind kind, int code, struct err *err)
{
    if (code != -EREMOTEIO || (kind != KIND_SHARES && kind != KIND_ASSOCIATIONS))
        return code;
    if (says(err, STR("accounting_storage")))
        return err_set(err, EOPNOTSUPP,
                       "this cluster keeps no associations: it has no slurmdbd; do without, with "
                       "--no-collector.%s",
                       kind == KIND_SHARES ? "fairshare" : "limits");
    if (says(err, STR("Invalid user id")) || says(err, STR("Malformed RPC")))
        err_prefix(err, "PrivateData hides the limits from a user whom Slurm does not know; "
                        "sacctmgr add user makes him known");
    return code;
}

static void ask_of_user(struct cli *cli, int64_t deadline_ns, struct section *section,
                        char ret_warning[SOURCE_WARNING])
{
    struct answer *answer = answer_new(&answer_config_user, section);
    struct err err = { 0 };
    int code = run(cli, &cli->user, answer, deadline_ns, ret_warning, &err);

    answer_free(answer);
    config_warn(section, code < 0 ? &err : NULL, ret_warning);
}

/* Commands learnt JSON in different releases. */
static bool lacks_json(int code, const struct err *err)
{
    return code == -EOPNOTSUPP || (code == -EREMOTEIO && says(err, STR("unrecognized option")));
}

static void take_other(struct cli *cli, enum kind kind)
{
    free(cli->routes[kind].words);
    cli->routes[kind] = cli->others[kind];
    cli->others[kind].words = NULL;
}

static int cli_read(struct source *source, enum kind kind, int64_t deadline_ns,
                    struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct cli *cli = (struct cli *)source;
    int code = read_kind(cli, kind, deadline_ns, ret, ret_warning, err);

    if (code < 0 && cli->others[kind].words && lacks_json(code, err)) {
        take_other(cli, kind);
        code = read_kind(cli, kind, deadline_ns, ret, ret_warning, err);
    }
    if (code < 0)
        return advise(kind, code, err);
    if (kind == KIND_CONFIG && (*ret)->config.hidden)
        ask_of_user(cli, deadline_ns, *ret, ret_warning);
    if (kind == KIND_SHARES && !(*ret)->shares.n)
        snprintf(ret_warning, SOURCE_WARNING,
                 "sshare tells of no association: this cluster keeps none, without slurmdbd, or "
                 "PrivateData hides all; --no-collector.fairshare stops asking");
    return 0;
}

static int cli_probe(const struct source *source, struct err *err)
{
    const struct cli *cli = (const struct cli *)source;

    for (int kind = KIND_NODES; kind <= KIND_JOBS; kind++)
        if (!spawn_exists(cli->routes[kind].words[0]))
            return err_set(err, ENOENT,
                           "%s is not to be found; name its place with --slurm.bin-path, or see a "
                           "simulated cluster with --demo",
                           cli->routes[kind].words[0]);
    return 0;
}

static void cli_close(struct source *source)
{
    struct cli *cli = (struct cli *)source;

    for (int kind = 0; kind < KINDS; kind++) {
        free(cli->routes[kind].words);
        free(cli->others[kind].words);
    }
    free(cli->user.words);
    free(cli);
}

static const struct source_class cli_class = {
    .name = "cli",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
             KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
             KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
    .read = cli_read,
    .close = cli_close,
    .probe = cli_probe,
};

static char **one_word(struct str directory, const char *command)
{
    size_t room = directory.n + strlen(command) + 2;
    char **words = heap_alloc(2 * sizeof(*words) + room);

    words[0] = (char *)(words + 2);
    snprintf(words[0], room, "%.*s%s%s", STR_ARG(directory), directory.n ? "/" : "", command);
    return words;
}

static struct route slurms_route(const struct source_settings *settings, const char *command,
                                 const char *const *flags, const struct answer_class *answer)
{
    return (struct route){ one_word(settings->bin_path, command), flags, NULL, answer, 0 };
}

static int make_own_route(const struct question *question, struct str command, struct route *route,
                          struct err *err)
{
    static const char *const no_flags[] = { NULL };

    if (!question->foreign)
        return err_set(err, EINVAL, "there is no command to put in the place of %s",
                       question->command);
    *route = (struct route){ spawn_split(command), no_flags, NULL, question->foreign, 0 };
    if (!route->words)
        return err_set(err, EINVAL,
                       "\"%.*s\" is not a command line: it is empty or a quote is not closed",
                       STR_ARG(str_head(command, 80)));
    return 0;
}

/* As the settings want it: a command of the site's own, whose format is found out from what it
 * prints; or Slurm's, answering in JSON or, where that is not wanted or not to be had, in the
 * fields that we name. */
static int make_route(const struct source_settings *settings, enum kind kind, struct route *route,
                      struct route *other, struct err *err)
{
    const struct question *question = &questions[kind];
    struct route *plain = route;

    if (settings->commands[kind].n)
        return make_own_route(question, settings->commands[kind], route, err);
    if (settings->is_json && question->json_flags[0]) {
        *route = slurms_route(settings, question->command, question->json_flags, question->foreign);
        plain = other;
    }
    if (plain == other && kind == KIND_NODES) {
        *other = slurms_route(settings, "scontrol", ungrouped_flags, question->foreign);
        return 0;
    }
    *plain = slurms_route(settings, question->command, question->flags, question->answer);
    plain->format_variable = question->format_variable;
    return 0;
}

int source_open_cli(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err)
{
    struct cli *cli = heap_alloc(sizeof(*cli));

    cli->source.class = &cli_class;
    cli->source.clock = clock;
    cli->max_output = settings->max_output;
    cli->user = (struct route){ one_word(settings->bin_path, "scontrol"), user_flags, NULL,
                                &answer_config_user, 0 };
    for (int kind = 0; kind < KINDS; kind++) {
        int code = cli_class.kinds & KIND_BIT(kind)
                       ? make_route(settings, kind, &cli->routes[kind], &cli->others[kind], err)
                       : 0;

        if (code < 0) {
            cli_close(&cli->source);
            return code;
        }
    }
    *ret = &cli->source;
    return 0;
}
