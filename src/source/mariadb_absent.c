/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the place of mariadb.c where libmariadb's headers were not there at build time. */
#include "source/mariadb.h"

int mariadb_open(const struct mariadb_settings *settings, struct mariadb **ret, struct err *err)
{
    (void)settings, (void)ret;
    return err_set(err, ENOSYS,
                   "this sonde was built without libmariadb and cannot ask a database; build it "
                   "with libmariadb's headers (Debian: libmariadb-dev, Fedora: "
                   "mariadb-connector-c-devel)");
}

struct mariadb *mariadb_close(struct mariadb *mariadb)
{
    (void)mariadb;
    return NULL;
}

int mariadb_run(struct mariadb *mariadb, const char *statement, const struct str *parameter,
                size_t n_parameters, int (*row)(void *ctx, const struct str *cell, size_t n),
                void *ctx, struct err *err)
{
    (void)mariadb, (void)statement, (void)parameter, (void)n_parameters, (void)row, (void)ctx;
    return err_set(err, ENOSYS, "this sonde was built without libmariadb");
}
