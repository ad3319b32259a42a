/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/tres: TRES and GRES strings. */
#include "test.h"

#include "model/tres.h"

#define MIB     (UINT64_C(1) << 20)
#define UNKNOWN TRES_UNKNOWN

TEST(a_tres_string_is_read_in_any_order_and_by_name_or_id)
{
    static const struct {
        const char *text;
        struct tres tres;
    } rows[] = {
        { "cpu=16,mem=32000M,node=1,billing=16,gres/gpu:a100=2", { 16, 32000 * MIB, 1, 16, 2 } },
        { "cpu=2,gres/gpu:a100=2,gres/gpu=2,mem=500M,node=1", { 2, 500 * MIB, 1, UNKNOWN, 2 } },
        { "gres/gpu=8,gres/gpu:a100=8", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 8 } },
        { "gres/gpu:a100=6,gres/gpu:v100=2", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 8 } },
        { "gres/gpu:a100=6,gres/gpu:v100=2,gres/gpu=8", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 8 } },
        { "gres/gpu:1g.5gb=3", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 3 } },
        { "gres/shard=4,cpu=1", { 1, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "gres/gpumem=12G,gres/gpuutil=95", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "cpu=24,mem=48000M,node=6,billing=24,license/matlab=10",
          { 24, 48000 * MIB, 6, 24, UNKNOWN } },
        { "1=16,2=32000,4=2,5=16,1001=4", { 16, 32000 * MIB, 2, 16, UNKNOWN } },
        { "mem=1.50G", { UNKNOWN, 1536 * MIB, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "mem=0", { UNKNOWN, 0, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "cpu=1.50K,billing=2K", { 1536, UNKNOWN, UNKNOWN, 2048, UNKNOWN } },
        { "cpu=18446744073709551614,node=2", { UNKNOWN, UNKNOWN, 2, UNKNOWN, UNKNOWN } },
        { "energy=18446744073709551614,fs/disk=1,vmem=2,pages=0,ic/ofed=3,bb/datawarp=1G",
          { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "(null)", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
        { "N/A", { UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN } },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tres tres;

        if (!tres_parse(str_of(rows[i].text), &tres))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(tres.cpus, rows[i].tres.cpus);
        assert_int_equal(tres.memory_bytes, rows[i].tres.memory_bytes);
        assert_int_equal(tres.nodes, rows[i].tres.nodes);
        assert_int_equal(tres.billing, rows[i].tres.billing);
        assert_int_equal(tres.gpus, rows[i].tres.gpus);
    }
}

TEST(a_bad_member_is_told_and_the_others_are_kept)
{
    static const char *const texts[] = {
        "cpu=4,mem=xM,gres/gpu=1",     "cpu=4,,gres/gpu=1",
        "cpu=4,gres/gpu=1,node",       "cpu=4,gres/gpu=1,=3",
        "cpu=4,gres/gpu=1,mem=4Gn",    "cpu=4,gres/gpu=1,node=-1",
        "cpu=4,gres/gpu=1,node=N(0)",  "cpu=4,gres/gpu=1,",
        "cpu=4,gres/gpu=1,gpu:a100:2", "cpu=4,gres/gpu=1,node=99999999999999999999",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct tres tres;

        if (tres_parse(str_of(texts[i]), &tres))
            fail_msg("\"%s\" was taken as whole", texts[i]);
        assert_int_equal(tres.cpus, 4);
        assert_int_equal(tres.gpus, 1);
        assert_int_equal(tres.memory_bytes, UNKNOWN);
        assert_int_equal(tres.nodes, UNKNOWN);
    }
}

struct expected {
    const char *name, *type;
    uint64_t count;
    const char *indexes;
};

static void assert_gres(const char *text, const struct expected *expected, size_t n, bool is_bad)
{
    struct str rest = str_of(text);
    struct gres_item item;
    bool bad = false;

    for (size_t i = 0; i < n; i++) {
        if (!gres_next(&rest, &item, &bad))
            fail_msg("\"%s\" gave only %zu", text, i);
        assert_str(item.name, expected[i].name);
        assert_str(item.type, expected[i].type);
        assert_str(item.indexes, expected[i].indexes);
        assert_int_equal(item.count, expected[i].count);
    }
    if (gres_next(&rest, &item, &bad))
        fail_msg("\"%s\" gave \"%.*s\" too much", text, STR_ARG(item.name));
    assert_false(gres_next(&rest, &item, NULL));
    if (bad != is_bad)
        fail_msg("\"%s\" is %s", text, is_bad ? "bad" : "good");
}

#define GRES(text, ...)                                                                            \
    assert_gres(text, (const struct expected[]){ __VA_ARGS__ },                                    \
                sizeof((const struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected), false)

TEST(a_gres_string_gives_its_entries)
{
    GRES("gpu:8", { "gpu", "", 8, "" });
    GRES("gpu:0", { "gpu", "", 0, "" });
    GRES("gpu:a100:4", { "gpu", "a100", 4, "" });
    GRES("gpu:v100:2,gpu:a100:2", { "gpu", "v100", 2, "" }, { "gpu", "a100", 2, "" });
    GRES("gpu:a100:8(IDX:0-7)", { "gpu", "a100", 8, "0-7" });
    GRES("gpu:v100:1(IDX:0),gpu:a100:0(IDX:N/A)", { "gpu", "v100", 1, "0" },
         { "gpu", "a100", 0, "" });
    GRES("gpu:a100:3(IDX:0,2-3),shard:2", { "gpu", "a100", 3, "0,2-3" }, { "shard", "", 2, "" });
    GRES("gpu:a100:4(S:0-1)", { "gpu", "a100", 4, "" });
    GRES("gpu:4(S:0-1,3)", { "gpu", "", 4, "" });
    GRES("gpu:4(S:0)(IDX:0-1)", { "gpu", "", 4, "0-1" });
    GRES("gpu:nvidia_a100_3g.20gb:2", { "gpu", "nvidia_a100_3g.20gb", 2, "" });
    GRES("gpu:1g.5gb:3(S:1)", { "gpu", "1g.5gb", 3, "" });
    GRES("gpu:1g.5gb", { "gpu", "1g.5gb", 1, "" });
    GRES("gpu:(null):4", { "gpu", "", 4, "" });
    GRES("gpu:(null):0(IDX:N/A)", { "gpu", "", 0, "" });
    GRES("gpu:(null)", { "gpu", "", 1, "" });
    GRES("shard:a100:3(0/4,3/4)", { "shard", "a100", 3, "" });
    GRES("mps:200", { "mps", "", 200, "" });
    GRES("craynetwork:4", { "craynetwork", "", 4, "" });
    GRES("tmpdisk:1K", { "tmpdisk", "", 1024, "" });
    GRES("bandwidth:lustre:no_consume:4g", { "bandwidth", "lustre", UINT64_C(4) << 30, "" });
    GRES("gpu:no_consume", { "gpu", "", 1, "" });
    GRES("gpu:a100:no_consume:2", { "gpu", "a100", 2, "" });
    GRES("gpu", { "gpu", "", 1, "" });
    GRES("gpu:a100", { "gpu", "a100", 1, "" });
    GRES("gpu:a100(CNT:2)", { "gpu", "a100", 2, "" });
    GRES("gpu(IDX:0-1,3)", { "gpu", "", 3, "0-1,3" });
}

TEST(the_gres_of_a_tres_string_are_given_and_nothing_else)
{
    GRES("cpu=16,mem=32000M,node=2,billing=55,gres/gpu=8,gres/gpu:a100=6,gres/gpu:v100=2,"
         "license/matlab=10",
         { "gpu", "", 8, "" }, { "gpu", "a100", 6, "" }, { "gpu", "v100", 2, "" });
    GRES("gres/gpu:1g.5gb=3", { "gpu", "1g.5gb", 3, "" });
    GRES("gres/shard=4", { "shard", "", 4, "" });
    GRES("gres/gpumem=1.50G", { "gpumem", "", UINT64_C(3) << 29, "" });
    GRES("gres/gpu:2", { "gpu", "", 2, "" });
    GRES("gres:gpu:a100:2", { "gpu", "a100", 2, "" });
    GRES("gres/gpu:a100:2,gres/shard:1", { "gpu", "a100", 2, "" }, { "shard", "", 1, "" });
    GRES("gres/gpu", { "gpu", "", 1, "" });
}

TEST(where_there_is_no_gres_there_is_no_entry)
{
    static const char *const texts[] = { "",   "(null)",       "N/A",       "none",
                                         ",,", "cpu=4,mem=1G", "1=4,1001=2" };

    for (size_t i = 0; i < COUNT(texts); i++)
        assert_gres(texts[i], NULL, 0, false);
}

TEST(an_entry_that_cannot_be_read_is_skipped_and_told)
{
    static const char *const texts[] = {
        ":4",
        "gpu::4",
        "gpu:a:b:4",
        "gpu:4:",
        "gpu:99999999999999999999",
        "gpu:18014398509481984K",
        "gpu:a100:2(CNT:x)",
        "gpu(IDX:x)",
        "gpu:2)",
        ")",
        "gres/gpu=",
        "gres/gpu=x",
        "gres/=4",
        "gres/gpu=18446744073709551614",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        char list[100];
        struct expected last = { "mps", "", 5, "" };

        snprintf(list, sizeof(list), "%s,mps:5", texts[i]);
        assert_gres(list, &last, 1, true);
    }
    assert_gres("gpu:2(IDX:0-1", NULL, 0, true);
    assert_gres("gpu:2(", NULL, 0, true);
    assert_gres("gpu(", NULL, 0, true);
}
