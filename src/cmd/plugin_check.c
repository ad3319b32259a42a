/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm wants of a plugin's file: its src/common/plugin.c. */
#include "cmd/plugin_check.h"

#include "base/quote.h"

enum { VERSION_SECONDS = 5, COMMANDS = 4 };

/* "acct_gather_profile/prometheus", "spank"; it becomes the name of a file. */
static bool is_type(struct str type)
{
    for (size_t i = 0; i < type.n; i++) {
        char c = type.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !(i && strchr("/_-.", c)))
            return false;
    }
    return type.n > 0;
}

bool plugin_check_file(struct plugin_check *check)
{
    struct plugin_copy *file = &check->file;
    const struct plugin_file *plugin = &file->plugin;
    struct err err = { 0 };

    snprintf(file->path, sizeof(file->path), "%s", check->path);
    if (plugin_file_load(check->path, &file->content, &file->status, &err) < 0 ||
        plugin_file_parse(buf_str(&file->content), &file->plugin, &err) < 0) {
        page_finding(check->page, MARK_FAIL, "file", "%s", err.text);
        return false;
    }
    if (!plugin->has_name || !plugin->has_type || !plugin->has_version) {
        page_finding(check->page, MARK_FAIL, "plugin", "it is none of Slurm's: it has no %s",
                     !plugin->has_type   ? "plugin_type"
                     : !plugin->has_name ? "plugin_name"
                                         : "plugin_version");
        return false;
    }
    if (!is_type(str_of(plugin->type))) {
        page_finding(check->page, MARK_FAIL, "plugin", "its plugin_type is none of Slurm's: %s",
                     quote(str_of(plugin->type)).text);
        return false;
    }
    check->is_profile = str_starts(str_of(plugin->type), STR("acct_gather_profile/"));
    snprintf(check->file_name, sizeof(check->file_name), "%s.so", plugin->type);
    for (char *slash = check->file_name; (slash = strchr(slash, '/'));)
        *slash = '_';
    page_finding(check->page, MARK_OK, "plugin", "%s (%s)", quote(str_of(plugin->type)).text,
                 quote(str_of(plugin->name)).text);
    page_finding(check->page, MARK_OK, "built for", "Slurm" GLUE "%s",
                 plugin_version_text(plugin->version).text);
    return true;
}

void plugin_check_functions(struct plugin_check *check)
{
    const struct plugin_file *plugin = &check->file.plugin;
    struct buf missing;
    size_t n = 0;

    if (!check->is_profile)
        return;
    buf_init(&missing, 2000);
    for (size_t i = 0; i < PLUGIN_FUNCTIONS; i++)
        if (!plugin->has_function[i])
            buf_printf(&missing, "%s%s", n++ ? ", " : "", plugin_functions[i]);
    if (n) {
        page_finding(check->page, MARK_FAIL, "functions",
                     "%zu of %d are missing (%s): Slurm's daemons would end, \"fatal: Plugin "
                     "loading failed due to missing symbols\"",
                     n, PLUGIN_FUNCTIONS, missing.p);
        page_advice(check->page, "Build it again.");
    } else {
        page_finding(check->page, MARK_OK, "functions", "all %d; %s", PLUGIN_FUNCTIONS,
                     plugin->has_init && plugin->has_fini ? "init and fini too"
                     : plugin->has_init                   ? "init, but no fini"
                     : plugin->has_fini                   ? "fini, but no init"
                                                          : "neither init nor fini");
    }
    buf_free(&missing);
}

void plugin_check_name(struct plugin_check *check)
{
    const char *slash = strrchr(check->path, '/'), *name = slash ? slash + 1 : check->path;

    if (strcmp(name, check->file_name) == 0)
        return;
    page_finding(check->page, MARK_NOTE, "file name", "is %s, and Slurm looks for %s",
                 quote(str_of(name)).text, quote(str_of(check->file_name)).text);
    page_advice(check->page, "Install it under that name.");
}

/* Of a spank plugin, Slurm compares the release alone. */
bool plugin_check_fits(const struct plugin_check *check, uint32_t version)
{
    const struct plugin_file *plugin = &check->file.plugin;
    uint32_t mask = strcmp(plugin->type, "spank") == 0 ? 0xffff00 : 0xffffff;

    return (plugin->version & mask) == (version & mask);
}

static void tell_version(struct plugin_check *check, uint32_t version, const char *who)
{
    const struct plugin_file *plugin = &check->file.plugin;
    struct plugin_version text = plugin_version_text(version);

    if (plugin_check_fits(check, version)) {
        page_finding(check->page, MARK_OK, "Slurm", "%s (%s)", text.text, who);
        return;
    }
    check->refused_by = version;
    page_finding(check->page, MARK_FAIL, "Slurm", "%s (%s) refuses a plugin for %s%s%s%s",
                 text.text, who, plugin_version_text(plugin->version).text,
                 check->is_profile ? ": slurmctld, slurmd and slurmstepd would end, \"fatal: can "
                                     "not open the "
                                   : "",
                 check->is_profile ? quote(str_of(plugin->type)).text : "",
                 check->is_profile ? " plugin\"" : "");
    page_advice(check->page,
                "Build it against the sources of Slurm" GLUE "%s: meson setup "
                "-Dslurm_source=DIR",
                text.text);
}

/* "slurm-wlm 22.05.8" */
static bool ask_version(const struct plugin_check *check, const char *command, const char *flag,
                        uint32_t *ret)
{
    const char *const argv[] = { command, flag, NULL };
    struct err err = { 0 };
    struct buf text;
    struct str rest;
    bool is_told;

    is_told = plugin_check_ask(check, argv, VERSION_SECONDS, 4096, &text, &err) == 0;
    rest = str_trim(buf_str(&text));
    str_cut(&rest, ' ');
    if (is_told && !plugin_version_parse(str_trim(rest), ret)) {
        err_set(&err, EBADMSG, "%s %s tells no version", command, flag);
        is_told = false;
    }
    if (!is_told)
        page_finding(check->page, MARK_WARN, "Slurm", "%s", err.text);
    buf_free(&text);
    return is_told;
}

static const char *const commands[COMMANDS][2] = {
    { "slurmctld", "-V" },
    { "slurmd", "-V" },
    { "scontrol", "--version" },
    { "sinfo", "--version" },
};

/* Those of one version together. */
static void tell_versions(struct plugin_check *check, const uint32_t version[COMMANDS])
{
    for (size_t i = 0; i < COMMANDS; i++) {
        char who[100] = "";
        bool is_first = version[i];

        for (size_t k = 0; k < COMMANDS; k++) {
            if (version[k] != version[i])
                continue;
            is_first &= k >= i;
            snprintf(who + strlen(who), sizeof(who) - strlen(who), "%s%s", who[0] ? ", " : "",
                     commands[k][0]);
        }
        if (is_first)
            tell_version(check, version[i], who);
    }
}

void plugin_check_version(struct plugin_check *check)
{
    uint32_t version[COMMANDS] = { 0 }, any = 0;

    if (plugin_version_parse(check->slurm_version, &any)) {
        tell_version(check, any, "--slurm-version");
        return;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (spawn_exists(commands[i][0]) &&
            ask_version(check, commands[i][0], commands[i][1], &version[i]))
            any |= version[i];
    tell_versions(check, version);
    if (any)
        return;
    page_finding(check->page, MARK_FAIL, "Slurm", "its version on this host is not known");
    page_advice(check->page, "Name it with --slurm-version, as scontrol --version tells it where "
                             "the plugin is to go.");
}
