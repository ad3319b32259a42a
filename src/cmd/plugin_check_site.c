/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the plugin goes, and what is there now: slurm.conf(5), PluginDir and
 * AcctGatherProfileType. */
#include "base/quote.h"
#include "cmd/plugin_check.h"
#include "source/slurm_conf.h"

#include <glob.h>

enum { CONFIG_SECONDS = 10, CONFIG_MAX = 1 << 20, CONF_MAX = 4 << 20 };

static int keep(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

int plugin_check_ask(const struct plugin_check *check, const char *const *argv, int seconds,
                     size_t max, struct buf *ret, struct err *err)
{
    struct spawn_result result;
    const struct spawn spawn = {
        .argv = argv,
        .deadline_ns = clock_mono(&clock_real) + seconds * NS_PER_SEC,
        .max_output = max,
        .cancelled = check->cancelled,
        .sink = keep,
        .ctx = ret,
    };

    buf_init(ret, max);
    return spawn_run(&spawn, &result, err);
}

int plugin_check_read(const char *directory, const char *name, struct buf *ret)
{
    char path[2 * PLUGIN_PATH], piece[4096];
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    buf_init(ret, CONF_MAX);
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0 && !ret->over)
        buf_put(ret, (struct str){ piece, n });
    fclose(file);
    return 0;
}

static void keep_setting(struct plugin_check *check, const struct slurm_conf_line *line)
{
    if (str_eq_nocase(line->key, STR("PluginDir")))
        snprintf(check->told_dir, sizeof(check->told_dir), "%.*s", STR_ARG(line->value));
    else if (str_eq_nocase(line->key, STR("AcctGatherProfileType")) &&
             !str_eq(line->value, STR("(null)")))
        snprintf(check->told_type, sizeof(check->told_type), "%.*s", STR_ARG(line->value));
    else if (str_eq(line->key, STR("SLURM_VERSION")))
        plugin_version_parse(line->value, &check->told_version);
}

static void read_settings(struct plugin_check *check, struct str text, const char *told_by)
{
    struct slurm_conf_line line;
    unsigned number = 0;

    while (slurm_conf_next(&text, &number, &line))
        keep_setting(check, &line);
    check->told_by = told_by;
}

static void find_conf(struct plugin_check *check)
{
    const char *conf = getenv("SLURM_CONF"), *slash = conf ? strrchr(conf, '/') : NULL;

    if (check->conf_dir.n)
        snprintf(check->conf, sizeof(check->conf), "%s", check->conf_dir.p);
    else if (slash)
        snprintf(check->conf, sizeof(check->conf), "%.*s", (int)(slash - conf), conf);
    else
        snprintf(check->conf, sizeof(check->conf), "%s/etc/slurm", check->root);
}

/* Or slurm.conf, if it does not answer. */
void plugin_check_slurmctld(struct plugin_check *check)
{
    static const char *const argv[] = { "scontrol", "show", "config", NULL };
    struct err err = { 0 };
    struct buf text;

    find_conf(check);
    if (spawn_exists(argv[0])) {
        if (plugin_check_ask(check, argv, CONFIG_SECONDS, CONFIG_MAX, &text, &err) == 0)
            read_settings(check, buf_str(&text), "slurmctld");
        else
            page_finding(check->page, MARK_NOTE, "slurmctld", "%s", err.text);
        buf_free(&text);
    }
    if (!check->told_by && plugin_check_read(check->conf, "slurm.conf", &text) == 0) {
        read_settings(check, buf_str(&text), "slurm.conf");
        buf_free(&text);
    }
    if (!check->told_version || check->told_version == check->refused_by ||
        plugin_check_fits(check, check->told_version))
        return;
    page_finding(check->page, MARK_WARN, "slurmctld",
                 "that runs now is %s: it, and each slurmd "
                 "and slurmstepd of its version, would refuse "
                 "the plugin",
                 plugin_version_text(check->told_version).text);
    page_advice(check->page, "Install it together with the Slurm that it is for.");
}

/* Debian; Fedora and Slurm's own packages; Slurm's default prefix; a usual one. */
static const char *const usual_places[] = {
    "/usr/lib/*/slurm-wlm",   "/usr/lib64/slurm",       "/usr/lib/slurm",
    "/usr/local/lib/slurm",   "/usr/local/lib64/slurm", "/opt/slurm/lib/slurm",
    "/opt/slurm/lib64/slurm",
};

static bool find_usual_place(const char *root, char place[PLUGIN_PATH])
{
    for (size_t i = 0; i < COUNT(usual_places); i++) {
        char pattern[PLUGIN_PATH];
        glob_t found;
        bool is_found;

        snprintf(pattern, sizeof(pattern), "%s%s", root, usual_places[i]);
        is_found = glob(pattern, GLOB_ONLYDIR, NULL, &found) == 0;
        if (is_found)
            snprintf(place, PLUGIN_PATH, "%s", found.gl_pathv[0]);
        globfree(&found);
        if (is_found)
            return true;
    }
    return false;
}

/* Who may change it runs code as root: Slurm looks at neither owner nor mode. */
static void check_writers(const struct plugin_check *check, const char *path)
{
    static const char consequence[] = "Slurm does not look, and loads what is there as root";
    struct stat status;

    if (stat(path, &status) < 0)
        return;
    if (status.st_mode & (S_IWGRP | S_IWOTH)) {
        page_finding(check->page, MARK_WARN, "mode", "%s can be written by %s: %s", path,
                     status.st_mode & S_IWOTH ? "everybody" : "its group", consequence);
        page_advice(check->page, "chmod go-w %s", path);
    }
    if (status.st_uid != 0) {
        page_finding(check->page, MARK_WARN, "owner", "of %s is user %u: %s", path, status.st_uid,
                     consequence);
        page_advice(check->page, "chown root: %s", path);
    }
}

static void check_readers(const struct plugin_check *check, const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0 || status.st_mode & (S_ISDIR(status.st_mode) ? S_IXOTH : S_IROTH))
        return;
    page_finding(check->page, MARK_FAIL, "mode",
                 "%s cannot be read by everybody: slurmctld, which runs as SlurmUser, would end",
                 path);
    page_advice(check->page, "chmod o+rX %s", path);
}

static void check_place(const struct plugin_check *check, const char *place)
{
    if (access(place, F_OK) < 0) {
        page_finding(check->page, MARK_WARN, "PluginDir", "%s: %s", place, err_words(errno));
        return;
    }
    check_writers(check, place);
    check_readers(check, place);
}

static void tell_places(const struct plugin_check *check, const char *how)
{
    if (!check->places[0]) {
        page_finding(check->page, MARK_NOTE, "PluginDir", "is not known");
        page_advice(check->page, "Name it with --plugin-dir, and what is in it is looked at.");
        return;
    }
    page_finding(check->page, MARK_OK, "PluginDir", "%s (%s)", check->places, how);
    for (struct str rest = str_of(check->places); rest.n;) {
        struct str place = str_cut(&rest, ':');
        char path[PLUGIN_PATH];

        snprintf(path, sizeof(path), "%.*s", STR_ARG(place));
        check_place(check, path);
    }
}

void plugin_check_places(struct plugin_check *check)
{
    const char *how = "a usual place";

    if (check->plugin_dir.n) {
        snprintf(check->places, sizeof(check->places), "%s", check->plugin_dir.p);
        how = "--plugin-dir";
    } else if (check->told_dir[0]) {
        memcpy(check->places, check->told_dir, sizeof(check->places));
        how = check->told_by;
    } else {
        find_usual_place(check->root, check->places);
    }
    tell_places(check, how);
}

/* The first one in PluginDir, which is the one that Slurm takes. */
static bool find_installed(const struct plugin_check *check, char path[PLUGIN_PATH])
{
    struct stat status;

    for (struct str rest = str_of(check->places); rest.n;) {
        struct str place = str_cut(&rest, ':');
        int n = snprintf(path, PLUGIN_PATH, "%.*s/%s", STR_ARG(place), check->file_name);

        if (n < PLUGIN_PATH && stat(path, &status) == 0 && S_ISREG(status.st_mode))
            return true;
    }
    return false;
}

static void tell_installed(struct plugin_check *check)
{
    const struct plugin_copy *file = &check->file, *installed = &check->installed;
    const struct plugin_file *plugin = &installed->plugin;

    if (str_eq(buf_str(&file->content), buf_str(&installed->content))) {
        page_finding(check->page, MARK_OK, "installed", "%s is the same", installed->path);
        return;
    }
    check->has_installed = true;
    if (plugin->has_version)
        page_finding(check->page, MARK_NOTE, "installed", "%s is another, for Slurm" GLUE "%s%s",
                     installed->path, plugin_version_text(plugin->version).text,
                     check->is_profile && !plugin->has_keys ? ", not sonde's" : "");
    else
        page_finding(check->page, MARK_WARN, "installed", "%s is no plugin of Slurm's",
                     installed->path);
}

static bool is_this_file(const struct plugin_check *check)
{
    const struct stat *a = &check->file.status, *b = &check->installed.status;

    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

void plugin_check_installed(struct plugin_check *check)
{
    struct plugin_copy *installed = &check->installed;
    struct err err = { 0 };

    if (!check->places[0])
        return;
    if (!find_installed(check, installed->path)) {
        page_finding(check->page, MARK_NOTE, "installed", "nothing of that name yet");
    } else if (plugin_file_load(installed->path, &installed->content, &installed->status, &err) <
                   0 ||
               plugin_file_parse(buf_str(&installed->content), &installed->plugin, &err) < 0) {
        page_finding(check->page, MARK_WARN, "installed", "%s: %s", installed->path, err.text);
    } else if (is_this_file(check)) {
        check->is_installed = true;
        page_finding(check->page, MARK_OK, "installed", "it is this very file");
        check_writers(check, check->path);
        check_readers(check, check->path);
    } else {
        tell_installed(check);
    }
}

void plugin_check_use(struct plugin_check *check)
{
    const char *type = check->file.plugin.type;

    if (!check->told_by || !check->is_profile)
        return;
    if (strcmp(check->told_type, type) == 0)
        page_finding(check->page, MARK_OK, "in use", "AcctGatherProfileType=%s (%s)",
                     quote(str_of(type)).text, check->told_by);
    else
        page_finding(check->page, MARK_NOTE, "in use", "not yet: AcctGatherProfileType is %s (%s)",
                     check->told_type[0] ? quote(str_of(check->told_type)).text : "not set",
                     check->told_by);
}
