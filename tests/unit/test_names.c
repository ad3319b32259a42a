/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of agent/names: a job's processes by program name. */
#include "agent/names.h"
#include "base/clock.h"
#include "test.h"

static const struct name_use *find(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->item[i].name, name) == 0)
            return &names->item[i];
    return NULL;
}

TEST(processes_of_one_name_are_added_up)
{
    struct names names = { 0 };
    uint8_t place = names_place(&names, 20, "python3");

    names_begin(&names);
    names_add(&names, place, 4, 100, 10);
    names_add(&names, names_place(&names, 20, "python3"), 2, 50, 5);
    assert_int_equal(find(&names, "python3")->processes, 2);
    assert_int_equal(find(&names, "python3")->threads, 6);
    assert_int_equal(find(&names, "python3")->resident_bytes, 150);
    assert_int_equal(find(&names, "python3")->cpu_ns, 15);
    names_free(&names);
}

TEST(cpu_time_of_one_that_ended_stays_with_its_name)
{
    struct names names = { 0 };
    uint8_t place = names_place(&names, 20, "solver");

    names_begin(&names);
    names_add(&names, place, 1, 1, 70);
    names_begin(&names);
    names_end(&names, place, 80);
    assert_int_equal(find(&names, "solver")->processes, 0);
    assert_int_equal(find(&names, "solver")->cpu_ns, 80);
    names_begin(&names);
    assert_int_equal(find(&names, "solver")->cpu_ns, 80);
    names_free(&names);
}

TEST(past_the_ceiling_names_are_others_and_counted)
{
    struct names names = { 0 };

    for (int i = 0; i < 10; i++) {
        char name[USAGE_COMM];
        uint8_t place;

        snprintf(name, sizeof(name), "name%d", i);
        place = names_place(&names, 3, name);
        names_add(&names, place, 1, 1, 1);
    }
    assert_int_equal(names.n, 4);
    assert_int_equal(find(&names, "other")->processes, 7);
    assert_int_equal(names.n_folded, 7);
    assert_null(find(&names, "name3"));
    names_free(&names);
}

TEST(a_name_of_no_account_makes_room_and_nothing_is_lost)
{
    struct names names = { 0 };

    names_end(&names, names_place(&names, 2, "cp"), NS_PER_SEC / 2);
    names_end(&names, names_place(&names, 2, "solver"), 90 * NS_PER_SEC);
    names_begin(&names);
    names_add(&names, names_place(&names, 2, "mpirun"), 1, 1, 3);
    assert_null(find(&names, "cp"));
    assert_int_equal(find(&names, "other")->cpu_ns, NS_PER_SEC / 2);
    assert_int_equal(find(&names, "solver")->cpu_ns, 90 * NS_PER_SEC);
    assert_int_equal(find(&names, "mpirun")->processes, 1);
    names_free(&names);
}

TEST(a_name_whose_process_lives_keeps_its_place)
{
    struct names names = { 0 };

    names_begin(&names);
    names_add(&names, names_place(&names, 1, "bash"), 1, 1, 0);
    names_begin(&names);
    assert_int_equal(names_place(&names, 1, "new"), 0);
    assert_non_null(find(&names, "bash"));
    names_free(&names);
}
