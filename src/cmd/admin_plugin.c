/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin plugin-check: whether the Slurm of this host will load a plugin. */
#include "base/option.h"
#include "cmd/admin.h"
#include "cmd/plugin_check.h"

enum { EXIT_LOADS = 0, EXIT_REFUSED = 1, EXIT_MISUSED = 2 };

struct settings {
    struct str slurm_version, plugin_dir, conf_dir;
};

#define PLACE(member) offsetof(struct settings, member)

static const struct option options[] = {
    { "slurm-version", OPTION_STRING, PLACE(slurm_version), "VERSION", NULL, NULL, NULL, "Slurm",
      "The Slurm that is to load it: 22.05.8. By default it is asked of the slurmctld, slurmd, "
      "scontrol and sinfo that are in PATH." },
    { "plugin-dir", OPTION_STRING, PLACE(plugin_dir), "DIRECTORY", NULL, NULL, NULL, "Slurm",
      "PluginDir; several with colons between. By default it is asked of slurmctld, by scontrol "
      "show config, then looked for in slurm.conf and in the usual places." },
    { "conf-dir", OPTION_STRING, PLACE(conf_dir), "DIRECTORY", NULL, NULL, NULL, "Slurm",
      "Where slurm.conf and acct_gather.conf are. By default the directory of SLURM_CONF, or "
      "/etc/slurm." },
    { 0 },
};

static const struct option_command command = {
    .name = "sonde admin plugin-check",
    .summary = "check whether Slurm here will load a plugin",
    .description =
        "Reads a plugin's file, without loading it, and says for which Slurm it was built, whether "
        "it has all that Slurm wants of it, and whether the Slurm of this host will load it. Slurm "
        "loads a plugin only if major, minor and micro version are its own; with one that it "
        "refuses, slurmctld and slurmd do not start.\n\n"
        "For an acct_gather_profile plugin it also looks for keys in acct_gather.conf that the "
        "plugin does not know, which end Slurm's daemons, and tells in which order to roll out and "
        "to roll back. Of any other plugin it checks name, version and place.\n\n"
        "Install it by rename, never over a file that is loaded: copy it into PluginDir under a "
        "name that begins with a dot (install -m 644), then mv -f that to its own name.\n\n"
        "It changes nothing. Run it on the controller and on a node of each kind, before an update "
        "of Slurm too, with --slurm-version.",
    .arguments = "FILE",
    .exit_status = "0 if the plugin will load, 1 if it will not or if that cannot be told, 2 if a "
                   "flag is wrong. 128 + N if signal N has ended it.",
    .options = options,
};

static atomic_bool is_cancelled;
static volatile sig_atomic_t ended_by;

static void cancel(int number)
{
    ended_by = number;
    atomic_store(&is_cancelled, true);
}

/* So that a command that is being waited for is ended too. */
static void catch_signals(void)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
    const struct sigaction action = { .sa_handler = cancel };

    for (size_t i = 0; i < COUNT(ends); i++) {
        struct sigaction old;

        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
}

/* A heading, or a check below it. */
static const struct step {
    const char *title;
    void (*run)(struct plugin_check *check);
} steps[] = {
    { NULL, plugin_check_functions }, { NULL, plugin_check_name },
    { "Slurm here", NULL },           { NULL, plugin_check_version },
    { NULL, plugin_check_slurmctld }, { NULL, plugin_check_places },
    { NULL, plugin_check_installed }, { NULL, plugin_check_use },
    { "acct_gather.conf", NULL },     { NULL, plugin_check_conf },
};

static int run(struct plugin_check *check)
{
    struct page *page = check->page;
    bool goes_on;

    fputs("sonde admin plugin-check", page->to);
    page_line(page->to, check->path);
    page_title(page, "The file");
    goes_on = plugin_check_file(check);
    for (size_t i = 0; i < COUNT(steps) && goes_on && !atomic_load(&is_cancelled); i++) {
        if (steps[i].run)
            steps[i].run(check);
        else
            page_title(page, steps[i].title);
    }
    if (ended_by)
        return 128 + ended_by;
    if (page->counts[MARK_FAIL]) {
        page_summary(page, "Do not install it: see FAIL above.");
        return EXIT_REFUSED;
    }
    page_summary(page, page->counts[MARK_WARN] ? "Slurm here will load it, but see warn above."
                                               : "Slurm here will load it.");
    plugin_check_advise(check);
    return EXIT_LOADS;
}

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 char ***ret_rest, struct err *err)
{
    int outcome = option_parse(&command, argc, argv, environ, arena, settings, ret_rest, err);
    uint32_t version;

    if (outcome != OPTION_GO_ON)
        return outcome;
    if (!(*ret_rest)[0] || (*ret_rest)[1])
        return err_set(err, EINVAL, "name one plugin's file; see --help");
    if (settings->slurm_version.n && !plugin_version_parse(settings->slurm_version, &version))
        return err_set(err, EINVAL, "--slurm-version is a version with three numbers: 22.05.8");
    return OPTION_GO_ON;
}

int admin_plugin_check(int argc, char **argv)
{
    struct settings settings;
    struct arena arena = { 0 };
    struct err err = { 0 };
    struct page page = page_for(stdout);
    struct plugin_check *check;
    char **rest;
    int outcome = parse(argc, argv, &arena, &settings, &rest, &err);

    if (outcome == OPTION_GO_ON) {
        check = heap_alloc(sizeof(*check));
        check->path = rest[0];
        check->slurm_version = settings.slurm_version;
        check->plugin_dir = settings.plugin_dir;
        check->conf_dir = settings.conf_dir;
        check->root = "";
        check->cancelled = &is_cancelled;
        check->page = &page;
        catch_signals();
        outcome = run(check);
        buf_free(&check->file.content);
        buf_free(&check->installed.content);
        free(check);
    } else if (outcome < 0) {
        fprintf(stderr, "sonde admin plugin-check: %s\n", err.text);
        outcome = EXIT_MISUSED;
    } else {
        outcome = EXIT_LOADS;
    }
    arena_clear(&arena);
    return outcome;
}
