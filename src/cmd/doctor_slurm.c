/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which Slurm this is, and what it shows to us: slurm.conf(5), configless_slurm and jwt of Slurm's
 * documentation. */
#include "base/num.h"
#include "base/spawn.h"
#include "base/users.h"
#include "cmd/doctor.h"
#include "source/prefix.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONF_MAX = 4 << 20,
    DIRECTORY_SECONDS = 2, /* that a directory of users has to give a name */
    DAY = 86400,
    SOON = 600,
    MUNGE_LIFE = 300, /* seconds that a credential holds by default */
};

static int keep_version(void *ctx, struct str piece, struct err *err)
{
    struct buf *text = ctx;

    (void)err;
    buf_put(text, piece);
    return 0;
}

static int run_command(const struct doctor *doctor, const struct spawn *spawn, struct err *err)
{
    struct spawn_result result;
    char **prefix;
    int code = prefix_parse(doctor->settings.prefix, &prefix, err);

    if (code == 0)
        code =
            prefix ? prefix_run(prefix, spawn, NULL, &result, err) : spawn_run(spawn, &result, err);
    free(prefix);
    return code;
}

/* "slurm-wlm 22.05.8" */
static int ask_version(struct doctor *doctor, const char *command, struct err *err)
{
    static const char *const no_changes[] = { NULL };
    const char *argv[] = { command, "--version", NULL };
    struct buf text;
    struct spawn spawn = {
        .argv = argv,
        .env = no_changes,
        .deadline_ns = clock_mono(&clock_real) + doctor->options->timeout_ns,
        .max_output = 4096,
        .cancelled = &doctor->is_cancelled,
        .sink = keep_version,
        .ctx = &text,
    };
    struct str rest;
    int code;

    buf_init(&text, 4096);
    code = run_command(doctor, &spawn, err);
    rest = str_trim(buf_str(&text));
    str_cut(&rest, ' ');
    if (code == 0 && !rest.n)
        code = err_set(err, EBADMSG, "%s --version tells no version", command);
    if (code == 0)
        doctor->command_version = quote(rest);
    buf_free(&text);
    return code;
}

static void put_command(char path[CONF_PATH], struct str directory, const char *name)
{
    snprintf(path, CONF_PATH, "%.*s%s%s", STR_ARG(directory), directory.n ? "/" : "", name);
}

/* The first that is not here; NULL if all are, or if they run elsewhere. */
static const char *find_missing_command(const struct doctor *doctor)
{
    static const char *const needed[] = { "squeue", "sinfo", "scontrol", "sdiag", "sshare" };
    char path[CONF_PATH];

    for (size_t i = 0; i < COUNT(needed) && !doctor->settings.prefix.n; i++) {
        put_command(path, doctor->settings.bin_path, needed[i]);
        if (!spawn_exists(path))
            return needed[i];
    }
    return NULL;
}

void doctor_check_commands(struct doctor *doctor)
{
    struct str directory = doctor->settings.bin_path, prefix = doctor->settings.prefix;
    const char *missing = find_missing_command(doctor);
    struct page *page = doctor->page;
    char path[CONF_PATH];
    struct err err = { 0 };

    if (missing) {
        page_finding(page, MARK_NOTE, "commands", "there is no %s in %.*s", missing,
                     STR_ARG(directory.n ? directory : STR("PATH")));
        page_advice(page, "json and cli run Slurm's commands: if these are elsewhere, name their "
                          "directory with --slurm.bin-path.");
        return;
    }
    doctor->has_commands = true;
    put_command(path, directory, "sinfo");
    if (ask_version(doctor, path, &err) == 0) {
        page_finding(page, MARK_OK, "commands", "Slurm" GLUE "%s%s%.*s",
                     doctor->command_version.text, prefix.n ? ", through " : "",
                     STR_ARG(str_head(prefix, 200)));
    } else if (err.code != ECANCELED) {
        page_finding(page, MARK_WARN, "commands", "%s", err.text);
        page_advice(page, "Run %.*s%s%s --version by hand: it needs no cluster to answer.",
                    STR_ARG(prefix), prefix.n ? " " : "", path);
    }
}

/* Where Slurm's commands look, and where a slurmd or sackd without a file keeps what it got. */
static const char *const usual_places[] = {
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/usr/local/etc/slurm.conf",
    "/run/slurm/conf/slurm.conf",
};

static void keep_value(struct str value, char *to, size_t size)
{
    snprintf(to, size, "%.*s", STR_ARG(str_trim(value)));
}

static void read_auth_info(struct str value, struct conf *conf)
{
    const struct str socket = STR("socket=");

    for (struct str rest = value; rest.p;) {
        struct str part = str_trim(str_cut(&rest, ','));

        if (str_starts(part, socket))
            keep_value(str_skip(part, socket.n), conf->munge_socket, sizeof(conf->munge_socket));
    }
}

static void read_conf_line(struct str line, struct conf *conf)
{
    struct str value = str_head(line, str_find(line, '#')), key = str_trim(str_cut(&value, '='));

    if (str_eq_nocase(key, STR("AuthType")))
        keep_value(value, conf->auth, sizeof(conf->auth));
    else if (str_eq_nocase(key, STR("AuthInfo")))
        read_auth_info(value, conf);
}

static int read_conf(const char *path, struct conf *conf)
{
    FILE *file = fopen(path, "re");
    char line[4096];
    size_t n = 0;

    if (!file)
        return -errno;
    while (n < CONF_MAX && fgets(line, sizeof(line), file)) {
        n += strlen(line);
        read_conf_line(str_of(line), conf);
    }
    fclose(file);
    conf->is_found = true;
    return 0;
}

/* It is told to use this one. */
static void check_given_conf(struct doctor *doctor, const char *path, const char *by)
{
    int code = read_conf(path, &doctor->conf);

    if (code == 0) {
        page_finding(doctor->page, MARK_OK, "slurm.conf", "%s, named by %s", path, by);
        return;
    }
    page_finding(doctor->page, doctor->settings.prefix.n ? MARK_NOTE : MARK_WARN, "slurm.conf",
                 "%s, named by %s, cannot be read: %s", path, by, err_words(-code));
    page_advice(doctor->page, "Correct %s, or let this user read the file.", by);
}

void doctor_check_conf(struct doctor *doctor)
{
    const char *variable = getenv("SLURM_CONF"), *server = getenv("SLURM_CONF_SERVER");
    struct page *page = doctor->page;

    if (doctor->settings.conf.n) {
        check_given_conf(doctor, doctor->settings.conf.p, "--slurm.conf");
        return;
    }
    if (variable && variable[0]) {
        check_given_conf(doctor, variable, "SLURM_CONF");
        return;
    }
    for (size_t i = 0; i < COUNT(usual_places); i++) {
        int code = read_conf(usual_places[i], &doctor->conf);

        if (code == 0) {
            page_finding(page, MARK_OK, "slurm.conf", "%s", usual_places[i]);
            return;
        }
        if (code != -ENOENT && code != -ENOTDIR) {
            page_finding(page, MARK_WARN, "slurm.conf", "%s cannot be read: %s", usual_places[i],
                         err_words(-code));
            page_advice(page, "Let this user read it.");
            return;
        }
    }
    if (server && server[0]) {
        doctor->conf.is_found = true;
        page_finding(page, MARK_OK, "slurm.conf", "configless, from %s (SLURM_CONF_SERVER)",
                     quote(str_of(server)).text);
        return;
    }
    page_finding(page, MARK_NOTE, "slurm.conf", "none in its usual places on this host");
    page_advice(page, "If Slurm's commands or libslurm are to work here, name it with "
                      "--slurm.conf, or a configless cluster with SLURM_CONF_SERVER.");
}

/* 2205 of "22.05.8"; 0 if it is not one. */
static unsigned release_of(const char *version)
{
    struct str rest = str_of(version), first = str_cut(&rest, '.'), second = str_cut(&rest, '.');
    uint64_t major, minor;

    if (!num_get_u64(first, &major) || !num_get_u64(second, &minor) || major > 99 || minor > 99)
        return 0;
    return (unsigned)(100 * major + minor);
}

static const struct door *find_door(const struct doctor *doctor, const char *name)
{
    for (size_t i = 0; i < doctor->n_doors; i++)
        if (strcmp(doctor->doors[i].name, name) == 0)
            return &doctor->doors[i];
    return NULL;
}

/* Now that the cluster's release is known, from another source. */
static void check_helper(struct doctor *doctor)
{
    const struct door *libslurm = find_door(doctor, "libslurm");
    const char *helper = libslurm ? libslurm->about.interface : "";
    unsigned own = release_of(helper), controller = release_of(doctor->version.text);

    if (!own || !controller || own == controller || libslurm->works)
        return;
    page_finding(doctor->page, MARK_NOTE, "libslurm",
                 "sonde-libslurm-%s is built for Slurm %s, slurmctld is %s", helper, helper,
                 doctor->version.text);
    page_advice(
        doctor->page,
        "Install sonde-libslurm-%02u.%02u, with libslurm of that release (docs/sources.md).",
        controller / 100, controller % 100);
}

void doctor_check_cluster(struct doctor *doctor)
{
    unsigned commands = release_of(doctor->command_version.text),
             controller = release_of(doctor->version.text);

    if (!doctor->has_config)
        return;
    page_finding(doctor->page, MARK_OK, "cluster", "%s, slurmctld %s",
                 doctor->cluster.text[0] ? doctor->cluster.text : "without a name",
                 doctor->version.text[0] ? doctor->version.text : "of an unknown version");
    check_helper(doctor);
    if (!commands || !controller || commands <= controller)
        return;
    page_finding(doctor->page, MARK_WARN, "commands", "are newer than slurmctld (%s and %s)",
                 doctor->command_version.text, doctor->version.text);
    page_advice(doctor->page, "Slurm's commands may be older than its controller, not newer: "
                              "install those of the controller's release.");
}

/* The name that Slurm told, or that of this host's directory; empty if there is none. */
static struct quote user_name(const struct doctor *doctor)
{
    char name[USERS_NAME_MAX];
    struct users *users;
    bool is_known;

    if (doctor->user.text[0])
        return doctor->user;
    users = users_new(&users_system, &clock_real);
    users_user(users, doctor->user_id, name);
    users_settle(users, clock_mono(&clock_real) + DIRECTORY_SECONDS * NS_PER_SEC);
    is_known = users_user(users, doctor->user_id, name);
    users_free(users);
    return quote(is_known ? str_of(name) : STR(""));
}

static void list_hidden(unsigned hidden, struct buf *to)
{
    for (unsigned i = 0; i < PRIVATE_DATA; i++)
        if (hidden >> i & 1)
            buf_printf(to, "%s%s", to->n ? ", " : "", private_data_words[i].p);
}

static void tell_hidden(struct doctor *doctor, const char *who, const char *name)
{
    struct buf hidden;

    buf_init(&hidden, 400);
    list_hidden(doctor->hidden, &hidden);
    page_finding(doctor->page, MARK_WARN, "permissions",
                 "through %s Slurm is asked as %s, neither operator nor administrator: PrivateData "
                 "hides %s of others, and numbers will be too small",
                 doctor->user_door, who, hidden.p);
    buf_free(&hidden);
    if (doctor->user.text[0])
        page_advice(doctor->page, "sacctmgr modify user %s set adminlevel=operator", name);
    else
        page_advice(doctor->page,
                    "sacctmgr add user %s account=ACCOUNT adminlevel=operator; Slurm's accounting "
                    "does not know that user yet.",
                    name);
}

void doctor_check_private_data(struct doctor *doctor)
{
    struct quote name;
    char who[sizeof(name) + 40];

    if (!doctor->has_config)
        return;
    if (!doctor->has_user || strcmp(doctor->taken, "rest") == 0) {
        page_finding(doctor->page, MARK_NOTE, "permissions",
                     "what PrivateData hides from us is not told through %s",
                     doctor->has_user ? doctor->taken : "these doors");
        page_advice(doctor->page, "If slurm.conf has PrivateData, make the user whom sonde asks as "
                                  "an operator: sacctmgr modify user NAME set adminlevel=operator");
    }
    if (!doctor->has_user)
        return;
    name = user_name(doctor);
    if (name.text[0])
        snprintf(who, sizeof(who), "%s (uid" GLUE "%u)", name.text, doctor->user_id);
    else
        snprintf(who, sizeof(who), "uid" GLUE "%u", doctor->user_id);
    if (doctor->hidden)
        tell_hidden(doctor, who, name.text[0] ? name.text : "NAME");
    else
        page_finding(doctor->page, MARK_OK, "permissions",
                     "through %s Slurm is asked as %s; PrivateData hides nothing from that user",
                     doctor->user_door, who);
}

static void check_token_file(struct doctor *doctor, const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0) {
        page_finding(doctor->page, MARK_FAIL, "token", "%s: %s", path, err_words(errno));
        page_advice(doctor->page,
                    "Write one: scontrol token username=NAME lifespan=SECONDS | install -D -m 640 "
                    "-g sonde /dev/stdin %s",
                    path);
    } else if (status.st_mode & (S_IROTH | S_IWOTH)) {
        page_finding(doctor->page, MARK_WARN, "token",
                     "%s can be %s by everybody on this host: who has the token is that user", path,
                     status.st_mode & S_IWOTH ? "written" : "read");
        page_advice(doctor->page, "chmod o= %s", path);
    }
}

static void check_token_end(struct doctor *doctor, int64_t end)
{
    int64_t left = end - clock_wall(&clock_real) / NS_PER_SEC;
    char text[40];

    snprintf(text, sizeof(text), left / DAY ? "%lld days" : "%lld minutes",
             (long long)(left / DAY ? left / DAY : left / 60));
    if (left >= DAY) {
        page_finding(doctor->page, MARK_OK, "token", "holds for another %s", text);
        return;
    }
    if (left <= 0)
        page_finding(doctor->page, MARK_FAIL, "token", "has expired");
    else
        page_finding(doctor->page, left < SOON ? MARK_WARN : MARK_NOTE, "token",
                     "holds for another %s", text);
    page_advice(doctor->page, "Renew it well before its end, from cron or a timer: scontrol token "
                              "username=NAME lifespan=SECONDS. sonde reads the file again when it "
                              "changes.");
}

void doctor_check_token(struct doctor *doctor)
{
    const struct door *rest = find_door(doctor, "rest");
    struct str path = doctor->settings.rest_token_file;

    if (!path.n)
        return;
    check_token_file(doctor, path.p);
    if (!rest || !rest->is_open)
        return;
    if (rest->about.token_expires)
        check_token_end(doctor, rest->about.token_expires);
    else
        page_finding(doctor->page, MARK_NOTE, "token", "has no end, or none that can be read");
}

void doctor_check_clock(struct doctor *doctor)
{
    double apart = fabs(doctor->clock_ahead);

    if (!doctor->has_time)
        return;
    if (apart < 1) {
        page_finding(doctor->page, MARK_OK, "clock", "agrees with slurmctld's");
        return;
    }
    page_finding(doctor->page, apart < MUNGE_LIFE ? MARK_WARN : MARK_FAIL, "clock",
                 "is %.0f s %s slurmctld's: ages and waiting times are wrong by that", apart,
                 doctor->clock_ahead > 0 ? "ahead of" : "behind");
    page_advice(doctor->page, "Keep the time of both hosts with NTP (chrony, systemd-timesyncd).%s",
                apart < MUNGE_LIFE ? "" : " munge refuses credentials that are this old.");
}
