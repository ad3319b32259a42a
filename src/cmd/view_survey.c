/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads which clusters, views and grants slurmdbd's database has. */
#include "cmd/view_survey.h"

#include "base/quote.h"

enum { STATEMENT_MAX = 4000 };

struct view_right view_right_of(struct str grant, struct str database)
{
    static const struct str log_in = STR_INIT("GRANT USAGE ON *.* TO "),
                            read = STR_INIT("GRANT SELECT ON `"), to = STR_INIT("` TO ");
    struct view_right right = { .kind = VIEW_RIGHT_OTHER };

    if (str_ends(grant, STR(" WITH GRANT OPTION")))
        return right;
    if (str_starts(grant, log_in))
        right.kind = VIEW_RIGHT_NONE;
    if (str_starts(grant, read)) {
        struct str rest = str_skip(grant, read.n - 1),
                   place = str_head(rest, str_find_str(rest, to) + 1);

        if (place.n < rest.n && (str_ends(place, STR("`" VIEW_SQL_FIRST "`")) ||
                                 str_ends(place, STR(VIEW_SQL_SUFFIX "`")))) {
            right.kind = VIEW_RIGHT_READ;
            right.place = place;
            right.is_here =
                str_starts(place, database) && place.n > database.n && place.p[database.n] == '.';
        }
    }
    return right;
}

bool view_is_ours(const struct view_found *view)
{
    return str_find_str(view->definition, view_sql_mark) < view->definition.n;
}

bool view_reads(const struct view_found *view, struct str database, struct str cluster)
{
    struct buf place;
    bool is_read;

    buf_init(&place, STATEMENT_MAX);
    is_read = view_sql_place(&place, database, cluster, "_job_table", NULL) == 0 &&
              str_find_str(view->definition, buf_str(&place)) < view->definition.n;
    buf_free(&place);
    return is_read;
}

const struct view_found *view_survey_find(const struct view_survey *survey, struct str name)
{
    for (size_t i = 0; i < survey->n_views; i++)
        if (str_eq(survey->views[i].name, name))
            return &survey->views[i];
    return NULL;
}

bool view_survey_has_other_rights(const struct view_survey *survey)
{
    for (size_t i = 0; i < survey->n_rights; i++)
        if (survey->rights[i].kind == VIEW_RIGHT_OTHER)
            return true;
    return false;
}

static int take_flag(void *ctx, const struct str *cell, size_t n)
{
    (void)cell, (void)n;
    *(bool *)ctx = true;
    return 0;
}

static int check_database(struct mariadb *mariadb, struct str database, struct err *err)
{
    bool is_there = false;
    int code = mariadb_run(mariadb,
                           "SELECT 1 FROM information_schema.TABLES "
                           "WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'cluster_table'",
                           &database, 1, take_flag, &is_there, err);

    if (code == 0 && !is_there)
        code = err_set(err, ENOENT,
                       "slurmdbd has no tables in the database \"%s\" there, or this "
                       "administrator may not see them; --database names it as StorageLoc in "
                       "slurmdbd.conf does",
                       quote(database).text);
    return code;
}

static int take_cluster(void *ctx, const struct str *cell, size_t n)
{
    struct view_survey *survey = ctx;

    if (n != 1 || survey->n_clusters >= VIEW_SURVEY_MAX)
        return -EFBIG;
    survey->clusters = heap_grow(survey->clusters, survey->n_clusters, &survey->clusters_room,
                                 sizeof(*survey->clusters));
    survey->clusters[survey->n_clusters++] =
        (struct view_cluster){ .name = arena_str(&survey->arena, cell[0]) };
    return 0;
}

static int read_clusters(struct mariadb *mariadb, struct str database, struct view_survey *survey,
                         struct err *err)
{
    struct buf statement;
    int code;

    buf_init(&statement, STATEMENT_MAX);
    buf_text(&statement, "SELECT name FROM ");
    code = view_sql_place(&statement, database, STR(""), "cluster_table", err);
    buf_text(&statement, " WHERE deleted = 0 ORDER BY creation_time, name");
    if (code == 0)
        code = mariadb_run(mariadb, statement.p, NULL, 0, take_cluster, survey, err);
    buf_free(&statement);
    return code;
}

static int look_for_tables(struct mariadb *mariadb, struct str database,
                           struct view_cluster *cluster, struct err *err)
{
    const struct str parameters[] = { database, cluster->name, database, cluster->name };

    return mariadb_run(mariadb,
                       "SELECT 1 FROM information_schema.TABLES AS job "
                       "JOIN information_schema.TABLES AS assoc "
                       "WHERE job.TABLE_SCHEMA = ? AND job.TABLE_NAME = CONCAT(?, '_job_table') "
                       "AND assoc.TABLE_SCHEMA = ? "
                       "AND assoc.TABLE_NAME = CONCAT(?, '_assoc_table')",
                       parameters, COUNT(parameters), take_flag, &cluster->has_tables, err);
}

/* Empty for a name that is none of ours. */
static struct str place_of(struct view_survey *survey, struct str view)
{
    struct buf place;
    struct str copy = { 0 };

    buf_init(&place, STATEMENT_MAX);
    buf_put(&place, survey->database);
    buf_byte(&place, '.');
    if (mariadb_put_name(&place, view, NULL) == 0)
        copy = arena_str(&survey->arena, buf_str(&place));
    buf_free(&place);
    return copy;
}

static int take_view(void *ctx, const struct str *cell, size_t n)
{
    struct view_survey *survey = ctx;

    if (n != 2 || survey->n_views >= VIEW_SURVEY_MAX)
        return -EFBIG;
    survey->views =
        heap_grow(survey->views, survey->n_views, &survey->views_room, sizeof(*survey->views));
    survey->views[survey->n_views++] = (struct view_found){
        .name = arena_str(&survey->arena, cell[0]),
        .place = place_of(survey, cell[0]),
        .definition = arena_str(&survey->arena, cell[1].p ? cell[1] : STR("")),
    };
    return 0;
}

static int read_views(struct mariadb *mariadb, struct str database, struct view_survey *survey,
                      struct err *err)
{
    const struct str parameters[] = { database, STR(VIEW_SQL_FIRST), STR(VIEW_SQL_SUFFIX) };

    return mariadb_run(mariadb,
                       "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS "
                       "WHERE TABLE_SCHEMA = ? AND (TABLE_NAME = ? OR RIGHT(TABLE_NAME, 14) = ?) "
                       "ORDER BY TABLE_NAME",
                       parameters, COUNT(parameters), take_view, survey, err);
}

static int take_right(void *ctx, const struct str *cell, size_t n)
{
    struct view_survey *survey = ctx;

    if (n != 1 || survey->n_rights >= VIEW_SURVEY_MAX)
        return -EFBIG;
    survey->rights =
        heap_grow(survey->rights, survey->n_rights, &survey->rights_room, sizeof(*survey->rights));
    survey->rights[survey->n_rights++] =
        view_right_of(arena_str(&survey->arena, cell[0]), survey->database);
    return 0;
}

static int read_user(struct mariadb *mariadb, const struct view_account *account,
                     struct view_survey *survey, struct err *err)
{
    const struct str parameters[] = { account->user, account->host };
    struct buf statement;
    int code =
        mariadb_run(mariadb, "SELECT 1 FROM mysql.user WHERE User = ? AND LOWER(Host) = LOWER(?)",
                    parameters, COUNT(parameters), take_flag, &survey->is_user_there, err);

    if (code < 0 || !survey->is_user_there)
        return code;
    buf_init(&statement, STATEMENT_MAX);
    code = view_sql_show_grants(&statement, account, err);
    if (code == 0)
        code = mariadb_run(mariadb, statement.p, NULL, 0, take_right, survey, err);
    buf_free(&statement);
    return code;
}

static int quote_database(struct str database, struct view_survey *survey, struct err *err)
{
    struct buf name;
    int code;

    buf_init(&name, STATEMENT_MAX);
    code = mariadb_put_name(&name, database, err);
    survey->database = arena_str(&survey->arena, buf_str(&name));
    buf_free(&name);
    return code;
}

int view_survey_read(struct mariadb *mariadb, struct str database,
                     const struct view_account *account, struct view_survey *ret, struct err *err)
{
    int code;

    *ret = (struct view_survey){ 0 };
    code = quote_database(database, ret, err);
    if (code == 0)
        code = check_database(mariadb, database, err);
    if (code == 0)
        code = read_clusters(mariadb, database, ret, err);
    for (size_t i = 0; code == 0 && i < ret->n_clusters; i++)
        code = look_for_tables(mariadb, database, &ret->clusters[i], err);
    if (code == 0)
        code = read_views(mariadb, database, ret, err);
    if (code == 0)
        code = read_user(mariadb, account, ret, err);
    if (code == -EFBIG)
        code = err_set(err, EFBIG, "there are more than %d clusters, views or rights of one user",
                       VIEW_SURVEY_MAX);
    return code;
}

void view_survey_clear(struct view_survey *survey)
{
    free(survey->clusters);
    free(survey->views);
    free(survey->rights);
    arena_clear(&survey->arena);
}
