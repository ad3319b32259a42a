/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/pairs: lines of Name=value. */
#include "test.h"

#include "source/pairs.h"

TEST(values_run_up_to_the_next_key)
{
    static const char *const expected[][2] = {
        { "GrpJobs", "N(3)" },      { "GrpTRES", "cpu=12(11),mem=N(1500)" },
        { "MaxJobs", "" },          { "AdminLevel", "Not Set" },
        { "UsageRaw/Norm", "1/2" }, { "Comment", "a = b, c" },
    };
    struct str rest = STR("    GrpJobs=N(3) GrpTRES=cpu=12(11),mem=N(1500) MaxJobs= "
                          "AdminLevel=Not Set   UsageRaw/Norm=1/2 Comment=a = b, c ");
    struct pair pair;

    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(pairs_next(&rest, &pair));
        assert_str(pair.key, expected[i][0]);
        assert_str(pair.value, expected[i][1]);
    }
    assert_false(pairs_next(&rest, &pair));
}

TEST(what_is_no_pair_is_none)
{
    static const char *const texts[] = { "", " ", "=", "=x", "No users", "carol(2003)", "a b=c" };
    struct pair pair;

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct str rest = str_of(texts[i]);

        assert_false(pairs_next(&rest, &pair));
    }
}

static const struct str keys[] = { STR_INIT("Name"), STR_INIT("Start"), STR_INIT("State") };

TEST(a_name_may_hold_anything_up_to_the_key_that_follows)
{
    struct str values[COUNT(keys)];

    assert_true(pairs_read(STR("Name=my course x=1 Started=no Start=5 End=6 State=ACTIVE"), keys,
                           COUNT(keys), values));
    assert_str(values[0], "my course x=1 Started=no");
    assert_str(values[1], "5");
    assert_str(values[2], "ACTIVE");
}

TEST(of_what_is_told_twice_the_first_counts)
{
    struct str values[COUNT(keys)];

    assert_true(pairs_read(STR("Name=a Start=5 State=INACTIVE Comment=x State=ACTIVE Start=6"),
                           keys, COUNT(keys), values));
    assert_str(values[1], "5");
    assert_str(values[2], "INACTIVE");
}

TEST(what_is_not_told_is_null_and_what_is_empty_is_not)
{
    struct str values[COUNT(keys)];

    assert_true(pairs_read(STR("Name= Start="), keys, COUNT(keys), values));
    assert_non_null(values[0].p);
    assert_non_null(values[1].p);
    assert_int_equal(values[1].n, 0);
    assert_null(values[2].p);
}

TEST(a_line_that_is_no_record_is_refused)
{
    static const char *const lines[] = { "",
                                         "Name",
                                         "Name=a",
                                         "Names=a Start=5",
                                         " Name=a Start=5",
                                         "Start=5 Name=a",
                                         "Name=aStart=5" };
    struct str values[COUNT(keys)];

    for (size_t i = 0; i < COUNT(lines); i++)
        assert_false(pairs_read(str_of(lines[i]), keys, COUNT(keys), values));
}

TEST(the_number_stands_in_the_last_brackets)
{
    static const char *const rows[][3] = {
        { "alice(2001)", "alice", "2001" },
        { "a (b)(7)", "a (b)", "7" },
        { "alice", "alice", "" },
        { "(2001)", "", "2001" },
        { "a(", "a(", "" },
        { ")", ")", "" },
        { "()", "", "" },
        { "12(0.25)", "12", "0.25" },
        { "", "", "" },
        { "a(1) ", "a(1) ", "" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str number;

        assert_str(pairs_name(str_of(rows[i][0]), &number), rows[i][1]);
        assert_str(number, rows[i][2]);
        assert_str(pairs_name(str_of(rows[i][0]), NULL), rows[i][1]);
    }
}
