/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/users: names of users and groups. */
#include "test.h"

#include "base/arena.h"
#include "base/users.h"
#include "manual_clock.h"

static const int64_t hour_ns = 3600 * NS_PER_SEC;

/* A directory of users 1000 and up that can be shut (lookups hang), taken away, and renamed. */
struct directory {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_shut, is_away;
    const char *prefix;
    unsigned n_lookups, n_inside;
};

static bool enter(struct directory *directory, char name[USERS_NAME_MAX], const char *kind,
                  unsigned id)
{
    bool found;

    pthread_mutex_lock(&directory->lock);
    directory->n_lookups++;
    directory->n_inside++;
    pthread_cond_broadcast(&directory->changed);
    while (directory->is_shut)
        pthread_cond_wait(&directory->changed, &directory->lock);
    found = id >= 1000 && !directory->is_away;
    if (found)
        snprintf(name, USERS_NAME_MAX, "%s%s%u", directory->prefix, kind, id);
    directory->n_inside--;
    pthread_cond_broadcast(&directory->changed);
    pthread_mutex_unlock(&directory->lock);
    return found;
}

static bool find_user(void *ctx, uid_t uid, char name[USERS_NAME_MAX])
{
    return enter(ctx, name, "u", uid);
}

static bool find_group(void *ctx, gid_t gid, char name[USERS_NAME_MAX])
{
    return enter(ctx, name, "g", gid);
}

/* Everybody is in the group of his hundred; of those from 9000 on, it has no name. */
static bool find_own_group(void *ctx, uid_t uid, gid_t *ret)
{
    char name[USERS_NAME_MAX];

    *ret = uid < 9000 ? uid / 100 * 100 : uid - 9000;
    return enter(ctx, name, "u", uid);
}

static void set_shut(struct directory *directory, bool is_shut)
{
    pthread_mutex_lock(&directory->lock);
    directory->is_shut = is_shut;
    pthread_cond_broadcast(&directory->changed);
    pthread_mutex_unlock(&directory->lock);
}

static void await_inside(struct directory *directory, unsigned n)
{
    pthread_mutex_lock(&directory->lock);
    while (directory->n_inside != n)
        pthread_cond_wait(&directory->changed, &directory->lock);
    pthread_mutex_unlock(&directory->lock);
}

static unsigned count_lookups(struct directory *directory)
{
    unsigned n;

    pthread_mutex_lock(&directory->lock);
    n = directory->n_lookups;
    pthread_mutex_unlock(&directory->lock);
    return n;
}

struct fixture {
    struct directory directory;
    struct manual_clock clock;
    struct users *users;
    char name[USERS_NAME_MAX];
};

static struct fixture *fixture;

static void setup(void)
{
    struct users_lookup lookup = { find_user, find_group, find_own_group, NULL };

    fixture = heap_alloc(sizeof(*fixture));
    lookup.ctx = &fixture->directory;
    pthread_mutex_init(&fixture->directory.lock, NULL);
    pthread_cond_init(&fixture->directory.changed, NULL);
    fixture->directory.prefix = "";
    manual_clock_init(&fixture->clock, 0, 5 * hour_ns);
    fixture->users = users_new(&lookup, &fixture->clock.clock);
}

static void teardown(void)
{
    if (fixture->users) /* no lookup must outlive the directory */
        users_settle(fixture->users, INT64_MAX);
    users_free(fixture->users);
    manual_clock_destroy(&fixture->clock);
    pthread_cond_destroy(&fixture->directory.changed);
    pthread_mutex_destroy(&fixture->directory.lock);
    free(fixture);
}

FIXTURE(setup, teardown)

static void settle(void)
{
    assert_true(users_settle(fixture->users, INT64_MAX));
}

static void assert_user(uid_t uid, bool is_known, const char *name)
{
    assert_int_equal(users_user(fixture->users, uid, fixture->name), is_known);
    assert_string_equal(fixture->name, name);
}

TEST(a_number_is_digits_first_and_a_name_once_the_directory_answered)
{
    set_shut(&fixture->directory, true);
    assert_user(1234, false, "1234");
    assert_user(1234, false, "1234");
    set_shut(&fixture->directory, false);
    settle();
    assert_user(1234, true, "u1234");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 1);
}

static void assert_own_group(uid_t uid, bool is_known, const char *name)
{
    assert_int_equal(users_own_group(fixture->users, uid, fixture->name), is_known);
    assert_string_equal(fixture->name, name);
}

TEST(a_users_own_group_is_nothing_first_and_then_its_name)
{
    set_shut(&fixture->directory, true);
    assert_own_group(1234, false, "");
    assert_user(1234, false, "1234");
    set_shut(&fixture->directory, false);
    settle();
    assert_own_group(1234, true, "g1200");
    assert_user(1234, true, "u1234");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 3);
}

TEST(the_own_group_of_an_unknown_user_is_nothing)
{
    assert_own_group(7, false, "");
    settle();
    assert_own_group(7, false, "");
    manual_clock_advance(&fixture->clock, 60 * NS_PER_SEC);
    assert_own_group(7, false, "");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 2);
}

TEST(a_group_without_a_name_is_its_number_for_a_minute)
{
    assert_own_group(9007, false, "");
    settle();
    assert_own_group(9007, true, "7");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 2);
    manual_clock_advance(&fixture->clock, 60 * NS_PER_SEC);
    assert_own_group(9007, true, "7");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 4);
    assert_own_group(9007, true, "7");
}

/* One user whose group is told and can lose or change its name. */
struct changing {
    gid_t group;
    const char *name; /* NULL: it has none */
};

static bool find_changing_name(void *ctx, gid_t gid, char name[USERS_NAME_MAX])
{
    const struct changing *changing = ctx;

    (void)gid;
    if (changing->name)
        snprintf(name, USERS_NAME_MAX, "%s", changing->name);
    return changing->name;
}

static bool find_changing_group(void *ctx, uid_t uid, gid_t *ret)
{
    (void)uid;
    *ret = ((const struct changing *)ctx)->group;
    return true;
}

TEST(the_name_of_an_own_group_replaces_its_number_and_never_the_other_way)
{
    static const struct {
        struct changing now;
        const char *told;
    } steps[] = {
        { { 70, NULL }, "70" },     { { 80, NULL }, "80" },         { { 80, "eighty" }, "eighty" },
        { { 80, NULL }, "eighty" }, { { 90, "ninety" }, "ninety" },
    };
    struct changing changing = { 0 };
    const struct users_lookup lookup = { find_changing_name, find_changing_name,
                                         find_changing_group, &changing };
    struct users *users = users_new(&lookup, &fixture->clock.clock);

    for (size_t i = 0; i < COUNT(steps); i++) {
        changing = steps[i].now;
        manual_clock_advance(&fixture->clock, hour_ns);
        users_own_group(users, 1000, fixture->name);
        assert_true(users_settle(users, INT64_MAX));
        assert_true(users_own_group(users, 1000, fixture->name));
        assert_string_equal(fixture->name, steps[i].told);
    }
    users_free(users);
}

TEST(an_unknown_number_is_asked_for_again_after_a_minute)
{
    assert_user(7, false, "7");
    settle();
    manual_clock_advance(&fixture->clock, 59 * NS_PER_SEC);
    assert_user(7, false, "7");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 1);
    manual_clock_advance(&fixture->clock, NS_PER_SEC);
    assert_user(7, false, "7");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 2);
}

TEST(a_name_is_asked_for_again_after_an_hour_and_given_meanwhile)
{
    users_user(fixture->users, 1000, fixture->name);
    settle();
    manual_clock_advance(&fixture->clock, hour_ns - 1);
    assert_user(1000, true, "u1000");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 1);

    manual_clock_advance(&fixture->clock, 1);
    fixture->directory.prefix = "new-";
    set_shut(&fixture->directory, true);
    assert_user(1000, true, "u1000");
    await_inside(&fixture->directory, 1);
    assert_user(1000, true, "u1000");
    set_shut(&fixture->directory, false);
    settle();
    assert_user(1000, true, "new-u1000");
    assert_int_equal(count_lookups(&fixture->directory), 2);
}

TEST(a_known_name_outlives_a_directory_that_is_away)
{
    users_user(fixture->users, 1000, fixture->name);
    settle();
    fixture->directory.is_away = true;
    manual_clock_advance(&fixture->clock, hour_ns);
    assert_user(1000, true, "u1000");
    settle();
    assert_user(1000, true, "u1000");
    assert_int_equal(count_lookups(&fixture->directory), 2);
    manual_clock_advance(&fixture->clock, 60 * NS_PER_SEC);
    assert_user(1000, true, "u1000");
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 3);
}

TEST(nobody_waits_for_a_directory_that_hangs)
{
    users_user(fixture->users, 1000, fixture->name);
    settle();
    set_shut(&fixture->directory, true);
    assert_user(1001, false, "1001");
    await_inside(&fixture->directory, 1);
    assert_user(1001, false, "1001");
    assert_user(1002, false, "1002");
    assert_user(1000, true, "u1000");
    assert_false(users_settle(fixture->users, clock_mono(&fixture->clock.clock)));
    set_shut(&fixture->directory, false);
    settle();
    assert_user(1002, true, "u1002");
}

TEST(settling_ends_at_the_deadline)
{
    struct users_lookup lookup = { find_user, find_group, find_own_group, &fixture->directory };
    struct users *users = users_new(&lookup, &clock_real);

    set_shut(&fixture->directory, true);
    users_user(users, 1000, fixture->name);
    assert_false(users_settle(users, clock_mono(&clock_real) + 20 * NS_PER_MS));
    set_shut(&fixture->directory, false);
    assert_true(users_settle(users, clock_mono(&clock_real) + TEST_DEADLINE));
    users_free(users);
}

TEST(questions_beyond_the_queue_are_asked_again_later)
{
    enum { N = 10000, MOST_QUESTIONS = 4096 };
    unsigned n_known = 0;

    set_shut(&fixture->directory, true);
    users_user(fixture->users, 1000, fixture->name);
    await_inside(&fixture->directory, 1);
    for (uid_t uid = 1001; uid <= 1000 + N; uid++)
        users_user(fixture->users, uid, fixture->name);
    set_shut(&fixture->directory, false);
    settle();
    assert_int_equal(count_lookups(&fixture->directory), 1 + MOST_QUESTIONS);

    for (int round = 0; round < 3; round++) {
        n_known = 0;
        for (uid_t uid = 1000; uid <= 1000 + N; uid++)
            n_known += users_user(fixture->users, uid, fixture->name);
        settle();
    }
    for (uid_t uid = 1000; uid <= 1000 + N; uid++) {
        char expected[USERS_NAME_MAX];

        snprintf(expected, sizeof(expected), "u%u", uid);
        assert_user(uid, true, expected);
    }
    assert_true(n_known > MOST_QUESTIONS);
    assert_int_equal(count_lookups(&fixture->directory), 1 + N);
}

TEST(the_oldest_names_are_forgotten_past_the_ceiling)
{
    enum { MOST_ENTRIES = 65536, MORE = 1000 };

    for (uid_t uid = 1000; uid < 1000 + MOST_ENTRIES + MORE; uid++) {
        users_user(fixture->users, uid, fixture->name);
        if (uid % 2000 == 0)
            settle();
    }
    settle();
    assert_user(1000 + MORE, true, "u2000");
    assert_user(1000 + MOST_ENTRIES + MORE - 1, true, "u67535");
    assert_int_equal(count_lookups(&fixture->directory), MOST_ENTRIES + MORE);
    assert_user(1000 + MORE - 1, false, "1999");
    settle();
    assert_user(1000 + MORE - 1, true, "u1999");
    assert_user(1000 + MORE, false, "2000");
}

/* User 1 has a name without end, user 2 an empty one. */
static bool find_odd(void *ctx, uid_t uid, char name[USERS_NAME_MAX])
{
    (void)ctx;
    memset(name, uid == 2 ? '\0' : 'x', USERS_NAME_MAX);
    return uid != 0;
}

TEST(names_are_cut_and_empty_ones_are_none)
{
    const struct users_lookup lookup = { find_odd, NULL, NULL, NULL };
    struct users *users = users_new(&lookup, &clock_real);
    char name[USERS_NAME_MAX];

    users_user(users, 1, name);
    users_user(users, 0, name);
    users_user(users, 2, name);
    assert_true(users_settle(users, clock_mono(&clock_real) + TEST_DEADLINE));
    assert_true(users_user(users, 1, name));
    assert_int_equal(strlen(name), USERS_NAME_MAX - 1);
    assert_false(users_user(users, 0, name));
    assert_string_equal(name, "0");
    assert_false(users_user(users, 2, name));
    assert_string_equal(name, "2");
    users_free(users);
}

TEST(freeing_does_not_wait_for_a_lookup_that_hangs)
{
    set_shut(&fixture->directory, true);
    users_user(fixture->users, 1000, fixture->name);
    users_user(fixture->users, 1001, fixture->name);
    await_inside(&fixture->directory, 1);
    fixture->users = users_free(fixture->users);
    assert_null(fixture->users);
    set_shut(&fixture->directory, false);
    await_inside(&fixture->directory, 0);
    assert_int_equal(count_lookups(&fixture->directory), 1);
    assert_null(users_free(NULL));
}

static void *ask_many(void *arg)
{
    char name[USERS_NAME_MAX];

    (void)arg;
    for (int round = 0; round < 20; round++)
        for (uid_t id = 1000; id < 1200; id++) {
            users_user(fixture->users, id, name);
            users_own_group(fixture->users, id, name);
        }
    return NULL;
}

TEST(any_number_of_threads_may_ask)
{
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, fixture), 0);
    for (int i = 0; i < 100; i++)
        manual_clock_advance(&fixture->clock, hour_ns);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    settle();
    assert_user(1199, true, "u1199");
}

TEST(the_system_knows_root)
{
    struct users *users = users_new(&users_system, &clock_real);
    char name[USERS_NAME_MAX];

    users_user(users, 0, name);
    users_user(users, 4294000000u, name);
    users_own_group(users, 0, name);
    users_own_group(users, 4294000000u, name);
    assert_true(users_settle(users, clock_mono(&clock_real) + TEST_DEADLINE));
    assert_true(users_user(users, 0, name));
    assert_string_equal(name, "root");
    assert_false(users_user(users, 4294000000u, name));
    assert_string_equal(name, "4294000000");
    assert_true(users_own_group(users, 0, name));
    assert_string_equal(name, "root");
    assert_false(users_own_group(users, 4294000000u, name));
    assert_string_equal(name, "");
    users_free(users);
}
