/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks user_jobs_read, for tests: views_probe SOCKET USER PASSWORD_FILE CLUSTER NAME MOST prints
 * the ids, one a line; "" as CLUSTER is the first. Exit status 3 if there is no such view, 1 for
 * other failures. */
#include "base/num.h"
#include "source/user_jobs.h"

#include <stdio.h>

static int print_jobs(struct mariadb *mariadb, char **argv, struct err *err)
{
    uint32_t *ids = NULL;
    uint64_t most = 0;
    size_t n = 0;
    int code;

    num_get_u64(str_of(argv[6]), &most);
    code = user_jobs_read(mariadb, str_of(argv[4]), str_of(argv[5]), most, &ids, &n, err);
    for (size_t i = 0; i < n; i++)
        printf("%u\n", ids[i]);
    free(ids);
    return code;
}

int main(int argc, char **argv)
{
    struct mariadb *mariadb = NULL;
    struct err err = { 0 };
    int code;

    if (argc != 7)
        return 2;
    code = mariadb_open(
        &(struct mariadb_settings){
            .socket = str_of(argv[1]),
            .user = str_of(argv[2]),
            .password_file = str_of(argv[3]),
            .database = STR("slurm_acct_db"),
            .timeout_seconds = 20,
        },
        &mariadb, &err);
    if (code == 0) {
        code = print_jobs(mariadb, argv, &err);
        code = code == -ENOENT ? 3 : code;
    }
    if (code)
        fprintf(stderr, "%s\n", err.text);
    mariadb_close(mariadb);
    return code < 0 ? 1 : code;
}
