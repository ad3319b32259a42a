/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that select the Slurm interface. */
#include "cmd/source_options.h"

#define SETTING(member)   offsetof(struct source_options, member)
#define COMMAND_FOR(kind) (SETTING(commands) + (kind) * sizeof(struct str))

static const struct option rows_of_source[] = {
    { "source", OPTION_STRING, SETTING(source), "SOURCE", NULL, NULL, NULL, "Slurm",
      "Which door into Slurm to take: libslurm (Slurm's own library), rest (slurmrestd), json "
      "(Slurm's commands with --json), cli (their text), or auto (the default): the first of these "
      "that works, rest only with --slurm.rest-url. Without Slurm: replay:DIRECTORY (what sonde "
      "admin record has written), sim:nodes=N,jobs=N,seed=N,users=N (a simulated cluster)." },
    { "demo", OPTION_BOOL, SETTING(demo), NULL, NULL, NULL, NULL, "Slurm",
      "Show a simulated cluster, marked as such on every page and metric. Short for "
      "--source=sim." },
    { "slurm.timeout", OPTION_DURATION, SETTING(timeout_ns), "DURATION", "10s", "CLI_TIMEOUT", NULL,
      "Slurm",
      "Slurm has this long to answer one question; a command that takes longer is "
      "killed." },
    { "slurm.max-answer", OPTION_BYTES, SETTING(max_answer), "BYTES", "512M", NULL, NULL, "Slurm",
      "Memory that one answer of Slurm may take when it is read; its length does not count. A "
      "larger answer is refused, and the last one is served until --slurm.stale-limit. For sacct "
      "and recordings, the length of one answer or file." },
    { "slurm.conf", OPTION_STRING, SETTING(conf), "FILE", NULL, NULL, NULL, "Slurm",
      "The slurm.conf for Slurm's commands and library, if not the one that they find." },
    { "slurm.bin-path", OPTION_STRING, SETTING(bin_path), "DIRECTORY", NULL, NULL, NULL, "Slurm",
      "Where Slurm's commands are, if not in PATH." },
    { "slurm.prefix", OPTION_STRING, SETTING(prefix), "COMMAND", NULL, NULL, NULL, "Slurm",
      "For json and cli: a command that is handed each of Slurm's as one shell command line, to "
      "run it elsewhere: \"ssh -oBatchMode=yes login1\", \"docker exec -i slurmctld sh -c\"." },
    { "slurm.helper-dir", OPTION_STRING, SETTING(helper_dir), "DIRECTORY", NULL, NULL, NULL,
      "Slurm",
      "Where libslurm's helpers are, sonde-libslurm-RELEASE, if not beside sonde's own programs." },
    { "slurm.rest-url", OPTION_STRING, SETTING(rest_url), "URL", NULL, NULL, NULL, "Slurm",
      "Where slurmrestd listens: http://HOST:6820, or unix:/PATH of its socket." },
    { "slurm.rest-user", OPTION_STRING, SETTING(rest_user), "NAME", NULL, NULL, NULL, "Slurm",
      "The user to ask slurmrestd as, if not the one that the token was made for." },
    { "slurm.rest-token-file", OPTION_STRING, SETTING(rest_token_file), "FILE", NULL, NULL, NULL,
      "Slurm",
      "A file with the token for slurmrestd, as scontrol token prints it. Read again when it "
      "changes." },
    { "slurm.cli-fallback", OPTION_BOOL, SETTING(cli_fallback), NULL, "true", NULL, NULL, "Slurm",
      "As in prometheus-slurm-exporter: =false means --source=json, where none is given." },
    { "slurm.squeue-cli", OPTION_STRING, COMMAND_FOR(KIND_JOBS), "COMMAND", NULL, NULL, NULL,
      "Slurm",
      "A command to run in the place of squeue, exactly as given. It prints what squeue --json "
      "does, or the lines that prometheus-slurm-exporter or prometheus-cluster-exporter asks "
      "squeue "
      "for. This one and the next four mean --source=cli, where none is given." },
    { "slurm.sinfo-cli", OPTION_STRING, COMMAND_FOR(KIND_NODES), "COMMAND", NULL, NULL, NULL,
      "Slurm", "Likewise in the place of sinfo." },
    { "slurm.diag-cli", OPTION_STRING, COMMAND_FOR(KIND_DIAG), "COMMAND", NULL, NULL, NULL, "Slurm",
      "Likewise in the place of sdiag; it prints what sdiag or sdiag --json does." },
    { "slurm.lic-cli", OPTION_STRING, COMMAND_FOR(KIND_LICENSES), "COMMAND", NULL, NULL, NULL,
      "Slurm",
      "Likewise in the place of scontrol show licenses; it prints what that does, also with "
      "--json." },
    { "slurm.sacctmgr-cli", OPTION_STRING, COMMAND_FOR(KIND_ASSOCIATIONS), "COMMAND", NULL, NULL,
      NULL, "Slurm",
      "A command for the limits of accounts; it prints what sacctmgr show assoc "
      "format=User,Account,GrpCPU,GrpMem,GrpJobs,GrpSubmit --noheader --parsable2 does. Without "
      "it, Slurm is asked for limits that also tell what is in use." },
};
_Static_assert(COUNT(rows_of_source) == SOURCE_OPTIONS, "as many rows as the header says");

void source_options_rows(size_t offset, struct option rows[SOURCE_OPTIONS])
{
    for (size_t i = 0; i < SOURCE_OPTIONS; i++) {
        rows[i] = rows_of_source[i];
        rows[i].offset += offset;
    }
}

static const int64_t most_timeout_ns = 86400 * NS_PER_SEC;

int source_options_check(const struct source_options *options, struct err *err)
{
    if (options->timeout_ns <= 0 || options->timeout_ns > most_timeout_ns)
        return err_set(err, EINVAL, "--slurm.timeout must be more than 0 and at most 1d");
    if (options->demo && options->source.n)
        return err_set(err, EINVAL, "--demo and --source exclude each other: leave one out");
    return 0;
}

static bool has_commands(const struct source_options *options)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (options->commands[kind].n)
            return true;
    return false;
}

/* As --source would say it. */
static struct str spec_of(const struct source_options *options)
{
    if (options->demo)
        return STR("sim");
    if (options->source.n)
        return options->source;
    if (has_commands(options))
        return STR("cli");
    return options->cli_fallback ? STR("auto") : STR("json");
}

struct source_settings source_options_settings(const struct source_options *options)
{
    struct source_settings settings = {
        .spec = spec_of(options),
        .conf = options->conf,
        .bin_path = options->bin_path,
        .prefix = options->prefix,
        .rest_url = options->rest_url,
        .rest_user = options->rest_user,
        .rest_token_file = options->rest_token_file,
        .helper_dir = options->helper_dir,
        .max_answer = options->max_answer,
    };

    memcpy(settings.commands, options->commands, sizeof(settings.commands));
    return settings;
}

bool source_options_equal(const struct source_options *a, const struct source_options *b)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (!str_eq(a->commands[kind], b->commands[kind]))
            return false;
    return str_eq(spec_of(a), spec_of(b)) && str_eq(a->conf, b->conf) &&
           str_eq(a->bin_path, b->bin_path) && str_eq(a->prefix, b->prefix) &&
           str_eq(a->rest_url, b->rest_url) && str_eq(a->rest_user, b->rest_user) &&
           str_eq(a->rest_token_file, b->rest_token_file) && str_eq(a->helper_dir, b->helper_dir) &&
           a->max_answer == b->max_answer;
}
