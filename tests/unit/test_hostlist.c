/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/hostlist: Slurm's lists of nodes. */
#include "test.h"

#include "model/hostlist.h"

enum { MOST = 1000 };

static void assert_expands(const char *text, const char *hosts)
{
    struct arena arena = { 0 };
    struct hostlist list;
    struct err err = { 0 };
    struct buf joined;
    uint64_t count;

    if (hostlist_expand(str_of(text), &arena, MOST, &list, &err) != 0)
        fail_msg("\"%s\": %s", text, err.text);
    buf_init(&joined, 1 << 20);
    for (size_t i = 0; i < list.n; i++) {
        if (i)
            buf_byte(&joined, ' ');
        buf_put(&joined, list.hosts[i]);
    }
    assert_str(buf_str(&joined), hosts);
    assert_int_equal(hostlist_count(str_of(text), &count, &err), 0);
    assert_int_equal(count, list.n);
    buf_free(&joined);
    arena_clear(&arena);
}

TEST(a_list_is_written_out_in_its_order)
{
    assert_expands("", "");
    assert_expands("login1", "login1");
    assert_expands("c1,login,c1", "c1 login c1");
    assert_expands("n[1-3]", "n1 n2 n3");
    assert_expands("n[8-11]", "n8 n9 n10 n11");
    assert_expands("n[08-11]", "n08 n09 n10 n11");
    assert_expands("n[98-101]", "n98 n99 n100 n101");
    assert_expands("n[098-101,5,0007],login1", "n098 n099 n100 n101 n5 n0007 login1");
    assert_expands("rack[1-2]node[01-03]",
                   "rack1node01 rack1node02 rack1node03 rack2node01 rack2node02 rack2node03");
    assert_expands("a[1,3]b[0-1]c[7]d", "a1b0c7d a1b1c7d a3b0c7d a3b1c7d");
    assert_expands("[1-2]", "1 2");
    assert_expands("n[1-2][3-4]", "n13 n14 n23 n24");
    assert_expands("n[0]-ib,x", "n0-ib x");
    assert_expands(",n1,,n2,", "n1 n2");
    assert_expands("n1, n2\tn3\nn4", "n1 n2 n3 n4");
    assert_expands("n[18446744073709551614-18446744073709551615]",
                   "n18446744073709551614 n18446744073709551615");
}

TEST(a_number_beyond_64_bits_is_text)
{
    assert_expands("n[18446744073709551616,000000000000000000000000001]",
                   "n18446744073709551616 n000000000000000000000000001");
    assert_expands("n99999999999999999999999", "n99999999999999999999999");
}

TEST(a_list_that_cannot_be_read_is_refused_with_the_place)
{
    static const struct {
        const char *text;
        const char *what;
    } rows[] = {
        { "n[1-3", "not closed at character 2" },
        { "ok,n[", "not closed at character 5" },
        { "n[1[2]]", "inside brackets at character 4" },
        { "n]1", "without '[' at character 2" },
        { "n[1]]", "without '[' at character 5" },
        { "n[]", "without a number at character 3" },
        { "n[1,,2]", "without a number at character 5" },
        { "n[1,]", "without a number at character 5" },
        { "n[-2]", "without a number at character 3" },
        { "n[2-]", "without a number at character 3" },
        { "n[3-1]", "counts down at character 3" },
        { "n[1-2,9-8]", "counts down at character 7" },
        { "n[1-2-3]", "no digit at character 6" },
        { "n[a-c]", "no digit at character 3" },
        { "n[1-3x]", "no digit at character 6" },
        { "n[1 2]", "no digit at character 4" },
        { "n[0x10]", "no digit at character 4" },
        { "n[1-18446744073709551616]", "too long at character 3" },
        { "n[18446744073709551616-18446744073709551617]", "too long at character 3" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena = { 0 };
        struct hostlist list = { NULL, 77 };
        struct err err = { 0 };
        uint64_t count = 77;

        if (hostlist_expand(str_of(rows[i].text), &arena, MOST, &list, &err) != -EBADMSG)
            fail_msg("\"%s\" was taken", rows[i].text);
        assert_contains(err.text, rows[i].what);
        assert_int_equal(list.n, 77);
        assert_null(arena.block);
        assert_int_equal(hostlist_count(str_of(rows[i].text), &count, NULL), -EBADMSG);
        assert_int_equal(count, 77);
    }
}

TEST(the_ceiling_is_checked_before_memory_is_taken)
{
    static const char *const texts[] = { "n[0-1000]", "n[0-99999999]", "n[0-18446744073709551614]",
                                         "a[0-99]b[0-99]", "n[1-1000],m" };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct arena arena = { 0 };
        struct hostlist list;
        struct err err = { 0 };

        assert_int_equal(hostlist_expand(str_of(texts[i]), &arena, MOST, &list, &err), -EFBIG);
        assert_contains(err.text, "at most 1000");
        assert_null(arena.block);
    }
}

TEST(a_list_can_be_counted_whatever_its_size)
{
    struct err err = { 0 };
    uint64_t count = 0;

    assert_int_equal(hostlist_count(STR("a[0-999999]b[0-999999],c"), &count, &err), 0);
    assert_int_equal(count, UINT64_C(1000000000001));
    assert_int_equal(hostlist_count(STR("n[0-18446744073709551614]"), &count, &err), 0);
    assert_int_equal(count, UINT64_MAX);
    assert_int_equal(hostlist_count(STR("n[0-18446744073709551615]"), &count, &err), -EFBIG);
    assert_int_equal(hostlist_count(STR("n[0-18446744073709551614],m"), &count, &err), -EFBIG);
    assert_int_equal(hostlist_count(STR("a[0-4294967295]b[0-4294967295]"), &count, &err), -EFBIG);
    assert_int_equal(count, UINT64_MAX);
}

TEST(a_long_name_may_stand_but_not_be_multiplied)
{
    enum { LENGTH = 1 << 20 };
    char *text = heap_alloc(LENGTH + 32);
    struct arena arena = { 0 };
    struct hostlist list;
    struct err err = { 0 };

    memset(text, 'x', LENGTH);
    assert_int_equal(hostlist_expand(str_of(text), &arena, MOST, &list, &err), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.hosts[0].n, LENGTH);
    arena_clear(&arena);
    memcpy(text + LENGTH, "[1-900]", 8);
    assert_int_equal(hostlist_expand(str_of(text), &arena, MOST, &list, &err), -EFBIG);
    assert_contains(err.text, "too long");
    assert_null(arena.block);
    free(text);
}

TEST(many_brackets_in_one_name_are_no_problem)
{
    enum { BRACKETS = 10000 };
    struct buf text;
    struct arena arena = { 0 };
    struct hostlist list;
    struct err err = { 0 };

    buf_init(&text, 1 << 20);
    for (int i = 0; i < BRACKETS; i++)
        buf_text(&text, "[7]");
    buf_text(&text, "[1-2]");
    assert_int_equal(hostlist_expand(buf_str(&text), &arena, MOST, &list, &err), 0);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.hosts[1].n, BRACKETS + 1);
    assert_int_equal(list.hosts[1].p[BRACKETS], '2');
    arena_clear(&arena);
    buf_free(&text);
}

static void assert_compresses(const char *hosts, const char *text)
{
    struct str host[64];
    struct hostlist list = { host, 0 };
    struct buf out;

    for (struct str rest = str_of(hosts); rest.p && rest.n;)
        host[list.n++] = str_cut(&rest, ' ');
    buf_init(&out, 1 << 20);
    hostlist_compress(&list, &out);
    assert_str(buf_str(&out), text);
    buf_free(&out);
}

TEST(hosts_are_sorted_and_folded_on_their_last_number)
{
    assert_compresses("", "");
    assert_compresses("login", "login");
    assert_compresses("n1", "n1");
    assert_compresses("n1 n2", "n[1-2]");
    assert_compresses("n1 n2 n3 n5", "n[1-3,5]");
    assert_compresses("n5 n3 n10 n2 n1 n9", "n[1-3,5,9-10]");
    assert_compresses("n2 n2 n1 n2 login login", "login,n[1-2]");
    assert_compresses("n10 n9 n8 n11", "n[8-11]");
    assert_compresses("n100 n99", "n[99-100]");
    assert_compresses("rack2node01 rack10node01 rack2node02", "rack2node[01-02],rack10node01");
    assert_compresses("n1-ib n2-ib n1 n3-ib", "n1,n[1-3]-ib");
    assert_compresses("n1a2 n1a3 n1b", "n1a[2-3],n1b");
    assert_compresses("1 2 3", "[1-3]");
    assert_compresses("n0 n1", "n[0-1]");
    assert_compresses("n n1", "n,n1");
    assert_compresses("b a2 a10 a", "a,a[2,10],b");
    assert_compresses("n18446744073709551614 n18446744073709551615",
                      "n[18446744073709551614-18446744073709551615]");
    assert_compresses("n18446744073709551616 n18446744073709551617 n1",
                      "n1,n18446744073709551616,n18446744073709551617");
}

TEST(widths_of_zero_padding_are_kept_apart)
{
    assert_compresses("n08 n09 n10 n11", "n[08-11]");
    assert_compresses("n08 n09 n12", "n[08-09,12]");
    assert_compresses("n098 n099 n100", "n[098-100]");
    assert_compresses("n98 n99 n100 n08", "n[08,98-100]");
    assert_compresses("n1 n01 n001", "n1,n01,n001");
    assert_compresses("n1 n2 n3 n01 n02 n03", "n[1-3],n[01-03]");
    assert_compresses("n01 n1x n1", "n1,n01,n1x");
    assert_compresses("n9 n09 n10", "n9,n[09-10]");
    assert_compresses("n00 n0 n1 n01", "n[0-1],n[00-01]");
    assert_compresses("n9 n10 n0010 n0011", "n[9-10],n[0010-0011]");
}

TEST(the_buffers_ceiling_is_kept)
{
    struct str host[] = { STR_INIT("a1"), STR_INIT("b1"), STR_INIT("c1") };
    struct hostlist list = { host, 3 };
    struct buf out;

    buf_init(&out, 4);
    hostlist_compress(&list, &out);
    assert_true(out.over);
    assert_true(out.n <= 4);
    buf_free(&out);
}

TEST(a_hundred_thousand_hosts_go_there_and_back_in_any_order)
{
    enum { HOSTS = 100000 };
    const struct str text = STR("n[00001-100000]");
    struct arena arena = { 0 };
    struct hostlist list;
    struct err err = { 0 };
    struct buf out;
    uint32_t random = 1;

    buf_init(&out, 1 << 20);
    assert_int_equal(hostlist_expand(text, &arena, HOSTS, &list, &err), 0);
    assert_int_equal(list.n, HOSTS);
    assert_str(list.hosts[0], "n00001");
    assert_str(list.hosts[HOSTS - 1], "n100000");
    hostlist_compress(&list, &out);
    assert_str(buf_str(&out), text.p);
    for (size_t i = HOSTS - 1; i > 0; i--) {
        struct str swap = list.hosts[i];
        size_t other;

        random = random * 1664525 + 1013904223;
        other = random % (i + 1);
        list.hosts[i] = list.hosts[other];
        list.hosts[other] = swap;
    }
    buf_reset(&out);
    hostlist_compress(&list, &out);
    assert_str(buf_str(&out), text.p);
    buf_free(&out);
    arena_clear(&arena);
}
