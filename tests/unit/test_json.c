/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/json: the JSON parser. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "files.h"

#include <math.h>

#define FFFD "\xef\xbf\xbd"

static void put_event(struct buf *out, const struct json *json, enum json_event event)
{
    static const char *const marks[] = {
        [JSON_OBJECT] = "{",    [JSON_OBJECT_END] = "}", [JSON_ARRAY] = "[", [JSON_ARRAY_END] = "]",
        [JSON_KEY] = "",        [JSON_STRING] = "",      [JSON_NUMBER] = "", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false", [JSON_NULL] = "null",
    };

    if (out->n)
        buf_byte(out, ' ');
    buf_text(out, marks[event]);
    if (event == JSON_KEY || event == JSON_STRING)
        buf_json(out, json_text(json));
    else
        buf_put(out, json_text(json));
    if (event == JSON_KEY)
        buf_byte(out, ':');
}

/* Everything that comes out until more is needed; after an error its sentence. */
static enum json_event put_events(struct buf *out, struct json *json, struct str skipped_key)
{
    enum json_event event;

    while ((event = json_next(json)) > JSON_END) {
        put_event(out, json, event);
        if (event == JSON_KEY && skipped_key.p && str_eq(json_text(json), skipped_key))
            json_skip(json);
    }
    if (event == JSON_ERROR) {
        struct err err;

        json_error(json, &err);
        buf_printf(out, "%s%s", out->n ? " " : "", err.text);
    }
    return event;
}

/* Each piece lives in a block of just its size that is freed as early as the contract allows, so
 * that the address sanitizer sees a read past its end or after its time. */
static enum json_event feed_copy(struct buf *out, struct json *json, struct str piece,
                                 struct str skipped_key)
{
    char *copy = heap_array(piece.n, 1);
    enum json_event event;

    if (piece.n)
        memcpy(copy, piece.p, piece.n);
    json_feed(json, (struct str){ copy, piece.n });
    event = put_events(out, json, skipped_key);
    free(copy);
    return event;
}

struct cut {
    size_t first, rest; /* length of the first piece, and of the others */
};

static void trace(struct buf *out, struct str document, struct cut cut, struct str skipped_key)
{
    struct json *json = json_new();
    enum json_event event = JSON_MORE;
    size_t length = cut.first;

    buf_reset(out);
    while (document.n && event == JSON_MORE) {
        event = feed_copy(out, json, str_head(document, length), skipped_key);
        document = str_skip(document, length);
        length = cut.rest;
    }
    if (event == JSON_MORE) {
        json_finish(json);
        event = put_events(out, json, skipped_key);
    }
    assert_int_not_equal(event, JSON_MORE);
    assert_int_equal(json_next(json), event);
    json_free(json);
}

static void check_trace(struct str document, const char *expected, struct str skipped_key)
{
    struct buf whole, cut;

    buf_init(&whole, 10 << 20);
    buf_init(&cut, 10 << 20);
    trace(&whole, document, (struct cut){ document.n, 1 }, skipped_key);
    if (expected)
        assert_str(buf_str(&whole), expected);
    for (size_t i = 1; i < document.n && i < 300; i++) {
        trace(&cut, document, (struct cut){ i, document.n }, skipped_key);
        assert_str(buf_str(&cut), whole.p);
        trace(&cut, document, (struct cut){ i, i }, skipped_key);
        assert_str(buf_str(&cut), whole.p);
    }
    buf_free(&whole);
    buf_free(&cut);
}

/* The document gives these events, or this error, whole and in pieces of any size. */
#define assert_events(document, expected) check_trace(STR(document), expected, (struct str){ 0 })

TEST(every_kind_of_value_is_an_event)
{
    assert_events("{}", "{ }");
    assert_events(" [ ] ", "[ ]");
    assert_events("null", "null");
    assert_events("\"x\"", "\"x\"");
    assert_events("-1", "-1");
    assert_events("{\"a\":{\"b\":[1,true,false,null,\"c\",[],{}]},\"\":\"\"}",
                  "{ \"a\": { \"b\": [ 1 true false null \"c\" [ ] { } ] } \"\": \"\" }");
    assert_events("[{\"a\":{}},[[],1,{},2],{\"b\":[[]],\"c\":3}]",
                  "[ { \"a\": { } } [ [ ] 1 { } 2 ] { \"b\": [ [ ] ] \"c\": 3 } ]");
    assert_events("\r\n\t [ 1 ,\n2\t,\r3 ]\n", "[ 1 2 3 ]");
    assert_events("{ \"k\" : 1 , \"k\" : 2 }", "{ \"k\": 1 \"k\": 2 }");
}

TEST(numbers_come_as_they_are_written)
{
    assert_events("[0,-0,10,-10,1.5,0.0,0e0,1E+5,1e-05,12.25e1]",
                  "[ 0 -0 10 -10 1.5 0.0 0e0 1E+5 1e-05 12.25e1 ]");
    assert_events("123456789012345678901234567890", "123456789012345678901234567890");
    assert_events("0", "0");
    assert_events("1e5", "1e5");
}

TEST(infinity_and_nan_are_numbers_because_slurm_writes_them)
{
    assert_events("[Infinity,-Infinity,NaN,-NaN]", "[ Infinity -Infinity NaN -NaN ]");
    assert_events("-Infinity", "-Infinity");
    assert_events("-NaB", "line 1, column 4: expected the word -NaN, found 'B'");
    assert_events("-x", "line 1, column 2: expected a digit, found 'x'");
}

TEST(escapes_are_undone)
{
    assert_events("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                  "\"\\\"\\\\/\\u0008\\u000c\\u000a\\u000d\\u0009\"");
    assert_events("\"\\u0041\\u00e9\\u20ac\\uD83D\\uDE00\"", "\"A\u00e9\u20ac\U0001F600\"");
    assert_events("{\"\\u006b\\/\":\"before\\u0000after\"}", "{ \"k/\": \"before\\u0000after\" }");
    assert_events("\"\\uDBFF\\uDFFF\\uFFFF\"", "\"\U0010FFFF\uFFFF\"");
}

TEST(half_a_surrogate_pair_becomes_a_replacement_character)
{
    assert_events("\"\\uD83D\"", "\"" FFFD "\"");
    assert_events("\"\\uDE00x\"", "\"" FFFD "x\"");
    assert_events("\"\\uD83D\\uD83D\\uDE00\"", "\"" FFFD "\U0001F600\"");
    assert_events("\"\\uD83D\\n\"", "\"" FFFD "\\u000a\"");
    assert_events("\"\\uD83D\\u0041\"", "\"" FFFD "A\"");
    assert_events("\"\\uD83D\u00e9\"", "\"" FFFD "\u00e9\"");
    assert_events("\"\\uD83D\xff\"", "\"" FFFD FFFD "\"");
}

TEST(bytes_that_are_not_utf8_become_replacement_characters_one_each)
{
    assert_events("\"a\xff\x80z\"", "\"a" FFFD FFFD "z\"");
    assert_events("\"\xe2\x82\"", "\"" FFFD FFFD "\"");
    assert_events("\"\xe2\x82\xac\xe2\x82x\"", "\"\u20ac" FFFD FFFD "x\"");
    assert_events("\"\xe2\x82\\n\"", "\"" FFFD FFFD "\\u000a\"");
    assert_events("\"\xe0\x80\x80\"", "\"" FFFD FFFD FFFD "\"");
    assert_events("\"\xed\xa0\x80\"", "\"" FFFD FFFD FFFD "\"");
    assert_events("\"\xf4\x90\x80\x80\"", "\"" FFFD FFFD FFFD FFFD "\"");
    assert_events("\"\xf0\x9f\x98\xf0\x9f\x98\x80\"", "\"" FFFD FFFD FFFD "\U0001F600\"");
    assert_events("\"\x7f\"", "\"\\u007f\"");
}

TEST(what_the_grammar_forbids_is_an_error_at_its_place)
{
    static const struct {
        struct str document;
        const char *expected;
    } cases[] = {
#define CASE(document, expected) { STR_INIT(document), expected }
        CASE("", "line 1, column 1: the document is empty"),
        CASE(" \n ", "line 2, column 2: the document is empty"),
        CASE("\xef\xbb\xbf{}",
             "line 1, column 1: the document begins with a byte order mark, which JSON must not"),
        CASE("\xef\xbb{}", "line 1, column 3: expected a value, found '{'"),
        CASE("[\xef\xbb\xbf", "[ line 1, column 2: expected a value or ], found byte 0xef"),
        CASE("{} x", "{ } line 1, column 4: expected nothing more, found 'x'"),
        CASE("[]\n[]", "[ ] line 2, column 1: expected nothing more, found '['"),
        CASE("1 2", "1 line 1, column 3: expected nothing more, found '2'"),
        CASE("1,", "1 line 1, column 2: expected nothing more, found ','"),
        CASE("[1,]", "[ 1 line 1, column 4: expected a value, found ']'"),
        CASE("[,1]", "[ line 1, column 2: expected a value or ], found ','"),
        CASE("[1 2]", "[ 1 line 1, column 4: expected a comma or ], found '2'"),
        CASE("[1}", "[ 1 line 1, column 3: expected a comma or ], found '}'"),
        CASE("{\"a\":1]", "{ \"a\": 1 line 1, column 7: expected a comma or }, found ']'"),
        CASE("{\"a\":1,}", "{ \"a\": 1 line 1, column 8: expected a key in quotes, found '}'"),
        CASE("{\"a\" 1}", "{ \"a\": line 1, column 6: expected a colon, found '1'"),
        CASE("{\"a\"::1}", "{ \"a\": line 1, column 6: expected a value, found ':'"),
        CASE("{a:1}", "{ line 1, column 2: expected a key in quotes or }, found 'a'"),
        CASE("{1:1}", "{ line 1, column 2: expected a key in quotes or }, found '1'"),
        CASE("['a']", "[ line 1, column 2: expected a value or ], found '''"),
        CASE("\"a\nb\"", "line 1, column 3: expected control characters in a string to be escaped, "
                         "found byte 0x0a"),
        CASE("\"\xc3\x01\"",
             "line 1, column 3: expected control characters in a string to be escaped, "
             "found byte 0x01"),
        CASE("\"\\x\"",
             "line 1, column 3: expected one of \"\\/bfnrtu after the backslash, found 'x'"),
        CASE("\"\\u12g4\"",
             "line 1, column 6: expected four hexadecimal digits after \\u, found 'g'"),
        CASE("\"\\u12\"",
             "line 1, column 6: expected four hexadecimal digits after \\u, found '\"'"),
        CASE("[01]", "[ 0 line 1, column 3: expected a comma or ], found '1'"),
        CASE("[-01]", "[ -0 line 1, column 4: expected a comma or ], found '1'"),
        CASE("[1.]", "[ line 1, column 4: expected a digit, found ']'"),
        CASE("[.5]", "[ line 1, column 2: expected a value or ], found '.'"),
        CASE("[+1]", "[ line 1, column 2: expected a value or ], found '+'"),
        CASE("[1e]", "[ line 1, column 4: expected a digit, found ']'"),
        CASE("[1e+]", "[ line 1, column 5: expected a digit, found ']'"),
        CASE("[1.5.5]", "[ 1.5 line 1, column 5: expected a comma or ], found '.'"),
        CASE("[0x10]", "[ 0 line 1, column 3: expected a comma or ], found 'x'"),
        CASE("[1-2]", "[ 1 line 1, column 3: expected a comma or ], found '-'"),
        CASE("[--1]", "[ line 1, column 3: expected a digit, found '-'"),
        CASE("[tru]", "[ line 1, column 5: expected the word true, found ']'"),
        CASE("[nulll]", "[ null line 1, column 6: expected a comma or ], found 'l'"),
        CASE("[True]", "[ line 1, column 2: expected a value or ], found 'T'"),
        CASE("[inf]", "[ line 1, column 2: expected a value or ], found 'i'"),
        CASE("// x\n1", "line 1, column 1: expected a value, found '/'"),
        CASE("[1\f]", "[ 1 line 1, column 3: expected a comma or ], found byte 0x0c"),
        CASE("[\0]", "[ line 1, column 2: expected a value or ], found byte 0x00"),
        CASE("\xff", "line 1, column 1: expected a value, found byte 0xff"),
        CASE("{\n  \"a\": [\n    1,\n    oops\n  ]\n}",
             "{ \"a\": [ 1 line 4, column 5: expected a value, found 'o'"),
#undef CASE
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        check_trace(cases[i].document, cases[i].expected, (struct str){ 0 });
}

TEST(a_cut_document_says_where_it_ends)
{
    assert_events("\"abc", "line 1, column 5: the document ends inside a string, cut short");
    assert_events("\"abc\\", "line 1, column 6: the document ends inside a string, cut short");
    assert_events("\"\\uD83D", "line 1, column 8: the document ends inside a string, cut short");
    assert_events("\"\xe2\x82", "line 1, column 4: the document ends inside a string, cut short");
    assert_events("[1.", "[ line 1, column 4: the document ends inside a number, cut short");
    assert_events("-", "line 1, column 2: the document ends inside a number, cut short");
    assert_events("[12", "[ 12 line 1, column 4: the document ends where a comma or ] is expected, "
                         "cut short");
    assert_events("tru", "line 1, column 4: the document ends inside a word, cut short");
    assert_events("-Inf", "line 1, column 5: the document ends inside a word, cut short");
    assert_events("{\"a\"\n",
                  "{ \"a\": line 2, column 1: the document ends where a colon is expected, "
                  "cut short");
}

TEST(every_prefix_of_a_document_waits_for_more_and_is_an_error_at_the_end)
{
    static const char document[] =
        "{\"jobs\": [\n  {\"id\": -10, \"name\": \"a\\n\\ud83d\\ude00\u20ac\xff\", \"load\": "
        "1.5e+3,\n"
        "   \"set\": true, \"none\": null, \"level\": -Infinity, \"no\": false}]}";

    for (size_t length = 0; length < sizeof(document) - 1; length++) {
        struct json *json = json_new();
        struct err err = { 0 };
        enum json_event event;

        for (size_t i = 0; i < length; i++) {
            json_feed(json, (struct str){ document + i, 1 });
            while ((event = json_next(json)) > JSON_END)
                ;
            assert_int_equal(event, JSON_MORE);
            assert_int_equal(json_error(json, &err), 0);
            assert_int_equal(err.code, 0);
        }
        json_finish(json);
        while ((event = json_next(json)) > JSON_END)
            ;
        assert_int_equal(event, JSON_ERROR);
        assert_int_equal(json_error(json, &err), -EBADMSG);
        assert_int_equal(err.code, EBADMSG);
        json_free(json);
    }
}

TEST(empty_pieces_change_nothing)
{
    struct json *json = json_new();
    struct str none = { NULL, 0 };

    json_feed(json, none);
    assert_int_equal(json_next(json), JSON_MORE);
    json_feed(json, STR("[\"a"));
    assert_int_equal(json_next(json), JSON_ARRAY);
    assert_int_equal(json_next(json), JSON_MORE);
    json_feed(json, none);
    assert_int_equal(json_next(json), JSON_MORE);
    json_feed(json, STR("b\"]"));
    assert_int_equal(json_next(json), JSON_STRING);
    assert_str(json_text(json), "ab");
    assert_int_equal(json_next(json), JSON_ARRAY_END);
    json_finish(json);
    assert_int_equal(json_next(json), JSON_END);
    json_free(json);
}

TEST(a_token_within_a_piece_is_not_copied)
{
    static const char piece[] = "{\"k\u00e9y\":\"value\",\"n\":1234}";
    struct json *json = json_new();

    json_feed(json, str_of(piece));
    assert_int_equal(json_next(json), JSON_OBJECT);
    assert_int_equal(json_next(json), JSON_KEY);
    assert_ptr_equal(json_text(json).p, piece + 2);
    assert_int_equal(json_next(json), JSON_STRING);
    assert_ptr_equal(json_text(json).p, strstr(piece, "value"));
    json_next(json);
    assert_int_equal(json_next(json), JSON_NUMBER);
    assert_ptr_equal(json_text(json).p, strstr(piece, "1234"));
    json_free(json);
}

TEST(text_belongs_to_keys_strings_and_numbers_only)
{
    struct json *json = json_new();

    json_feed(json, STR("[\"a\",true]"));
    json_next(json);
    assert_str(json_text(json), "");
    json_next(json);
    assert_str(json_text(json), "a");
    json_next(json);
    assert_str(json_text(json), "");
    json_free(json);
}

TEST(a_scanner_can_be_used_again_after_an_error)
{
    struct json *json = json_new();
    struct err err;

    json_feed(json, STR("{\"a\":[\n\"x\\"));
    while (json_next(json) > JSON_END)
        ;
    json_feed(json, STR("x"));
    assert_int_equal(json_next(json), JSON_ERROR);
    json_feed(json, STR("ignored"));
    assert_int_equal(json_next(json), JSON_ERROR);
    json_reset(json);
    assert_int_equal(json_error(json, &err), 0);
    assert_int_equal(json_depth(json), 0);
    json_feed(json, STR("[7"));
    assert_int_equal(json_next(json), JSON_ARRAY);
    assert_int_equal(json_next(json), JSON_MORE);
    json_finish(json);
    assert_int_equal(json_next(json), JSON_NUMBER);
    assert_int_equal(json_next(json), JSON_ERROR);
    json_error(json, &err);
    assert_contains(err.text, "line 1, column 3");
    json_free(json);
}

TEST(integers_are_read_up_to_their_limits)
{
    static const struct {
        const char *text;
        bool is_u64, is_i64;
        uint64_t u64;
        int64_t i64;
    } cases[] = {
        { "0", true, true, 0, 0 },
        { "-0", false, true, 0, 0 },
        { "4294967294", true, true, 4294967294, 4294967294 },
        { "9223372036854775807", true, true, INT64_MAX, INT64_MAX },
        { "9223372036854775808", true, false, UINT64_C(1) << 63, 0 },
        { "-9223372036854775808", false, true, 0, INT64_MIN },
        { "-9223372036854775809", false, false, 0, 0 },
        { "18446744073709551615", true, false, UINT64_MAX, 0 },
        { "18446744073709551616", false, false, 0, 0 },
        { "1.0", false, false, 0, 0 },
        { "1e3", false, false, 0, 0 },
        { "Infinity", false, false, 0, 0 },
        { "\"1\"", false, false, 0, 0 },
        { "true", false, false, 0, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json *json = json_new();
        uint64_t u64 = 77;
        int64_t i64 = 77;

        json_feed(json, str_of(cases[i].text));
        json_finish(json);
        json_next(json);
        assert_int_equal(json_u64(json, &u64), cases[i].is_u64);
        assert_true(u64 == (cases[i].is_u64 ? cases[i].u64 : 77));
        assert_int_equal(json_i64(json, &i64), cases[i].is_i64);
        assert_true(i64 == (cases[i].is_i64 ? cases[i].i64 : 77));
        json_free(json);
    }
}

static double read_double(const char *text)
{
    struct json *json = json_new();
    double value = -77;

    json_feed(json, str_of(text));
    json_finish(json);
    json_next(json);
    assert_true(json_double(json, &value));
    json_free(json);
    return value;
}

TEST(every_number_is_a_double_too)
{
    struct json *json = json_new();
    double value;

    assert_true(read_double("1794767803") == 1794767803);
    assert_true(read_double("-1.25e2") == -125);
    assert_true(read_double("2.3283064376228985e-10") == 2.3283064376228985e-10);
    assert_true(read_double("-Infinity") == -INFINITY);
    assert_true(isnan(read_double("NaN")));
    json_feed(json, STR("[\"1\",1e999]"));
    json_next(json);
    json_next(json);
    assert_false(json_double(json, &value));
    assert_int_equal(json_next(json), JSON_NUMBER);
    assert_false(json_double(json, &value)); /* does not fit */
    json_free(json);
}

static void check_skip(struct str document, const char *expected)
{
    check_trace(document, expected, STR("x"));
}

TEST(the_value_of_a_key_can_be_skipped)
{
    check_skip(STR("{\"a\":1,\"x\":{\"b\":[[],{\"x\":2}],\"c\":\"}\"},\"d\":3}"),
               "{ \"a\": 1 \"x\": \"d\": 3 }");
    check_skip(STR("{\"x\":[1,[2],{}]}"), "{ \"x\": }");
    check_skip(STR("[{\"x\":12},{\"x\":\"a\\\"b\",\"y\":null}]"),
               "[ { \"x\": } { \"x\": \"y\": null } ]");
    check_skip(STR("{\"x\":Infinity}"), "{ \"x\": }");
}

TEST(what_is_skipped_must_be_json_all_the_same)
{
    check_skip(STR("{\"x\":[1,}"), "{ \"x\": line 1, column 9: expected a value, found '}'");
    check_skip(STR("{\"x\":[1"),
               "{ \"x\": line 1, column 8: the document ends where a comma or ] is expected, "
               "cut short");
}

TEST(a_container_can_be_skipped_from_inside)
{
    static const char document[] = "[{\"a\":[1,2]},[3,[4]],5]";

    for (size_t cut = 1; cut < sizeof(document) - 1; cut++) {
        struct json *json = json_new();
        struct str rest = str_of(document);
        size_t skipped = 0;
        enum json_event event;

        json_feed(json, str_head(rest, cut));
        for (;;) {
            event = json_next(json);
            assert_int_not_equal(event, JSON_ERROR);
            if (event == JSON_MORE) {
                rest = str_skip(rest, cut);
                assert_int_not_equal(rest.n, 0);
                json_feed(json, str_head(rest, cut));
            } else if (json_depth(json) == 2) {
                skipped++;
                json_skip(json);
            } else if (event == JSON_NUMBER) {
                break;
            }
        }
        assert_int_equal(skipped, 2);
        assert_str(json_text(json), "5");
        assert_int_equal(json_depth(json), 1);
        json_free(json);
    }
}

TEST(skipping_after_a_scalar_skips_nothing)
{
    struct json *json = json_new();

    json_feed(json, STR("[1,[2],3]"));
    json_next(json);
    assert_int_equal(json_next(json), JSON_NUMBER);
    json_skip(json);
    assert_int_equal(json_next(json), JSON_ARRAY);
    json_skip(json);
    assert_int_equal(json_next(json), JSON_NUMBER);
    assert_str(json_text(json), "3");
    json_skip(json);
    assert_int_equal(json_next(json), JSON_ARRAY_END);
    json_skip(json);
    assert_int_equal(json_next(json), JSON_MORE);
    json_free(json);
}

TEST(sixty_four_levels_are_read_and_a_hundred_thousand_are_an_error)
{
    struct json *json = json_new();
    struct err err;
    char *deep = heap_array(100000, 1);
    size_t opened = 0;

    memset(deep, '[', 100000);
    json_feed(json, (struct str){ deep, 100000 });
    while (json_next(json) == JSON_ARRAY)
        opened++;
    assert_int_equal(opened, 64);
    assert_int_equal(json_depth(json), 64);
    assert_int_equal(json_error(json, &err), -EFBIG);
    assert_string_equal(err.text,
                        "line 1, column 65: objects and arrays are nested deeper than 64 levels");

    json_reset(json);
    memset(deep + 64, ']', 64);
    json_feed(json, (struct str){ deep, 128 });
    json_finish(json);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(json_next(json), i < 64 ? JSON_ARRAY : JSON_ARRAY_END);
    assert_int_equal(json_next(json), JSON_END);
    free(deep);
    json_free(json);
}

TEST(objects_and_arrays_may_alternate_down_to_the_last_level)
{
    struct buf document, expected;

    buf_init(&document, 10000);
    buf_init(&expected, 10000);
    for (size_t i = 0; i < 32; i++) {
        buf_text(&document, "[{\"k\":");
        buf_text(&expected, "[ { \"k\": ");
    }
    buf_text(&document, "0");
    buf_text(&expected, "0");
    for (size_t i = 0; i < 32; i++) {
        buf_text(&document, ",\"l\":1},2]");
        buf_text(&expected, " \"l\": 1 } 2 ]");
    }
    check_trace(buf_str(&document), expected.p, (struct str){ 0 });
    buf_free(&document);
    buf_free(&expected);
}

enum { TOKEN_MAX = 1 << 20 };

/* A token of `length` bytes in an array, fed in pieces: the event that it gives, and its length. */
static enum json_event read_long_token(const char *before, char fill, size_t length,
                                       const char *after, size_t piece, size_t *ret_length)
{
    size_t head = strlen(before), tail = strlen(after), all = head + length + tail;
    char *document = heap_array(all, 1);
    struct json *json = json_new();
    enum json_event event = JSON_MORE;
    struct err err;

    memcpy(document, before, head);
    memset(document + head, fill, length);
    memcpy(document + head + length, after, tail);
    for (size_t at = 0; at < all && event == JSON_MORE; at += piece) {
        json_feed(json, str_head((struct str){ document + at, all - at }, piece));
        event = json_next(json);
        if (event == JSON_ARRAY)
            event = json_next(json);
    }
    *ret_length = json_text(json).n;
    if (event == JSON_ERROR) {
        assert_int_equal(json_error(json, &err), -EFBIG);
        assert_string_equal(err.text, "line 1, column 2: the string or number that begins here is "
                                      "longer than 1048576 bytes");
    }
    json_free(json);
    free(document);
    return event;
}

/* Byte by byte as well: reading a token again with each piece would take hours. */
/* Else one user's endless command line would hide everybody's jobs. */
TEST(a_string_that_nobody_wants_may_have_any_length)
{
    static const char *const begins[] = { "{\"unwanted\": \"", "{\"unwanted\": [{\"deep\": \"" };
    static const char *const ends[] = { "\", \"wanted\": 7}", "\"}], \"wanted\": 7}" };

    for (size_t i = 0; i < COUNT(begins); i++) {
        struct json *json = json_new();
        uint64_t wanted = 0;
        struct buf text;
        enum json_event event;

        buf_init(&text, 8 << 20);
        buf_text(&text, begins[i]);
        for (size_t k = 0; k < 3 * TOKEN_MAX; k++)
            buf_byte(&text, k % 3 ? 'x' : '\xff');
        buf_text(&text, ends[i]);
        for (struct str rest = buf_str(&text); rest.n; rest = str_skip(rest, 65536)) {
            json_feed(json, str_head(rest, 65536));
            while ((event = json_next(json)) > JSON_END) {
                if (event == JSON_KEY && str_eq(json_text(json), STR("unwanted")))
                    json_skip(json);
                if (event == JSON_NUMBER)
                    json_u64(json, &wanted);
            }
            assert_int_equal(event, JSON_MORE);
        }
        assert_int_equal(wanted, 7);
        buf_free(&text);
        json_free(json);
    }
}

TEST(a_token_may_be_a_megabyte_and_no_longer_however_it_is_cut)
{
    static const size_t pieces[] = { 1, 3, 1000, 65536, 100 << 20 };
    size_t length;

    for (size_t i = 0; i < COUNT(pieces); i++) {
        assert_int_equal(read_long_token("[\"", 'x', TOKEN_MAX, "\"]", pieces[i], &length),
                         JSON_STRING);
        assert_int_equal(length, TOKEN_MAX);
        assert_int_equal(read_long_token("[\"", 'x', TOKEN_MAX + 1, "\"]", pieces[i], &length),
                         JSON_ERROR);
        assert_int_equal(
            read_long_token("[\"", 'x', TOKEN_MAX - 1, "\u00e9\"]", pieces[i], &length),
            JSON_ERROR);
        assert_int_equal(read_long_token("[\"\\n", 'x', TOKEN_MAX - 1, "\"]", pieces[i], &length),
                         JSON_STRING);
        assert_int_equal(length, TOKEN_MAX);
        assert_int_equal(read_long_token("[\"\\n", 'x', TOKEN_MAX, "\"]", pieces[i], &length),
                         JSON_ERROR);
        assert_int_equal(read_long_token("[", '7', TOKEN_MAX, "]", pieces[i], &length),
                         JSON_NUMBER);
        assert_int_equal(length, TOKEN_MAX);
        assert_int_equal(read_long_token("[", '7', TOKEN_MAX + 1, "]", pieces[i], &length),
                         JSON_ERROR);
        assert_int_equal(read_long_token("[", '7', TOKEN_MAX + 1, ".x]", pieces[i], &length),
                         JSON_ERROR);
    }
}

TEST(a_gigabyte_of_string_is_refused_after_its_first_megabyte)
{
    enum { PIECE = 65536 };
    char *piece = heap_array(PIECE, 1);
    struct json *json = json_new();
    enum json_event event = JSON_MORE;
    size_t fed = 0;

    memset(piece, 'x', PIECE);
    json_feed(json, STR("[\""));
    assert_int_equal(json_next(json), JSON_ARRAY);
    assert_int_equal(json_next(json), JSON_MORE);
    while (fed < UINT64_C(1) << 30) {
        json_feed(json, (struct str){ piece, PIECE });
        fed += PIECE;
        if (event == JSON_MORE && (event = json_next(json)) == JSON_ERROR)
            assert_int_equal(fed, TOKEN_MAX + PIECE);
        assert_int_equal(json_next(json), event);
    }
    assert_int_equal(event, JSON_ERROR);
    json_free(json);
    free(piece);
}

/* Recorded output is read to its end, the same in pieces of any size, and has this in it. */
static void check_recording(const char *name, const char *const *parts)
{
    static const size_t sizes[] = { 1, 2, 3, 5, 7, 13, 64, 1000, 4096 };
    struct str document = read_file(source_path("tests/data/json/%s", name));
    struct buf whole, cut;

    buf_init(&whole, 1 << 20);
    buf_init(&cut, 1 << 20);
    trace(&whole, document, (struct cut){ document.n, 1 }, (struct str){ 0 });
    assert_int_equal(whole.p[whole.n - 1], '}');
    for (; *parts; parts++)
        assert_contains(whole.p, *parts);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        trace(&cut, document, (struct cut){ sizes[i], sizes[i] }, (struct str){ 0 });
        assert_true(str_eq(buf_str(&cut), buf_str(&whole)));
    }
    buf_free(&whole);
    buf_free(&cut);
}

TEST(what_slurm_printed_is_read_whole)
{
    check_recording("squeue-22.05.json",
                    (const char *const[]){ "\"name\": \"we|ird, na\\\"me \u00e9\"",
                                           "\"release\": \"22.05.8\"",
                                           "\"current_working_directory\": \"/home/ana\"", NULL });
    check_recording("squeue-24.11-complex.json",
                    (const char *const[]){ "\"name\": \"new\\u000aline\\u0009tab\"",
                                           "\"job_state\": [ \"RUNNING\" ]", NULL });
    check_recording("squeue-24.11.json",
                    (const char *const[]){ "\"name\": \"new\\u000aline\\u0009tab\"",
                                           "\"time_limit\": { \"set\": true", NULL });
    check_recording(
        "shares-24.11.json",
        (const char *const[]){ "\"level\": Infinity }", "\"number\": 0.014084507042253521", NULL });
}
