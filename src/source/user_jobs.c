/* SPDX-License-Identifier: GPL-2.0-or-later */
/* docs/views.md tells what the views have. */
#include "source/user_jobs.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/quote.h"

enum { STATEMENT_MAX = 1000, VIEW_NAME_MAX = 400, CLUSTER_MAX = 256 };

/* Texts in slurmdbd's tables are equal whatever their case and their accents: one user must not see
 * the jobs of another whose name is nearly his. A job that was requeued stands there once for each
 * run. */
#define JOBS_OF                                                                                    \
    "SELECT id_job FROM %s WHERE user = ? AND CAST(user AS BINARY) = ? "                           \
    "GROUP BY id_job ORDER BY MAX(time_submit) DESC, id_job DESC LIMIT %zu"

struct ids {
    uint32_t *id;
    size_t n, n_room, most;
};

static int take_id(void *ctx, const struct str *cell, size_t n)
{
    struct ids *ids = ctx;
    uint64_t id;

    if (n != 1 || !num_get_u64(cell[0], &id) || id > UINT32_MAX || ids->n >= ids->most)
        return -EBADMSG;
    ids->id = heap_grow(ids->id, ids->n, &ids->n_room, sizeof(*ids->id));
    ids->id[ids->n++] = (uint32_t)id;
    return 0;
}

static int read_view(struct mariadb *mariadb, const char *view, struct str user, struct ids *ids,
                     struct err *err)
{
    const struct str parameters[] = { user, user };
    struct buf statement;
    int code;

    buf_init(&statement, STATEMENT_MAX);
    buf_printf(&statement, JOBS_OF, view, ids->most);
    *err = (struct err){ 0 };
    code = mariadb_run(mariadb, statement.p, parameters, COUNT(parameters), take_id, ids, err);
    buf_free(&statement);
    if (code == -EBADMSG && !err->code)
        code = err_set(err, EBADMSG, "%s holds no job ids", view);
    return code;
}

struct holder {
    bool has_jobs;
    char cluster[CLUSTER_MAX];
};

static int take_cluster(void *ctx, const struct str *cell, size_t n)
{
    struct holder *holder = ctx;

    if (n == 1 && cell[0].n < sizeof(holder->cluster)) {
        memcpy(holder->cluster, cell[0].p, cell[0].n);
        holder->cluster[cell[0].n] = '\0';
    }
    holder->has_jobs = true;
    return 0;
}

/* Of which cluster user_job_view is: its rows tell. */
static int find_holder(struct mariadb *mariadb, struct holder *ret, struct err *err)
{
    return mariadb_run(mariadb, "SELECT cluster FROM user_job_view LIMIT 1", NULL, 0, take_cluster,
                       ret, err);
}

/* Who may read nothing is not told either whether it is there. */
static bool is_missing(int code)
{
    return code == -ENOENT || code == -EACCES;
}

static int say_missing(struct str cluster, int code, struct err *err)
{
    if (code == -EBADMSG)
        return err_set(err, ENOENT,
                       "the view of jobs in slurmdbd's database is not as sonde makes it, or its "
                       "tables have changed; make it anew with: sonde admin create-view");
    return err_set(err, ENOENT,
                   "there is no view of the jobs of %s in slurmdbd's database, or this user may "
                   "not read it; make it with: sonde admin create-view",
                   cluster.n ? quote(cluster).text : "the first cluster");
}

static int read_own_view(struct mariadb *mariadb, struct str cluster, struct str user,
                         struct ids *ids, struct err *err)
{
    struct buf name, quoted;
    int code;

    buf_init(&name, VIEW_NAME_MAX);
    buf_init(&quoted, VIEW_NAME_MAX);
    buf_put(&name, cluster);
    buf_text(&name, "_user_job_view");
    code = mariadb_put_name(&quoted, buf_str(&name), err);
    if (code == 0)
        code = read_view(mariadb, quoted.p, user, ids, err);
    buf_free(&name);
    buf_free(&quoted);
    return code;
}

static int read_cluster(struct mariadb *mariadb, struct str cluster, struct str user,
                        struct ids *ids, struct err *err)
{
    struct holder holder = { 0 };
    int code = find_holder(mariadb, &holder, err), own;

    if (code == 0 && (!cluster.n || str_eq(cluster, str_of(holder.cluster))))
        return read_view(mariadb, "user_job_view", user, ids, err);
    if (code < 0 && code != -EBADMSG && !is_missing(code))
        return code;
    if (!cluster.n)
        return say_missing(cluster, code, err);
    own = read_own_view(mariadb, cluster, user, ids, err);
    if (!is_missing(own) && own != -EBADMSG)
        return own;
    /* One without rows may be of any cluster: there are no jobs in it. */
    return code == 0 && !holder.has_jobs ? 0 : say_missing(cluster, code < 0 ? code : own, err);
}

int user_jobs_read(struct mariadb *mariadb, struct str cluster, struct str user, size_t most,
                   uint32_t **ret, size_t *ret_n, struct err *err)
{
    struct ids ids = { .most = most < USER_JOBS_MAX ? most : USER_JOBS_MAX };
    struct err own_err = { 0 };
    int code = read_cluster(mariadb, cluster, user, &ids, &own_err);

    if (code < 0) {
        free(ids.id);
        return err_set(err, own_err.code, "%s", own_err.text);
    }
    *ret = ids.id;
    *ret_n = ids.n;
    return 0;
}
