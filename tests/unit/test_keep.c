/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/keep: jobs selected by account and user. */
#include "test.h"

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
    static const struct {
        const char *account, *user;
    } jobs[] = { { "bio", "carol" }, { "ops", "dave" }, { "bio", "bob" }, { "", "alice" } };
    struct keep *keep = keep_of(KEEP(STR("bio")), KEEP(STR("alice")));
    struct section *section = section_new(KIND_JOBS);

    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, COUNT(jobs));
    section->jobs.gpus = ARENA_ARRAY(&section->arena, struct job_gpus, COUNT(jobs));
    section->jobs.n = section->jobs.n_gpus = COUNT(jobs);
    for (size_t i = 0; i < COUNT(jobs); i++) {
        section->jobs.job[i] = (struct job){
            .id = 10 - (uint32_t)i,
            .account = symbols_put(&section->symbols, str_of(jobs[i].account)),
            .user = symbols_put(&section->symbols, str_of(jobs[i].user)),
        };
        section->jobs.gpus[i].job_id = 10 - (uint32_t)i;
    }
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
    struct section *section = section_new(KIND_JOBS), *again;

    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, 2);
    section->jobs.n = 2;
    section->jobs.job[0] =
        (struct job){ .id = 1, .account = symbols_put(&section->symbols, STR("ops")) };
    section->jobs.job[1] =
        (struct job){ .id = 2, .account = symbols_put(&section->symbols, STR("bio")) };
    again = section_again(section);
    keep_jobs(keep, again);
    assert_int_equal(section->jobs.job[0].id, 1);
    section_unref(again);
    section_unref(section);
    keep_free(keep);
}
