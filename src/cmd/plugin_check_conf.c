/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acct_gather.conf(5): a key that no loaded plugin knows ends Slurm's daemons
 * (src/interfaces/acct_gather.c there). Hence the order in which things are changed. */
#include "base/quote.h"
#include "base/shell.h"
#include "cmd/plugin_check.h"
#include "source/slurm_conf.h"

enum { LIST_MAX = 1000, COMMANDS_MAX = 8192 };

/* The plugin that sonde's took over from does not tell its own. */
static bool knows(const struct plugin_file *plugin, struct str key)
{
    struct str keys = plugin->has_keys ? str_of(plugin->keys)
                                       : STR("ProfilePrometheusHost ProfilePrometheusDefault");

    while (keys.n)
        if (str_eq_nocase(str_cut(&keys, ' '), key))
            return true;
    return false;
}

/* Whatever begins with Profile is for the one profile plugin that is loaded. */
static bool is_profile_key(struct str key)
{
    const struct str begin = STR("Profile");

    return str_eq_nocase(str_head(key, begin.n), begin);
}

/* "ProfileHDF5Dir (line 3), …" */
static void list_unknown(struct str text, const struct plugin_file *plugin, struct buf *to)
{
    struct slurm_conf_line line;
    unsigned number = 0;

    while (slurm_conf_next(&text, &number, &line))
        if (is_profile_key(line.key) && !knows(plugin, line.key))
            buf_printf(to, "%s%s (line" GLUE "%u)", to->n ? ", " : "", quote(line.key).text,
                       line.number);
}

static void check_keys(const struct plugin_check *check, struct str text)
{
    struct buf unknown;

    buf_init(&unknown, LIST_MAX);
    list_unknown(text, &check->file.plugin, &unknown);
    if (unknown.n) {
        page_finding(check->page, MARK_FAIL, "keys",
                     "unknown to this plugin: %s; slurmctld, slurmd and slurmstepd would end, "
                     "\"fatal: Could not open/read/parse acct_gather.conf\"",
                     unknown.p);
        page_advice(check->page, "Take them out of acct_gather.conf on all hosts first, then "
                                 "scontrol reconfigure.");
    } else {
        page_finding(check->page, MARK_OK, "keys",
                     "none that begins with Profile is unknown to "
                     "this plugin");
    }
    buf_reset(&unknown);
    if (check->has_installed)
        list_unknown(text, &check->installed.plugin, &unknown);
    if (unknown.n) {
        page_finding(check->page, MARK_WARN, "keys",
                     "unknown to the installed plugin: %s; a daemon that is started now ends",
                     unknown.p);
        page_advice(check->page, "Take them out until this plugin is installed on all hosts.");
    }
    buf_free(&unknown);
}

static void note_includes(const struct plugin_check *check, struct str text)
{
    struct slurm_conf_line line;
    unsigned number = 0;

    while (slurm_conf_next(&text, &number, &line))
        if (str_eq_nocase(line.key, STR("Include")))
            page_finding(check->page, MARK_NOTE, "conf", "%s (line" GLUE "%u) is not looked into",
                         quote(line.value).text, line.number);
}

void plugin_check_conf(struct plugin_check *check)
{
    struct buf text;
    int code;

    if (strcmp(check->file.plugin.type, "acct_gather_profile/prometheus") != 0)
        return;
    if (!check->file.plugin.has_keys)
        page_finding(check->page, MARK_NOTE, "plugin",
                     "it is not sonde's: the keys of the original are assumed");
    if (plugin_check_read(check->conf, "acct_gather_profile.conf", &text) == 0) {
        buf_free(&text);
        page_finding(check->page, MARK_WARN, "conf",
                     "%s/acct_gather_profile.conf is a file that Slurm does not read", check->conf);
        page_advice(check->page, "Its keys belong into acct_gather.conf.");
    }
    code = plugin_check_read(check->conf, "acct_gather.conf", &text);
    if (code == -ENOENT) {
        page_finding(check->page, MARK_NOTE, "conf", "there is no %s/acct_gather.conf",
                     check->conf);
        return;
    }
    if (code < 0) {
        page_finding(check->page, MARK_WARN, "conf", "%s/acct_gather.conf: %s", check->conf,
                     err_words(-code));
        return;
    }
    page_finding(check->page, MARK_OK, "conf", "%s/acct_gather.conf", check->conf);
    note_includes(check, buf_str(&text));
    check_keys(check, buf_str(&text));
    buf_free(&text);
}

/* Its words without anything that would move the cursor. */
static void print_path(FILE *to, const char *before, const char *path, const char *after)
{
    struct buf line;

    buf_init(&line, COMMANDS_MAX);
    shell_word(&line, str_of(path));
    buf_text(&line, after);
    fputs(before, to);
    page_line(to, line.p);
    buf_free(&line);
}

/* Slurm passes over the temporary name: it begins with a dot. */
static void print_commands(const struct plugin_check *check)
{
    struct str places = str_of(check->places[0] ? check->places : "PLUGINDIR");
    struct str place = str_cut(&places, ':');
    char temporary[2 * PLUGIN_PATH], target[2 * PLUGIN_PATH];
    FILE *to = check->page->to;

    snprintf(temporary, sizeof(temporary), "%.*s/.%s.new", STR_ARG(place), check->file_name);
    snprintf(target, sizeof(target), "%.*s/%s", STR_ARG(place), check->file_name);
    fputs("\nInstall it by rename, never over a file that is loaded:\n", to);
    print_path(to, "  install -m 644", check->path, " \\");
    print_path(to, "     ", temporary, "");
    print_path(to, "  mv -f", temporary, " \\");
    print_path(to, "     ", target, "");
}

static const char order[] =
    "\n"
    "Roll-out\n"
    "  1. the new .so on the controllers and on every node, by rename\n"
    "  2. the first time, AcctGatherProfileType=acct_gather_profile/prometheus in\n"
    "     slurm.conf; restart slurmctld and every slurmd: jobs go on\n"
    "  3. new keys in acct_gather.conf, everywhere\n"
    "  4. scontrol reconfigure; before 23.11, slurmctld shows them after a restart\n"
    "Roll-back\n"
    "  1. the keys that the old .so does not know out of acct_gather.conf, everywhere\n"
    "  2. scontrol reconfigure\n"
    "  3. the old .so on the controllers and on every node, by rename\n"
    "  4. restart slurmctld and every slurmd\n";

void plugin_check_advise(const struct plugin_check *check)
{
    if (!check->is_installed)
        print_commands(check);
    if (strcmp(check->file.plugin.type, "acct_gather_profile/prometheus") == 0)
        fputs(order, check->page->to);
}
