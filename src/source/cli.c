/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm through its commands, in text and in JSON: how they are run and what is made of their
 * answers. Which ones they are is in cli_routes.c. */
#include "source/cli.h"

#include "base/quote.h"
#include "source/cli_routes.h"
#include "source/prefix.h"
#include "source/slurm_command.h"

enum {
    FORMAT_MAX = 8192,
    ALL_KINDS = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
                KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
                KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
};

struct cli {
    struct source source;
    struct routes routes[KINDS];
    struct route partitions; /* the second question for the nodes; without words: not asked */
    struct route user;       /* … for the configuration */
    struct route owners;     /* of jobs, at SOURCE_OWNERS */
    struct slurm_commands commands;
    size_t max_answer;
    uint32_t far_user_id; /* as whom they run there; MODEL_UNKNOWN_U32: not asked yet */
};

void put_format_of(const char *const *fields, size_t n, const char *token, struct buf *to)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s%s:%s", i ? "," : "", fields[i], token);
}

void framed_put_format(const struct answer *answer, const char *const *fields, size_t n,
                       struct buf *to)
{
    put_format_of(fields, n, ((const struct framed *)answer)->frame.token, to);
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

/* Says what the administrator can do about it. */
static void explain(int code, const char *command, const struct spawn *spawn,
                    const struct spawn_result *result, int64_t began, struct err *err)
{
    if (code == -EBADMSG || code == -EOPNOTSUPP)
        err_prefix(err, "cannot read what %s printed", command);
    else if (code == -ETIMEDOUT)
        err_prefix(err, "no answer within --slurm.timeout (%d s)%s",
                   (int)((spawn->deadline_ns - began + NS_PER_SEC - 1) / NS_PER_SEC),
                   result->begun ? ", is slurmctld busy or down, and munge running?" : "");
    else if (code == -EFBIG)
        err_prefix(err, "cannot keep what %s printed", command);
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
    static const char *const env[] = {
        "SQUEUE_*",           "SINFO_*", "SCONTROL_*", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0",
        "SLURM_JSON=compact", NULL,
    };
    int64_t began = clock_mono(&clock_real);
    struct spawn_result result;
    struct spawn spawn = {
        .env = env,
        .deadline_ns = deadline_ns,
        .max_output = SIZE_MAX, /* answer_feed has the ceiling */
        .cancelled = &cli->source.cancelled,
        .stuck = &route->stuck,
        .sink = answer_feed,
        .ctx = answer,
    };
    const char **argv;
    const char *secret;
    struct buf format;
    int code;

    buf_init(&format, FORMAT_MAX);
    if (route->format_variable)
        buf_text(&format, route->format_variable);
    if (answer->class->put_format)
        answer->class->put_format(answer, &format);
    secret = route->format_variable ? format.p : NULL;
    spawn.argv = argv =
        make_argv(route->words, route->flags, format.n && !secret ? format.p : NULL);
    code = slurm_command_run(&cli->commands, &spawn, secret, &result, err);
    if (code == 0)
        code = answer->class->end(answer, err);
    if (code < 0)
        explain(code, argv[0], &spawn, &result, began, err);
    answer->section->bytes_read += result.output_bytes;
    snprintf(ret_warning, SOURCE_WARNING, "%s", code == 0 ? result.warning : "");
    free(argv);
    buf_free(&format);
    return code;
}

/* On the other side we may be somebody else, from whom other things are hidden. */
static int ask_who(struct cli *cli, struct route *route, int64_t deadline_ns,
                   struct section *section, struct err *err)
{
    int code = 0;

    if (cli->far_user_id == MODEL_UNKNOWN_U32)
        code = prefix_user_id(cli->commands.prefix, deadline_ns, &cli->source.cancelled,
                              &route->stuck, &cli->far_user_id, err);
    section->config.user_id = cli->far_user_id;
    return code;
}

static int read_by(struct cli *cli, struct route *route, enum kind kind, int64_t deadline_ns,
                   struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(route->answer, section, cli->max_answer);
    int code = kind == KIND_CONFIG && cli->commands.prefix
                   ? ask_who(cli, route, deadline_ns, section, err)
                   : 0;

    if (code == 0)
        code = run(cli, route, answer, deadline_ns, ret_warning, err);
    answer_free(answer);
    if (code < 0) {
        section_unref(section);
        return code;
    }
    *ret = section;
    return 0;
}

static int read_kind(struct cli *cli, enum kind kind, int64_t deadline_ns, struct section **ret,
                     char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct routes *routes = &cli->routes[kind];
    int64_t now_ns = clock_mono(cli->source.clock);
    int code;

    if (kind == KIND_JOBS && cli->source.depth == SOURCE_OWNERS)
        return read_by(cli, &cli->owners, kind, deadline_ns, ret, ret_warning, err);
    do {
        code =
            read_by(cli, routes_current(routes, now_ns), kind, deadline_ns, ret, ret_warning, err);
    } while (code < 0 && routes_pass_over(routes, code, err, now_ns));
    return code;
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

/* A second question to a section that has been read. */
static int ask_more(struct cli *cli, struct route *route, int64_t deadline_ns,
                    struct section *section, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct answer *answer = answer_new(route->answer, section, cli->max_answer);
    int code = run(cli, route, answer, deadline_ns, ret_warning, err);

    answer_free(answer);
    return code;
}

/* Nodes are shown without the settings of their partitions if Slurm refuses these. If it does not
 * answer, it is down. */
static int ask_of_partitions(struct cli *cli, int64_t deadline_ns, struct section *section,
                             char ret_warning[SOURCE_WARNING], struct err *err)
{
    char warning[SOURCE_WARNING];
    int code = ask_more(cli, &cli->partitions, deadline_ns, section, warning, err);

    if (code == -ETIMEDOUT)
        return code;
    if (code < 0)
        snprintf(ret_warning, SOURCE_WARNING,
                 "the nodes are told, but not what their partitions are: %.200s", err->text);
    else if (!ret_warning[0])
        snprintf(ret_warning, SOURCE_WARNING, "%s", warning);
    return 0;
}

static void ask_of_user(struct cli *cli, int64_t deadline_ns, struct section *section,
                        char ret_warning[SOURCE_WARNING])
{
    struct err err;
    int code = ask_more(cli, &cli->user, deadline_ns, section, ret_warning, &err);

    config_warn(section, code < 0 ? &err : NULL, ret_warning);
}

static int cli_read(struct source *source, enum kind kind, int64_t deadline_ns,
                    struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct cli *cli = (struct cli *)source;
    int code = read_kind(cli, kind, deadline_ns, ret, ret_warning, err);

    if (code < 0)
        return advise(kind, code, err);
    if (kind == KIND_NODES && cli->partitions.words)
        code = ask_of_partitions(cli, deadline_ns, *ret, ret_warning, err);
    if (code < 0) {
        section_unref(*ret);
        return code;
    }
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

    if (cli->commands.prefix && !spawn_exists(cli->commands.prefix[0]))
        return err_set(err, ENOENT, "%s, with which --slurm.prefix begins, is not to be found",
                       cli->commands.prefix[0]);
    for (int kind = source->depth == SOURCE_OWNERS ? KIND_JOBS : KIND_NODES;
         kind <= KIND_JOBS && !cli->commands.prefix; kind++) {
        const char *command = cli->routes[kind].ways[0].words[0];

        if (!spawn_exists(command))
            return err_set(err, ENOENT, "%s is not to be found (see --slurm.bin-path)", command);
    }
    return 0;
}

static void cli_close(struct source *source)
{
    struct cli *cli = (struct cli *)source;

    for (int kind = 0; kind < KINDS; kind++)
        routes_close(&cli->routes[kind]);
    route_close(&cli->partitions);
    route_close(&cli->user);
    route_close(&cli->owners);
    slurm_commands_close(&cli->commands);
    free(cli);
}

static const struct source_class cli_class = {
    .name = "cli",
    .kinds = ALL_KINDS,
    .read = cli_read,
    .close = cli_close,
    .probe = cli_probe,
};

static const struct source_class json_class = {
    .name = "json",
    .kinds = ALL_KINDS,
    .read = cli_read,
    .close = cli_close,
    .probe = cli_probe,
};

static int open_as(const struct source_class *class, const struct source_settings *settings,
                   const struct clock *clock, struct source **ret, struct err *err)
{
    struct cli *cli = heap_alloc(sizeof(*cli));

    cli->source.class = class;
    cli->source.clock = clock;
    cli->max_answer = settings->max_answer;
    cli->far_user_id = MODEL_UNKNOWN_U32;
    cli->user = route_of_user(settings);
    if (!settings->commands[KIND_NODES].n)
        cli->partitions = route_of_partitions(settings);
    if (route_of_owners(settings, &cli->owners, err) < 0 ||
        slurm_commands_open(settings, &cli->commands, err) < 0) {
        cli_close(&cli->source);
        return -EINVAL;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        int code = routes_open(settings, class == &json_class, kind, &cli->routes[kind], err);

        if (code < 0) {
            cli_close(&cli->source);
            return code;
        }
    }
    *ret = &cli->source;
    return 0;
}

int source_open_cli(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err)
{
    return open_as(&cli_class, settings, clock, ret, err);
}

int source_open_json(const struct source_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err)
{
    return open_as(&json_class, settings, clock, ret, err);
}
