/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON scanner, RFC 8259 to the letter except where real Slurm output would not be read:
 * - Infinity, -Infinity, NaN and -NaN are numbers. json-c, through which Slurm prints, writes them
 *   bare: the fairshare level in the shares of slurmrestd 24.11 (v0.0.40, v0.0.41) is one.
 * - Bytes in strings that are not UTF-8 become U+FFFD each, as base/buf does it: Slurm keeps
 *   whatever bytes a user gave, and json-c passes them on. So does half a surrogate pair.
 * A bare control character in a string stays an error: json-c escapes all of them (and DEL, which
 * it does not, is legal). */
#include "base/json.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"

#include <assert.h>
#include <endian.h>

enum { TOKEN_MAX = 1 << 20, DEPTH_MAX = 64 };
#define NO_SKIP SIZE_MAX

#define REPLACEMENT STR("\xef\xbf\xbd") /* U+FFFD */

enum expect {
    EXPECT_DOCUMENT,
    EXPECT_VALUE,
    EXPECT_ITEM,
    EXPECT_KEY,
    EXPECT_MEMBER,
    EXPECT_COLON,
    EXPECT_ITEM_END,
    EXPECT_MEMBER_END,
    EXPECT_NOTHING,
};

static const char *const expect_words[] = {
    [EXPECT_DOCUMENT] = "a value",
    [EXPECT_VALUE] = "a value",
    [EXPECT_ITEM] = "a value or ]",
    [EXPECT_KEY] = "a key in quotes",
    [EXPECT_MEMBER] = "a key in quotes or }",
    [EXPECT_COLON] = "a colon",
    [EXPECT_ITEM_END] = "a comma or ]",
    [EXPECT_MEMBER_END] = "a comma or }",
    [EXPECT_NOTHING] = "nothing more",
};

/* What a piece has ended in the middle of; PART_BROKEN: an error was met. */
enum part { PART_NONE, PART_STRING, PART_NUMBER, PART_WORD, PART_BROKEN };

/* What of a number has been read last. */
enum number {
    NUMBER_NONE,
    NUMBER_MINUS,
    NUMBER_ZERO,
    NUMBER_INTEGER,
    NUMBER_POINT,
    NUMBER_FRACTION,
    NUMBER_E,
    NUMBER_E_SIGN,
    NUMBER_EXPONENT,
};

struct json {
    const char *at, *end; /* what is left of the piece */
    const char *piece;
    uint64_t piece_offset; /* where in the document the piece begins, */
    uint64_t line_offset;  /* and the line */
    uint64_t line;
    bool finished;

    enum expect expect;
    enum expect after_value; /* what follows a value at this depth */
    size_t depth;
    uint64_t objects;  /* bit d - 1: the container at depth d is an object */
    size_t skip_depth; /* events are passed over until a value ends at this depth */

    enum json_event event;
    struct str text;

    enum part part;
    uint64_t token_offset;
    struct buf held;              /* what was read of the token, when it cannot be borrowed */
    enum json_event string_event; /* a string: KEY or STRING; */
    unsigned escape_length;       /*   of the escape at hand, 0: none; */
    uint32_t escape_code;         /*   its hexadecimal digits so far; */
    uint32_t high_surrogate;      /*   the one before, whose other half may follow; */
    char character[4];            /*   a UTF-8 character of which more may follow */
    size_t character_length;
    enum number number;
    const struct word *word;
    size_t word_length;

    struct err err;
};

_Static_assert(DEPTH_MAX <= 64, "struct json has one bit a level");

static uint64_t offset_of(const struct json *json, const char *p)
{
    return json->piece_offset + (uint64_t)(p - json->piece);
}

static enum json_event fail(struct json *json, int code, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

static enum json_event fail(struct json *json, int code, uint64_t offset, const char *format, ...)
{
    char sentence[200];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    /* A token never holds a line break, so the line is always the one at hand. */
    err_set(&json->err, code, "line %llu, column %llu: %s", (unsigned long long)json->line,
            (unsigned long long)(offset - json->line_offset + 1), sentence);
    json->part = PART_BROKEN;
    return JSON_ERROR;
}

/* The byte at json->at is not what it should be. */
__attribute__((cold)) static enum json_event fail_at(struct json *json, const char *expected)
{
    unsigned char c = (unsigned char)*json->at;
    char found[16];

    snprintf(found, sizeof(found), c > ' ' && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
    return fail(json, EBADMSG, offset_of(json, json->at), "expected %s, found %s", expected, found);
}

__attribute__((cold)) static enum json_event too_long(struct json *json)
{
    return fail(json, EFBIG, json->token_offset,
                "the string or number that begins here is longer than %d bytes", TOKEN_MAX);
}

static enum json_event run_out(struct json *json)
{
    static const char *const inside[] = {
        [PART_STRING] = "inside a string",
        [PART_NUMBER] = "inside a number",
        [PART_WORD] = "inside a word",
    };

    if (!json->finished)
        return JSON_MORE;
    if (json->part)
        return fail(json, EBADMSG, offset_of(json, json->end), "the document ends %s, cut short",
                    inside[json->part]);
    if (json->expect == EXPECT_NOTHING)
        return JSON_END;
    if (json->expect == EXPECT_DOCUMENT)
        return fail(json, EBADMSG, offset_of(json, json->end), "the document is empty");
    return fail(json, EBADMSG, offset_of(json, json->end),
                "the document ends where %s is expected, cut short", expect_words[json->expect]);
}

static enum json_event complete(struct json *json, enum json_event event)
{
    json->expect = event == JSON_KEY ? EXPECT_COLON : json->after_value;
    json->part = PART_NONE;
    return event;
}

/* Eight bytes, the first one lowest. */
static uint64_t load8(const char *p)
{
    uint64_t bytes;

    memcpy(&bytes, p, sizeof(bytes));
    return le64toh(bytes);
}

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* The first byte that is a quote, a backslash, a control character or not ASCII. The subtractions
 * borrow only from bytes after a hit, and the lowest hit is the one that counts. */
static const char *ascii_end(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t bytes = load8(p);
        uint64_t hits = ((bytes - EACH_BYTE(0x20)) | ((bytes ^ EACH_BYTE('"')) - EACH_BYTE(1)) |
                         ((bytes ^ EACH_BYTE('\\')) - EACH_BYTE(1)) | bytes) &
                        EACH_BYTE(0x80);

        if (hits)
            return p + __builtin_ctzll(hits) / 8;
    }
    while (p < end && (unsigned char)*p >= ' ' && (unsigned char)*p < 0x80 && *p != '"' &&
           *p != '\\')
        p++;
    return p;
}

/* The same, but past characters that are valid UTF-8. */
static const char *plain_end(const char *p, const char *end)
{
    for (;;) {
        size_t length;

        p = ascii_end(p, end);
        if (p == end || (unsigned char)*p < 0x80)
            return p;
        length = str_utf8_len(str_span(p, end));
        if (!length)
            return p;
        p += length;
    }
}

static void hold(struct json *json, struct str s)
{
    if (json->high_surrogate) {
        json->high_surrogate = 0;
        buf_put(&json->held, REPLACEMENT);
    }
    buf_put(&json->held, s);
}

static void hold_code(struct json *json, uint32_t code)
{
    char utf8[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };

    for (size_t i = length; i-- > 1; code >>= 6)
        utf8[i] = (char)(0x80 | (code & 0x3f));
    utf8[0] = (char)(lead[length] | code);
    hold(json, (struct str){ utf8, length });
}

static void hold_utf16(struct json *json, uint32_t unit)
{
    bool is_high = unit >= 0xd800 && unit <= 0xdbff;
    bool is_low = unit >= 0xdc00 && unit <= 0xdfff;
    uint32_t high = json->high_surrogate;

    if (is_low && high) {
        json->high_surrogate = 0;
        hold_code(json, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
    } else if (is_high) {
        hold(json, STR(""));
        json->high_surrogate = unit;
    } else if (is_low) {
        hold(json, REPLACEMENT);
    } else {
        hold_code(json, unit);
    }
}

/* 16 + value of a hexadecimal digit, else 0. */
static const unsigned char hex_digits[256] = {
    ['0'] = 16, ['1'] = 17, ['2'] = 18, ['3'] = 19, ['4'] = 20, ['5'] = 21, ['6'] = 22, ['7'] = 23,
    ['8'] = 24, ['9'] = 25, ['a'] = 26, ['b'] = 27, ['c'] = 28, ['d'] = 29, ['e'] = 30, ['f'] = 31,
    ['A'] = 26, ['B'] = 27, ['C'] = 28, ['D'] = 29, ['E'] = 30, ['F'] = 31,
};

static const char short_escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

static enum json_event escape_done(struct json *json)
{
    json->at++;
    json->escape_length = 0;
    json->escape_code = 0;
    return JSON_STRING;
}

/* Reads on in an escape. JSON_STRING when it is done, else MORE or ERROR. */
static enum json_event escape_rest(struct json *json)
{
    enum { BACKSLASH = 1, WHOLE = 6 };

    for (; json->at < json->end; json->at++) {
        unsigned char c = (unsigned char)*json->at;

        if (json->escape_length > BACKSLASH) {
            if (!hex_digits[c])
                return fail_at(json, "four hexadecimal digits after \\u");
            json->escape_code = json->escape_code << 4 | (hex_digits[c] & 15);
        } else if (short_escapes[c]) {
            hold(json, (struct str){ &short_escapes[c], 1 });
            return escape_done(json);
        } else if (c != 'u') {
            return fail_at(json, "one of \"\\/bfnrtu after the backslash");
        }
        if (++json->escape_length == WHOLE) {
            hold_utf16(json, json->escape_code);
            return escape_done(json);
        }
    }
    return run_out(json);
}

static size_t length_by_first_byte(unsigned char c)
{
    return c < 0xc2 || c > 0xf4 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Reads on in a character that is cut by the end of a piece, or not valid; a byte that cannot be of
 * it is left alone. JSON_STRING when it is done, else MORE or ERROR. */
static enum json_event character_rest(struct json *json)
{
    size_t wanted = length_by_first_byte((unsigned char)json->character[0]);
    struct str all;

    while (json->character_length < wanted) {
        if (json->at == json->end)
            return run_out(json);
        if (((unsigned char)*json->at & 0xc0) != 0x80)
            break;
        json->character[json->character_length++] = *json->at++;
    }
    all = (struct str){ json->character, json->character_length };
    if (str_utf8_len(all) == all.n) {
        hold(json, all);
    } else {
        for (size_t i = 0; i < all.n; i++)
            hold(json, REPLACEMENT);
    }
    json->character_length = 0;
    return JSON_STRING;
}

/* Reads on in a string that cannot be borrowed as a whole. */
static enum json_event string_rest(struct json *json)
{
    for (;;) {
        enum json_event event = JSON_STRING;
        const char *p;

        if (json->escape_length)
            event = escape_rest(json);
        else if (json->character_length)
            event = character_rest(json);
        if (event <= JSON_MORE)
            return event;

        p = plain_end(json->at, json->end);
        /* After half a surrogate pair, the closing quote as well tells that there is no other. */
        if (p > json->at || (p < json->end && *p == '"'))
            hold(json, str_span(json->at, p));
        if (json->held.over) {
            if (json->skip_depth == NO_SKIP)
                return too_long(json);
            buf_reset(&json->held); /* nobody wants it */
        }
        json->at = p;
        if (p == json->end)
            return run_out(json);
        if ((unsigned char)*p < ' ')
            return fail_at(json, "control characters in a string to be escaped");
        json->at++;
        if (*p == '"') {
            json->text = buf_str(&json->held);
            return complete(json, json->string_event);
        }
        if (*p == '\\')
            json->escape_length = 1;
        else
            json->character[json->character_length++] = *p;
    }
}

static enum json_event string(struct json *json, enum json_event event)
{
    const char *start = json->at + 1;
    const char *limit = json->end - start > TOKEN_MAX ? start + TOKEN_MAX : json->end;
    const char *p = plain_end(start, limit);

    if (p < json->end && *p == '"') {
        json->text = str_span(start, p);
        json->at = p + 1;
        return complete(json, event);
    }
    json->part = PART_STRING;
    json->string_event = event;
    json->token_offset = offset_of(json, json->at);
    json->at = p;
    buf_reset(&json->held);
    hold(json, str_span(start, p));
    return string_rest(json);
}

static enum json_event begin_string(struct json *json)
{
    return string(json, JSON_STRING);
}

static const struct word {
    struct str text;
    enum json_event event; /* ERROR: forbidden, and common enough for a sentence of its own */
    const char *expected;
} words[] = {
    { STR_INIT("true"), JSON_TRUE, "the word true" },
    { STR_INIT("false"), JSON_FALSE, "the word false" },
    { STR_INIT("null"), JSON_NULL, "the word null" },
    { STR_INIT("Infinity"), JSON_NUMBER, "the word Infinity" },
    { STR_INIT("NaN"), JSON_NUMBER, "the word NaN" },
    { STR_INIT("-Infinity"), JSON_NUMBER, "the word -Infinity" },
    { STR_INIT("-NaN"), JSON_NUMBER, "the word -NaN" },
    { STR_INIT("\xef\xbb\xbf"), JSON_ERROR, "a value" }, /* byte order mark */
};

static enum json_event word_rest(struct json *json)
{
    struct str text = json->word->text;

    for (; json->word_length < text.n; json->word_length++) {
        if (json->at == json->end)
            return run_out(json);
        if (*json->at != text.p[json->word_length])
            return fail_at(json, json->word->expected);
        json->at++;
    }
    if (json->word->event == JSON_ERROR)
        return fail(json, EBADMSG, json->token_offset,
                    "the document begins with a byte order mark, which JSON must not");
    json->text = json->word->event == JSON_NUMBER ? text : STR("");
    return complete(json, json->word->event);
}

/* The word that begins with what was read already and the byte at hand. */
static enum json_event word(struct json *json, struct str before)
{
    for (size_t i = 0; i < COUNT(words); i++) {
        if (!str_starts(words[i].text, before) || words[i].text.p[before.n] != *json->at)
            continue;
        json->part = PART_WORD;
        json->word = &words[i];
        json->word_length = before.n;
        return word_rest(json);
    }
    return fail_at(json, "a digit");
}

static enum json_event begin_word(struct json *json)
{
    json->token_offset = offset_of(json, json->at);
    return word(json, STR(""));
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What kinds of bytes there are in numbers, and what each leads to: NUMBER_NONE, the number does
 * not go on like that. */
enum number_byte { OTHER_BYTE, ZERO, DIGIT, POINT, PLUS, MINUS, E, NUMBER_BYTES };

static const unsigned char number_bytes[256] = {
    ['0'] = ZERO, ['1' ... '9'] = DIGIT, ['.'] = POINT, ['+'] = PLUS, ['-'] = MINUS, ['e'] = E,
    ['E'] = E,
};

static const unsigned char number_next[][NUMBER_BYTES] = {
    [NUMBER_NONE] = { [MINUS] = NUMBER_MINUS, [ZERO] = NUMBER_ZERO, [DIGIT] = NUMBER_INTEGER },
    [NUMBER_MINUS] = { [ZERO] = NUMBER_ZERO, [DIGIT] = NUMBER_INTEGER },
    [NUMBER_ZERO] = { [POINT] = NUMBER_POINT, [E] = NUMBER_E },
    [NUMBER_INTEGER] = { [ZERO] = NUMBER_INTEGER,
                         [DIGIT] = NUMBER_INTEGER,
                         [POINT] = NUMBER_POINT,
                         [E] = NUMBER_E },
    [NUMBER_POINT] = { [ZERO] = NUMBER_FRACTION, [DIGIT] = NUMBER_FRACTION },
    [NUMBER_FRACTION] = { [ZERO] = NUMBER_FRACTION, [DIGIT] = NUMBER_FRACTION, [E] = NUMBER_E },
    [NUMBER_E] = { [PLUS] = NUMBER_E_SIGN,
                   [MINUS] = NUMBER_E_SIGN,
                   [ZERO] = NUMBER_EXPONENT,
                   [DIGIT] = NUMBER_EXPONENT },
    [NUMBER_E_SIGN] = { [ZERO] = NUMBER_EXPONENT, [DIGIT] = NUMBER_EXPONENT },
    [NUMBER_EXPONENT] = { [ZERO] = NUMBER_EXPONENT, [DIGIT] = NUMBER_EXPONENT },
};

static bool may_end(enum number number)
{
    return number == NUMBER_ZERO || number == NUMBER_INTEGER || number == NUMBER_FRACTION ||
           number == NUMBER_EXPONENT;
}

static enum json_event number_rest(struct json *json)
{
    size_t room = TOKEN_MAX - json->held.n;
    const char *p = json->at;

    for (; p < json->end; p++) {
        enum number next = number_next[json->number][number_bytes[(unsigned char)*p]];

        if (next == NUMBER_NONE)
            break;
        if ((size_t)(p - json->at) == room)
            return too_long(json);
        json->number = next;
    }
    json->part = PART_NUMBER;
    json->text = str_span(json->at, p);
    if (json->held.n || (p == json->end && !json->finished)) {
        buf_put(&json->held, json->text);
        json->text = buf_str(&json->held);
    }
    json->at = p;
    if (p == json->end && !(json->finished && may_end(json->number)))
        return run_out(json);
    if (may_end(json->number))
        return complete(json, JSON_NUMBER);
    if (json->number == NUMBER_MINUS)
        return word(json, STR("-"));
    return fail_at(json, "a digit");
}

static enum json_event begin_number(struct json *json)
{
    const char *p = json->at + 1;

    /* Nearly all are short integers or plain fractions: no state, no copy. */
    if (*json->at != '0')
        while (p < json->end && is_digit(*p))
            p++;
    if (json->end - p > 1 && p[0] == '.' && is_digit(p[1]))
        for (p += 2; p < json->end && is_digit(*p);)
            p++;
    if (*json->at != '-' && p < json->end && p - json->at <= TOKEN_MAX &&
        number_bytes[(unsigned char)*p] == OTHER_BYTE) {
        json->text = str_span(json->at, p);
        json->at = p;
        return complete(json, JSON_NUMBER);
    }
    json->token_offset = offset_of(json, json->at);
    json->number = NUMBER_NONE;
    buf_reset(&json->held);
    return number_rest(json);
}

static enum json_event begin_container(struct json *json)
{
    bool is_object = *json->at == '{';

    if (json->depth == DEPTH_MAX)
        return fail(json, EFBIG, offset_of(json, json->at),
                    "objects and arrays are nested deeper than %d levels", DEPTH_MAX);
    json->objects &= ~(UINT64_C(1) << json->depth);
    json->objects |= (uint64_t)is_object << json->depth;
    json->depth++;
    json->at++;
    json->expect = is_object ? EXPECT_MEMBER : EXPECT_ITEM;
    json->after_value = is_object ? EXPECT_MEMBER_END : EXPECT_ITEM_END;
    return is_object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_event end_container(struct json *json)
{
    enum json_event event = *json->at == '}' ? JSON_OBJECT_END : JSON_ARRAY_END;

    json->at++;
    json->depth--;
    if (!json->depth)
        json->after_value = EXPECT_NOTHING;
    else if (json->objects >> (json->depth - 1) & 1)
        json->after_value = EXPECT_MEMBER_END;
    else
        json->after_value = EXPECT_ITEM_END;
    json->expect = json->after_value;
    return event;
}

static enum json_event unexpected(struct json *json)
{
    return fail_at(json, expect_words[json->expect]);
}

static enum json_event begin_order_mark(struct json *json)
{
    return offset_of(json, json->at) == 0 ? begin_word(json) : unexpected(json);
}

static enum json_event begin_value(struct json *json)
{
    static enum json_event (*const begin[256])(struct json *) = {
        ['"'] = begin_string, ['{'] = begin_container,      ['['] = begin_container,
        ['-'] = begin_number, ['0' ... '9'] = begin_number, ['t'] = begin_word,
        ['f'] = begin_word,   ['n'] = begin_word,           ['I'] = begin_word,
        ['N'] = begin_word,   [0xef] = begin_order_mark,
    };
    unsigned char c = (unsigned char)*json->at;

    return begin[c] ? begin[c](json) : unexpected(json);
}

static enum json_event begin_key(struct json *json)
{
    return *json->at == '"' ? string(json, JSON_KEY) : unexpected(json);
}

static void skip_space(struct json *json)
{
    const char *p = json->at, *end = json->end;

    while (p < end && (unsigned char)*p <= ' ') {
        if (*p == '\n') {
            json->line++;
            json->line_offset = offset_of(json, p + 1);
        } else if (*p != ' ' && *p != '\r' && *p != '\t') {
            break;
        }
        p++;
        /* Slurm indents. */
        while (end - p >= 8) {
            uint64_t others = load8(p) ^ EACH_BYTE(' ');

            if (others) {
                p += __builtin_ctzll(others) / 8;
                break;
            }
            p += 8;
        }
    }
    json->at = p;
}

static enum json_event scan(struct json *json)
{
    for (;;) {
        char c;

        skip_space(json);
        if (json->at == json->end)
            return run_out(json);
        c = *json->at;
        switch (json->expect) {
        case EXPECT_ITEM:
            if (c == ']')
                return end_container(json);
            return begin_value(json);
        case EXPECT_VALUE:
        case EXPECT_DOCUMENT:
            return begin_value(json);
        case EXPECT_MEMBER:
            if (c == '}')
                return end_container(json);
            return begin_key(json);
        case EXPECT_KEY:
            return begin_key(json);
        case EXPECT_COLON:
            if (c != ':')
                return unexpected(json);
            json->expect = EXPECT_VALUE;
            break;
        case EXPECT_ITEM_END:
            if (c == ']')
                return end_container(json);
            if (c != ',')
                return unexpected(json);
            json->expect = EXPECT_VALUE;
            break;
        case EXPECT_MEMBER_END:
            if (c == '}')
                return end_container(json);
            if (c != ',')
                return unexpected(json);
            json->expect = EXPECT_KEY;
            break;
        case EXPECT_NOTHING:
            return unexpected(json);
        }
        json->at++;
    }
}

static enum json_event stay_broken(struct json *json)
{
    (void)json;
    return JSON_ERROR;
}

static enum json_event next(struct json *json)
{
    static enum json_event (*const resume[])(struct json *) = {
        [PART_NONE] = scan,      [PART_STRING] = string_rest, [PART_NUMBER] = number_rest,
        [PART_WORD] = word_rest, [PART_BROKEN] = stay_broken,
    };

    return resume[json->part](json);
}

enum json_event json_next(struct json *json)
{
    enum json_event event = next(json);

    while (json->skip_depth != NO_SKIP && event > JSON_END) {
        if (json->depth == json->skip_depth)
            json->skip_depth = NO_SKIP;
        event = next(json);
    }
    return json->event = event;
}

void json_skip(struct json *json)
{
    if (json->event == JSON_KEY)
        json->skip_depth = json->depth;
    else if (json->event == JSON_OBJECT || json->event == JSON_ARRAY)
        json->skip_depth = json->depth - 1;
}

struct json *json_new(void)
{
    struct json *json = heap_alloc(sizeof(*json));

    buf_init(&json->held, TOKEN_MAX);
    json_reset(json);
    return json;
}

struct json *json_free(struct json *json)
{
    if (json)
        buf_free(&json->held);
    free(json);
    return NULL;
}

void json_reset(struct json *json)
{
    *json = (struct json){
        .at = "",
        .line = 1,
        .after_value = EXPECT_NOTHING,
        .skip_depth = NO_SKIP,
        .held = json->held,
    };
    json->piece = json->end = json->at;
}

void json_feed(struct json *json, struct str piece)
{
    if (json->part == PART_BROKEN)
        return;
    assert(json->at == json->end && !json->finished);
    json->piece_offset = offset_of(json, json->end);
    json->piece = json->at = piece.n ? piece.p : "";
    json->end = json->piece + piece.n;
}

void json_finish(struct json *json)
{
    json->finished = true;
}

static bool has_text(enum json_event event)
{
    return event == JSON_KEY || event == JSON_STRING || event == JSON_NUMBER;
}

struct str json_text(const struct json *json)
{
    return has_text(json->event) ? json->text : STR("");
}

bool json_u64(const struct json *json, uint64_t *ret)
{
    return json->event == JSON_NUMBER && num_get_u64(json->text, ret);
}

bool json_i64(const struct json *json, int64_t *ret)
{
    return json->event == JSON_NUMBER && num_get_i64(json->text, ret);
}

bool json_double(const struct json *json, double *ret)
{
    return json->event == JSON_NUMBER && num_get_double(json->text, ret);
}

size_t json_depth(const struct json *json)
{
    return json->depth;
}

int json_error(const struct json *json, struct err *err)
{
    return json->err.code ? err_set(err, json->err.code, "%s", json->err.text) : 0;
}
