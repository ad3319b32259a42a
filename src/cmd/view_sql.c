/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SQL statements that create and drop the views in slurmdbd's database. */
#include "cmd/view_sql.h"

#include "source/mariadb.h"

enum { NAME_ROOM = 1000 };

/* Of the job's row; all are there in every Slurm from 20.11 on. The first three are those that
 * petricore's view had. */
static const char *const columns[] = {
    "id_user",      "id_job",        "job_name",       "account",        "partition",
    "state",        "exit_code",     "derived_ec",     "time_submit",    "time_eligible",
    "time_start",   "time_end",      "time_suspended", "timelimit",      "cpus_req",
    "mem_req",      "nodes_alloc",   "nodelist",       "tres_req",       "tres_alloc",
    "id_array_job", "id_array_task", "het_job_id",     "het_job_offset",
};

const struct str view_sql_mark = STR_INIT("_job_table` `sonde_job` left join `");

int view_sql_place(struct buf *to, struct str database, struct str cluster, const char *end,
                   struct err *err)
{
    struct buf name;
    int code;

    buf_init(&name, NAME_ROOM);
    buf_put(&name, cluster);
    buf_text(&name, end);
    code = mariadb_put_name(to, database, err);
    buf_byte(to, '.');
    if (code == 0)
        code = mariadb_put_name(to, buf_str(&name), err);
    buf_free(&name);
    return code;
}

int view_sql_create(struct buf *to, struct str database, struct str view, struct str cluster,
                    struct err *err)
{
    int code;

    buf_text(to, "CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY DEFINER VIEW ");
    code = view_sql_place(to, database, view, "", err);
    buf_text(to, " AS\nSELECT ");
    for (size_t i = 0; i < COUNT(columns); i++)
        buf_printf(to, "`sonde_job`.`%s`,%s", columns[i], i % 4 == 3 ? "\n    " : " ");
    buf_text(to, "`sonde_assoc`.`user`, ");
    if (code == 0)
        code = mariadb_put_string(to, cluster, err);
    buf_text(to, " AS `cluster`\nFROM ");
    if (code == 0)
        code = view_sql_place(to, database, cluster, "_job_table", err);
    buf_text(to, " AS `sonde_job`\nLEFT JOIN ");
    if (code == 0)
        code = view_sql_place(to, database, cluster, "_assoc_table", err);
    buf_text(to, " AS `sonde_assoc` ON `sonde_assoc`.`id_assoc` = `sonde_job`.`id_assoc`\n"
                 "WHERE `sonde_job`.`deleted` = 0");
    return code;
}

int view_sql_drop(struct buf *to, struct str database, struct str view, struct err *err)
{
    buf_text(to, "DROP VIEW IF EXISTS ");
    return view_sql_place(to, database, view, "", err);
}

static int put_account(struct buf *to, const struct view_account *account, struct err *err)
{
    int code = mariadb_put_string(to, account->user, err);

    buf_byte(to, '@');
    return code == 0 ? mariadb_put_string(to, account->host, err) : code;
}

static int put_right(struct buf *to, const char *verb, struct str database, struct str view,
                     const char *preposition, const struct view_account *account, struct err *err)
{
    int code;

    buf_printf(to, "%s SELECT ON ", verb);
    code = view_sql_place(to, database, view, "", err);
    buf_printf(to, " %s ", preposition);
    return code == 0 ? put_account(to, account, err) : code;
}

int view_sql_grant(struct buf *to, struct str database, struct str view,
                   const struct view_account *account, struct err *err)
{
    return put_right(to, "GRANT", database, view, "TO", account, err);
}

int view_sql_revoke(struct buf *to, struct str database, struct str view,
                    const struct view_account *account, struct err *err)
{
    return put_right(to, "REVOKE", database, view, "FROM", account, err);
}

int view_sql_identify(struct buf *to, const struct view_account *account, bool is_there,
                      struct str password, struct err *err)
{
    int code;

    buf_text(to, is_there ? "ALTER USER " : "CREATE USER IF NOT EXISTS ");
    code = put_account(to, account, err);
    buf_text(to, " IDENTIFIED BY ");
    return code == 0 ? mariadb_put_string(to, password, err) : code;
}

int view_sql_drop_user(struct buf *to, const struct view_account *account, struct err *err)
{
    buf_text(to, "DROP USER IF EXISTS ");
    return put_account(to, account, err);
}

int view_sql_show_grants(struct buf *to, const struct view_account *account, struct err *err)
{
    buf_text(to, "SHOW GRANTS FOR ");
    return put_account(to, account, err);
}
