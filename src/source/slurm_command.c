/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the command lines of Slurm's commands. */
#include "source/slurm_command.h"

#include "source/prefix.h"

static char *conf_variable(struct str conf)
{
    static const char name[] = "SLURM_CONF=";
    size_t room = sizeof(name) + conf.n;
    char *variable = conf.n ? heap_array(room, 1) : NULL;

    if (variable)
        snprintf(variable, room, "%s%.*s", name, STR_ARG(conf));
    return variable;
}

int slurm_commands_open(const struct source_settings *settings, struct slurm_commands *ret,
                        struct err *err)
{
    struct slurm_commands commands = { 0 };
    int code = prefix_parse(settings->prefix, &commands.prefix, err);

    if (code < 0)
        return code;
    commands.conf = conf_variable(settings->conf);
    *ret = commands;
    return 0;
}

void slurm_commands_close(struct slurm_commands *commands)
{
    free(commands->prefix);
    free(commands->conf);
}

char **slurm_command_words(const struct source_settings *settings, const char *command)
{
    struct str directory = settings->bin_path;
    size_t room = directory.n + strlen(command) + 2;
    char **words = heap_alloc(2 * sizeof(*words) + room);

    words[0] = (char *)(words + 2);
    snprintf(words[0], room, "%.*s%s%s", STR_ARG(directory), directory.n ? "/" : "", command);
    return words;
}

/* `env`, then up to two more. */
static const char **make_env(const char *const *env, const char *conf, const char *secret)
{
    const char **all;
    size_t n = 0;

    while (env[n])
        n++;
    all = heap_array(n + 3, sizeof(*all));
    memcpy(all, env, n * sizeof(*all));
    if (conf)
        all[n++] = conf;
    if (secret)
        all[n++] = secret;
    all[n] = NULL;
    return all;
}

int slurm_command_run(const struct slurm_commands *commands, const struct spawn *spawn,
                      const char *secret, struct spawn_result *ret, struct err *err)
{
    bool is_far = commands->prefix;
    const char **env = make_env(spawn->env, commands->conf, is_far ? NULL : secret);
    struct spawn whole = *spawn;
    int code;

    whole.env = env;
    code = is_far ? prefix_run(commands->prefix, &whole, secret, ret, err)
                  : spawn_run(&whole, ret, err);
    free(env);
    return code;
}
