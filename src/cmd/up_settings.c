/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that only `sonde up` has, and the settings made from them. */
#include "cmd/up_settings.h"

#include "base/spawn.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#define SETTING(member) offsetof(struct up_settings, member)

enum { DEMO_NODES = 64 };

static const int64_t least_interval_ns = NS_PER_SEC;

static const struct option up_rows[] = {
    { "state.directory", OPTION_STRING, SETTING(state_dir), "DIRECTORY", NULL, "STATE_DIRECTORY",
      NULL, "Up",
      "Where jobs and series are kept. Without it: /var/lib/sonde as root, else sonde in "
      "XDG_STATE_HOME, ~/.local/state; with --demo a directory that is removed at the end." },
    { "agent", OPTION_BOOL, SETTING(has_agent), NULL, "true", NULL, NULL, "Up",
      "Run sonde agent as a child, to see what jobs on this machine use." },
    { "user", OPTION_STRING, SETTING(user), "USER", NULL, NULL, NULL, "Up",
      "Started as root, become this user; only the agent keeps what it needs. Without it: sonde, "
      "if there is such a user, else nobody." },
    { "series.path", OPTION_STRING, SETTING(series.path), "FILE", NULL, NULL, NULL, "Series",
      "Where numbers over time are kept, for charts: series.db in --state.directory. Empty: keep "
      "none." },
    { "series.interval", OPTION_DURATION, SETTING(series.interval_ns), "DURATION", "15s", NULL,
      NULL, "Series", "How often." },
    { "series.retention", OPTION_DURATION, SETTING(series.retention_ns), "DURATION", "15d", NULL,
      NULL, "Series", "Delete what is older; 0: nothing." },
    { "series.max-size", OPTION_BYTES, SETTING(series.max_bytes), "BYTES", "1G", NULL, NULL,
      "Series", "Delete the oldest while they take more; 0: no limit." },
};

void up_settings_make_options(struct exporter_options *made)
{
    struct option web[WEB_OPTIONS];

    web_options_rows(SETTING(web), web);
    exporter_options_add(made, web, WEB_OPTIONS);
    exporter_options_add(made, up_rows, COUNT(up_rows));
    exporter_options_row(made, "store")->help =
        "Keep every job that is seen in this file: sonde.db in --state.directory, if nothing else "
        "is said. Empty: keep none.";
}

/* "sqlite:/var/lib/sonde/sonde.db", "/var/lib/sonde/series.db" */
static struct str path_in(struct str directory, const char *scheme, const char *name,
                          struct arena *arena)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s%.*s/%s", scheme, STR_ARG(directory), name);
    return arena_str(arena, str_of(path));
}

static struct str state_directory(bool is_demo, struct arena *arena)
{
    const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME"), *tmp = getenv("TMPDIR");
    char path[PATH_MAX];

    if (is_demo)
        snprintf(path, sizeof(path), "%s/sonde-demo-%d", tmp && tmp[0] == '/' ? tmp : "/tmp",
                 (int)getpid());
    else if (geteuid() == 0)
        snprintf(path, sizeof(path), "/var/lib/sonde");
    else if (state && state[0] == '/') /* others are to be ignored: XDG Base Directory */
        snprintf(path, sizeof(path), "%s/sonde", state);
    else
        snprintf(path, sizeof(path), "%s/.local/state/sonde", home ? home : "");
    return arena_str(arena, str_of(path));
}

static bool is_simulated(const struct source_options *source)
{
    return source->demo ||
           str_eq(str_head(source->source, str_find(source->source, ':')), STR("sim"));
}

/* Where Slurm's commands run elsewhere, nobody knows until it is tried. */
static bool has_sacct(const struct source_options *source)
{
    char path[PATH_MAX];

    if (source->prefix.n)
        return true;
    snprintf(path, sizeof(path), "%.*s%ssacct", STR_ARG(source->bin_path),
             source->bin_path.n ? "/" : "");
    return spawn_exists(path);
}

void up_settings_complete(const struct option_command *command, void *ctx, struct arena *arena)
{
    struct up_settings *settings = ctx;
    struct source_options *source = &settings->exporter.own.source;

    settings->is_demo = is_simulated(source);
    if (source->demo && !source->source.n) {
        char spec[40];

        snprintf(spec, sizeof(spec), "sim:nodes=%d", DEMO_NODES);
        source->source = arena_str(arena, str_of(spec));
        source->demo = false;
    }
    settings->has_own_directory = !settings->state_dir.n;
    if (settings->has_own_directory)
        settings->state_dir = state_directory(settings->is_demo, arena);
    if (!option_is_given(command, "store"))
        settings->exporter.store.url = path_in(settings->state_dir, "sqlite:", "sonde.db", arena);
    if (!option_is_given(command, "series.path"))
        settings->series.path = path_in(settings->state_dir, "", "series.db", arena);
    if (settings->is_demo && settings->has_own_directory &&
        !option_is_given(command, "allocations.file"))
        settings->exporter.store.allocations_file =
            path_in(settings->state_dir, "", "allocations.yml", arena);
    if (!option_is_given(command, "store.history"))
        settings->exporter.store.history.is_on = has_sacct(source);
}

int up_settings_read(struct settings *base, struct err *err)
{
    struct up_settings *settings = (struct up_settings *)(void *)base;

    base->keeps_facts = true; /* pages are made of them */
    if (settings->state_dir.p[0] != '/')
        return err_set(err, EINVAL, "--state.directory must begin with /");
    if (settings->series.interval_ns < least_interval_ns)
        return err_set(err, EINVAL, "--series.interval must be at least 1s");
    if (settings->series.retention_ns < 0)
        return err_set(err, EINVAL, "--series.retention must not be negative");
    if (settings->is_demo)
        settings->has_agent = false; /* what it sees is real */
    return 0;
}

const char *up_settings_changed(const struct settings *old_base, const struct settings *new_base)
{
    const struct up_settings *old = up_settings_of(old_base), *new = up_settings_of(new_base);

    if (!web_options_equal(&old->web, &new->web))
        return "who may see what, or how pages are made (--web.auth and the like)";
    if (!str_eq(old->state_dir, new->state_dir))
        return "state.directory";
    if (!str_eq(old->series.path, new->series.path) ||
        old->series.interval_ns != new->series.interval_ns ||
        old->series.retention_ns != new->series.retention_ns ||
        old->series.max_bytes != new->series.max_bytes)
        return "how series are kept (--series.path and the like)";
    if (!prometheus_options_equal(&old_base->prometheus, &new_base->prometheus) ||
        !option_list_equal(old_base->matchers, new_base->matchers))
        return "which Prometheus is asked (--prometheus.url and the like)";
    if (!str_eq(old_base->store.allocations_file, new_base->store.allocations_file))
        return "allocations.file";
    if (old->is_demo != new->is_demo)
        return "demo";
    if (old->has_agent != new->has_agent)
        return "agent";
    if (!str_eq(old->user, new->user))
        return "user";
    return NULL;
}

const char *up_settings_user(const struct up_settings *settings)
{
    if (settings->user.n)
        return settings->user.p;
    return getpwnam("sonde") ? "sonde" : "nobody";
}
