/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin create-view and drop-view: a user of slurmdbd's database who can read whose jobs are
 * which, and nothing else. docs/views.md */
#include "base/clock.h"
#include "base/option.h"
#include "base/quote.h"
#include "base/secret.h"
#include "cmd/admin.h"
#include "cmd/view_targets.h"

#include <stdio.h>

enum { STATEMENT_MAX = 256 << 10, PORT_MAX = 65535 };

static const int64_t longest_timeout_ns = 3600 * NS_PER_SEC;

struct settings {
    bool is_dry;
    struct str database;
    struct view_account account;
    struct str password_file;
    struct option_list clusters;
    struct str server, socket, admin_user, admin_password_file, ca_file;
    uint64_t port;
    int64_t timeout_ns;
};

#define PLACE(member) offsetof(struct settings, member)

#define COMMON_ROWS                                                                                \
    { "database",                                                                                  \
      OPTION_STRING,                                                                               \
      PLACE(database),                                                                             \
      "NAME",                                                                                      \
      "slurm_acct_db",                                                                             \
      NULL,                                                                                        \
      NULL,                                                                                        \
      "View",                                                                                      \
      "The database of slurmdbd, as StorageLoc in slurmdbd.conf names it." },                      \
        { "user", OPTION_STRING, PLACE(account.user),                                              \
          "NAME", "sonde",       NULL,                                                             \
          NULL,   "View",        "The user of the database who may read the views." },             \
        { "host",                                                                                  \
          OPTION_STRING,                                                                           \
          PLACE(account.host),                                                                     \
          "HOST",                                                                                  \
          "localhost",                                                                             \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "View",                                                                                  \
          "From where that user may connect: localhost is the socket, % is anywhere." },           \
        { "server", OPTION_STRING, PLACE(server),                                                  \
          "HOST",   NULL,          NULL,                                                           \
          NULL,     "Server",      "The database's host; without it, the socket on this one." },   \
        { "port", OPTION_UINT, PLACE(port),                                                        \
          "PORT", "3306",      NULL,                                                               \
          NULL,   "Server",    "The port on --server." },                                          \
        { "socket", OPTION_STRING, PLACE(socket),                                                  \
          "FILE",   NULL,          NULL,                                                           \
          NULL,     "Server",      "The socket, if it is not at the usual place." },               \
        { "admin.user", OPTION_STRING, PLACE(admin_user),                                          \
          "NAME",       "root",        NULL,                                                       \
          NULL,         "Server",      "The administrator of the database to connect as." },       \
        { "admin.password-file",                                                                   \
          OPTION_STRING,                                                                           \
          PLACE(admin_password_file),                                                              \
          "FILE",                                                                                  \
          NULL,                                                                                    \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "Server",                                                                                \
          "The administrator's password; root needs none at the socket of a usual MariaDB." },     \
        { "ca-file",                                                                               \
          OPTION_STRING,                                                                           \
          PLACE(ca_file),                                                                          \
          "FILE",                                                                                  \
          NULL,                                                                                    \
          NULL,                                                                                    \
          NULL,                                                                                    \
          "Server",                                                                                \
          "Certificates to trust: the connection is then encrypted, and the server's name "        \
          "checked." },                                                                            \
        { "timeout",  OPTION_DURATION, PLACE(timeout_ns),                                          \
          "DURATION", "30s",           NULL,                                                       \
          NULL,       "Server",        "The server has this long for one answer." },               \
    {                                                                                              \
        0                                                                                          \
    }

static const struct option create_options[] = {
    { "dry-run", OPTION_BOOL, PLACE(is_dry), NULL, NULL, NULL, NULL, "View",
      "Print the SQL, and change nothing." },
    { "password-file", OPTION_STRING, PLACE(password_file), "FILE", NULL, NULL, NULL, "View",
      "The password that --user gets; needed unless that user is there already." },
    { "cluster", OPTION_LIST, PLACE(clusters), "NAME", NULL, NULL, NULL, "View",
      "Make the views of these clusters alone." },
    COMMON_ROWS,
};

static const struct option drop_options[] = {
    { "dry-run", OPTION_BOOL, PLACE(is_dry), NULL, NULL, NULL, NULL, "View",
      "Print the SQL, and change nothing." },
    COMMON_ROWS,
};

static const struct option_command create_command = {
    .name = "sonde admin create-view",
    .summary = "make a user of slurmdbd's database who can read whose jobs are which",
    .description =
        "Makes, in the MariaDB or MySQL of slurmdbd, a view of each cluster's jobs with their "
        "users, and a user who may read these views and nothing else. The view of the first "
        "cluster is user_job_view, of others CLUSTER_user_job_view. A user_job_view that is there "
        "keeps its cluster.\n\n"
        "Each statement is printed when it is done; passwords are shown as '…'. To run it again "
        "changes nothing, but for clusters that are new and the password, if another is given. Run "
        "it again after an upgrade of Slurm, and when a cluster was added or removed.\n\n"
        "It is run once, as an administrator of the database, best on its host: there root needs "
        "no password. A user who is there already and may do more than read such views, "
        "slurmdbd's own for one, is refused.",
    .exit_status = "0 if all of it is there now, or would be; 1 if not; 2 if a flag is wrong.",
    .options = create_options,
};

static const struct option_command drop_command = {
    .name = "sonde admin drop-view",
    .summary = "take away what create-view has made",
    .description =
        "Drops the views that sonde admin create-view has made in slurmdbd's database, and the "
        "user, if that one may read nothing but them. Views of others stay, and so does a user "
        "who may do more. What is not there is passed over.",
    .exit_status = "0 if nothing of it is left, or would be; 1 if not; 2 if a flag is wrong.",
    .options = drop_options,
};

/* One run of either command. */
struct work {
    const struct option_command *command;
    const struct settings *settings;
    struct arena *arena;
    struct mariadb *mariadb;
    struct view_survey survey;
    struct buf statement;
    char *password; /* or NULL */
};

static bool is_printable(struct str text)
{
    size_t length;

    for (struct str rest = text; rest.n; rest = str_skip(rest, length)) {
        length = str_printable_len(rest);
        if (!length)
            return false;
    }
    return true;
}

/* A new password is told to the server in clear. */
static bool is_told_abroad(const struct settings *settings)
{
    struct str server = settings->server;

    return settings->password_file.n && !settings->ca_file.n && server.n &&
           !str_eq(server, STR("localhost")) && !str_starts(server, STR("127.")) &&
           !str_eq(server, STR("::1"));
}

static int check_settings(const struct settings *settings, struct err *err)
{
    if (!settings->database.n || !settings->account.user.n || !settings->account.host.n ||
        !settings->admin_user.n)
        return err_set(err, EINVAL, "--database, --user, --host and --admin.user cannot be empty");
    if (!is_printable(settings->account.user) || !is_printable(settings->account.host))
        return err_set(err, EINVAL, "--user and --host must be UTF-8 without control characters");
    if (settings->server.n && settings->socket.n)
        return err_set(err, EINVAL, "give --server or --socket, not both");
    if (!settings->port || settings->port > PORT_MAX)
        return err_set(err, EINVAL, "--port must be 1 to %d", PORT_MAX);
    if (settings->timeout_ns < NS_PER_SEC || settings->timeout_ns > longest_timeout_ns)
        return err_set(err, EINVAL, "--timeout must be at least 1s and at most 1h");
    if (is_told_abroad(settings))
        return err_set(err, EINVAL,
                       "the new password would cross the network in clear: give --ca-file, or run "
                       "this on the database's host");
    return 0;
}

static int open_as(const struct settings *settings, struct str user, struct str password_file,
                   struct mariadb **ret, struct err *err)
{
    const struct mariadb_settings server = {
        .host = settings->server,
        .port = settings->server.n ? (uint16_t)settings->port : 0,
        .socket = settings->socket,
        .user = user,
        .password_file = password_file,
        .ca_file = settings->ca_file,
        .timeout_seconds = (unsigned)(settings->timeout_ns / NS_PER_SEC),
    };

    return mariadb_open(&server, ret, err);
}

/* Does and prints the statement; `code` is what came of writing it. */
static int perform(struct work *work, int code, struct err *err)
{
    if (code == 0 && work->statement.over)
        code = err_set(err, E2BIG, "a statement for the database is too long");
    if (code == 0 && !work->settings->is_dry)
        code = mariadb_run(work->mariadb, work->statement.p, NULL, 0, NULL, NULL, err);
    if (code == 0)
        printf("%s;\n", work->statement.p);
    buf_reset(&work->statement);
    return code;
}

static int take_match(void *ctx, const struct str *cell, size_t n)
{
    *(bool *)ctx = n == 1 && str_eq(cell[0], STR("1"));
    return 0;
}

/* Whether the user has that password already, as far as can be tried from here: to set it again
 * would count as a change, of which the server keeps the time. */
static bool is_password_set(const struct work *work)
{
    const struct settings *settings = work->settings;
    const struct str names[] = { settings->account.user, settings->account.host };
    struct mariadb *mariadb = NULL;
    bool is_set = false;

    if (!work->survey.is_user_there ||
        open_as(settings, settings->account.user, settings->password_file, &mariadb, NULL) < 0)
        return false;
    if (mariadb_run(mariadb, "SELECT CURRENT_USER() = CONCAT(?, '@', LOWER(?))", names,
                    COUNT(names), take_match, &is_set, NULL) < 0)
        is_set = false;
    mariadb_close(mariadb);
    return is_set;
}

/* The password is printed as an ellipsis. */
static int identify(struct work *work, struct err *err)
{
    const struct view_account *account = &work->settings->account;
    bool is_there = work->survey.is_user_there;
    struct buf secret;
    int code;

    buf_init(&secret, STATEMENT_MAX);
    code = view_sql_identify(&secret, account, is_there, str_of(work->password), err);
    if (code == 0 && !work->settings->is_dry)
        code = mariadb_run(work->mariadb, secret.p, NULL, 0, NULL, NULL, err);
    explicit_bzero(secret.p, secret.n);
    buf_free(&secret);
    if (code < 0)
        return err_prefix(err, "the user cannot be given that password");
    view_sql_identify(&work->statement, account, is_there, STR("…"), NULL);
    printf("%s;\n", work->statement.p);
    buf_reset(&work->statement);
    return 0;
}

static int check_user(const struct work *work, struct err *err)
{
    const struct view_account *account = &work->settings->account;

    if (view_survey_has_other_rights(&work->survey))
        return err_set(err, EEXIST,
                       "the user %s at %s is there and may do more than read such views: give "
                       "--user another name",
                       quote(account->user).text, quote(account->host).text);
    if (!work->survey.is_user_there && !work->password)
        return err_set(err, EINVAL,
                       "the user %s at %s is not there yet: give --password-file, a file with the "
                       "password to give",
                       quote(account->user).text, quote(account->host).text);
    return 0;
}

static int make_views(struct work *work, const struct view_targets *targets, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < targets->n; i++) {
        const struct view_target *target = &targets->target[i];

        if (target->left_out)
            fprintf(stderr, "%s: the cluster \"%s\" is left out: %s\n", work->command->name,
                    quote(target->cluster).text, target->left_out);
        else
            code = perform(work,
                           view_sql_create(&work->statement, work->settings->database, target->view,
                                           target->cluster, err),
                           err);
    }
    return code;
}

static int grant_views(struct work *work, const struct view_targets *targets, struct err *err)
{
    const struct settings *settings = work->settings;
    int code = 0;

    for (size_t i = 0; code == 0 && i < targets->n; i++)
        if (!targets->target[i].left_out)
            code = perform(work,
                           view_sql_grant(&work->statement, settings->database,
                                          targets->target[i].view, &settings->account, err),
                           err);
    return code;
}

static int create(struct work *work, struct err *err)
{
    const struct settings *settings = work->settings;
    struct view_targets targets;
    int code = view_targets_choose(&work->survey, settings->database, settings->clusters,
                                   work->arena, &targets, err);

    if (code == 0)
        code = check_user(work, err);
    if (code == 0)
        code = make_views(work, &targets, err);
    if (code == 0 && work->password && !is_password_set(work))
        code = identify(work, err);
    return code == 0 ? grant_views(work, &targets, err) : code;
}

static bool has_right(const struct view_survey *survey, const struct view_found *view)
{
    for (size_t i = 0; i < survey->n_rights; i++)
        if (survey->rights[i].place.n && str_eq(survey->rights[i].place, view->place))
            return true;
    return false;
}

/* One who may read views of ours, and nothing that will still be there. */
static bool is_user_ours(const struct work *work)
{
    const struct view_survey *survey = &work->survey;
    size_t n = 0;

    for (size_t i = 0; i < survey->n_rights; i++) {
        if (survey->rights[i].kind == VIEW_RIGHT_OTHER)
            return false;
        if (survey->rights[i].kind == VIEW_RIGHT_READ && !survey->rights[i].is_here)
            return false;
        n += survey->rights[i].kind == VIEW_RIGHT_READ;
    }
    for (size_t i = 0; i < survey->n_views; i++)
        if (!view_is_ours(&survey->views[i]) && has_right(survey, &survey->views[i]))
            return false;
    return n;
}

static int drop_user(struct work *work, struct err *err)
{
    const struct settings *settings = work->settings;
    int code = 0;

    if (is_user_ours(work))
        return perform(work, view_sql_drop_user(&work->statement, &settings->account, err), err);
    fprintf(
        stderr,
        "%s: the user %s at %s stays: it may do other things, or could never read such a view\n",
        work->command->name, quote(settings->account.user).text,
        quote(settings->account.host).text);
    for (size_t i = 0; code == 0 && i < work->survey.n_views; i++) {
        const struct view_found *view = &work->survey.views[i];

        if (view_is_ours(view) && has_right(&work->survey, view))
            code = perform(work,
                           view_sql_revoke(&work->statement, settings->database, view->name,
                                           &settings->account, err),
                           err);
    }
    return code;
}

static int drop(struct work *work, struct err *err)
{
    size_t n = 0;
    int code = 0;

    if (work->survey.is_user_there)
        code = drop_user(work, err);
    for (size_t i = 0; code == 0 && i < work->survey.n_views; i++) {
        const struct view_found *view = &work->survey.views[i];

        if (!view_is_ours(view))
            continue;
        n++;
        code = perform(
            work, view_sql_drop(&work->statement, work->settings->database, view->name, err), err);
    }
    if (code == 0 && !n && !work->survey.is_user_there)
        puts("-- Nothing of it is there.");
    return code;
}

static int run(struct work *work, int (*change)(struct work *work, struct err *err),
               struct err *err)
{
    const struct settings *settings = work->settings;
    int code = check_settings(settings, err);

    if (code == 0 && settings->password_file.n)
        code = secret_read(settings->password_file.p, "password", &work->password, err);
    if (code == 0)
        code = open_as(settings, settings->admin_user, settings->admin_password_file,
                       &work->mariadb, err);
    if (code < 0)
        return code;
    code =
        view_survey_read(work->mariadb, settings->database, &settings->account, &work->survey, err);
    if (code == 0)
        code = change(work, err);
    return code;
}

static const char *what_to_do(int code)
{
    return code == -EACCES ? "; run this as root on the database's host, or name an administrator "
                             "with --admin.user and --admin.password-file"
                           : "";
}

static int main_of(const struct option_command *command, int argc, char **argv,
                   int (*change)(struct work *work, struct err *err))
{
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct work work = { .command = command, .settings = &settings, .arena = &arena };
    struct err err = { 0 };
    char **rest;
    int code = option_parse(command, argc, argv, environ, &arena, &settings, &rest, &err);

    buf_init(&work.statement, STATEMENT_MAX);
    if (code == OPTION_GO_ON)
        code = run(&work, change, &err);
    if (code < 0)
        fprintf(stderr, "%s: %s%s\n", command->name, err.text, what_to_do(code));
    view_survey_clear(&work.survey);
    mariadb_close(work.mariadb);
    secret_free(work.password);
    buf_free(&work.statement);
    arena_clear(&arena);
    return code == -EINVAL ? 2 : code < 0 ? 1 : 0;
}

int admin_create_view(int argc, char **argv)
{
    return main_of(&create_command, argc, argv, create);
}

int admin_drop_view(int argc, char **argv)
{
    return main_of(&drop_command, argc, argv, drop);
}
