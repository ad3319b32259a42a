/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "cmd/agent_users.h"

static char path[64];
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

static int read_file(struct str text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.n, file), text.n);
    fclose(file);
    arena_clear(&arena);
    list = (struct blacklist){ 0 };
    return blacklist_read(path, find, &arena, &list, &err);
}

static void ids_and_names_come_sorted_and_once(void **state)
{
    (void)state;
    assert_int_equal(read_file(STR("2001\n# nobody else\n\n  alice # the boss\n1000\r\n7\n2001")),
                     0);
    assert_int_equal(list.n, 3);
    assert_int_equal(list.uids[0], 7);
    assert_int_equal(list.uids[1], 1000);
    assert_int_equal(list.uids[2], 2001);
    assert_int_equal(list.n_unknown, 0);
}

static void an_empty_file_names_nobody(void **state)
{
    (void)state;
    assert_int_equal(read_file(STR("")), 0);
    assert_int_equal(list.n, 0);
    assert_int_equal(read_file(STR("\n#1000\n")), 0);
    assert_int_equal(list.n, 0);
}

static void unknown_names_are_counted_and_the_rest_holds(void **state)
{
    (void)state;
    assert_int_equal(read_file(STR("bob\nalice\naway\n")), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.n_unknown, 2);
    assert_string_equal(list.first_unknown, "bob");
}

static void what_is_neither_is_refused_with_its_line(void **state)
{
    static const struct str bad[] = {
        STR_INIT("1\ntwo words\n"), STR_INIT("1\n4294967295\n"), STR_INIT("1\n-5\n"),
        STR_INIT("1\na:b\n"),       STR_INIT("1\na\0b\n"),
    };
    char line[100];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(line, sizeof(line), "%s:2: ", path);
        assert_int_equal(read_file(bad[i]), -EINVAL);
        assert_contains(err.text, line);
        assert_contains(err.text, "is neither a user id nor a user name");
    }
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
    (void)state;
    assert_int_equal(blacklist_read("/nowhere/at\nall", find, &arena, &list, &err), -EINVAL);
    assert_string_equal(err.text, "cannot read /nowhere/at\\nall: No such file or directory");
    assert_int_equal(blacklist_read("/tmp", find, &arena, &list, &err), -EINVAL);
    assert_contains(err.text, "Is a directory");
    assert_int_equal(blacklist_read("/dev/zero", find, &arena, &list, &err), -EINVAL);
    assert_contains(err.text, "longer than 1 MB");
}

static void the_system_knows_root(void **state)
{
    uint32_t uid = 99;

    (void)state;
    assert_int_equal(user_find("root", &uid), 0);
    assert_int_equal(uid, 0);
    assert_int_equal(user_find("no-such-user-here", &uid), -ENOENT);
}

static int tear_down(void **state)
{
    (void)state;
    arena_clear(&arena);
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_names_come_sorted_and_once),
        cmocka_unit_test(an_empty_file_names_nobody),
        cmocka_unit_test(unknown_names_are_counted_and_the_rest_holds),
        cmocka_unit_test(what_is_neither_is_refused_with_its_line),
        cmocka_unit_test(a_file_that_cannot_be_read_is_told),
        cmocka_unit_test(the_system_knows_root),
    };

    snprintf(path, sizeof(path), "/tmp/sonde-blacklist-%d", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
