/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/map: hash tables. */
#include "test.h"

#include "base/map.h"
#include "base/num.h"

static struct str key_of(char text[32], uint64_t number)
{
    memcpy(text, "node", 4);
    return (struct str){ text, 4 + num_put_u64(text + 4, number) };
}

TEST(an_empty_map_has_nothing)
{
    struct arena arena = { 0 };
    struct map map;

    map_init(&map, &arena);
    assert_null(map_get(&map, STR("")));
    assert_null(map_get(&map, STR("a")));
    map_free(&map);
}

TEST(a_key_is_copied_and_keeps_its_value)
{
    struct arena arena = { 0 };
    struct map map;
    char text[] = "alice";
    int value = 1;

    map_init(&map, &arena);
    *map_put(&map, str_of(text)) = &value;
    assert_null(*map_put(&map, STR("bob")));
    text[0] = 'A';
    assert_ptr_equal(*map_get(&map, STR("alice")), &value);
    assert_null(map_get(&map, STR("Alice")));
    assert_ptr_equal(*map_put(&map, STR("alice")), &value);
    assert_int_equal(map.n, 2);
    map_free(&map);
    arena_clear(&arena);
}

TEST(any_bytes_make_a_key_and_each_its_own)
{
    static const struct str keys[] = { STR_INIT(""),     STR_INIT("\0"),
                                       STR_INIT("\0\0"), STR_INIT("a"),
                                       STR_INIT("a\0"),  STR_INIT("12345678"),
                                       STR_INIT("\xff"), STR_INIT("12345678\0") };
    struct arena arena = { 0 };
    struct map map;

    map_init(&map, &arena);
    for (size_t i = 0; i < COUNT(keys); i++)
        assert_int_equal(map_index(&map, keys[i]), i);
    for (size_t i = 0; i < COUNT(keys); i++) {
        assert_int_equal(map_index(&map, keys[i]), i);
        assert_true(str_eq(map.entries[i].key, keys[i]));
    }
    map_free(&map);
    arena_clear(&arena);
}

TEST(a_hundred_thousand_keys_keep_their_order)
{
    enum { KEYS = 100000 };
    struct arena arena = { 0 };
    struct map map;
    char text[32];

    map_init(&map, &arena);
    for (uintptr_t i = 0; i < KEYS; i++)
        *map_put(&map, key_of(text, i * 7919)) = (void *)(i + 1);
    assert_int_equal(map.n, KEYS);
    for (uintptr_t i = 0; i < KEYS; i++) {
        void **value = map_get(&map, key_of(text, i * 7919));

        assert_non_null(value);
        assert_int_equal((uintptr_t)*value, i + 1);
        assert_true(str_eq(map.entries[i].key, key_of(text, i * 7919)));
        assert_int_equal(map_index(&map, key_of(text, i * 7919)), i);
    }
    assert_null(map_get(&map, key_of(text, 7918)));
    assert_int_equal(map.n, KEYS);
    map_free(&map);
    arena_clear(&arena);
}

TEST(the_hash_is_the_same_for_the_same_bytes)
{
    char bytes[40];

    for (size_t n = 0; n < sizeof(bytes); n++) {
        char copy[sizeof(bytes) + 1];

        memset(bytes, 'x', sizeof(bytes));
        memcpy(copy + 1, bytes, n);
        assert_int_equal(map_hash((struct str){ bytes, n }), map_hash((struct str){ copy + 1, n }));
        for (size_t i = 0; i < n; i++) {
            copy[1 + i] ^= 1;
            assert_int_not_equal(map_hash((struct str){ bytes, n }),
                                 map_hash((struct str){ copy + 1, n }));
            copy[1 + i] ^= 1;
        }
    }
}
