/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/movers: job ids with the most Lustre traffic. */
#include "test.h"

#include "base/arena.h"
#include "source/movers.h"

#include <limits.h>

/* A crowd of more than are remembered is as crowded as a real one, and soon written. */
enum { ANY_TEXT = 64 << 20, REMEMBERED = 3 << 12 };

static struct movers *movers;
static struct lustre_use *use; /* what the last look brought */

static struct job_stats_entry entry_of(const char *id, uint64_t bytes, uint64_t opens)
{
    struct job_stats_entry entry = {
        .id = str_of(id),
        .read = { .is_there = true,
                  .samples = bytes != 0,
                  .bytes = bytes,
                  .least_bytes = bytes,
                  .most_bytes = bytes },
        .operations = { { "open", opens } },
        .n_operations = 1,
    };

    return entry;
}

static void see(const char *id, uint64_t bytes, uint64_t opens)
{
    const struct job_stats_entry entry = entry_of(id, bytes, opens);

    movers_see(movers, &entry);
}

/* Another look, at one target. */
static void begin(void)
{
    lustre_use_unref(use);
    use = heap_alloc(sizeof(*use));
    atomic_init(&use->refs, 1);
    symbols_init(&use->symbols, &use->arena);
    movers_begin_look(movers, use);
    movers_begin_target(movers, STR("OST0"), false);
}

static const struct lustre_id_use *find(const char *id)
{
    for (size_t i = 0; i < use->n; i++)
        if (str_eq(symbols_get(&use->symbols, use->id[i].id), str_of(id)))
            return &use->id[i];
    return NULL;
}

static void end(void)
{
    movers_end_target(movers);
    movers_end_look(movers);
}

/* The ids that were kept, as "a b c". */
static const char *kept(void)
{
    static char text[256];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < use->n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", i ? " " : "",
                              STR_ARG(symbols_get(&use->symbols, use->id[i].id)));
    return text;
}

static void set_up(void)
{
    movers = movers_new(2, ANY_TEXT, REMEMBERED);
}

static void tear_down(void)
{
    movers = movers_free(movers);
    use = lustre_use_unref(use);
}

FIXTURE(set_up, tear_down)

TEST(fewer_than_the_ceiling_are_all_kept_in_the_order_of_their_ids)
{
    begin();
    see("b", 5, 3);
    see("a", 0, 0);
    end();
    assert_string_equal(kept(), "a b");
    assert_int_equal(find("b")->read.bytes, 5);
    assert_int_equal(find("b")->n_operations, 1);
    assert_int_equal(use->operation[find("b")->first_operation].samples, 3);
    assert_str(symbols_get(&use->symbols, use->operation[0].name), "open");
    assert_str(symbols_get(&use->symbols, find("a")->target), "OST0");
    assert_int_equal(use->ids_left_out, 0);
}

TEST(of_a_target_that_is_new_those_that_have_ever_moved_most_are_kept)
{
    begin();
    see("small", 4096, 0);
    see("large", 1 << 30, 0);
    see("busy", 0, 1000);
    see("idle", 0, 0);
    end();
    assert_string_equal(kept(), "busy large");
    assert_int_equal(use->ids_left_out, 2);
}

TEST(who_moves_now_comes_before_who_moved_once)
{
    begin();
    see("a", UINT64_C(1) << 40, 0);
    see("b", UINT64_C(1) << 40, 0);
    see("c", 1 << 20, 0);
    end();
    assert_string_equal(kept(), "a b");
    begin();
    see("a", UINT64_C(1) << 40, 0);
    see("b", (UINT64_C(1) << 40) + (1 << 20), 0);
    see("c", 2 << 20, 0);
    end();
    assert_string_equal(kept(), "b c");
}

TEST(an_id_that_is_new_on_a_known_target_has_moved_all_that_it_has)
{
    begin();
    see("a", UINT64_C(1) << 40, 0);
    see("b", UINT64_C(1) << 40, 0);
    end();
    begin();
    see("a", UINT64_C(1) << 40, 0);
    see("b", (UINT64_C(1) << 40) + (1 << 20), 0);
    see("new", 100 << 20, 0);
    end();
    assert_string_equal(kept(), "b new");
}

TEST(a_counter_that_fell_counts_from_zero)
{
    begin();
    see("a", UINT64_C(1) << 40, 0);
    see("b", UINT64_C(1) << 40, 0);
    see("cleared", UINT64_C(1) << 30, 0);
    end();
    begin();
    see("a", (UINT64_C(1) << 40) + (1 << 20), 0);
    see("b", (UINT64_C(1) << 40) + (1 << 20), 0);
    see("cleared", 10 << 20, 0);
    end();
    assert_non_null(find("cleared"));
    assert_int_equal(find("cleared")->read.bytes, 10 << 20);
}

TEST(a_little_more_movement_does_not_replace_who_is_shown_but_much_more_does)
{
    begin();
    see("a", 2000, 2000);
    see("b", 2000, 2000);
    see("c", 0, 1000);
    end();
    assert_string_equal(kept(), "a b");
    begin();
    see("a", 2000, 2100);
    see("b", 2000, 2100);
    see("c", 0, 1120);
    end();
    assert_string_equal(kept(), "a b");
    begin();
    see("a", 2000, 2200);
    see("b", 2000, 2200);
    see("c", 0, 1620);
    end();
    assert_non_null(find("c"));
}

TEST(those_who_do_nothing_do_not_take_turns)
{
    static const char *const orders[] = { "abcd", "dcba", "cadb" };

    begin();
    see("a", 0, 7);
    see("b", 0, 7);
    see("c", 0, 1);
    see("d", 0, 1);
    end();
    assert_string_equal(kept(), "a b");
    for (size_t look = 0; look < 12; look++) {
        begin();
        for (const char *id = orders[look % COUNT(orders)]; *id; id++)
            see((const char[]){ *id, '\0' }, 0, *id < 'c' ? 7 : 1);
        end();
        assert_string_equal(kept(), "a b");
    }
}

TEST(what_was_long_ago_counts_less_and_less)
{
    uint64_t slow = 0;

    begin();
    see("a", 0, 0);
    see("b", 0, 0);
    see("c", 0, 0);
    end();
    begin();
    see("a", 0, 1000); /* once, */
    see("b", 0, 1000);
    see("c", 0, slow += 100); /* and every time */
    end();
    assert_string_equal(kept(), "a b");
    for (int look = 0; look < 20 && !find("c"); look++) {
        begin();
        see("a", 0, 1000);
        see("b", 0, 1000);
        see("c", 0, slow += 100);
        end();
    }
    assert_non_null(find("c"));
}

TEST(an_id_that_is_told_twice_is_added_up)
{
    struct job_stats_entry second = entry_of("a", 100, 5);

    second.operations[second.n_operations++] = (struct job_stats_operation){ "close", 4 };
    second.write = (struct lustre_io){ .is_there = true, .samples = 1, .bytes = 9 };
    begin();
    see("a", 30, 1);
    see("b", 0, 0);
    movers_see(movers, &second);
    see("a", 0, 1);
    end();
    assert_string_equal(kept(), "a b");
    assert_int_equal(find("a")->read.bytes, 130);
    assert_int_equal(find("a")->read.samples, 2);
    assert_int_equal(find("a")->read.least_bytes, 30); /* one that never read has no least */
    assert_int_equal(find("a")->read.most_bytes, 100);
    assert_int_equal(find("a")->write.bytes, 9);
    assert_int_equal(find("a")->n_operations, 2);
    assert_int_equal(use->operation[find("a")->first_operation].samples, 7);
    assert_int_equal(use->operation[find("a")->first_operation + 1].samples, 4);
    assert_int_equal(use->ids_merged, 2);
    assert_int_equal(use->ids_left_out, 0);
}

TEST(part_of_an_id_that_was_left_out_is_not_shown_as_all_of_it)
{
    begin();
    see("a", 0, 10);
    see("b", 0, 10);
    see("c", 0, 1);
    see("c", 0, 1000);
    end();
    assert_string_equal(kept(), "a b");
    assert_int_equal(use->ids_left_out, 1);
    assert_int_equal(use->ids_merged, 1);
}

TEST(sums_of_what_cannot_be_added_stop_at_the_largest_number)
{
    struct job_stats_entry huge = entry_of("a", UINT64_MAX, UINT64_MAX);

    huge.read.samples = huge.read.small_samples = UINT64_MAX;
    huge.read.has_sizes = true;
    begin();
    movers_see(movers, &huge);
    movers_see(movers, &huge);
    see("b", 1, 1);
    see("c", 2, 2);
    end();
    assert_string_equal(kept(), "a c");
    assert_true(find("a")->read.bytes == UINT64_MAX);
    assert_true(find("a")->read.small_samples == UINT64_MAX);
    assert_true(use->operation[find("a")->first_operation].samples == UINT64_MAX);
}

TEST(how_many_were_small_is_unknown_if_it_is_of_one_of_two)
{
    struct job_stats_entry sized = entry_of("a", 10, 0);

    sized.read.has_sizes = true;
    begin();
    movers_see(movers, &sized);
    end();
    assert_true(find("a")->read.has_sizes);
    begin();
    movers_see(movers, &sized);
    see("a", 10, 0);
    end();
    assert_false(find("a")->read.has_sizes);
}

TEST(targets_are_ranked_apart)
{
    begin();
    see("a", 0, 9);
    see("b", 0, 8);
    see("c", 0, 7);
    movers_end_target(movers);
    movers_begin_target(movers, STR("OST0"), true); /* nobody else's for having the same name */
    see("c", 0, 1);
    see("OST0", 0, 0);
    end();
    assert_int_equal(use->n, 4);
    assert_string_equal(kept(), "a b OST0 c");
    assert_true(use->id[3].is_mdt);
    assert_int_equal(use->ids_left_out, 1);
    assert_int_equal(use->ids_merged, 0);
}

TEST(what_was_begun_and_not_ended_is_forgotten)
{
    begin();
    see("a", 0, 9);
    movers_begin_target(movers, STR("OST1"), false);
    see("b", 0, 1);
    end();
    assert_string_equal(kept(), "b");
    assert_str(symbols_get(&use->symbols, use->id[0].target), "OST1");
}

TEST(a_target_without_ids_gives_none)
{
    begin();
    end();
    assert_int_equal(use->n, 0);
    begin();
    see("", 0, 1);
    end();
    assert_int_equal(use->n, 1);
    assert_str(symbols_get(&use->symbols, use->id[0].id), "");
}

static void see_number(unsigned number, uint64_t opens)
{
    char id[16];

    snprintf(id, sizeof(id), "%u", number);
    see(id, 0, opens);
}

TEST(among_175000_ids_the_ten_that_move_are_found)
{
    enum { IDS = 175000, MOVING = 10, EVERY = IDS / MOVING };

    movers_free(movers);
    movers = movers_new(MOVING, ANY_TEXT, MOVERS_REMEMBERED);
    for (unsigned look = 0; look < 4; look++) {
        begin();
        for (unsigned i = 0; i < IDS; i++)
            see_number(i, 1000 * (i % 1000) + (i % EVERY == 77 ? look * 5 : 0));
        end();
        assert_int_equal(use->n, MOVING);
        assert_int_equal(use->ids_left_out, IDS - MOVING);
        assert_int_equal(use->ids_merged, 0);
    }
    for (unsigned i = 0; i < MOVING; i++) {
        char id[16];

        snprintf(id, sizeof(id), "%u", i * EVERY + 77);
        assert_non_null(find(id));
    }
}

TEST(more_ids_than_can_be_remembered_still_give_who_moves_most_in_time)
{
    enum { IDS = REMEMBERED * 3 / 2 };

    for (unsigned look = 0; look < 60 && !(use && find("5")); look++) {
        begin();
        for (unsigned i = 0; i < IDS; i++)
            see_number(i, i == 5 ? 1 + look * 1000 : i);
        end();
        assert_int_equal(use->n, 2);
        assert_int_equal(use->ids_left_out, IDS - 2);
    }
    assert_non_null(find("5"));
}

TEST(ids_that_are_gone_make_room_for_others)
{
    enum { IDS = REMEMBERED / 10, LOOKS = 40 };
    char newest[16];

    for (unsigned look = 0; look < LOOKS; look++) {
        begin();
        for (unsigned i = 0; i < IDS; i++)
            see_number(look * IDS + i, i == 3 ? 1000000 : 100);
        see("idle", UINT64_C(1) << 40, 0); /* and of who stays it is known that it does nothing */
        end();
        assert_int_equal(use->ids_left_out, IDS - 1);
        assert_int_equal(use->ids_merged, 0);
        assert_true((find("idle") != NULL) == (look == 0));
    }
    snprintf(newest, sizeof(newest), "%u", (LOOKS - 1) * IDS + 3);
    assert_non_null(find(newest));
}

static size_t count_kept(char initial)
{
    size_t n = 0;

    for (size_t i = 0; i < use->n; i++)
        n += symbols_get(&use->symbols, use->id[i].id).p[0] == initial;
    return n;
}

static void see_named(char initial, unsigned n, uint64_t opens)
{
    for (unsigned i = 0; i < n; i++) {
        char id[16];

        snprintf(id, sizeof(id), "%c%u", initial, i);
        see(id, 0, opens);
    }
}

TEST(of_those_that_move_behind_a_crowd_all_are_shown_in_time)
{
    enum { MOVING = 400, ROOM = 500 };

    movers_free(movers);
    movers = movers_new(ROOM, ANY_TEXT, REMEMBERED);
    for (unsigned look = 0; look < 20 && !(use && count_kept('m') == MOVING); look++) {
        begin();
        see_named('i', REMEMBERED * 5 / 4, 5);
        see_named('m', MOVING, 1000 + look * 100000);
        end();
    }
    assert_int_equal(count_kept('m'), MOVING);
}

static void assert_none_is_shown_in_part(char initial, uint64_t whole)
{
    for (size_t i = 0; i < use->n; i++) {
        const struct lustre_id_use *id = &use->id[i];

        if (symbols_get(&use->symbols, id->id).p[0] == initial)
            assert_int_equal(use->operation[id->first_operation].samples, whole);
    }
}

TEST(what_is_told_twice_around_a_crowd_is_whole)
{
    enum { TWICE = 400, ROOM = 500 };

    movers_free(movers);
    movers = movers_new(ROOM, ANY_TEXT, REMEMBERED);
    for (unsigned look = 1; look <= 3; look++) {
        begin();
        see_named('t', TWICE, look * 1000000);
        see_named('i', REMEMBERED * 3 / 2, 5);
        see_named('t', TWICE, look * 1000000);
        end();
        assert_int_equal(count_kept('t'), TWICE);
        assert_none_is_shown_in_part('t', look * 2000000);
        assert_int_equal(use->ids_merged, TWICE);
    }
}

TEST(what_is_told_twice_on_a_target_behind_a_crowd_is_whole)
{
    enum { TWICE = 600, ROOM = 500 };

    movers_free(movers);
    movers = movers_new(ROOM, ANY_TEXT, REMEMBERED);
    for (unsigned look = 0; look < 10; look++) {
        begin();
        see_named('i', REMEMBERED * 5 / 4, 5);
        movers_end_target(movers);
        movers_begin_target(movers, STR("OST1"), false);
        see_named('t', TWICE, 7);
        see_named('t', TWICE, 7);
        end();
        assert_int_equal(count_kept('t'), ROOM);
        assert_none_is_shown_in_part('t', 14);
    }
}

TEST(ids_that_are_shown_alike_are_one)
{
    begin();
    see("\xff", 1, 0);
    see("\xfe", 2, 0);
    see("\xef\xbf\xbd", 4, 0);
    see("\xc3\xa4", 8, 0);
    end();
    assert_int_equal(use->n, 2);
    assert_int_equal(find("\xef\xbf\xbd")->read.bytes, 7);
    assert_int_equal(find("\xc3\xa4")->read.bytes, 8);
    assert_int_equal(use->ids_merged, 2);
}

static size_t text_bytes(void)
{
    size_t n = 0;

    for (size_t i = 0; i < use->n; i++)
        n += (4 + use->id[i].n_operations) *
             lustre_sample_bytes(symbols_get(&use->symbols, use->id[i].target),
                                 symbols_get(&use->symbols, use->id[i].id));
    return n;
}

TEST(of_all_targets_those_that_move_least_are_left_out_for_want_of_room)
{
    enum { TEXT = 100000, TARGETS = 20, IDS = 10 };
    unsigned least_kept = UINT_MAX;

    movers_free(movers);
    movers = movers_new(IDS, TEXT, REMEMBERED);
    begin();
    for (unsigned i = 0; i < TARGETS; i++) {
        char target[16];

        snprintf(target, sizeof(target), "OST%u", i);
        movers_begin_target(movers, str_of(target), false);
        for (unsigned k = 0; k < IDS; k++)
            see_number(1000 + k * TARGETS + i, 1000 + k * TARGETS + i);
        movers_end_target(movers);
    }
    movers_end_look(movers);
    assert_true(text_bytes() <= TEXT && text_bytes() > TEXT / 2);
    assert_int_equal(use->ids_left_out, TARGETS * IDS - use->n);
    for (size_t i = 0; i < use->n; i++)
        if (use->operation[use->id[i].first_operation].samples < least_kept)
            least_kept = (unsigned)use->operation[use->id[i].first_operation].samples;
    assert_int_equal(least_kept, 1000 + TARGETS * IDS - use->n);
}

TEST(long_ids_of_one_target_leave_room_for_fewer)
{
    enum { TEXT = 100000, IDS = 200 };

    movers_free(movers);
    movers = movers_new(IDS, TEXT, REMEMBERED);
    for (unsigned look = 0; look < 3; look++) {
        begin();
        for (unsigned i = 0; i < IDS; i++) {
            char id[JOB_STATS_ID + 1];

            snprintf(id, sizeof(id), "%0256u", i);
            memset(id, '\xff', JOB_STATS_ID - 8);
            see(id, 0, look + i);
        }
        end();
        assert_true(use->n > 10 && use->n < IDS);
        assert_true(text_bytes() <= TEXT);
        assert_int_equal(use->ids_left_out, IDS - use->n);
    }
}
