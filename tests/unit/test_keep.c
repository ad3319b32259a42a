/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/keep: jobs selected by account and user. */
#include "sections.h"

#include "source/keep.h"

#define KEEP(...)                                                                                  \
    ((const struct str[]){ __VA_ARGS__ }), COUNT(((const struct str[]){ __VA_ARGS__ }))

static struct keep *keep_of(const struct str *accounts, size_t n_accounts, const struct str *users,
                            size_t n_users)
{
    struct keep *keep;
    struct err err;

    if (keep_new(accounts, n_accounts, users, n_users, &keep, &err) < 0)
        fail_msg("%s", err.text);
    return keep;
}

TEST(without_patterns_all_are_kept)
{
    struct keep *keep = keep_of(NULL, 0, NULL, 0);

    assert_null(keep);
    assert_true(keep_has(keep, STR("anybody"), STR("")));
}

TEST(a_pattern_must_match_the_whole_name)
{
    struct keep *keep = keep_of(KEEP(STR("rrg-.*"), STR("def-a|b")), NULL, 0);

    assert_true(keep_has(keep, STR("rrg-bengioy"), STR("x")));
    assert_true(keep_has(keep, STR("def-a"), STR("x")));
    assert_true(keep_has(keep, STR("b"), STR("x")));
    assert_false(keep_has(keep, STR("my-rrg-bengioy"), STR("x")));
    assert_false(keep_has(keep, STR("def-ab"), STR("x")));
    assert_false(keep_has(keep, STR("xb"), STR("x")));
    assert_false(keep_has(keep, STR("b\n"), STR("x")));
    assert_false(keep_has(keep, STR(""), STR("")));
    keep_free(keep);
}

TEST(an_account_or_a_user_is_enough)
{
    struct keep *keep = keep_of(KEEP(STR("bio")), KEEP(STR("al.*"), STR("bob")));

    assert_true(keep_has(keep, STR("bio"), STR("carol")));
    assert_true(keep_has(keep, STR("physics"), STR("alice")));
    assert_true(keep_has(keep, STR(""), STR("bob")));
    assert_false(keep_has(keep, STR("bob"), STR("bio")));
    keep_free(keep);
}

TEST(a_pattern_that_is_none_is_refused_with_a_sentence)
{
    static const char *const wrong[] = { "a(", "a)|(b", "[", "(?<" };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct str text = str_of(wrong[i]);
        struct keep *keep;
        struct err err;

        assert_int_equal(keep_new(NULL, 0, &text, 1, &keep, &err), -EINVAL);
        assert_contains(err.text, "is not a regular expression");
        assert_null(keep);
    }
}

TEST(a_section_loses_the_jobs_of_others_and_their_gpus)
{
    struct keep *keep = keep_of(KEEP(STR("bio")), KEEP(STR("alice")));
    struct section *section = jobs_from("PENDING id=10 account=bio user=carol\n"
                                        "PENDING id=9 account=ops user=dave\n"
                                        "PENDING id=8 account=bio user=bob\n"
                                        "PENDING id=7 account= user=alice\n"
                                        "gpus 10 n1 0\n"
                                        "gpus 9 n1 0\n"
                                        "gpus 8 n1 0\n"
                                        "gpus 7 n1 0\n");

    keep_jobs(keep, section);
    assert_int_equal(section->jobs.n, 3);
    assert_int_equal(section->jobs.job[0].id, 10);
    assert_int_equal(section->jobs.job[1].id, 8);
    assert_int_equal(section->jobs.job[2].id, 7);
    assert_int_equal(section->jobs.n_gpus, 3);
    assert_int_equal(section->jobs.gpus[1].job_id, 8);
    keep_jobs(NULL, section);
    assert_int_equal(section->jobs.n, 3);
    section_unref(section);
    keep_free(keep);
}

/* Its jobs are those of the first, which others are reading. */
TEST(what_is_said_again_is_left_as_it_is)
{
    struct keep *keep = keep_of(KEEP(STR("bio")), NULL, 0);
    struct section *section = jobs_from("PENDING account=ops\n"
                                        "PENDING account=bio\n");
    struct section *again = section_again(section);

    keep_jobs(keep, again);
    assert_int_equal(section->jobs.job[0].id, 1);
    section_unref(again);
    section_unref(section);
    keep_free(keep);
}
