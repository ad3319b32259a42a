/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm through its commands: which one is asked for each kind of thing, and what reads its answer.
 */
#include "source/cli.h"

#include "base/spawn.h"
#include "source/source.h"

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
    /* Each task of an array that waits has a reason of its own; without --array they are told as
     * one, with the reasons of all.
     * A job's owner decides its name, and can see the arguments of every process on this host. So
     * that the token stays unknown until squeue has asked for the names, it is told the format by
     * its environment, which only we and root can read. */
    [KIND_JOBS] = { .command = "squeue",
                    .flags = { "--noheader", "--all", "--states=all", "--array" },
                    .format_variable = "SQUEUE_FORMAT2=",
                    .answer = &answer_squeue },
    /* sinfo takes no format from its environment; what it prints is written by administrators only.
     */
    [KIND_NODES] = { .command = "sinfo",
                     .flags = { "--noheader", "--all", "--Node", "--Format" },
                     .answer = &answer_sinfo },
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

static int feed(void *ctx, struct str piece, struct err *err)
{
    struct answer *answer = ctx;

    return answer->class->feed(answer, piece, err);
}

/* Says what the administrator can do about it. */
static void explain(int code, const char *command, const struct spawn *spawn, int64_t began,
                    struct err *err)
{
    if (code == -EBADMSG)
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

/* Nothing of our user's own SQUEUE_ and SINFO_ settings may change what is printed. */
static int run(struct cli *cli, struct route *route, struct answer *answer, int64_t deadline_ns,
               char ret_warning[SOURCE_WARNING], struct err *err)
{
    const char *env[] = { "SQUEUE_*", "SINFO_*", "SLURM_TIME_FORMAT=%s", NULL, NULL };
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
        env[3] = format.p;
    spawn.argv = argv = make_argv(route->words, route->flags,
                                  format.n && !route->format_variable ? format.p : NULL);
    code = spawn_run(&spawn, &result, err);
    if (code == 0)
        code = answer->class->end(answer, err);
    if (code < 0)
        explain(code, argv[0], &spawn, began, err);
    answer->section->bytes_read = result.output_bytes;
    snprintf(ret_warning, SOURCE_WARNING, "%s", code == 0 ? result.warning : "");
    free(argv);
    buf_free(&format);
    return code;
}

static int cli_read(struct source *source, enum kind kind, int64_t deadline_ns,
                    struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct cli *cli = (struct cli *)source;
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

static int cli_probe(const struct source *source, struct err *err)
{
    const struct cli *cli = (const struct cli *)source;

    for (int kind = KIND_JOBS; kind <= KIND_NODES; kind++)
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

    for (int kind = 0; kind < KINDS; kind++)
        free(cli->routes[kind].words);
    free(cli);
}

static const struct source_class cli_class = {
    .name = "cli",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES),
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

/* As the settings want it: a command of the site's own, whose format is found out from what it
 * prints; or Slurm's, answering in JSON or in the fields that we name. */
static int make_route(const struct source_settings *settings, enum kind kind, struct route *route,
                      struct err *err)
{
    static const char *const no_flags[] = { NULL };
    const struct question *question = &questions[kind];
    struct str own = settings->commands[kind];

    if (own.n && !question->foreign)
        return err_set(err, EINVAL, "there is no command to put in the place of %s",
                       question->command);
    if (own.n) {
        *route = (struct route){ spawn_split(own), no_flags, NULL, question->foreign, 0 };
        if (!route->words)
            return err_set(err, EINVAL,
                           "\"%.*s\" is not a command line: it is empty or a quote is not closed",
                           STR_ARG(str_head(own, 80)));
        return 0;
    }
    *route = (struct route){ one_word(settings->bin_path, question->command), question->flags,
                             question->format_variable, question->answer, 0 };
    if (settings->is_json && question->json_flags[0]) {
        route->flags = question->json_flags;
        route->format_variable = NULL;
        route->answer = question->foreign;
    }
    return 0;
}

int source_open_cli(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err)
{
    struct cli *cli = heap_alloc(sizeof(*cli));

    cli->source.class = &cli_class;
    cli->source.clock = clock;
    cli->max_output = settings->max_output;
    for (int kind = 0; kind < KINDS; kind++) {
        int code = cli_class.kinds & KIND_BIT(kind)
                       ? make_route(settings, kind, &cli->routes[kind], err)
                       : 0;

        if (code < 0) {
            cli_close(&cli->source);
            return code;
        }
    }
    *ret = &cli->source;
    return 0;
}
