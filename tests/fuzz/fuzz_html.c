/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of pages with any bytes in them. A decoder of its own reads what was written: each text
 * and attribute is what was given, each address leads to what was given, and elements and
 * attributes are those that a plain text gets: no text is structure. */
#include "web/html.h"

#include "base/arena.h"

#include "shown_text.h"

enum { MOST_BYTES = 4096, MOST_TEXTS = 64, COLUMNS = 20 };

/* What the decoder found, in its order. */
struct decoded {
    struct buf tags;        /* "<a href>", "</a>" */
    struct buf bytes;       /* of all texts */
    size_t end[MOST_TEXTS]; /* of each attribute's value and of each text, in `bytes` */
    bool is_address[MOST_TEXTS];
    size_t n;
};

static void decode_entity(struct str *rest, struct buf *to)
{
    static const struct {
        struct str name;
        char character;
    } entities[] = {
        { STR_INIT("&amp;"), '&' },  { STR_INIT("&lt;"), '<' },   { STR_INIT("&gt;"), '>' },
        { STR_INIT("&quot;"), '"' }, { STR_INIT("&#39;"), '\'' },
    };

    for (size_t i = 0; i < COUNT(entities); i++)
        if (str_starts(*rest, entities[i].name)) {
            buf_byte(to, entities[i].character);
            *rest = str_skip(*rest, entities[i].name.n);
            return;
        }
    FUZZ_CHECK(false, "%.*s is no entity", STR_ARG(str_head(*rest, 10)));
}

/* Up to one of two bytes, which stays. */
static void decode_text(struct decoded *to, struct str *rest, char end, char never, bool is_address)
{
    while (rest->n && rest->p[0] != end) {
        FUZZ_CHECK(rest->p[0] != never && rest->p[0] != '\0');
        if (rest->p[0] == '&') {
            decode_entity(rest, &to->bytes);
        } else {
            buf_byte(&to->bytes, rest->p[0]);
            *rest = str_skip(*rest, 1);
        }
    }
    FUZZ_CHECK(to->n < MOST_TEXTS);
    to->is_address[to->n] = is_address;
    to->end[to->n++] = to->bytes.n;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '/';
}

static struct str take_name(struct str *rest, struct buf *to)
{
    size_t n = 0;
    struct str name;

    while (n < rest->n && is_name_byte(rest->p[n]))
        n++;
    FUZZ_CHECK(n > 0, "%.*s", STR_ARG(str_head(*rest, 20)));
    name = str_head(*rest, n);
    buf_put(to, name);
    *rest = str_skip(*rest, n);
    return name;
}

static void take(struct str *rest, struct str expected)
{
    FUZZ_CHECK(str_starts(*rest, expected), "%.*s", STR_ARG(str_head(*rest, 20)));
    *rest = str_skip(*rest, expected.n);
}

static void decode_tag(struct decoded *to, struct str *rest)
{
    take(rest, STR("<"));
    buf_byte(&to->tags, '<');
    take_name(rest, &to->tags);
    while (rest->n && rest->p[0] == ' ') {
        struct str name;

        take(rest, STR(" "));
        buf_byte(&to->tags, ' ');
        name = take_name(rest, &to->tags);
        if (!str_starts(*rest, STR("=")))
            continue; /* data-whole */
        take(rest, STR("=\""));
        decode_text(to, rest, '"', '<', str_eq(name, STR("href")) || str_eq(name, STR("src")));
        take(rest, STR("\""));
    }
    take(rest, STR(">"));
    buf_byte(&to->tags, '>');
}

static void decode(struct decoded *to, struct str markup)
{
    *to = (struct decoded){ 0 };
    buf_init(&to->tags, 1 << 20);
    buf_init(&to->bytes, 1 << 20);
    while (markup.n) {
        if (markup.p[0] == '<')
            decode_tag(to, &markup);
        else
            decode_text(to, &markup, '<', '>', false);
    }
}

static void decoded_free(struct decoded *decoded)
{
    buf_free(&decoded->tags);
    buf_free(&decoded->bytes);
}

static struct str decoded_text(const struct decoded *decoded, size_t i)
{
    size_t begin = i ? decoded->end[i - 1] : 0;

    return str_head(str_skip(buf_str(&decoded->bytes), begin), decoded->end[i] - begin);
}

static void put_x(struct buf *to, double value)
{
    (void)value;
    buf_text(to, "1");
}

/* Every piece that takes a text, but html_cut, whose markup depends on how long it is. An address
 * that is given whole is encoded: there the text does not stand. */
static void write_pieces(struct buf *to, struct str text, const char *textz)
{
    static const char path[] = "/node/";
    const struct html_part_of part = { .word = textz, .class = "a", .value = 1, .href = "/x?a=b" };
    const struct html_bar bar = { .title = textz, .total = 2, .put = put_x };
    const struct html_column column = { .title = textz, .sort = "name" };
    const struct html_chart chart = { .src = STR("/a?b=c&d=e"), .series = text, .words = text };
    struct html_address address = html_begin_link(to, path);
    struct html_table table;

    html_part(&address, text);
    html_argument(&address, "cluster", text);
    html_fragment(&address, "id");
    html_end_link(&address, text);
    html_meter(to, 0.5, textz, text);
    html_bar(to, &bar, &part, 1);
    html_begin_table(&table, to, textz, &column, 1, STR(""), false, STR("/jobs?a=b"));
    html_begin_row(&table);
    html_begin_cell(&table, 0);
    html_text(to, text);
    html_end_row(&table);
    html_end_table(&table);
    html_chart(to, &chart);
    html_empty(to, textz);
}

static int from_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-encoded (RFC 3986); what is not encoded is unreserved. */
static void check_encoded(struct str encoded, struct str raw)
{
    for (; raw.n; raw = str_skip(raw, 1)) {
        char byte;

        FUZZ_CHECK(encoded.n > 0);
        byte = encoded.p[0];
        if (byte == '%') {
            FUZZ_CHECK(encoded.n >= 3 && from_hex(encoded.p[1]) >= 0 &&
                       from_hex(encoded.p[2]) >= 0);
            byte = (char)(from_hex(encoded.p[1]) << 4 | from_hex(encoded.p[2]));
            encoded = str_skip(encoded, 2);
        } else {
            FUZZ_CHECK(!strchr("/?#&=+ \"'<>\\:@", byte));
        }
        FUZZ_CHECK(byte == raw.p[0]);
        encoded = str_skip(encoded, 1);
    }
    FUZZ_CHECK(encoded.n == 0);
}

/* The link of write_pieces: /node/TEXT?cluster=TEXT#id. */
static void check_address(struct str address, struct str text)
{
    struct str part;

    take(&address, STR("/node/"));
    part = str_cut(&address, '?');
    check_encoded(part, text);
    take(&address, STR("cluster="));
    part = str_cut(&address, '#');
    check_encoded(part, text);
    FUZZ_CHECK(str_eq(address, STR("id")));
}

/* Where the plain text stands in what was decoded of it, the given one stands in the other. */
static void check_pieces(struct str text, const char *textz)
{
    static const char plain[] = "plainz";
    struct decoded expected, got;
    struct buf markup;
    size_t n_found = 0;

    buf_init(&markup, 1 << 20);
    write_pieces(&markup, str_of(plain), plain);
    decode(&expected, buf_str(&markup));
    buf_reset(&markup);
    write_pieces(&markup, text, textz);
    FUZZ_CHECK(!markup.over);
    decode(&got, buf_str(&markup));
    FUZZ_CHECK(str_eq(buf_str(&got.tags), buf_str(&expected.tags)), "%s", markup.p);
    FUZZ_CHECK(got.n == expected.n, "%s", markup.p);
    check_address(decoded_text(&got, 0), text);
    for (size_t i = 1; i < got.n; i++) {
        struct str one = decoded_text(&got, i), other = decoded_text(&expected, i);
        size_t at = str_find_str(other, str_of(plain));
        struct str after = str_skip(other, at + sizeof(plain) - 1);

        if (at == other.n) {
            FUZZ_CHECK(str_eq(one, other), "%.*s", STR_ARG(one));
            continue;
        }
        n_found++;
        FUZZ_CHECK(one.n >= at + after.n && str_starts(one, str_head(other, at)));
        FUZZ_CHECK(str_eq(str_skip(one, one.n - after.n), after));
        FUZZ_CHECK(is_shown_as(text, str_head(str_skip(one, at), one.n - at - after.n), false),
                   "%.*s", STR_ARG(one));
    }
    FUZZ_CHECK(n_found >= 10);
    decoded_free(&expected);
    decoded_free(&got);
    buf_free(&markup);
}

/* A text that is too wide is cut, and then all of it is its title. */
static void check_cut(struct str text)
{
    struct decoded got;
    struct buf markup;

    buf_init(&markup, 1 << 20);
    html_cut(&markup, text, COLUMNS);
    decode(&got, buf_str(&markup));
    FUZZ_CHECK(str_eq(buf_str(&got.tags), got.n > 1 ? STR("<span title></span>") : STR("")));
    FUZZ_CHECK(is_shown_as(text, got.n ? decoded_text(&got, 0) : STR(""), false));
    decoded_free(&got);
    buf_free(&markup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    char *textz;

    if (size == 0 || size > MOST_BYTES)
        return 0;
    check_cut(text);
    /* for those that take a string: up to its first NUL */
    text = str_head(text, str_find(text, '\0'));
    if (!text.n)
        return 0;
    textz = heap_str(text);
    check_pieces(text, textz);
    free(textz);
    return 0;
}
