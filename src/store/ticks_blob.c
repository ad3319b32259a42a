/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes and decodes samples of the built-in time series. */
#include "store/ticks_blob.h"

#include "base/arena.h"
#include "base/err.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>

enum {
    BLOCK = 64,      /* numbers that have one width */
    ONE_BY_ONE = 65, /* in place of a width: they are written as varints */
    SPLIT = 32,      /* bits that are taken at once of a number that is wide */
    WIDE = 56,
    DECIMALS_MAX = 9,
    VARINT_MAX = 10,
};

/* What the numbers of a series are. */
enum form {
    FORM_PLAIN,   /* the values, times a power of ten */
    FORM_CHANGES, /* the first of these, then by how much each is more than the one before */
    FORM_BITS,    /* the first as its bits, then what is different in those of each */
    FORMS,
};

static const double powers[DECIMALS_MAX + 1] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9 };

/* Greater ones are not exact. */
static const double exact_max = 9007199254740992.0;

static uint64_t to_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t of_zigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

static size_t varint_length(uint64_t value)
{
    size_t n = 1;

    for (; value > 0x7f; value >>= 7)
        n++;
    return n;
}

static void put_varint(struct buf *to, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        buf_byte(to, (char)(value | 0x80));
    buf_byte(to, (char)value);
}

static bool get_byte(struct str *from, unsigned char *ret)
{
    if (!from->n)
        return false;
    *ret = (unsigned char)*from->p;
    *from = str_skip(*from, 1);
    return true;
}

static bool get_varint(struct str *from, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 7 * VARINT_MAX; shift += 7) {
        unsigned char byte;

        if (!get_byte(from, &byte) || (shift == 63 && byte > 1))
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    return false;
}

/* ---- one tick ---- */

void tick_put(struct buf *to, const struct tick_value *values, size_t n)
{
    uint32_t last = 0;

    put_varint(to, n);
    for (size_t i = 0; i < n; i++) {
        put_varint(to, values[i].series - last);
        last = values[i].series;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;

        memcpy(&bits, &values[i].value, sizeof(bits));
        bits = htole64(bits);
        buf_put(to, (struct str){ (const char *)&bits, sizeof(bits) });
    }
}

bool tick_open(struct str blob, struct tick_cursor *ret)
{
    uint64_t n;
    size_t values;

    if (!get_varint(&blob, &n) || n > blob.n / (sizeof(double) + 1))
        return false;
    values = (size_t)n * sizeof(double);
    *ret = (struct tick_cursor){
        .series = str_head(blob, blob.n - values),
        .values = str_skip(blob, blob.n - values),
        .left = (size_t)n,
    };
    return true;
}

int tick_next(struct tick_cursor *cursor, struct tick_value *ret)
{
    uint64_t more, bits;

    if (!cursor->left)
        return cursor->series.n ? -EBADMSG : 0;
    if (!get_varint(&cursor->series, &more) || more > UINT32_MAX - cursor->last || !more)
        return -EBADMSG;
    cursor->left--;
    cursor->last += (uint32_t)more;
    ret->series = cursor->last;
    memcpy(&bits, cursor->values.p, sizeof(bits));
    bits = le64toh(bits);
    memcpy(&ret->value, &bits, sizeof(bits));
    cursor->values = str_skip(cursor->values, sizeof(bits));
    return 1;
}

/* ---- many numbers ---- */

/* Bits go from the lowest to the highest of each byte. */
struct bits {
    uint64_t held;
    unsigned n_held;
};

static void put_bits(struct buf *to, struct bits *bits, uint64_t value, unsigned width)
{
    if (width > WIDE) {
        put_bits(to, bits, value & UINT32_MAX, SPLIT);
        value >>= SPLIT;
        width -= SPLIT;
    }
    bits->held |= value << bits->n_held;
    for (bits->n_held += width; bits->n_held >= 8; bits->n_held -= 8, bits->held >>= 8)
        buf_byte(to, (char)bits->held);
}

/* There are enough bytes at *from. */
static uint64_t get_bits(const unsigned char **from, struct bits *bits, unsigned width)
{
    uint64_t low = 0, value;

    if (width > WIDE) {
        low = get_bits(from, bits, SPLIT);
        return low | get_bits(from, bits, width - SPLIT) << SPLIT;
    }
    for (; bits->n_held < width; bits->n_held += 8)
        bits->held |= (uint64_t) * (*from)++ << bits->n_held;
    value = bits->held & ((UINT64_C(1) << width) - 1);
    bits->held >>= width;
    bits->n_held -= width;
    return value;
}

static size_t bytes_of_bits(unsigned width, size_t n)
{
    return (width * n + 7) / 8;
}

static unsigned width_of(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* The least of them, then how much more each is, all as wide as the largest of that; or, where one
 * is far from the others, as varints. */
static void put_block(struct buf *to, const int64_t *number, size_t n)
{
    int64_t least = number[0], most = number[0];
    size_t varints = 0;
    struct bits bits = { 0 };
    unsigned width;

    for (size_t i = 0; i < n; i++) {
        least = number[i] < least ? number[i] : least;
        most = number[i] > most ? number[i] : most;
        varints += varint_length(to_zigzag(number[i]));
    }
    width = width_of((uint64_t)most - (uint64_t)least);
    if (varints < varint_length(to_zigzag(least)) + bytes_of_bits(width, n)) {
        buf_byte(to, ONE_BY_ONE);
        for (size_t i = 0; i < n; i++)
            put_varint(to, to_zigzag(number[i]));
        return;
    }
    buf_byte(to, (char)width);
    put_varint(to, to_zigzag(least));
    for (size_t i = 0; i < n; i++)
        put_bits(to, &bits, (uint64_t)number[i] - (uint64_t)least, width);
    if (bits.n_held)
        buf_byte(to, (char)bits.held);
}

static bool get_varints(struct str *from, int64_t *number, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value;

        if (!get_varint(from, &value))
            return false;
        number[i] = of_zigzag(value);
    }
    return true;
}

static bool get_block(struct str *from, int64_t *number, size_t n)
{
    struct bits bits = { 0 };
    const unsigned char *at;
    unsigned char width;
    uint64_t least;

    if (!get_byte(from, &width) || width > ONE_BY_ONE)
        return false;
    if (width == ONE_BY_ONE)
        return get_varints(from, number, n);
    if (!get_varint(from, &least) || from->n < bytes_of_bits(width, n))
        return false;
    least = (uint64_t)of_zigzag(least);
    at = (const unsigned char *)from->p;
    for (size_t i = 0; i < n; i++)
        number[i] = (int64_t)(least + get_bits(&at, &bits, width));
    *from = str_skip(*from, bytes_of_bits(width, n));
    return true;
}

/* What memory is counted in are pages: bits that are 0 in all of them are left out. */
static void put_numbers(struct buf *to, int64_t *number, size_t n)
{
    uint64_t all = 0;
    int shift;

    for (size_t i = 0; i < n; i++)
        all |= (uint64_t)number[i];
    shift = all ? __builtin_ctzll(all) : 0;
    buf_byte(to, (char)shift);
    for (size_t i = 0; i < n; i++)
        number[i] >>= shift;
    for (size_t i = 0; i < n; i += BLOCK)
        put_block(to, number + i, n - i < BLOCK ? n - i : BLOCK);
}

static bool get_numbers(struct str *from, int64_t *number, size_t n)
{
    unsigned char shift;

    if (!get_byte(from, &shift) || shift > 63)
        return false;
    for (size_t i = 0; i < n; i += BLOCK)
        if (!get_block(from, number + i, n - i < BLOCK ? n - i : BLOCK))
            return false;
    for (size_t i = 0; i < n; i++)
        number[i] = (int64_t)((uint64_t)number[i] << shift);
    return true;
}

/* ---- times ---- */

void sealed_put_times(struct buf *to, const int64_t *time, size_t n)
{
    int64_t *step = heap_array(n, sizeof(*step));

    put_varint(to, n);
    for (size_t i = 0; i < n; i++)
        step[i] = i ? time[i] - time[i - 1] : 0;
    put_varint(to, n ? (uint64_t)time[0] : 0);
    put_numbers(to, step, n);
    free(step);
}

bool sealed_get_times(struct str blob, int64_t *time, size_t *ret_n)
{
    uint64_t n, first;

    if (!get_varint(&blob, &n) || n > TICKS_BATCH_MAX || !get_varint(&blob, &first) ||
        first > INT64_MAX || !get_numbers(&blob, time, (size_t)n) || blob.n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int64_t before = i ? time[i - 1] : (int64_t)first;

        if ((i && time[i] <= 0) || __builtin_add_overflow(before, time[i], &time[i]))
            return false;
    }
    *ret_n = (size_t)n;
    return true;
}

/* ---- one series ---- */

/* Ticks that follow one another. */
static size_t run_length(const uint32_t *tick, size_t n)
{
    size_t length = 1;

    while (length < n && tick[length] == tick[length - 1] + 1)
        length++;
    return length;
}

static void put_ticks(struct buf *to, const uint32_t *tick, size_t n)
{
    size_t runs = 0;
    uint32_t next = 0;

    for (size_t i = 0; i < n; i += run_length(tick + i, n - i))
        runs++;
    put_varint(to, runs);
    for (size_t i = 0, length; i < n; i += length) {
        length = run_length(tick + i, n - i);
        put_varint(to, tick[i] - next);
        put_varint(to, length);
        next = tick[i] + (uint32_t)length;
    }
}

static bool get_ticks(struct str *from, size_t n_ticks, uint32_t *tick, size_t *ret_n)
{
    uint64_t runs, gap, length;
    size_t n = 0, next = 0;

    if (!get_varint(from, &runs))
        return false;
    for (; runs; runs--) {
        if (!get_varint(from, &gap) || gap > n_ticks - next || !get_varint(from, &length) ||
            !length || length > n_ticks - next - gap)
            return false;
        for (next += gap; length; length--)
            tick[n++] = (uint32_t)next++;
    }
    *ret_n = n;
    return n > 0;
}

static bool is_same(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static bool fits(double value, unsigned decimals)
{
    double scaled = rint(value * powers[decimals]);

    return fabs(scaled) < exact_max &&
           is_same((double)(int64_t)scaled / powers[decimals], value); /* not of -0 */
}

/* How many digits after the point all of them have at most, as numbers do that were counted in
 * milli- or nanoseconds; more than DECIMALS_MAX: as they are. What has few has more too, unless it
 * becomes too large. */
static unsigned find_decimals(const double *value, size_t n)
{
    unsigned decimals = 0;

    for (size_t i = 0; i < n; i++)
        while (decimals <= DECIMALS_MAX && !fits(value[i], decimals))
            decimals++;
    for (size_t i = 0; i < n && decimals <= DECIMALS_MAX; i++)
        if (!fits(value[i], decimals))
            decimals = DECIMALS_MAX + 1;
    return decimals;
}

static void put_form(struct buf *to, enum form form, unsigned decimals)
{
    buf_byte(to, (char)(form << 4 | decimals));
}

/* Each but the first becomes what is different from the one before. */
static void put_changes(struct buf *to, int64_t *number, size_t n, enum form form)
{
    for (size_t i = n - 1; i > 0; i--)
        number[i] = form == FORM_BITS ? number[i] ^ number[i - 1] : number[i] - number[i - 1];
    put_varint(to, to_zigzag(number[0]));
    put_numbers(to, number + 1, n - 1);
}

static void put_bits_of(struct buf *to, const double *value, int64_t *number, size_t n)
{
    memcpy(number, value, n * sizeof(*number));
    put_form(to, FORM_BITS, 0);
    put_changes(to, number, n, FORM_BITS);
}

static void scale(const double *value, unsigned decimals, int64_t *number, size_t n)
{
    for (size_t i = 0; i < n; i++)
        number[i] = (int64_t)rint(value[i] * powers[decimals]);
}

/* Plain or as changes, whichever is shorter: a counter's changes are, not those of a gauge that
 * jumps. */
static void put_decimals(struct buf *to, const double *value, unsigned decimals, int64_t *number,
                         size_t n)
{
    size_t begin = to->n, plain;

    put_form(to, FORM_PLAIN, decimals);
    scale(value, decimals, number, n);
    put_numbers(to, number, n);
    plain = to->n - begin;
    put_form(to, FORM_CHANGES, decimals);
    scale(value, decimals, number, n);
    put_changes(to, number, n, FORM_CHANGES);
    if (to->over)
        return;
    if (to->n - begin - plain < plain)
        memmove(to->p + begin, to->p + begin + plain, to->n - begin - plain);
    to->n = begin + (to->n - begin - plain < plain ? to->n - begin - plain : plain);
    buf_end(to);
}

void sealed_put(struct buf *to, const uint32_t *tick, const double *value, size_t n)
{
    unsigned decimals = find_decimals(value, n);
    int64_t *number = heap_array(n, sizeof(*number));

    put_ticks(to, tick, n);
    if (decimals <= DECIMALS_MAX)
        put_decimals(to, value, decimals, number, n);
    else
        put_bits_of(to, value, number, n);
    free(number);
}

static bool get_changes(struct str *from, int64_t *number, size_t n, enum form form)
{
    uint64_t first;

    if (!get_varint(from, &first) || !get_numbers(from, number + 1, n - 1))
        return false;
    number[0] = of_zigzag(first);
    for (size_t i = 1; i < n; i++)
        number[i] = form == FORM_BITS ? number[i] ^ number[i - 1]
                                      : (int64_t)((uint64_t)number[i] + (uint64_t)number[i - 1]);
    return true;
}

static bool get_values(struct str *from, unsigned char head, int64_t *number, double *value,
                       size_t n)
{
    unsigned form = head >> 4, decimals = head & 15;

    if (form >= FORMS || decimals > DECIMALS_MAX ||
        !(form == FORM_PLAIN ? get_numbers(from, number, n)
                             : get_changes(from, number, n, (enum form)form)))
        return false;
    if (form == FORM_BITS)
        memcpy(value, number, n * sizeof(*value));
    else
        for (size_t i = 0; i < n; i++)
            value[i] = (double)number[i] / powers[decimals];
    return true;
}

bool sealed_get(struct str blob, size_t n_ticks, uint32_t *tick, double *value, size_t *ret_n)
{
    unsigned char head;
    int64_t *number;
    bool is_good;

    if (!get_ticks(&blob, n_ticks, tick, ret_n) || !get_byte(&blob, &head))
        return false;
    number = heap_array(*ret_n, sizeof(*number));
    is_good = get_values(&blob, head, number, value, *ret_n);
    free(number);
    return is_good && !blob.n;
}
