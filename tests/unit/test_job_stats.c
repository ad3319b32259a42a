/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/job_stats: counters of Lustre targets. */
#include "test.h"

#include "count_allocations.h"

#include "base/arena.h"
#include "base/buf.h"
#include "source/job_stats.h"

enum { SEEN_MAX = 1 << 20 };

/* Entries as text, one a line. */
struct reading {
    struct buf seen;
    struct job_stats_parser *parser;
};

static void put_io(struct buf *to, const char *name, const struct lustre_io *io)
{
    if (!io->is_there)
        return;
    buf_printf(to, " %s(%llu of %llu bytes, %llu-%llu", name, (unsigned long long)io->samples,
               (unsigned long long)io->bytes, (unsigned long long)io->least_bytes,
               (unsigned long long)io->most_bytes);
    if (io->has_sizes)
        buf_printf(to, ", %llu small", (unsigned long long)io->small_samples);
    buf_byte(to, ')');
}

static void see(void *ctx, const struct job_stats_entry *entry)
{
    struct buf *to = &((struct reading *)ctx)->seen;

    assert_true(entry->id.n <= JOB_STATS_ID);
    if (entry->target.n)
        buf_printf(to, "%s %.*s ", entry->is_mdt ? "MDT" : "OST", STR_ARG(entry->target));
    buf_byte(to, '<');
    buf_put(to, entry->id);
    buf_byte(to, '>');
    put_io(to, "read", &entry->read);
    put_io(to, "write", &entry->write);
    for (size_t i = 0; i < entry->n_operations; i++)
        buf_printf(to, " %s=%llu", entry->operations[i].name,
                   (unsigned long long)entry->operations[i].samples);
    buf_byte(to, '\n');
}

static void begin(struct reading *reading)
{
    buf_init(&reading->seen, SEEN_MAX);
    reading->parser = job_stats_parser_new(see, reading);
}

static void end(struct reading *reading)
{
    assert_false(reading->seen.over);
    reading->parser = job_stats_parser_free(reading->parser);
    buf_free(&reading->seen);
}

static void feed(struct reading *reading, struct str text, size_t piece)
{
    /* In a block of its own, so that the address sanitizer sees a read past the end. */
    for (; text.n; text = str_skip(text, piece)) {
        struct str part = str_head(text, piece);
        char *copy = heap_array(part.n, 1);

        memcpy(copy, part.p, part.n);
        job_stats_feed(reading->parser, (struct str){ copy, part.n });
        free(copy);
    }
}

static void assert_reads_str(struct str text, struct str expected, uint64_t bad_lines)
{
    const size_t pieces[] = { 1, 2, 7, 100, 65536 };

    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct reading reading;

        begin(&reading);
        feed(&reading, text, pieces[i]);
        job_stats_finish(reading.parser);
        if (!str_eq(buf_str(&reading.seen), expected))
            fail_msg("in pieces of %zu got\n%.*sexpected\n%.*s", pieces[i],
                     STR_ARG(buf_str(&reading.seen)), STR_ARG(expected));
        assert_int_equal(job_stats_bad_lines(reading.parser), bad_lines);
        end(&reading);
    }
}

static void assert_reads(const char *text, const char *expected, uint64_t bad_lines)
{
    assert_reads_str(str_of(text), str_of(expected), bad_lines);
}

static const char ost_2_12[] =
    "job_stats:\n"
    "- job_id:          1234\n"
    "  snapshot_time:   1322494602\n"
    "  read_bytes:      { samples:           3, unit: bytes, min:    4096, max: 1048576, sum:"
    "          1056768 }\n"
    "  write_bytes:     { samples:           0, unit: bytes, min:       0, max:       0, sum:"
    "                0 }\n"
    "  getattr:         { samples:           1, unit:  reqs }\n"
    "  setattr:         { samples:           0, unit:  reqs }\n"
    "  punch:           { samples:          17, unit:  reqs }\n"
    "  sync:            { samples:           0, unit:  reqs }\n"
    "  destroy:         { samples:           0, unit:  reqs }\n"
    "  create:          { samples:           0, unit:  reqs }\n"
    "  statfs:          { samples:           0, unit:  reqs }\n"
    "  get_info:        { samples:           0, unit:  reqs }\n"
    "  set_info:        { samples:           2, unit:  reqs }\n"
    "  quotactl:        { samples:           0, unit:  reqs }\n"
    "- job_id:          cp.1000\n"
    "  snapshot_time:   1322494660\n"
    "  read_bytes:      { samples:           0, unit: bytes, min:       0, max:       0, sum:"
    "                0 }\n"
    "  write_bytes:     { samples:           1, unit: bytes, min:      10, max:      10, sum:"
    "               10 }\n"
    "  getattr:         { samples:           0, unit:  reqs }\n";

static const char ost_2_12_seen[] =
    "<1234> read(3 of 1056768 bytes, 4096-1048576) write(0 of 0 bytes, 0-0) getattr=1"
    " setattr=0 punch=17 sync=0 destroy=0 create=0 statfs=0 get_info=0 set_info=2 quotactl=0\n"
    "<cp.1000> read(0 of 0 bytes, 0-0) write(1 of 10 bytes, 10-10) getattr=0\n";

TEST(an_ost_of_2_12_is_read)
{
    assert_reads(ost_2_12, ost_2_12_seen, 0);
}

TEST(an_mdt_of_2_12_is_read_with_its_data)
{
    assert_reads("job_stats:\n"
                 "- job_id:          touch.0\n"
                 "  snapshot_time:   1322494602\n"
                 "  open:            { samples:           2, unit:  reqs }\n"
                 "  close:           { samples:           1, unit:  reqs }\n"
                 "  mknod:           { samples:           0, unit:  reqs }\n"
                 "  samedir_rename:  { samples:           4, unit:  reqs }\n"
                 "  crossdir_rename: { samples:           5, unit:  reqs }\n"
                 "  read_bytes:      { samples:           7, unit:  reqs, min:       1, max:"
                 "      64, sum:               99 }\n"
                 "  write_bytes:     { samples:           0, unit:  reqs, min:       0, max:"
                 "       0, sum:                0 }\n",
                 "<touch.0> read(7 of 99 bytes, 1-64) write(0 of 0 bytes, 0-0) open=2"
                 " close=1 mknod=0 samedir_rename=4 crossdir_rename=5\n",
                 0);
}

static const char ost_2_15[] =
    "job_stats:\n"
    "- job_id:          \"1234:nemo.exe:node0001\"\n"
    "  snapshot_time:   1322494602.123456789 secs.nsecs\n"
    "  start_time:      1322494592.987654321 secs.nsecs\n"
    "  elapsed_time:    9.135802468 secs.nsecs\n"
    "  read_bytes:      { samples:           3, unit: bytes, min:    4096, max: 1048576, sum:"
    "          1056768, sumsq:      1099545182208 }\n"
    "  write_bytes:     { samples:           1, unit: bytes, min:      10, max:      10, sum:"
    "               10, sumsq:                100 }\n"
    "  read:            { samples:           3, unit: usecs, min:      21, max:     310, sum:"
    "              391, sumsq:             100141 }\n"
    "  write:           { samples:           1, unit: usecs, min:      50, max:      50, sum:"
    "               50, sumsq:               2500 }\n"
    "  getattr:         { samples:           0, unit: usecs, min:       0, max:       0, sum:"
    "                0, sumsq:                  0 }\n"
    "  prealloc:        { samples:           6, unit: usecs, min:       1, max:       9, sum:"
    "               30, sumsq:                200 }\n";

static const char ost_2_15_seen[] =
    "<1234:nemo.exe:node0001> read(3 of 1056768 bytes, 4096-1048576)"
    " write(1 of 10 bytes, 10-10) read=3 write=1 getattr=0 prealloc=6\n";

TEST(an_ost_of_2_15_tells_operations_beside_bytes)
{
    assert_reads(ost_2_15, ost_2_15_seen, 0);
}

TEST(an_mdt_of_2_15_is_read_with_its_data)
{
    assert_reads("job_stats:\n"
                 "- job_id:          1234\n"
                 "  snapshot_time:   1655000000.000000001 secs.nsecs\n"
                 "  start_time:      1655000000.000000000 secs.nsecs\n"
                 "  elapsed_time:    0.000000001 secs.nsecs\n"
                 "  open:            { samples:          12, unit: usecs, min:      26, max:"
                 "     120, sum:              500, sumsq:              30000 }\n"
                 "  parallel_rename_file: { samples:           1, unit: usecs, min:       5, max:"
                 "       5, sum:                5, sumsq:                 25 }\n"
                 "  read:            { samples:           2, unit: usecs, min:       5, max:"
                 "       5, sum:               10, sumsq:                 50 }\n"
                 "  write:           { samples:           0, unit: usecs, min:       0, max:"
                 "       0, sum:                0, sumsq:                  0 }\n"
                 "  read_bytes:      { samples:           2, unit: bytes, min:     100, max:"
                 "     200, sum:              300, sumsq:              50000 }\n",
                 "<1234> read(2 of 300 bytes, 100-200) open=12 parallel_rename_file=1"
                 " read=2 write=0\n",
                 0);
}

TEST(of_2_16_the_small_ones_are_counted)
{
    assert_reads("job_stats:\n"
                 "- job_id:          1\n"
                 "  read_bytes:      { samples:          63, unit: bytes, min:       1, max:"
                 " 2147483648, sum:       4294967296, sumsq:                  7, hist: { 1: 1, 512:"
                 " 2, 1K: 4, 32K: 8, 64K: 16, 1M: 32, 2G: 1 } }\n"
                 "  write_bytes:     { samples:           0, unit: bytes, min:       0, max:"
                 "       0, sum:                0, sumsq:                  0, hist: {  } }\n"
                 "  open:            { samples:           5, unit: usecs, min:       1, max:"
                 "       1, sum:                5, sumsq:                  5, hist: { 1: 5 } }\n",
                 "<1> read(63 of 4294967296 bytes, 1-2147483648, 15 small) write(0 of 0 bytes,"
                 " 0-0, 0 small) open=5\n",
                 0);
}

TEST(before_2_11_numbers_follow_their_names_without_a_space)
{
    assert_reads("- job_id:          1\n"
                 "  read_bytes:      { samples:           1, unit: bytes, min:12345678,"
                 " max:12345678, sum:1234567812345678 }\n",
                 "<1> read(1 of 1234567812345678 bytes, 12345678-12345678)\n", 0);
}

TEST(idle_targets_have_no_entries)
{
    assert_reads("job_stats:\n", "", 0);
    assert_reads("", "", 0);
}

TEST(lctl_says_of_which_target_it_tells)
{
    assert_reads("obdfilter.scratch-OST0000.job_stats=\n"
                 "job_stats:\n"
                 "- job_id:          1\n"
                 "  sync:            { samples: 1, unit: reqs }\n"
                 "- job_id:          2\n"
                 "  sync:            { samples: 2, unit: reqs }\n"
                 "obdfilter.scratch-OST0001.job_stats=job_stats:\n"
                 "obdfilter.scratch-OST0002.job_stats=\n"
                 "\n"
                 "mdt.scratch-MDT0000.job_stats=\n"
                 "job_stats:\n"
                 "- job_id:          1\n"
                 "  open:            { samples: 3, unit: reqs }\n"
                 "obdfilter.home.2-OST0000.job_stats=\n"
                 "job_stats:\n"
                 "- job_id:          1\n",
                 "OST scratch-OST0000 <1> sync=1\n"
                 "OST scratch-OST0000 <2> sync=2\n"
                 "MDT scratch-MDT0000 <1> open=3\n"
                 "OST home.2-OST0000 <1>\n",
                 0);
}

static void see_target(void *ctx, struct str target, bool is_mdt)
{
    buf_printf(&((struct reading *)ctx)->seen, "[%s %.*s]", is_mdt ? "MDT" : "OST",
               STR_ARG(target));
}

TEST(lines_that_name_a_target_are_told_of_each_time)
{
    struct reading reading;

    begin(&reading);
    job_stats_tell_targets(reading.parser, see_target);
    feed(&reading,
         STR("obdfilter.a-OST0000.job_stats=\n"
             "job_stats:\n"
             "- job_id:          1\n"
             "obdfilter.a-OST0000.job_stats=\n"
             "- job_id:          2\n"
             "mdt..job_stats=\n"
             "mdt.a-MDT0000.job_stats=job_stats:\n"),
         7);
    job_stats_finish(reading.parser);
    assert_str(buf_str(&reading.seen), "[OST a-OST0000]OST a-OST0000 <1>\n"
                                       "[OST a-OST0000]OST a-OST0000 <2>\n"
                                       "[MDT a-MDT0000]");
    end(&reading);
}

TEST(entries_of_a_target_that_cannot_be_read_are_left_out)
{
    static const char *const lines[] = {
        "mgs.MGS.job_stats=",
        "obdfilter..job_stats=",
        "obdfilter.job_stats=",
        "obdfilter.scratch-OST0001.job_stats=no",
        "obdfilter.scratch-OST0001",
        "obdfilter."
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
        "89012345678901234567890123456789012345678.job_stats=",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct buf text;

        buf_init(&text, 4096);
        buf_printf(&text,
                   "obdfilter.scratch-OST0000.job_stats=\n"
                   "- job_id:          1\n"
                   "%s\n"
                   "job_stats:\n"
                   "- job_id:          2\n"
                   "  sync:            { samples: 2, unit: reqs }\n"
                   "mdt.scratch-MDT0000.job_stats=\n"
                   "- job_id:          3\n",
                   lines[i]);
        assert_reads(text.p, "OST scratch-OST0000 <1>\nMDT scratch-MDT0000 <3>\n", 1);
        buf_free(&text);
    }
    assert_reads("mgs.MGS.job_stats=\n"
                 "- job_id:          1\n"
                 "mdt.scratch-MDT0000.job_stats=\n"
                 "- job_id:          2\n",
                 "MDT scratch-MDT0000 <2>\n", 1);
}

TEST(an_id_of_2_12_may_hold_anything_printable)
{
    assert_reads("- job_id:          my prog: v1.2 #3 {x}.1000\n"
                 "- job_id:          - job_id:          2\n"
                 "- job_id:          job_stats:\n"
                 "- job_id:          mdt.a-MDT0000.job_stats=\n"
                 "- job_id:          a\\x41?\\\n"
                 "- job_id:             blanks around   \n",
                 "<my prog: v1.2 #3 {x}.1000>\n"
                 "<- job_id:          2>\n"
                 "<job_stats:>\n"
                 "<mdt.a-MDT0000.job_stats=>\n"
                 "<a\\x41?\\>\n"
                 "<blanks around>\n",
                 0);
}

TEST(a_quoted_id_is_unquoted)
{
    static const char text[] = "- job_id:          \"1234:a.out:n1\"\n"
                               "- job_id:          \"@1\"\n"
                               "- job_id:          \"\\x20a\\x20\\x0Ab\\x0a\\x22\\x5C\\xFF\\x20\"\n"
                               "- job_id:          \"\\x00\"\n";
    static const char seen[] = "<1234:a.out:n1>\n"
                               "<@1>\n"
                               "< a \nb\n\"\\\xff >\n"
                               "<\0>\n";

    assert_reads_str(str_of(text), (struct str){ seen, sizeof(seen) - 1 }, 0);
}

TEST(quotes_that_lustre_did_not_write_are_part_of_the_id)
{
    assert_reads("- job_id:          \"a\n"
                 "- job_id:          a\"\n"
                 "- job_id:          \"\n"
                 "- job_id:          \"a\"b\"\n"
                 "- job_id:          \"a\\nb\"\n"
                 "- job_id:          \"a\\x4\"\n"
                 "- job_id:          \"a\\xG0\"\n"
                 "- job_id:          \"a\\\"\n",
                 "<\"a>\n"
                 "<a\">\n"
                 "<\">\n"
                 "<\"a\"b\">\n"
                 "<\"a\\nb\">\n"
                 "<\"a\\x4\">\n"
                 "<\"a\\xG0\">\n"
                 "<\"a\\\">\n",
                 0);
}

TEST(an_id_may_be_empty)
{
    assert_reads("- job_id:          \n"
                 "  sync:            { samples: 1, unit: reqs }\n"
                 "- job_id:\n"
                 "- job_id:          \"\"\n",
                 "<> sync=1\n<>\n<>\n", 0);
}

static void put_repeated(struct buf *to, const char *text, size_t times)
{
    while (times--)
        buf_text(to, text);
}

/* An entry whose id is that text many times, and one after it. */
static void put_long_id(struct buf *to, const char *quote, const char *text, size_t times)
{
    buf_text(to, "- job_id:          ");
    buf_text(to, quote);
    put_repeated(to, text, times);
    buf_text(to, quote);
    buf_text(to, "\n  sync:            { samples: 1, unit: reqs }\n  garbage\n- job_id:  2\n");
}

TEST(an_entry_whose_id_is_too_long_is_left_out_whole)
{
    static const struct {
        const char *quote, *text;
    } forms[] = { { "", "x" }, { "\"", "x" }, { "\"", "\\x78" } };

    for (size_t i = 0; i < COUNT(forms); i++) {
        struct buf text, seen;

        buf_init(&text, 65536);
        buf_init(&seen, 65536);
        put_long_id(&text, forms[i].quote, forms[i].text, JOB_STATS_ID);
        buf_byte(&seen, '<');
        put_repeated(&seen, "x", JOB_STATS_ID);
        buf_text(&seen, "> sync=1\n<2>\n");
        assert_reads_str(buf_str(&text), buf_str(&seen), 1);

        buf_reset(&text);
        put_long_id(&text, forms[i].quote, forms[i].text, JOB_STATS_ID + 1);
        assert_reads_str(buf_str(&text), STR("<2>\n"), 1);

        buf_reset(&text);
        put_long_id(&text, forms[i].quote, forms[i].text, 10000);
        assert_reads_str(buf_str(&text), STR("<2>\n"), 1);
        buf_free(&text);
        buf_free(&seen);
    }
}

TEST(an_id_that_is_there_twice_is_given_twice)
{
    assert_reads("- job_id:          1\n"
                 "  sync:            { samples: 1, unit: reqs }\n"
                 "- job_id:          1\n"
                 "  sync:            { samples: 2, unit: reqs }\n",
                 "<1> sync=1\n<1> sync=2\n", 0);
}

TEST(a_counter_that_cannot_be_read_is_left_out_alone)
{
    static const char *const lines[] = {
        "open: { samples: -5, unit: reqs }",
        "open: { samples: 18446744073709551616, unit: reqs }",
        "open: { samples: 99999999999999999999999, unit: reqs }",
        "open: { samples: 1e5, unit: reqs }",
        "open: { samples: 1.0, unit: reqs }",
        "open: { samples: 0x10, unit: reqs }",
        "open: { samples: +1, unit: reqs }",
        "open: { samples: 1_000, unit: reqs }",
        "open: { samples: nan, unit: reqs }",
        "open: { samples: , unit: reqs }",
        "open: { samples:",
        "open: { samples: 1",
        "open: { samples: 1, unit: reqs",
        "open: { samples: 1, unit: reqs } x",
        "open: { unit: reqs }",
        "open: { }",
        "open: {",
        "open:",
        "open: 5",
        "open { samples: 1, unit: reqs }",
        "op en: { samples: 1, unit: reqs }",
        "\"open\": { samples: 1, unit: reqs }",
        ": { samples: 1, unit: reqs }",
        "a_name_that_is_longer_than_Lustre: { samples: 1, unit: reqs }",
        "sync: { samples: 1, unit: reqs }", /* again */
        "read_bytes: { samples: 1, unit: bytes, min: -1, max: 1, sum: 1 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: -1, sum: 1 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: -1 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 18446744073709551616 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1e3 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1 }",
        "read_bytes: { samples: 1, unit: bytes }",
        "read_bytes: { unit: bytes, min: 1, max: 1, sum: 1 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1 } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, }",
        "read_bytes: { samples: 1 unit: bytes, min: 1, max: 1, sum: 1 }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { 4K: -1 } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { 4Q: 1 } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { K: 1 } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { 4K } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { 4K: 1 8K: 1 } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: { 4K: 1",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: 4K }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: "
        "{ 1K: 18446744073709551615, 2K: 1 } }",
        "read_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1, hist: "
        "{ 18014398509481984K: 1 } }",
        "read_bytes: 5",
        "write_bytes: { samples: 2, unit: bytes, min: 2, max: 2, sum: 2 }", /* again */
        "unknown: yes",
        "garbage",
        "\x01\xff",
        "",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct buf text;

        buf_init(&text, 4096);
        buf_printf(&text,
                   "job_stats:\n"
                   "- job_id:          1\n"
                   "  write_bytes:     { samples: 1, unit: bytes, min: 1, max: 1, sum: 1 }\n"
                   "  sync:            { samples: 7, unit: reqs }\n"
                   "  %s\n"
                   "  statfs:          { samples: 8, unit: reqs }\n",
                   lines[i]);
        assert_reads(text.p, "<1> write(1 of 1 bytes, 1-1) sync=7 statfs=8\n", 1);
        buf_free(&text);
    }
}

TEST(the_largest_numbers_are_read)
{
    assert_reads("- job_id:          1\n"
                 "  snapshot_time:   9223372036854775807\n"
                 "  read_bytes:      { samples: 18446744073709551615, unit: bytes, min: 0, max:"
                 " 18446744073709551615, sum: 18446744073709551615, hist: { 8388608T: 1 } }\n"
                 "  open:            { samples: 0018446744073709551615, unit: reqs }\n",
                 "<1> read(18446744073709551615 of 18446744073709551615 bytes,"
                 " 0-18446744073709551615, 0 small) open=18446744073709551615\n",
                 0);
}

TEST(what_later_releases_may_add_to_a_counter_is_passed_over)
{
    assert_reads("- job_id:          1\n"
                 "  read_bytes:      { samples: 1, unit: bytes, p99: -3, x: { a: 1, b: 2 }, sum: 2,"
                 " min: 3, max: 4 }\n"
                 "  new_thing:       { samples: 5, hist: { 1: { } } }\n",
                 "<1> read(1 of 2 bytes, 3-4) new_thing=5\n", 0);
}

TEST(what_is_cut_off_anywhere_tells_all_before)
{
    struct str text = str_of(ost_2_15);

    for (size_t n = 0; n <= text.n; n++) {
        struct str cut = str_head(text, n), lines = cut;
        struct reading whole;

        while (lines.n && lines.p[lines.n - 1] != '\n')
            lines.n--;
        begin(&whole);
        job_stats_feed(whole.parser, lines);
        job_stats_finish(whole.parser);
        assert_int_equal(job_stats_bad_lines(whole.parser), 0);
        assert_reads_str(cut, buf_str(&whole.seen), cut.n > lines.n);
        end(&whole);
    }
    assert_reads_str(text, str_of(ost_2_15_seen), 0);
}

TEST(pieces_make_no_difference)
{
    struct str text = str_of(ost_2_12);

    for (size_t at = 1; at < text.n; at++) {
        struct reading reading;

        begin(&reading);
        feed(&reading, str_head(text, at), at);
        job_stats_feed(reading.parser, STR(""));
        feed(&reading, str_skip(text, at), text.n);
        job_stats_finish(reading.parser);
        assert_str(buf_str(&reading.seen), ost_2_12_seen);
        end(&reading);
    }
}

TEST(a_line_without_end_is_one_bad_line_and_takes_no_memory)
{
    static const struct {
        const char *begin, *seen;
    } lines[] = {
        { "", "<1> sync=7\n<2> sync=8\n" }, /* whose the next lines are is not known */
        { "  ", "<1> sync=7 statfs=9\n<2> sync=8\n" },
        { "  open: { samples: 1, unit: ", "<1> sync=7 statfs=9\n<2> sync=8\n" },
        { "- job_id:          ", "<1> sync=7\n<2> sync=8\n" },
    };
    static char piece[65536];

    memset(piece, 'x', sizeof(piece));
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct reading reading;
        unsigned long before;

        begin(&reading);
        job_stats_feed(reading.parser, STR("- job_id: 1\n  sync: { samples: 7, unit: reqs }\n"));
        job_stats_feed(reading.parser, str_of(lines[i].begin));
        before = atomic_load(&n_allocations);
        for (size_t k = 0; k < 500; k++)
            job_stats_feed(reading.parser, (struct str){ piece, sizeof(piece) });
        assert_int_equal(atomic_load(&n_allocations), before);
        job_stats_feed(reading.parser, STR("\n  statfs: { samples: 9, unit: reqs }\n- job_id: 2\n"
                                           "  sync: { samples: 8, unit: reqs }\n"));
        job_stats_finish(reading.parser);
        assert_str(buf_str(&reading.seen), lines[i].seen);
        assert_int_equal(job_stats_bad_lines(reading.parser), 1);
        end(&reading);
    }
}

TEST(a_long_line_is_judged_alike_in_any_pieces)
{
    for (size_t length = 4094; length <= 4099; length++) {
        const char *const begin = "  open: { samples: 1, unit: ";
        struct buf text;

        buf_init(&text, 65536);
        buf_printf(&text, "- job_id: 1\n%s", begin);
        put_repeated(&text, "x", length - strlen(begin) - 2);
        buf_text(&text, " }\n- job_id: 2\n");
        if (length <= 4096)
            assert_reads(text.p, "<1> open=1\n<2>\n", 0);
        else
            assert_reads(text.p, "<1>\n<2>\n", 1);
        buf_free(&text);
    }
}

TEST(nul_bytes_end_nothing)
{
    static const char text[] = "- job_id:          a\0b\n"
                               "  op\0en:           { samples: 1, unit: reqs }\n"
                               "  sync:            { samples: 1\0, unit: reqs }\n"
                               "  statfs:          { samples: 1, unit: re\0qs }\n"
                               "\0\n"
                               "- job_id:          2\n";
    static const char seen[] = "<a\0b> statfs=1\n<2>\n";

    assert_reads_str((struct str){ text, sizeof(text) - 1 }, (struct str){ seen, sizeof(seen) - 1 },
                     3);
}

TEST(carriage_returns_before_newlines_are_no_text)
{
    struct buf text;

    buf_init(&text, 65536);
    buf_text(&text, "\r\n");
    for (const char *p = ost_2_15; *p; p++) {
        if (*p == '\n')
            buf_byte(&text, '\r');
        buf_byte(&text, *p);
    }
    buf_text(&text, "mdt.scratch-MDT0000.job_stats=\r\n- job_id:  7\r\n");
    assert_reads(text.p,
                 "<1234:nemo.exe:node0001> read(3 of 1056768 bytes, 4096-1048576)"
                 " write(1 of 10 bytes, 10-10) read=3 write=1 getattr=0 prealloc=6\n"
                 "MDT scratch-MDT0000 <7>\n",
                 0);
    buf_free(&text);
}

TEST(counters_after_garbage_are_nobodys)
{
    assert_reads("  open:            { samples: 9, unit: reqs }\n"
                 "- job_id:          1\n"
                 "  sync:            { samples: 1, unit: reqs }\n"
                 "x job_id:          2\n"
                 "  open:            { samples: 2, unit: reqs }\n"
                 "- job_id           3\n"
                 "  open:            { samples: 3, unit: reqs }\n"
                 "-\n"
                 "  open:            { samples: 4, unit: reqs }\n"
                 "job_stats: {}\n"
                 "  open:            { samples: 5, unit: reqs }\n"
                 "- job_id:          6\n"
                 "  open:            { samples: 6, unit: reqs }\n"
                 "job_stats:\n"
                 "  open:            { samples: 7, unit: reqs }\n",
                 "<1> sync=1\n<6> open=6\n", 6);
}

TEST(operations_past_the_ceiling_are_left_out_and_counted)
{
    struct buf text, seen;

    buf_init(&text, 65536);
    buf_init(&seen, 65536);
    buf_text(&text, "- job_id:          1\n");
    buf_text(&seen, "<1> write(1 of 1 bytes, 1-1)");
    for (int i = 0; i < JOB_STATS_OPERATIONS + 3; i++) {
        buf_printf(&text, "  operation_%d: { samples: %d, unit: reqs }\n", i, i);
        if (i < JOB_STATS_OPERATIONS)
            buf_printf(&seen, " operation_%d=%d", i, i);
    }
    buf_text(&text, "  write_bytes: { samples: 1, unit: bytes, min: 1, max: 1, sum: 1 }\n"
                    "- job_id:          2\n"
                    "  open:            { samples: 1, unit: reqs }\n");
    buf_text(&seen, "\n<2> open=1\n");
    assert_reads(text.p, seen.p, 3);
    buf_free(&text);
    buf_free(&seen);
}

TEST(a_reset_drops_what_was_begun)
{
    struct reading reading;

    begin(&reading);
    job_stats_feed(reading.parser, STR("mdt.scratch-MDT0000.job_stats=\n"
                                       "- job_id: 1\n  garbage\n- job_id: 2\n- job_id: 3"));
    job_stats_reset(reading.parser);
    assert_str(buf_str(&reading.seen), "MDT scratch-MDT0000 <1>\n");
    job_stats_feed(reading.parser, STR("- job_id: 4\n  garbage\n"));
    job_stats_finish(reading.parser);
    assert_str(buf_str(&reading.seen), "MDT scratch-MDT0000 <1>\n<4>\n");
    assert_int_equal(job_stats_bad_lines(reading.parser), 2);
    end(&reading);
}

TEST(after_the_end_comes_another_file)
{
    struct reading reading;

    begin(&reading);
    job_stats_feed(reading.parser, STR("mdt.scratch-MDT0000.job_stats=\nbroken\n- job_id: 1\n  o"));
    job_stats_finish(reading.parser);
    job_stats_finish(reading.parser);
    job_stats_feed(reading.parser, STR("job_stats:\n- job_id: 2\n"));
    job_stats_finish(reading.parser);
    assert_str(buf_str(&reading.seen), "<2>\n");
    assert_int_equal(job_stats_bad_lines(reading.parser), 2);
    end(&reading);
}

static void count(void *ctx, const struct job_stats_entry *entry)
{
    (void)entry;
    ++*(size_t *)ctx;
}

TEST(reading_allocates_nothing)
{
    size_t entries = 0;
    struct job_stats_parser *parser = job_stats_parser_new(count, &entries);
    unsigned long before = atomic_load(&n_allocations);

    for (size_t i = 0; i < 1000; i++) {
        struct str text = str_of(ost_2_15);

        for (; text.n; text = str_skip(text, 333))
            job_stats_feed(parser, str_head(text, 333));
    }
    job_stats_finish(parser);
    assert_int_equal(entries, 1000);
    assert_int_equal(atomic_load(&n_allocations), before);
    job_stats_parser_free(parser);
}
