/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statements by which `sonde admin create-view` and drop-view change slurmdbd's database.
 * docs/views.md */
#ifndef SONDE_CMD_VIEW_SQL_H
#define SONDE_CMD_VIEW_SQL_H

#include "base/buf.h"
#include "base/err.h"

#define VIEW_SQL_FIRST  "user_job_view"  /* of the first cluster */
#define VIEW_SQL_SUFFIX "_user_job_view" /* of others, after their name */

struct view_account {
    struct str user, host;
};

/* How a view that was made by these reads its cluster's jobs, as information_schema tells it. */
extern const struct str view_sql_mark;

/* Each writes one statement without its semicolon. -EINVAL with a sentence for names that a
 * database cannot have. */
int view_sql_create(struct buf *to, struct str database, struct str view, struct str cluster,
                    struct err *err);
int view_sql_drop(struct buf *to, struct str database, struct str view, struct err *err);
int view_sql_grant(struct buf *to, struct str database, struct str view,
                   const struct view_account *account, struct err *err);
int view_sql_revoke(struct buf *to, struct str database, struct str view,
                    const struct view_account *account, struct err *err);

/* Makes the user, or gives another password to the one that is there. */
int view_sql_identify(struct buf *to, const struct view_account *account, bool is_there,
                      struct str password, struct err *err);
int view_sql_drop_user(struct buf *to, const struct view_account *account, struct err *err);
int view_sql_show_grants(struct buf *to, const struct view_account *account, struct err *err);

/* `database`.`CLUSTERend`: a table or view of a cluster. */
int view_sql_place(struct buf *to, struct str database, struct str cluster, const char *end,
                   struct err *err);

#endif
