/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/section and model/symbols. */
#include "test.h"

#include "model/section.h"
#include "base/num.h"

#include <pthread.h>

static struct str name_of(char text[32], uint64_t number)
{
    memcpy(text, "user", 4);
    return (struct str){ text, 4 + num_put_u64(text + 4, number) };
}

TEST(symbol_0_is_the_empty_string)
{
    struct section *section = section_new(KIND_JOBS);

    assert_int_equal(symbols_count(&section->symbols), 1);
    assert_str(section_text(section, 0), "");
    assert_int_equal(symbols_put(&section->symbols, STR("")), 0);
    assert_int_equal(symbols_put(&section->symbols, (struct str){ NULL, 0 }), 0);
    assert_int_equal(symbols_count(&section->symbols), 1);
    section_unref(section);
}

TEST(symbols_are_unique_and_stable_over_100000_puts)
{
    enum { DIFFERENT = 100000 };
    struct section *section = section_new(KIND_JOBS);
    char text[32];

    for (uint64_t i = 0; i < DIFFERENT; i++)
        assert_int_equal(symbols_put(&section->symbols, name_of(text, i)), i + 1);
    for (uint64_t i = 0; i < DIFFERENT; i++) {
        assert_int_equal(symbols_put(&section->symbols, name_of(text, i)), i + 1);
        assert_true(str_eq(section_text(section, (symbol)(i + 1)), name_of(text, i)));
    }
    assert_int_equal(symbols_count(&section->symbols), DIFFERENT + 1);
    section_unref(section);
}

TEST(what_is_said_again_shares_the_facts_and_has_symbols_of_its_own)
{
    struct section *first = section_new(KIND_JOBS);
    symbol name = symbols_put(&first->symbols, STR("alice"));
    struct section *again;

    first->jobs.job = ARENA_ARRAY(&first->arena, struct job, 1);
    first->jobs.job[0].user = name;
    first->jobs.n = 1;
    again = section_again(first);
    assert_ptr_equal(again->jobs.job, first->jobs.job);
    assert_int_equal(symbols_put(&again->symbols, STR("alice")), name);
    assert_int_equal(symbols_put(&again->symbols, STR("cpu")), name + 1);
    assert_int_equal(symbols_count(&first->symbols), name + 1);
    section_unref(first);
    assert_str(section_text(again, again->jobs.job[0].user), "alice");
    assert_str(section_text(again, name + 1), "cpu");
    section_unref(again);
}

TEST(a_section_lives_as_long_as_somebody_holds_it)
{
    struct section *section = section_new(KIND_NODES);
    symbol name = symbols_put(&section->symbols, STR("node1"));

    section->nodes.node = ARENA_ARRAY(&section->arena, struct node, 1);
    section->nodes.n = 1;
    assert_ptr_equal(section_ref(section), section);
    assert_null(section_unref(section));
    assert_str(section_text(section, name), "node1");
    assert_int_equal(section->nodes.node[0].cpus, 0);
    assert_int_equal(section->kind, KIND_NODES);
    assert_null(section_unref(section));
    assert_null(section_unref(NULL));
}

static void *take_and_drop(void *arg)
{
    struct section *section = arg;

    for (int i = 0; i < 10000; i++) {
        section_ref(section);
        assert_str(section_text(section, 1), "shared");
        section_unref(section);
    }
    section_unref(section);
    return NULL;
}

TEST(threads_may_share_a_section)
{
    struct section *section = section_new(KIND_JOBS);
    pthread_t threads[4];

    symbols_put(&section->symbols, STR("shared"));
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_and_drop, section_ref(section));
    section_unref(section); /* the last thread frees it */
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

TEST(every_kind_has_a_name)
{
    static const char *const names[] = { "nodes",  "jobs",   "reservations", "licenses",
                                         "diag",   "shares", "associations", "config",
                                         "traces", "lustre", "ended",        "allocations" };

    assert_int_equal(COUNT(names), KINDS);
    for (int kind = 0; kind < KINDS; kind++)
        assert_string_equal(kind_name((enum kind)kind), names[kind]);
}
