/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/owners: users and accounts of jobs. */
#include "test.h"

#include "source/owners.h"

static const int64_t keep_ns = 60 * NS_PER_SEC;

struct told {
    uint32_t id;
    const char *account, *user;
};

/* A section of jobs that was told so many seconds after the beginning. */
static struct section *section_of(const struct told *told, size_t n, int64_t seconds)
{
    struct section *section = section_new(KIND_JOBS);

    section->mono_ns = seconds * NS_PER_SEC;
    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, n);
    section->jobs.n = n;
    for (size_t i = 0; i < n; i++)
        section->jobs.job[i] = (struct job){
            .id = told[i].id,
            .account = symbols_put(&section->symbols, str_of(told[i].account)),
            .user = symbols_put(&section->symbols, str_of(told[i].user)),
        };
    return section;
}

static void note(struct owners *owners, const struct told *told, size_t n, int64_t seconds)
{
    struct section *section = section_of(told, n, seconds);

    owners_note(owners, section, keep_ns);
    section_unref(section);
}

static void assert_owner(const struct owners *owners, uint32_t job_id, const char *account,
                         const char *user)
{
    struct owner owner;

    if (!owners_find(owners, job_id, &owner))
        fail_msg("job %u is not known", job_id);
    assert_str(owner.account, account);
    assert_str(owner.user, user);
}

static void assert_unknown(const struct owners *owners, uint32_t job_id)
{
    struct owner owner;

    assert_false(owners_find(owners, job_id, &owner));
}

TEST(a_jobs_owner_is_what_slurm_told)
{
    static const struct told told[] = {
        { 1, "physics", "alice" }, { UINT32_MAX, "physics", "bob" },
        { 7, "", "carol" },        { 0, "nothing", "nobody" },
        { 7, "", "carol" }, /* another task of its array that waits */
    };
    struct owners *owners = owners_new();

    assert_unknown(owners, 1);
    assert_int_equal(owners_count(owners), 0);
    note(owners, told, COUNT(told), 1);
    assert_int_equal(owners_count(owners), 3);
    assert_owner(owners, 1, "physics", "alice");
    assert_owner(owners, UINT32_MAX, "physics", "bob");
    assert_owner(owners, 7, "", "carol");
    assert_unknown(owners, 0);
    assert_unknown(owners, 2);
    owners_free(owners);
    assert_null(owners_free(NULL));
}

TEST(a_job_that_has_ended_is_known_for_as_long_as_is_asked)
{
    static const struct told first[] = { { 1, "physics", "alice" }, { 2, "physics", "bob" } };
    static const struct told second[] = { { 2, "physics", "bob" }, { 3, "maths", "carol" } };
    struct owners *owners = owners_new();

    note(owners, first, COUNT(first), 100);
    note(owners, second, COUNT(second), 130); /* the first is missing from here on */
    assert_int_equal(owners_count(owners), 3);
    note(owners, second, 0, 189);
    assert_owner(owners, 1, "physics", "alice");
    assert_owner(owners, 3, "maths", "carol");
    note(owners, second, 0, 190);
    assert_unknown(owners, 1);
    assert_owner(owners, 2, "physics", "bob");
    note(owners, second, 0, 248);
    assert_int_equal(owners_count(owners), 2);
    note(owners, second, 0, 249);
    assert_int_equal(owners_count(owners), 0);
    owners_free(owners);
}

TEST(a_job_id_that_comes_again_has_its_new_owner)
{
    static const struct told first[] = { { 5, "physics", "alice" }, { 6, "physics", "alice" } };
    static const struct told second[] = { { 6, "maths", "bob" } };
    struct owners *owners = owners_new();

    note(owners, first, COUNT(first), 1);
    note(owners, second, COUNT(second), 2);
    assert_owner(owners, 5, "physics", "alice");
    assert_owner(owners, 6, "maths", "bob");
    note(owners, second, 0, 3);
    assert_owner(owners, 6, "maths", "bob");
    assert_int_equal(owners_count(owners), 2);
    owners_free(owners);
}

/* Looks may be further apart than it is kept. */
TEST(a_job_that_was_there_at_the_last_look_is_known_at_the_next)
{
    static const struct told told[] = { { 1, "physics", "alice" } };
    struct owners *owners = owners_new();

    note(owners, told, COUNT(told), 100);
    note(owners, told, 0, 1000);
    assert_owner(owners, 1, "physics", "alice");
    note(owners, told, 0, 1060);
    assert_unknown(owners, 1);
    owners_free(owners);
}

TEST(a_section_that_was_taken_in_is_not_taken_in_again)
{
    static const struct told told[] = { { 5, "physics", "alice" } };
    struct section *section = section_of(told, COUNT(told), 100), *again;
    struct owners *owners = owners_new();

    owners_note(owners, section, keep_ns);
    section->jobs.job[0].user = symbols_put(&section->symbols, STR("bob"));
    owners_note(owners, section, keep_ns);
    assert_owner(owners, 5, "physics", "alice");

    /* The same, said again later: it is known as of then. */
    again = section_again(section);
    again->mono_ns = 150 * NS_PER_SEC;
    owners_note(owners, again, keep_ns);
    assert_owner(owners, 5, "physics", "bob");
    section_unref(again);
    section_unref(section);
    note(owners, told, 0, 210);
    assert_owner(owners, 5, "physics", "bob");
    note(owners, told, 0, 270);
    assert_unknown(owners, 5);
    owners_free(owners);
}

TEST(what_is_kept_shorter_from_now_on_is_forgotten)
{
    static const struct told told[] = { { 5, "physics", "alice" } };
    struct section *empty = section_of(told, 0, 150), *later = section_of(told, 0, 180);
    struct owners *owners = owners_new();

    note(owners, told, COUNT(told), 100);
    owners_note(owners, empty, keep_ns);
    assert_owner(owners, 5, "physics", "alice");
    owners_note(owners, later, 29 * NS_PER_SEC);
    assert_unknown(owners, 5);
    section_unref(empty);
    section_unref(later);
    owners_free(owners);
}

TEST(any_number_of_jobs_comes_and_goes)
{
    enum { N = 5000, LOOKS = 12 };
    struct told *told = heap_array(N, sizeof(*told));
    struct owners *owners = owners_new();
    char names[16][8];

    for (size_t i = 0; i < COUNT(names); i++)
        snprintf(names[i], sizeof(names[i]), "u%zu", i);
    /* A fifth of the jobs is new at each look, and the ids are far apart or wrap around. */
    for (uint32_t look = 0; look < LOOKS; look++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t id = (look * (N / 5) + i) * 0x10001u + 1;

            told[i] = (struct told){ id ? id : 1, "a", names[id % COUNT(names)] };
        }
        note(owners, told, N, 20 * look);
        for (uint32_t i = 0; i < N; i++)
            assert_owner(owners, told[i].id, "a", told[i].user);
    }
    /* Those of the last look, and what the three before it had more. */
    assert_int_equal(owners_count(owners), N + 3 * N / 5);
    owners_free(owners);
    free(told);
}
