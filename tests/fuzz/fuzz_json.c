/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON scanner: pieces of any size give the same events, skipping leaves out what it should and
 * nothing else, and a parser that we did not write (jansson) agrees on what is JSON and what it
 * says. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

#include "fuzz.h"

/* jansson gives its types the names of our events. */
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY  JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_TRUE   JANSSON_TRUE
#define JSON_FALSE  JANSSON_FALSE
#define JSON_NULL   JANSSON_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

enum { RECORD_MAX = 64 << 20, NUM_TEXT_MAX = 127 };

struct record {
    enum json_event event;
    size_t depth;
    struct str text;
    bool has_i64, has_double;
    int64_t i64;
    double real;
};

struct recording {
    struct arena arena;
    struct record *record;
    size_t n, cap;
    struct err err; /* code 0: accepted */
};

static void add_record(struct recording *all, struct record record)
{
    if (all->n == all->cap) {
        all->cap = all->cap ? all->cap * 2 : 64;
        all->record = heap_resize(all->record, all->cap, sizeof(record));
    }
    all->record[all->n++] = record;
}

static void free_recording(struct recording *all)
{
    arena_clear(&all->arena);
    free(all->record);
}

/* Which events a reader that skips would skip at. */
static bool is_unwanted(uint64_t seed, size_t index)
{
    uint64_t mixed = seed + index;

    return fuzz_random(&mixed) % 4 == 0;
}

struct reading {
    struct str document;
    uint64_t piece_seed; /* 0: in one piece */
    size_t piece_max;
    uint64_t skip_seed; /* 0: skips nothing */
};

static void take_events(struct recording *all, struct json *json, const struct reading *reading)
{
    enum json_event event;

    while ((event = json_next(json)) > JSON_END) {
        struct record record = { .event = event, .depth = json_depth(json) };

        record.text = arena_str(&all->arena, json_text(json));
        record.has_i64 = json_i64(json, &record.i64);
        record.has_double = json_double(json, &record.real);
        add_record(all, record);
        if (reading->skip_seed && is_unwanted(reading->skip_seed, all->n))
            json_skip(json);
    }
    json_error(json, &all->err);
}

static struct recording read_document(const struct reading *reading)
{
    struct recording all = { 0 };
    struct json *json = json_new();
    struct str rest = reading->document;
    uint64_t seed = reading->piece_seed;

    while (rest.n && !all.err.code) {
        size_t n = seed ? 1 + fuzz_random(&seed) % reading->piece_max : rest.n;
        struct str piece = str_head(rest, n);
        char *copy = heap_array(piece.n, 1);

        memcpy(copy, piece.p, piece.n);
        json_feed(json, (struct str){ copy, piece.n });
        take_events(&all, json, reading);
        free(copy);
        rest = str_skip(rest, n);
    }
    json_finish(json);
    take_events(&all, json, reading);
    json_free(json);
    return all;
}

static void check_equal(const struct recording *a, const struct recording *b)
{
    FUZZ_CHECK(str_eq(str_of(a->err.text), str_of(b->err.text)), "'%s' / '%s'", a->err.text,
               b->err.text);
    FUZZ_CHECK(a->n == b->n, "%zu / %zu events", a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        FUZZ_CHECK(a->record[i].event == b->record[i].event &&
                       a->record[i].depth == b->record[i].depth &&
                       str_eq(a->record[i].text, b->record[i].text),
                   "event %zu", i);
}

static void check_pieces(const struct recording *whole, struct reading reading, uint64_t seed,
                         size_t piece_max)
{
    struct recording pieces;

    reading.piece_seed = seed | 1;
    reading.piece_max = piece_max;
    pieces = read_document(&reading);
    check_equal(whole, &pieces);
    free_recording(&pieces);
}

/* One past the value that begins at `i`, or past the end of what was recorded. */
static size_t value_end(const struct recording *all, size_t i)
{
    size_t open = 0;

    for (; i < all->n; i++) {
        enum json_event event = all->record[i].event;

        if (event == JSON_OBJECT || event == JSON_ARRAY)
            open++;
        else if (event == JSON_OBJECT_END || event == JSON_ARRAY_END)
            open--;
        if (!open && event != JSON_KEY)
            return i + 1;
    }
    return i;
}

static void check_skipping(const struct recording *whole, struct reading reading, uint64_t seed)
{
    struct recording expected = { .err = whole->err }, skipped;

    reading.skip_seed = seed | 1;
    for (size_t i = 0; i < whole->n;) {
        enum json_event event = whole->record[i].event;

        add_record(&expected, whole->record[i]);
        if (!is_unwanted(reading.skip_seed, expected.n))
            i++;
        else if (event == JSON_KEY)
            i = value_end(whole, i + 1);
        else if (event == JSON_OBJECT || event == JSON_ARRAY)
            i = value_end(whole, i);
        else
            i++;
    }
    skipped = read_document(&reading);
    check_equal(&expected, &skipped);
    check_pieces(&skipped, reading, seed, 7);
    free_recording(&expected);
    free_recording(&skipped);
}

static bool read_utf16_escape(struct str s, unsigned *ret)
{
    unsigned value = 0;

    if (s.n < 6 || s.p[0] != '\\' || s.p[1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *digit = memchr(digits, s.p[i], sizeof(digits) - 1);

        if (!digit)
            return false;
        value = value * 16 + (unsigned)(digit - digits < 16 ? digit - digits : digit - digits - 6);
    }
    *ret = value;
    return true;
}

/* jansson refuses what is not UTF-8, escaped or not, where our scanner says U+FFFD: it gets the
 * document with the U+FFFD written out. Outside of strings, both must refuse. */
static void put_with_replacements(struct buf *out, struct str s)
{
    unsigned unit, low;

    while (s.n) {
        size_t length = str_utf8_len(s);

        if (s.p[0] == '\\' && read_utf16_escape(s, &unit)) {
            bool pair = unit >= 0xd800 && unit <= 0xdbff &&
                        read_utf16_escape(str_skip(s, 6), &low) && low >= 0xdc00 && low <= 0xdfff;

            length = pair ? 12 : 6;
            buf_put(out,
                    pair || unit < 0xd800 || unit > 0xdfff ? str_head(s, length) : STR("\\ufffd"));
        } else if (s.p[0] == '\\') {
            length = 2;
            buf_put(out, str_head(s, length));
        } else if (length) {
            buf_put(out, str_head(s, length));
        } else {
            length = 1;
            buf_text(out, "\xef\xbf\xbd");
        }
        s = str_skip(s, length);
    }
}

static json_t *make_value(const struct record *record)
{
    json_t *value = NULL;

    switch (record->event) {
    case JSON_OBJECT:
        value = json_object();
        break;
    case JSON_ARRAY:
        value = json_array();
        break;
    case JSON_STRING:
        value = json_stringn(record->text.p, record->text.n);
        FUZZ_CHECK(value, "a string is not valid UTF-8");
        break;
    case JSON_NUMBER:
        value = record->has_i64 ? json_integer(record->i64) : json_real(record->real);
        break;
    case JSON_TRUE:
        value = json_true();
        break;
    case JSON_FALSE:
        value = json_false();
        break;
    case JSON_NULL:
        value = json_null();
        break;
    default:
        break;
    }
    return value;
}

/* The value that begins at *i, as jansson would have it: of a key given twice, the last one stays.
 */
static json_t *make_tree(const struct recording *all, size_t *i)
{
    const struct record *record = &all->record[(*i)++];
    json_t *value = make_value(record);

    if (record->event == JSON_ARRAY) {
        while (all->record[*i].event != JSON_ARRAY_END)
            json_array_append_new(value, make_tree(all, i));
        ++*i;
    } else if (record->event == JSON_OBJECT) {
        while (all->record[*i].event != JSON_OBJECT_END) {
            struct str key = all->record[(*i)++].text;
            int failed = json_object_setn_new(value, key.p, key.n, make_tree(all, i));

            FUZZ_CHECK(!failed, "a key is not valid UTF-8");
        }
        ++*i;
    }
    return value;
}

/* What our scanner accepts on purpose and jansson does not, or reads otherwise. */
struct liberties {
    bool words;        /* Infinity, NaN: Slurm writes them */
    bool nul_in_key;   /* RFC 8259 allows \u0000 anywhere in a string; jansson not in keys */
    bool long_numbers; /* base/num reads at most 127 bytes of them; jansson any number */
};

static struct liberties find_liberties(const struct recording *all)
{
    struct liberties found = { 0 };

    for (size_t i = 0; i < all->n; i++) {
        const struct record *record = &all->record[i];
        struct str text = record->text;

        if (record->event == JSON_NUMBER) {
            found.words |= text.p[text.n - 1] > '9';
            found.long_numbers |= text.n > NUM_TEXT_MAX;
        }
        found.nul_in_key |= record->event == JSON_KEY && str_find(text, '\0') < text.n;
    }
    return found;
}

static void check_against_jansson(const struct recording *ours, struct str document)
{
    struct liberties liberties = find_liberties(ours);
    struct buf replaced;
    json_error_t error;
    json_t *theirs;

    /* Ceilings are ours alone: 1 MB a token, 64 levels (jansson has 2048). And jansson 2.14 loses a
     * NUL that follows a number: it takes "1\0" for 1. */
    if (ours->err.code == EFBIG || (ours->err.code && str_find(document, '\0') < document.n))
        return;
    buf_init(&replaced, RECORD_MAX);
    put_with_replacements(&replaced, document);
    theirs = json_loadb(replaced.n ? replaced.p : "", replaced.n, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                        &error);
    if (theirs) {
        FUZZ_CHECK(!ours->err.code, "only jansson accepts: %s", ours->err.text);
        FUZZ_CHECK(!liberties.words && !liberties.nul_in_key, "jansson has learnt something");
        if (!liberties.long_numbers) {
            size_t i = 0;
            json_t *tree = make_tree(ours, &i);

            FUZZ_CHECK(json_equal(tree, theirs), "jansson reads other values");
            json_decref(tree);
        }
    } else if (!ours->err.code) {
        /* jansson has no integer past 64 bits and no number past a double. */
        FUZZ_CHECK(liberties.words || liberties.nul_in_key ||
                       json_error_code(&error) == json_error_numeric_overflow,
                   "jansson rejects: %s", error.text);
    }
    json_decref(theirs);
    buf_free(&replaced);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading reading = { .document = { (const char *)data, size } };
    struct recording whole = read_document(&reading);
    uint64_t seed = fuzz_seed(data, size);

    check_pieces(&whole, reading, seed, 16);
    check_pieces(&whole, reading, seed, 1);
    check_skipping(&whole, reading, seed);
    check_against_jansson(&whole, reading.document);
    free_recording(&whole);
    return 0;
}
