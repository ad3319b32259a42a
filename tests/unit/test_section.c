/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "test.h"

#include "model/section.h"
#include "base/num.h"

#include <pthread.h>

static struct str name_of(char text[32], uint64_t number)
{
    memcpy(text, "user", 4);
    return (struct str){ text, 4 + num_put_u64(text + 4, number) };
}

static void symbol_0_is_the_empty_string(void **state)
{
    struct section *section = section_new(KIND_JOBS);

    (void)state;
    assert_int_equal(symbols_count(&section->symbols), 1);
    assert_str(section_text(section, 0), "");
    assert_int_equal(symbols_put(&section->symbols, STR("")), 0);
    assert_int_equal(symbols_put(&section->symbols, (struct str){ NULL, 0 }), 0);
    assert_int_equal(symbols_count(&section->symbols), 1);
    section_unref(section);
}

static void symbols_are_unique_and_stable_over_100000_puts(void **state)
{
    enum { DIFFERENT = 100000 };
    struct section *section = section_new(KIND_JOBS);
    char text[32];

    (void)state;
    for (uint64_t i = 0; i < DIFFERENT; i++)
        assert_int_equal(symbols_put(&section->symbols, name_of(text, i)), i + 1);
    for (uint64_t i = 0; i < DIFFERENT; i++) {
        assert_int_equal(symbols_put(&section->symbols, name_of(text, i)), i + 1);
        assert_true(str_eq(section_text(section, (symbol)(i + 1)), name_of(text, i)));
    }
    assert_int_equal(symbols_count(&section->symbols), DIFFERENT + 1);
    section_unref(section);
}

static void what_is_said_again_shares_the_facts_and_has_symbols_of_its_own(void **state)
{
    struct section *first = section_new(KIND_JOBS);
    symbol name = symbols_put(&first->symbols, STR("alice"));
    struct section *again;

    (void)state;
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

static void a_section_lives_as_long_as_somebody_holds_it(void **state)
{
    struct section *section = section_new(KIND_NODES);
    symbol name = symbols_put(&section->symbols, STR("node1"));

    (void)state;
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

static void threads_may_share_a_section(void **state)
{
    struct section *section = section_new(KIND_JOBS);
    pthread_t threads[4];

    (void)state;
    symbols_put(&section->symbols, STR("shared"));
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_and_drop, section_ref(section));
    section_unref(section); /* the last thread frees it */
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void every_kind_has_a_name(void **state)
{
    static const char *const names[] = { "nodes",  "jobs",   "reservations", "licenses",
                                         "diag",   "shares", "associations", "config",
                                         "traces", "lustre", "ended",        "allocations" };

    (void)state;
    assert_int_equal(COUNT(names), KINDS);
    for (int kind = 0; kind < KINDS; kind++)
        assert_string_equal(kind_name((enum kind)kind), names[kind]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbol_0_is_the_empty_string),
        cmocka_unit_test(symbols_are_unique_and_stable_over_100000_puts),
        cmocka_unit_test(what_is_said_again_shares_the_facts_and_has_symbols_of_its_own),
        cmocka_unit_test(a_section_lives_as_long_as_somebody_holds_it),
        cmocka_unit_test(threads_may_share_a_section),
        cmocka_unit_test(every_kind_has_a_name),
    };

    return RUN_TESTS(tests);
}
