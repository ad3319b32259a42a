/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of cmd/agent_users: users that the agent's options name. */
#include "test.h"

#include "cmd/agent_users.h"
#include "files.h"

static struct arena arena;
static struct blacklist list;
static struct err err;

static int find(const char *name, uint32_t *ret)
{
    if (strcmp(name, "away") == 0)
        return -EIO;
    if (strcmp(name, "alice") != 0)
        return -ENOENT;
    *ret = 1000;
    return 0;
}

static int read_list(struct str text)
{
    arena_clear(&arena);
    list = (struct blacklist){ 0 };
    return blacklist_read(write_bytes("users", text), find, &arena, &list, &err);
}

TEST(ids_and_names_come_sorted_and_once)
{
    assert_int_equal(read_list(STR("2001\n# nobody else\n\n  alice # the boss\n1000\r\n7\n2001")),
                     0);
    assert_int_equal(list.n, 3);
    assert_int_equal(list.uids[0], 7);
    assert_int_equal(list.uids[1], 1000);
    assert_int_equal(list.uids[2], 2001);
    assert_int_equal(list.n_unknown, 0);
}

TEST(an_empty_file_names_nobody)
{
    assert_int_equal(read_list(STR("")), 0);
    assert_int_equal(list.n, 0);
    assert_int_equal(read_list(STR("\n#1000\n")), 0);
    assert_int_equal(list.n, 0);
}

TEST(unknown_names_are_counted_and_the_rest_holds)
{
    assert_int_equal(read_list(STR("bob\nalice\naway\n")), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.n_unknown, 2);
    assert_string_equal(list.first_unknown, "bob");
}

TEST(what_is_neither_is_refused_with_its_line)
{
    static const struct str bad[] = {
        STR_INIT("1\ntwo words\n"), STR_INIT("1\n4294967295\n"), STR_INIT("1\n-5\n"),
        STR_INIT("1\na:b\n"),       STR_INIT("1\na\0b\n"),
    };
    char line[100];

    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(line, sizeof(line), "%s/users:2: ", test_dir());
        assert_int_equal(read_list(bad[i]), -EINVAL);
        assert_contains(err.text, line);
        assert_contains(err.text, "is neither a user id nor a user name");
    }
}

TEST(a_file_that_cannot_be_read_is_told)
{
    assert_int_equal(blacklist_read("/nowhere/at\nall", find, &arena, &list, &err), -EINVAL);
    assert_string_equal(err.text, "cannot read /nowhere/at\\nall: No such file or directory");
    assert_int_equal(blacklist_read("/tmp", find, &arena, &list, &err), -EINVAL);
    assert_contains(err.text, "Is a directory");
    assert_int_equal(blacklist_read("/dev/zero", find, &arena, &list, &err), -EINVAL);
    assert_contains(err.text, "longer than 1 MB");
}

TEST(the_system_knows_root)
{
    uint32_t uid = 99;

    assert_int_equal(users_find("root", &uid), 0);
    assert_int_equal(uid, 0);
    assert_int_equal(users_find("no-such-user-here", &uid), -ENOENT);
}

static void tear_down(void)
{
    arena_clear(&arena);
}

PROGRAM_FIXTURE(NULL, tear_down)
