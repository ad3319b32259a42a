/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/ranking and base/list. */
#include "test.h"

#include "base/list.h"
#include "base/ranking.h"

enum { MANY = 500 };

/* Numbers that look random and are the same in every run. */
static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static int64_t lowest(const struct ranked *items, size_t n)
{
    int64_t rank = INT64_MAX;

    for (size_t i = 0; i < n; i++)
        if (items[i].place && items[i].rank < rank)
            rank = items[i].rank;
    return rank;
}

TEST(the_first_is_always_the_lowest)
{
    struct ranked items[MANY] = { 0 };
    struct ranking ranking = { 0 };
    uint64_t seed = 1;

    assert_null(ranking_first(&ranking));
    for (int i = 0; i < 20000; i++) {
        struct ranked *item = &items[next_random(&seed) % MANY];

        if (next_random(&seed) % 3)
            ranking_put(&ranking, item, (int64_t)(next_random(&seed) % 1000) - 500);
        else
            ranking_remove(&ranking, item);
        assert_true((ranking.n == 0) == (ranking_first(&ranking) == NULL));
        if (ranking.n)
            assert_int_equal(ranking_first(&ranking)->rank, lowest(items, MANY));
    }
    ranking_free(&ranking);
}

TEST(taken_one_by_one_they_come_in_order)
{
    struct ranked items[MANY] = { 0 };
    struct ranking ranking = { 0 };
    int64_t last = INT64_MIN;
    uint64_t seed = 7;

    for (size_t i = 0; i < MANY; i++)
        ranking_put(&ranking, &items[i], (int64_t)next_random(&seed));
    for (size_t i = 0; i < MANY; i++) {
        struct ranked *first = ranking_first(&ranking);

        assert_true(first->rank >= last);
        last = first->rank;
        ranking_remove(&ranking, first);
        assert_int_equal(first->place, 0);
    }
    assert_null(ranking_first(&ranking));
    ranking_free(&ranking);
}

struct thing {
    int number;
    struct link link;
};

static int first_number(const struct list *list)
{
    struct link *first = list_first(list);

    return first ? PART_OF(first, struct thing, link)->number : 0;
}

TEST(a_listed_thing_can_leave_from_anywhere_and_move_to_another_list)
{
    struct thing things[] = { { 1, { 0 } }, { 2, { 0 } }, { 3, { 0 } } };
    struct list list, other;
    int sum = 0;

    list_init(&list);
    list_init(&other);
    assert_null(list_first(&list));
    for (size_t i = 0; i < COUNT(things); i++)
        list_append(&list, &things[i].link);
    list_remove(&things[1].link);
    list_remove(&things[1].link);
    for (struct link *link = list_first(&list); link; link = list_next(&list, link))
        sum = 10 * sum + PART_OF(link, struct thing, link)->number;
    assert_int_equal(sum, 13);
    list_append(&list, &things[0].link);
    assert_int_equal(first_number(&list), 3);
    list_append(&other, &things[2].link);
    assert_int_equal(first_number(&list), 1);
    assert_int_equal(first_number(&other), 3);
    list_remove(&things[0].link);
    assert_null(list_first(&list));
}
