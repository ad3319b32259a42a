/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of store/rest: packed texts. */
#include "store/rest.h"

#include "test.h"

static struct str packed_text(struct packer *packer, struct str text, struct buf *out)
{
    buf_init(out, 2 * REST_MAX);
    rest_pack(packer, REST_JOBS, text, out);
    return buf_str(out);
}

static void check_both_ways(struct packer *packer, struct str text)
{
    struct arena arena = { 0 };
    struct str back;
    struct buf out;
    struct err err;

    assert_int_equal(rest_unpack(packed_text(packer, text, &out), &arena, &back, &err), 0);
    assert_true(str_eq(back, text));
    buf_free(&out);
    arena_clear(&arena);
}

TEST(any_text_is_packed_and_unpacked)
{
    struct packer *packer = packer_new();
    char *text = heap_alloc(REST_MAX);
    uint32_t random = 1;

    check_both_ways(packer, STR(""));
    check_both_ways(packer, (struct str){ NULL, 0 });
    check_both_ways(packer, STR("x"));
    check_both_ways(packer, STR("{\"cpu_seconds\":12.5,\"user_seconds\":3}"));
    for (size_t i = 0; i < REST_MAX; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = (char)(random >> 24);
    }
    check_both_ways(packer, (struct str){ text, 127 });
    check_both_ways(packer, (struct str){ text, 128 });
    check_both_ways(packer, (struct str){ text, 16384 });
    check_both_ways(packer, (struct str){ text, REST_MAX });
    memset(text, 'a', REST_MAX);
    check_both_ways(packer, (struct str){ text, REST_MAX });
    free(text);
    packer_free(packer);
}

/* Runs of few and of many different bytes, and of what stood before, of any length. */
TEST(short_texts_of_any_kind_come_back)
{
    struct packer *packer = packer_new();
    static char text[5000];
    uint32_t random = 7;

    for (size_t n = 0; n < sizeof(text); n += n < 300 ? 1 : 61) {
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            if (i > 300 && random >> 30)
                text[i] = text[i - 1 - (random >> 8) % 4];
            else
                text[i] = n % 2 ? (char)(random >> 24) : "ab\0\xff"[random >> 30];
        }
        check_both_ways(packer, (struct str){ text, n });
    }
    memset(text, 'r', sizeof(text));
    for (size_t n = 250; n < 270; n++)
        check_both_ways(packer, (struct str){ text, n });
    for (size_t n = 4090; n < 4100; n++)
        check_both_ways(packer, (struct str){ text, n });
    packer_free(packer);
}

TEST(what_is_common_packs_well)
{
    struct packer *packer = packer_new();
    struct str text = STR("billing=8,cpu=8,mem=32G,node=1\0\0\031/home/alice/slurm-%j.out\0"
                          "\032sbatch --gres=gpu:1 run.sh\0\035/home/alice\0");
    struct buf out;

    assert_true(packed_text(packer, text, &out).n < text.n / 2);
    buf_free(&out);
    packer_free(packer);
}

TEST(fields_come_back_as_they_were)
{
    struct record_extra extra[] = {
        { STR("WorkDir"), STR("/home/\xff'\"\n") },
        { STR("Comment"), STR("") },          /* told as nothing: left out */
        { STR("Extra"), { "cut\0here", 8 } }, /* a NUL ends a text */
        { STR(""), STR("without a name") },
        { STR("Flags"), STR("SchedMain") },
    };
    struct job_record record = { .tres_requested = STR("cpu=1"),
                                 .extra = extra,
                                 .n_extra = COUNT(extra) };
    struct job_record back = { 0 };
    struct packer *packer = packer_new();
    struct arena arena = { 0 };
    struct buf plain, packed;
    struct err err;

    buf_init(&plain, REST_MAX);
    rest_encode(&record, &plain);
    assert_int_equal(
        rest_decode(packed_text(packer, buf_str(&plain), &packed), &arena, &back, &err), 0);
    assert_str(back.tres, "");
    assert_str(back.tres_requested, "cpu=1");
    assert_int_equal(back.n_extra, 3);
    assert_str(back.extra[0].name, "Extra"); /* in the order of names */
    assert_str(back.extra[0].value, "cut");
    assert_str(back.extra[1].name, "Flags");
    assert_str(back.extra[2].value, "/home/\xff'\"\n");
    buf_free(&plain);
    buf_free(&packed);
    arena_clear(&arena);
    packer_free(packer);
}

TEST(no_fields_are_no_text)
{
    struct job_record record = { .n_extra = 0 }, back = { .n_extra = 5 };
    struct arena arena = { 0 };
    struct buf plain;
    struct err err;

    buf_init(&plain, REST_MAX);
    rest_encode(&record, &plain);
    assert_int_equal(plain.n, 0);
    assert_int_equal(rest_decode(STR(""), &arena, &back, &err), 0);
    assert_int_equal(back.n_extra, 0);
    assert_int_equal(back.tres.n, 0);
    buf_free(&plain);
    arena_clear(&arena);
}

TEST(too_much_is_cut_and_the_rest_is_readable)
{
    static struct record_extra extra[REST_EXTRAS_MAX + 10];
    struct job_record record = { .extra = extra, .n_extra = COUNT(extra) }, back = { 0 };
    struct packer *packer = packer_new();
    char *large = heap_alloc(1 << 20);
    struct arena arena = { 0 };
    struct buf plain, packed;
    struct err err;

    memset(large, 'l', 1 << 20);
    for (size_t i = 0; i < COUNT(extra); i++)
        extra[i] = (struct record_extra){ STR("Name"), { large, 1 << 20 } };
    extra[COUNT(extra) - 11].value = STR("small");
    record.tres = (struct str){ large, 1 << 20 };
    buf_init(&plain, REST_MAX);
    rest_encode(&record, &plain);
    assert_false(plain.over);
    assert_int_equal(
        rest_decode(packed_text(packer, buf_str(&plain), &packed), &arena, &back, &err), 0);
    assert_int_equal(back.tres.n, REST_VALUE_MAX);
    assert_true(back.n_extra > 2 && back.n_extra < REST_EXTRAS_MAX);
    assert_str(back.extra[back.n_extra - 1].value, "small");
    buf_free(&plain);
    buf_free(&packed);
    arena_clear(&arena);
    packer_free(packer);
    free(large);
}

TEST(what_is_damaged_is_told)
{
    static const struct str damaged[] = {
        STR_INIT(""),
        STR_INIT("\1"),
        STR_INIT("\0\5abc"),
        STR_INIT("\1\5abcdefgh"),
        STR_INIT("\7\3abc"),                /* a dictionary of later times */
        STR_INIT("\1\xff\xff\xff\x7f\3\0"), /* longer than any */
    };
    struct arena arena = { 0 };
    struct str back;
    struct err err;

    for (size_t i = 0; i < COUNT(damaged); i++)
        assert_int_equal(rest_unpack(damaged[i], &arena, &back, &err), -EBADMSG);
    assert_contains(err.text, "damaged");
    arena_clear(&arena);
}
