/* SPDX-License-Identifier: GPL-2.0-or-later */
/* squeue(1), sinfo(1), scontrol(1), sdiag(1), sshare(1). */
#include "source/cli_routes.h"

#include "base/spawn.h"
#include "source/cli.h"
#include "source/json_answers.h"
#include "source/slurm_command.h"

enum { FLAGS_MAX = 6, JSON_MAX = ROUTES_MAX - 2 };

#define AGAIN_NS (INT64_C(3600) * NS_PER_SEC)

struct question {
    const char *command;
    const char *flags[FLAGS_MAX]; /* ended by NULL; the format follows, if there is one */
    const char *format_variable;
    const struct answer_class *answer;
};

/* --local: a federation may be set up to show the siblings' jobs and nodes as well
 * (FederationParameters=fed_display). */
static const struct question text_questions[KINDS] = {
    /* Each task of an array that waits has a reason of its own; without --array they are told as
     * one, with the reasons of all.
     * A job's owner decides its name, and can see the arguments of every process on this host. So
     * that the token stays unknown until squeue has asked for the names, it is told the format by
     * its environment, which only we and root can read. */
    [KIND_JOBS] = { .command = "squeue",
                    .flags = { "--noheader", "--all", "--local", "--states=all", "--array" },
                    .format_variable = "SQUEUE_FORMAT2=",
                    .answer = &answer_squeue },
    /* sinfo takes no format from its environment; what it prints is written by administrators only.
     */
    [KIND_NODES] = { .command = "sinfo",
                     .flags = { "--noheader", "--all", "--local", "--Node", "--Format" },
                     .answer = &answer_sinfo },
    [KIND_RESERVATIONS] = { .command = "scontrol",
                            .flags = { "--oneliner", "show", "reservations" },
                            .answer = &answer_reservations },
    [KIND_LICENSES] = { .command = "scontrol",
                        .flags = { "--oneliner", "show", "licenses" },
                        .answer = &answer_licenses },
    [KIND_DIAG] = { .command = "sdiag", .answer = &answer_sdiag },
    [KIND_SHARES] = { .command = "sshare",
                      .flags = { "--all", "--noheader", "--parsable2", "--format" },
                      .answer = &answer_sshare },
    [KIND_ASSOCIATIONS] = { .command = "scontrol",
                            .flags = { "show", "assoc_mgr", "flags=assoc,qos" },
                            .answer = &answer_associations },
    [KIND_CONFIG] = { .command = "scontrol",
                      .flags = { "show", "config" },
                      .answer = &answer_config },
};

/* The same for releases that lack one of its fields. */
static const struct question older_questions[KINDS] = {
    [KIND_NODES] = { .command = "sinfo",
                     .flags = { "--noheader", "--all", "--local", "--Node", "--Format" },
                     .answer = &answer_sinfo_older },
};

/* What has JSON in some release: squeue and sinfo from 21.08 on, scontrol and sdiag from 23.02,
 * sshare from 23.11. From 23.02 on sinfo tells groups of nodes instead of nodes. */
static const struct question json_questions[KINDS][JSON_MAX] = {
    [KIND_JOBS] = { { .command = "squeue",
                      .flags = { "--all", "--local", "--states=all", "--json" },
                      .answer = &answer_json_jobs } },
    [KIND_NODES] = { { .command = "scontrol",
                       .flags = { "--all", "--local", "show", "nodes", "--json" },
                       .answer = &answer_json_nodes },
                     { .command = "sinfo",
                       .flags = { "--all", "--local", "--json" },
                       .answer = &answer_json_nodes } },
    [KIND_RESERVATIONS] = { { .command = "scontrol",
                              .flags = { "show", "reservations", "--json" },
                              .answer = &answer_json_reservations } },
    [KIND_LICENSES] = { { .command = "scontrol",
                          .flags = { "show", "licenses", "--json" },
                          .answer = &answer_json_licenses } },
    [KIND_DIAG] = { { .command = "sdiag", .flags = { "--json" }, .answer = &answer_json_diag } },
    [KIND_SHARES] = { { .command = "sshare",
                        .flags = { "--all", "--json" },
                        .answer = &answer_json_shares } },
};

/* What reads the answers of commands of the site's own; without one, there can be none. */
static const struct answer_class *const foreign_answers[KINDS] = {
    [KIND_JOBS] = &answer_foreign_jobs,           [KIND_NODES] = &answer_foreign_nodes,
    [KIND_LICENSES] = &answer_foreign_licenses,   [KIND_DIAG] = &answer_foreign_diag,
    [KIND_ASSOCIATIONS] = &answer_foreign_limits,
};

/* In text, whatever the release: JSON does not say which one is the default before 26.05. */
static const struct question partitions_question = {
    .command = "scontrol",
    .flags = { "--all", "--local", "--oneliner", "show", "partitions" },
    .answer = &answer_partitions,
};

/* Whether we are an operator. All users and not only ours: his name would have to be asked of a
 * directory that may not answer, and his number is in the answer. */
static const struct question user_question = {
    .command = "scontrol",
    .flags = { "show", "assoc_mgr", "flags=users" },
    .answer = &answer_config_user,
};

/* As that of all about jobs, for less of each; tasks that wait together have one owner. */
static const struct question owners_question = {
    .command = "squeue",
    .flags = { "--noheader", "--all", "--local", "--states=all" },
    .format_variable = "SQUEUE_FORMAT2=",
    .answer = &answer_owners,
};

static struct route make_route(const struct source_settings *settings,
                               const struct question *question)
{
    return (struct route){
        .words = slurm_command_words(settings, question->command),
        .flags = question->flags,
        .format_variable = question->format_variable,
        .answer = question->answer,
    };
}

/* The site's own command, whose format is found out from what it prints. */
static int make_own_route(const struct answer_class *answer, struct str command, struct route *ret,
                          struct err *err)
{
    static const char *const no_flags[] = { NULL };

    *ret = (struct route){ .words = spawn_split(command), .flags = no_flags, .answer = answer };
    if (!ret->words)
        return err_set(err, EINVAL,
                       "\"%.*s\" is not a command line: it is empty or a quote is not closed",
                       STR_ARG(str_head(command, 80)));
    return 0;
}

int routes_open(const struct source_settings *settings, bool is_json, enum kind kind,
                struct routes *ret, struct err *err)
{
    struct routes routes = { .n = 0 };

    if (settings->commands[kind].n) {
        int code;

        if (!foreign_answers[kind])
            return err_set(err, EINVAL, "there is no command to put in the place of %s",
                           text_questions[kind].command);
        code =
            make_own_route(foreign_answers[kind], settings->commands[kind], &routes.ways[0], err);
        if (code < 0)
            return code;
        routes.n = 1;
    } else {
        for (size_t i = 0; is_json && i < JSON_MAX && json_questions[kind][i].command; i++)
            routes.ways[routes.n++] = make_route(settings, &json_questions[kind][i]);
        if (text_questions[kind].command)
            routes.ways[routes.n++] = make_route(settings, &text_questions[kind]);
        if (older_questions[kind].command)
            routes.ways[routes.n++] = make_route(settings, &older_questions[kind]);
    }
    *ret = routes;
    return 0;
}

void routes_close(struct routes *routes)
{
    for (size_t i = 0; i < routes->n; i++)
        route_close(&routes->ways[i]);
}

struct route *routes_current(struct routes *routes, int64_t now_ns)
{
    if (routes->current && now_ns >= routes->again_ns)
        routes->current = 0;
    return &routes->ways[routes->current];
}

/* It does not know the option, tells something else, or lacks a plugin for JSON: of the library
 * (24.11 crashes then), up to 22.05 of slurmrestd's, later the data_parser. */
static bool is_lacking(int code, const struct err *err)
{
    static const struct str signs[] = { STR_INIT("unrecognized option"), STR_INIT("serializer"),
                                        STR_INIT("openapi/"), STR_INIT("data_parser") };

    for (size_t i = 0; code == -EREMOTEIO && i < COUNT(signs); i++)
        if (str_find_str(str_of(err->text), signs[i]) < strlen(err->text))
            return true;
    return code == -EOPNOTSUPP;
}

bool routes_pass_over(struct routes *routes, int code, const struct err *err, int64_t now_ns)
{
    if (routes->current + 1 >= routes->n || !is_lacking(code, err))
        return false;
    if (!routes->current)
        routes->again_ns = now_ns + AGAIN_NS;
    routes->current++;
    return true;
}

struct route route_of_partitions(const struct source_settings *settings)
{
    return make_route(settings, &partitions_question);
}

struct route route_of_user(const struct source_settings *settings)
{
    return make_route(settings, &user_question);
}

int route_of_owners(const struct source_settings *settings, struct route *ret, struct err *err)
{
    if (settings->commands[KIND_JOBS].n)
        return make_own_route(&answer_foreign_owners, settings->commands[KIND_JOBS], ret, err);
    *ret = make_route(settings, &owners_question);
    return 0;
}

void route_close(struct route *route)
{
    free(route->words);
}
