/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde admin create-view` decides and writes. What a server makes of it:
 * tests/e2e/test_views.py. */
#include "test.h"

#include "cmd/view_targets.h"

static const struct view_account account = { STR_INIT("o'neil"), STR_INIT("10.0.0.%") };

#define DATABASE STR("slurm_acct_db")

TEST(statements_quote_every_name)
{
    struct err err = { 0 };
    struct buf to;

    buf_init(&to, 10000);
    assert_int_equal(view_sql_grant(&to, STR("d`b"), STR("user_job_view"), &account, &err), 0);
    assert_str(buf_str(&to), "GRANT SELECT ON `d``b`.`user_job_view` TO 'o''neil'@'10.0.0.%'");
    buf_reset(&to);
    assert_int_equal(view_sql_identify(&to, &account, true, STR("p'\\w"), &err), 0);
    assert_str(buf_str(&to), "ALTER USER 'o''neil'@'10.0.0.%' IDENTIFIED BY 'p''\\\\w'");
    buf_reset(&to);
    assert_int_equal(view_sql_create(&to, DATABASE, STR("a`'_user_job_view"), STR("a`'"), &err), 0);
    assert_contains(to.p, "VIEW `slurm_acct_db`.`a``'_user_job_view` AS");
    assert_contains(to.p, "FROM `slurm_acct_db`.`a``'_job_table` AS `sonde_job`");
    assert_contains(to.p, "JOIN `slurm_acct_db`.`a``'_assoc_table` AS `sonde_assoc`");
    assert_contains(to.p, "'a`''' AS `cluster`");
    assert_contains(to.p, "SELECT `sonde_job`.`id_user`, `sonde_job`.`id_job`, "
                          "`sonde_job`.`job_name`,");
    buf_free(&to);
}

static void assert_right(const char *grant, enum view_right_kind kind, const char *place,
                         bool is_here)
{
    struct view_right right = view_right_of(str_of(grant), STR("`slurm_acct_db`"));

    if (right.kind != kind || right.is_here != is_here)
        fail_msg("%s: kind %d, %s", grant, right.kind, right.is_here ? "here" : "elsewhere");
    assert_str(right.place, place);
}

TEST(rights_are_told_from_what_show_grants_says)
{
    assert_right("GRANT USAGE ON *.* TO `sonde`@`localhost` IDENTIFIED BY PASSWORD '*0A'",
                 VIEW_RIGHT_NONE, "", false);
    assert_right("GRANT SELECT ON `slurm_acct_db`.`user_job_view` TO `sonde`@`localhost`",
                 VIEW_RIGHT_READ, "`slurm_acct_db`.`user_job_view`", true);
    assert_right("GRANT SELECT ON `slurm_acct_db`.`b_user_job_view` TO 'sonde'@'localhost'",
                 VIEW_RIGHT_READ, "`slurm_acct_db`.`b_user_job_view`", true);
    assert_right("GRANT SELECT ON `slurm_acct_db2`.`user_job_view` TO `sonde`@`localhost`",
                 VIEW_RIGHT_READ, "`slurm_acct_db2`.`user_job_view`", false);
}

TEST(any_other_right_is_more)
{
    static const char *const more[] = {
        "",
        "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
        "GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO `slurm`@`127.0.0.1`",
        "GRANT SELECT ON *.* TO `sonde`@`localhost`",
        "GRANT SELECT ON `slurm_acct_db`.* TO `sonde`@`localhost`",
        "GRANT SELECT ON `slurm_acct_db`.`sandbox_job_table` TO `sonde`@`localhost`",
        "GRANT SELECT ON `slurm_acct_db`.`my_job_view` TO `user_job_view`@`localhost`",
        "GRANT SELECT, INSERT ON `slurm_acct_db`.`user_job_view` TO `sonde`@`localhost`",
        "GRANT SELECT (`id_job`) ON `slurm_acct_db`.`user_job_view` TO `sonde`@`localhost`",
        "GRANT SELECT ON `slurm_acct_db`.`user_job_view` TO `sonde`@`localhost` WITH GRANT OPTION",
        "GRANT `operators` TO `sonde`@`localhost`",
        "GRANT USAGE ON *.* TO `sonde`@`localhost` WITH GRANT OPTION",
        "GRANT SELECT ON `slurm_acct_db`.`user_job_view`",
    };

    for (size_t i = 0; i < COUNT(more); i++)
        assert_right(more[i], VIEW_RIGHT_OTHER, "", false);
}

#define OURS(cluster)                                                                              \
    "select … from (`slurm_acct_db`.`" cluster "_job_table` `sonde_job` left join "                \
    "`slurm_acct_db`.`" cluster                                                                    \
    "_assoc_table` `sonde_assoc` on(…)) where `sonde_job`.`deleted` = 0"
#define OLD(cluster)                                                                               \
    "select `slurm_acct_db`.`" cluster "_job_table`.`id_user` AS `id_user` from "                  \
    "`slurm_acct_db`.`" cluster "_job_table`"

static struct view_cluster beluga_and_narval[] = {
    { STR_INIT("beluga"), true },
    { STR_INIT("narval"), true },
};

/* Which view each cluster gets, as "cluster=view …"; "!" for one that is left out. */
static int choose(struct view_survey survey, struct option_list names, struct buf *told,
                  struct err *err)
{
    struct arena arena = { 0 };
    struct view_targets targets;
    int code = view_targets_choose(&survey, DATABASE, names, &arena, &targets, err);

    for (size_t i = 0; code == 0 && i < targets.n; i++) {
        const struct view_target *target = &targets.target[i];

        buf_printf(told, "%.*s=%.*s ", STR_ARG(target->cluster),
                   target->left_out ? 1 : (int)target->view.n,
                   target->left_out ? "!" : target->view.p);
    }
    arena_clear(&arena);
    return code;
}

static void assert_chosen(struct view_survey survey, struct option_list names, const char *expected)
{
    struct err err = { 0 };
    struct buf told;

    buf_init(&told, 10000);
    if (choose(survey, names, &told, &err) < 0)
        fail_msg("%s", err.text);
    assert_str(buf_str(&told), expected);
    buf_free(&told);
}

TEST(the_first_cluster_gets_the_old_name)
{
    struct str narval[] = { STR_INIT("narval") };
    struct view_survey survey = { .clusters = beluga_and_narval, .n_clusters = 2 };

    assert_chosen(survey, (struct option_list){ 0 },
                  "beluga=user_job_view narval=narval_user_job_view ");
    assert_chosen(survey, (struct option_list){ narval, 1 }, "narval=user_job_view ");
}

TEST(the_old_name_stays_with_its_cluster)
{
    static struct view_found ours[] = { { .name = STR_INIT("user_job_view"),
                                          .definition = STR_INIT(OURS("narval")) } };
    static struct view_found old[] = { { .name = STR_INIT("user_job_view"),
                                         .definition = STR_INIT(OLD("narval")) } };
    static struct view_found gone[] = { { .name = STR_INIT("user_job_view"),
                                          .definition = STR_INIT(OURS("cedar")) } };
    struct str beluga[] = { STR_INIT("beluga") };
    struct view_survey survey = {
        .clusters = beluga_and_narval, .n_clusters = 2, .views = ours, .n_views = 1
    };

    assert_chosen(survey, (struct option_list){ 0 },
                  "beluga=beluga_user_job_view narval=user_job_view ");
    assert_chosen(survey, (struct option_list){ beluga, 1 }, "beluga=beluga_user_job_view ");
    survey.views = old;
    assert_chosen(survey, (struct option_list){ 0 },
                  "beluga=beluga_user_job_view narval=user_job_view ");
    survey.views = gone;
    assert_chosen(survey, (struct option_list){ 0 },
                  "beluga=user_job_view narval=narval_user_job_view ");
}

static void assert_not_chosen(struct view_survey survey, struct option_list names, int code,
                              const char *why)
{
    struct err err = { 0 };
    struct buf told;

    buf_init(&told, 10000);
    assert_int_equal(choose(survey, names, &told, &err), code);
    assert_contains(err.text, why);
    buf_free(&told);
}

TEST(a_view_of_somebody_else_is_not_replaced)
{
    static struct view_found other[] = {
        { .name = STR_INIT("user_job_view"),
          .definition = STR_INIT("select 1 from `slurm_acct_db`.`beluga_job_table2`") },
        { .name = STR_INIT("narval_user_job_view"), .definition = STR_INIT("") },
    };
    struct str narval[] = { STR_INIT("narval") };
    struct view_survey survey = {
        .clusters = beluga_and_narval, .n_clusters = 2, .views = other, .n_views = 1
    };

    assert_not_chosen(survey, (struct option_list){ 0 }, -EEXIST, "sonde has not made");
    survey.views = other + 1;
    assert_not_chosen(survey, (struct option_list){ 0 }, -EEXIST, "narval_user_job_view");
    assert_chosen(survey, (struct option_list){ narval, 1 }, "narval=user_job_view ");
}

TEST(a_cluster_without_tables_is_left_out_and_never_first)
{
    struct view_cluster clusters[] = {
        { STR_INIT("new"), false },
        { STR_INIT("a\nb"), true },
        { STR_INIT("narval"), true },
    };
    struct str new[] = { STR_INIT("new") }, none[] = { STR_INIT("nowhere") };
    struct view_survey survey = { .clusters = clusters, .n_clusters = 3 };

    assert_chosen(survey, (struct option_list){ 0 }, "new=! a\nb=! narval=user_job_view ");
    assert_not_chosen(survey, (struct option_list){ new, 1 }, -ENOENT, "no tables of its jobs");
    assert_not_chosen(survey, (struct option_list){ none, 1 }, -ENOENT, "nowhere");
    survey.n_clusters = 2;
    assert_not_chosen(survey, (struct option_list){ 0 }, -ENOENT, "knows no cluster");
    survey.n_clusters = 0;
    assert_not_chosen(survey, (struct option_list){ 0 }, -ENOENT, "knows no cluster");
}
