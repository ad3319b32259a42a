/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/arena: memory that is freed together. */
#include "test.h"

#include "base/arena.h"

TEST(memory_is_zeroed_and_aligned_after_odd_strings)
{
    struct arena arena = { 0 };

    for (size_t i = 0; i < 5000; i++) {
        struct str copy = arena_str(&arena, str_head(STR("abcdefg"), i % 8));
        unsigned char *p = arena_alloc(&arena, i % 100 + 1);

        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t k = 0; k <= i % 100; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, i % 100 + 1);
        assert_int_equal(copy.p[copy.n], '\0');
    }
    arena_clear(&arena);
    assert_null(arena.block);
}

TEST(one_allocation_may_be_larger_than_a_block)
{
    struct arena arena = { 0 };
    char *large;

    arena_str(&arena, STR("small"));
    large = arena_alloc(&arena, 10 << 20);
    large[(10 << 20) - 1] = 1;
    assert_str(arena_str(&arena, STR("after")), "after");
    arena_clear(&arena);
}
