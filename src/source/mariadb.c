/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statements are prepared (https://mariadb.com/kb/en/prepared-statements/): values never become a
 * part of them, and rows come one by one, each below a ceiling. */
#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

/* Macros of those call banned functions: for this file the ban begins here. */
#undef SONDE_BANNED_H
#include "base/banned.h"

#include "source/mariadb.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/quote.h"
#include "base/secret.h"

#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

enum { ROW_MAX = 16 << 20, INIT_MAX = 200, PLACE_MAX = 160 };

#define LIBMARIADB_FUNCTIONS(FUNCTION)                                                             \
    FUNCTION(mysql_close)                                                                          \
    FUNCTION(mysql_errno)                                                                          \
    FUNCTION(mysql_error)                                                                          \
    FUNCTION(mysql_get_socket)                                                                     \
    FUNCTION(mysql_init)                                                                           \
    FUNCTION(mysql_options)                                                                        \
    FUNCTION(mysql_real_connect)                                                                   \
    FUNCTION(mysql_server_init)                                                                    \
    FUNCTION(mysql_stmt_bind_param)                                                                \
    FUNCTION(mysql_stmt_bind_result)                                                               \
    FUNCTION(mysql_stmt_close)                                                                     \
    FUNCTION(mysql_stmt_errno)                                                                     \
    FUNCTION(mysql_stmt_error)                                                                     \
    FUNCTION(mysql_stmt_execute)                                                                   \
    FUNCTION(mysql_stmt_fetch)                                                                     \
    FUNCTION(mysql_stmt_fetch_column)                                                              \
    FUNCTION(mysql_stmt_field_count)                                                               \
    FUNCTION(mysql_stmt_init)                                                                      \
    FUNCTION(mysql_stmt_param_count)                                                               \
    FUNCTION(mysql_stmt_prepare)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    LIBMARIADB_FUNCTIONS(MEMBER)
#undef MEMBER
} library;
static struct err load_err; /* why it could not be loaded */

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
#define ROW(name) { #name, offsetof(__typeof__(library), name) },
    LIBMARIADB_FUNCTIONS(ROW)
#undef ROW
};

struct mariadb {
    MYSQL *connection;
    int64_t timeout_ns;
    char place[PLACE_MAX]; /* for sentences */
};

/* What the server's numbers and the library's own mean to a caller; anything else is EIO. */
static const struct {
    unsigned number;
    int code;
} codes[] = {
    { ER_ACCESS_DENIED_ERROR, EACCES },
    { ER_ACCESS_DENIED_NO_PASSWORD_ERROR, EACCES },
    { ER_BAD_DB_ERROR, ENOENT },
    { ER_BAD_FIELD_ERROR, EBADMSG },
    { ER_COLUMNACCESS_DENIED_ERROR, EACCES },
    { ER_CON_COUNT_ERROR, EAGAIN },
    { ER_DBACCESS_DENIED_ERROR, EACCES },
    { ER_HOST_NOT_PRIVILEGED, EACCES },
    { ER_LOCK_WAIT_TIMEOUT, ETIMEDOUT },
    { ER_NO_SUCH_TABLE, ENOENT },
    { ER_SPECIFIC_ACCESS_DENIED_ERROR, EACCES },
    { ER_TABLEACCESS_DENIED_ERROR, EACCES },
    { ER_VIEW_INVALID, EBADMSG },
    { CR_CONNECTION_ERROR, ECONNREFUSED },
    { CR_CONN_HOST_ERROR, ECONNREFUSED },
    { CR_UNKNOWN_HOST, EHOSTUNREACH },
    { CR_SERVER_GONE_ERROR, ECONNRESET },
    { CR_SERVER_LOST, ECONNRESET },
    { CR_SSL_CONNECTION_ERROR, EPROTO },
};

static void load(void)
{
    static const char name[] = "libmariadb.so.3";
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        err_set(&load_err, ENOENT,
                "libmariadb cannot be loaded, and no database asked without it; install it "
                "(Debian: libmariadb3, Fedora: mariadb-connector-c)");
        return;
    }
    for (size_t i = 0; i < COUNT(functions); i++) {
        void *function = dlsym(handle, functions[i].symbol);

        if (!function) {
            err_set(&load_err, ENOENT, "%s has no %s; install libmariadb 3.1 or newer", name,
                    functions[i].symbol);
            return;
        }
        memcpy((char *)&library + functions[i].offset, &function, sizeof(function));
    }
    if (library.mysql_server_init(0, NULL, NULL) != 0)
        err_set(&load_err, EIO, "libmariadb cannot be used: it does not start");
}

static int open_library(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return load_err.code ? err_set(err, load_err.code, "%s", load_err.text) : 0;
}

static int code_of(const struct mariadb *mariadb, unsigned number, int64_t begin_ns)
{
    int code = EIO;

    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i].number == number)
            code = codes[i].code;
    /* The library tells no time that is over apart from a connection that has ended. */
    if ((code == ECONNREFUSED || code == ECONNRESET) &&
        clock_mono(&clock_real) - begin_ns >= mariadb->timeout_ns)
        code = ETIMEDOUT;
    return code;
}

static int fail(const struct mariadb *mariadb, unsigned number, const char *words, int64_t begin_ns,
                struct err *err)
{
    int code = code_of(mariadb, number, begin_ns);
    char shown[300];
    size_t n = str_copy_printable(shown, sizeof(shown), str_of(words));

    if (number == ER_PARSE_ERROR) /* its words repeat the statement, in which a password may be */
        return err_set(err, code, "%s does not know such a statement (error %u)", mariadb->place,
                       number);
    if (code == ETIMEDOUT && number != ER_LOCK_WAIT_TIMEOUT)
        return err_set(err, code, "%s has not answered within %lld s", mariadb->place,
                       (long long)(mariadb->timeout_ns / NS_PER_SEC));
    return err_set(err, code, "%s %s: %.*s (error %u)", mariadb->place,
                   number >= CR_MIN_ERROR && number <= CR_MAX_ERROR ? "cannot be asked" : "says",
                   (int)n, shown, number);
}

static void name_place(struct mariadb *mariadb, const struct mariadb_settings *settings)
{
    size_t room = sizeof(mariadb->place);

    if (settings->host.n)
        snprintf(mariadb->place, room, "the database at %s:%u", quote(settings->host).text,
                 settings->port ? settings->port : MYSQL_PORT);
    else if (settings->socket.n)
        snprintf(mariadb->place, room, "the database at %s", quote(settings->socket).text);
    else
        snprintf(mariadb->place, room, "the database on this host");
}

static void set_options(MYSQL *connection, const struct mariadb_settings *settings,
                        const char *ca_file)
{
    const unsigned seconds = settings->timeout_seconds, refused = 0,
                   protocol = settings->host.n ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    const my_bool is_tls = ca_file != NULL;
    const unsigned long row_max = ROW_MAX;
    char init[INIT_MAX];

    /* Quoting is by the server's own rules, whatever this one is set to; and no statement waits for
     * a lock after we have gone. */
    snprintf(init, sizeof(init),
             "SET SESSION sql_mode = '', sql_quote_show_create = 1, lock_wait_timeout = %u",
             seconds > 1 ? seconds - 1 : 1);
    library.mysql_options(connection, MYSQL_INIT_COMMAND, init);
    library.mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    library.mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    library.mysql_options(connection, MYSQL_OPT_READ_TIMEOUT, &seconds);
    library.mysql_options(connection, MYSQL_OPT_WRITE_TIMEOUT, &seconds);
    library.mysql_options(connection, MYSQL_OPT_PROTOCOL, &protocol);
    library.mysql_options(connection, MYSQL_OPT_MAX_ALLOWED_PACKET, &row_max);
    /* A server may ask for any file of ours. */
    library.mysql_options(connection, MYSQL_OPT_LOCAL_INFILE, &refused);
    /* Told either way: which of them is the library's own choice depends on its version. */
    library.mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &is_tls);
    library.mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &is_tls);
    if (is_tls)
        library.mysql_options(connection, MYSQL_OPT_SSL_CA, ca_file);
}

static const char *text_or_null(struct arena *arena, struct str text)
{
    return text.n ? arena_str(arena, text).p : NULL;
}

static int connect_with(struct mariadb *mariadb, const struct mariadb_settings *settings,
                        const char *password, struct err *err)
{
    struct arena arena = { 0 };
    int64_t begin_ns = clock_mono(&clock_real);
    bool is_connected;

    set_options(mariadb->connection, settings, text_or_null(&arena, settings->ca_file));
    is_connected = library.mysql_real_connect(
        mariadb->connection, text_or_null(&arena, settings->host),
        text_or_null(&arena, settings->user), password, text_or_null(&arena, settings->database),
        settings->port, text_or_null(&arena, settings->socket), 0);
    arena_clear(&arena);
    if (!is_connected)
        return fail(mariadb, library.mysql_errno(mariadb->connection),
                    library.mysql_error(mariadb->connection), begin_ns, err);
    fcntl(library.mysql_get_socket(mariadb->connection), F_SETFD, FD_CLOEXEC);
    return 0;
}

static int read_password(struct str file, char **ret, struct err *err)
{
    struct arena arena = { 0 };
    int code = 0;

    if (file.n)
        code = secret_read(arena_str(&arena, file).p, "password", ret, err);
    else
        *ret = heap_str(STR("")); /* not NULL, for which the library looks into the environment */
    arena_clear(&arena);
    return code;
}

int mariadb_open(const struct mariadb_settings *settings, struct mariadb **ret, struct err *err)
{
    struct mariadb *mariadb;
    char *password;
    int code = open_library(err);

    if (code == 0)
        code = read_password(settings->password_file, &password, err);
    if (code < 0)
        return code;
    mariadb = heap_alloc(sizeof(*mariadb));
    mariadb->timeout_ns = settings->timeout_seconds * NS_PER_SEC;
    name_place(mariadb, settings);
    mariadb->connection = library.mysql_init(NULL);
    if (mariadb->connection)
        code = connect_with(mariadb, settings, password, err);
    else
        code = err_set(err, ENOMEM, "libmariadb has no memory for a connection");
    secret_free(password);
    if (code < 0)
        mariadb_close(mariadb);
    else
        *ret = mariadb;
    return code;
}

struct mariadb *mariadb_close(struct mariadb *mariadb)
{
    if (!mariadb)
        return NULL;
    if (mariadb->connection)
        library.mysql_close(mariadb->connection);
    free(mariadb);
    return NULL;
}

/* One statement under way. */
struct run {
    struct mariadb *mariadb;
    MYSQL_STMT *stmt;
    int64_t begin_ns;
    int (*row)(void *ctx, const struct str *cell, size_t n);
    void *ctx;

    size_t n;            /* columns */
    MYSQL_BIND *columns; /* these and the next by column */
    unsigned long *lengths;
    my_bool *is_null;
    struct str *cells;
    char *text; /* of one row */
    size_t room;
};

static int fail_run(const struct run *run, struct err *err)
{
    return fail(run->mariadb, library.mysql_stmt_errno(run->stmt),
                library.mysql_stmt_error(run->stmt), run->begin_ns, err);
}

static int execute(struct run *run, const struct str *parameter, size_t n, struct err *err)
{
    MYSQL_BIND *binds = heap_alloc((n + 1) * sizeof(*binds));
    bool has_failed;

    assert(n == library.mysql_stmt_param_count(run->stmt));
    for (size_t i = 0; i < n; i++) {
        binds[i].buffer_type = MYSQL_TYPE_STRING;
        binds[i].buffer = (void *)(uintptr_t)parameter[i].p;
        binds[i].buffer_length = parameter[i].n;
        binds[i].length = &binds[i].buffer_length;
    }
    has_failed = (n && library.mysql_stmt_bind_param(run->stmt, binds)) ||
                 library.mysql_stmt_execute(run->stmt);
    free(binds);
    return has_failed ? fail_run(run, err) : 0;
}

/* Without room at first: how much it takes is known when a row is there. */
static int bind_columns(struct run *run, struct err *err)
{
    run->columns = heap_alloc(run->n * sizeof(*run->columns));
    run->lengths = heap_alloc(run->n * sizeof(*run->lengths));
    run->is_null = heap_alloc(run->n * sizeof(*run->is_null));
    run->cells = heap_alloc(run->n * sizeof(*run->cells));
    for (size_t i = 0; i < run->n; i++) {
        run->columns[i].buffer_type = MYSQL_TYPE_STRING;
        run->columns[i].length = &run->lengths[i];
        run->columns[i].is_null = &run->is_null[i];
    }
    return library.mysql_stmt_bind_result(run->stmt, run->columns) ? fail_run(run, err) : 0;
}

static void make_room(struct run *run)
{
    size_t bytes = 1;

    for (size_t i = 0; i < run->n; i++)
        bytes += run->is_null[i] ? 0 : run->lengths[i];
    if (bytes > run->room) {
        run->text = heap_resize(run->text, bytes, 1);
        run->room = bytes;
    }
}

static int take_row(struct run *run, struct err *err)
{
    char *to;

    make_room(run);
    to = run->text;
    for (size_t i = 0; i < run->n; i++) {
        MYSQL_BIND into = { .buffer_type = MYSQL_TYPE_STRING,
                            .buffer = to,
                            .buffer_length = run->lengths[i] };

        run->cells[i] = run->is_null[i] ? (struct str){ 0 } : (struct str){ to, run->lengths[i] };
        if (!run->cells[i].n)
            continue;
        if (library.mysql_stmt_fetch_column(run->stmt, &into, (unsigned)i, 0))
            return fail_run(run, err);
        to += run->lengths[i];
    }
    return run->row ? run->row(run->ctx, run->cells, run->n) : 0;
}

static int read_rows(struct run *run, struct err *err)
{
    int code = bind_columns(run, err), outcome = 0;

    while (code == 0) {
        outcome = library.mysql_stmt_fetch(run->stmt);
        if (outcome != 0 && outcome != MYSQL_DATA_TRUNCATED)
            break;
        code = take_row(run, err);
        if (code == 0 && clock_mono(&clock_real) - run->begin_ns > run->mariadb->timeout_ns) {
            code = err_set(err, ETIMEDOUT, "%s is still telling rows after %lld s",
                           run->mariadb->place, (long long)(run->mariadb->timeout_ns / NS_PER_SEC));
            /* Else the library reads what is left of them. */
            shutdown(library.mysql_get_socket(run->mariadb->connection), SHUT_RDWR);
        }
    }
    return code == 0 && outcome != MYSQL_NO_DATA ? fail_run(run, err) : code;
}

int mariadb_run(struct mariadb *mariadb, const char *statement, const struct str *parameter,
                size_t n_parameters, int (*row)(void *ctx, const struct str *cell, size_t n),
                void *ctx, struct err *err)
{
    struct run run = {
        .mariadb = mariadb,
        .stmt = library.mysql_stmt_init(mariadb->connection),
        .begin_ns = clock_mono(&clock_real),
        .row = row,
        .ctx = ctx,
    };
    int code;

    if (!run.stmt)
        return err_set(err, ENOMEM, "libmariadb has no memory for a statement");
    if (library.mysql_stmt_prepare(run.stmt, statement, strlen(statement)))
        code = fail_run(&run, err);
    else
        code = execute(&run, parameter, n_parameters, err);
    run.n = library.mysql_stmt_field_count(run.stmt);
    if (code == 0 && run.n)
        code = read_rows(&run, err);
    library.mysql_stmt_close(run.stmt);
    free(run.columns);
    free(run.lengths);
    free(run.is_null);
    free(run.cells);
    free(run.text);
    return code;
}
