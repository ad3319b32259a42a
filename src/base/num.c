/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts numbers to text and back, independent of the locale. */
#include "base/num.h"

#include "base/clock.h"

#include "pow10.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>

static const char two_digits[201] = "00010203040506070809101112131415161718192021222324"
                                    "25262728293031323334353637383940414243444546474849"
                                    "50515253545556575859606162636465666768697071727374"
                                    "75767778798081828384858687888990919293949596979899";

static size_t count_digits(uint64_t value)
{
    size_t n = 1;

    for (;; value /= 10000, n += 4) {
        if (value < 10)
            return n;
        if (value < 100)
            return n + 1;
        if (value < 1000)
            return n + 2;
        if (value < 10000)
            return n + 3;
    }
}

size_t num_put_u64(char *to, uint64_t value)
{
    size_t n = count_digits(value);
    char *end = to + n;

    for (; value >= 100; value /= 100)
        memcpy(end -= 2, two_digits + value % 100 * 2, 2);
    if (value >= 10)
        memcpy(to, two_digits + value * 2, 2);
    else
        to[0] = (char)('0' + value);
    return n;
}

/* The paper's names are kept: the value is c * 2^q; the result s * 10^k. */
struct decimal {
    uint64_t s;
    int k;
};

static int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* The upper 64 bits of a product of 192, with the lowest bit set if anything below was lost. */
static uint64_t round_to_odd(int pow10, uint64_t cp)
{
    unsigned __int128 low = (unsigned __int128)pow10_table[pow10 - POW10_FIRST].low * cp;
    unsigned __int128 high =
        (unsigned __int128)pow10_table[pow10 - POW10_FIRST].high * cp + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct decimal shortest_decimal(uint64_t fraction, int exponent)
{
    uint64_t c = exponent ? fraction | UINT64_C(1) << 52 : fraction;
    int q = (exponent ? exponent : 1) - 1075;
    bool even = c % 2 == 0;
    bool lower_is_closer = fraction == 0 && exponent > 1;
    int k = (q * 1262611 - (lower_is_closer ? 524031 : 0)) >> 22;
    int h = q + floor_log2_pow10(-k) + 1;
    uint64_t below = round_to_odd(-k, (4 * c - 2 + lower_is_closer) << h) + !even;
    uint64_t exact = round_to_odd(-k, 4 * c << h);
    uint64_t above = round_to_odd(-k, (4 * c + 2) << h) - !even;
    uint64_t s = exact / 4;
    bool down, up;

    if (s >= 10) {
        uint64_t tens = s / 10;

        down = below <= 40 * tens;
        up = 40 * tens + 40 <= above;
        if (down != up)
            return (struct decimal){ tens + up, k + 1 };
    }
    down = below <= 4 * s;
    up = 4 * s + 4 <= above;
    if (down == up)
        up = exact > 4 * s + 2 || (exact == 4 * s + 2 && s % 2);
    return (struct decimal){ s + up, k };
}

static size_t put_decimal(char *to, struct decimal d)
{
    char digits[NUM_U64_MAX];
    int n, point; /* number of digits; how many of them stand before the point */
    size_t length = 0;

    while (d.s % 10 == 0) {
        d.s /= 10;
        d.k++;
    }
    n = (int)num_put_u64(digits, d.s);
    point = n + d.k;
    if (point > 21 || point < -5) {
        to[length++] = digits[0];
        if (n > 1) {
            to[length++] = '.';
            memcpy(to + length, digits + 1, (size_t)n - 1);
            length += (size_t)n - 1;
        }
        to[length++] = 'e';
        to[length++] = point > 0 ? '+' : '-';
        return length + num_put_u64(to + length, (uint64_t)(point > 0 ? point - 1 : 1 - point));
    }
    if (point <= 0) {
        memcpy(to, "0.00000", (size_t)(2 - point));
        memcpy(to + 2 - point, digits, (size_t)n);
        return (size_t)(2 - point + n);
    }
    if (point >= n) {
        memcpy(to, digits, (size_t)n);
        memset(to + n, '0', (size_t)(point - n));
        return (size_t)point;
    }
    memcpy(to, digits, (size_t)point);
    to[point] = '.';
    memcpy(to + point + 1, digits + point, (size_t)(n - point));
    return (size_t)n + 1;
}

size_t num_put_double(char *to, double value)
{
    uint64_t bits;
    size_t sign;

    if (value >= 0 && value < 9007199254740992.0 && value == (double)(uint64_t)value &&
        !(value == 0 && signbit(value)))
        return num_put_u64(to, (uint64_t)value);
    if (isnan(value)) {
        memcpy(to, "NaN", 3);
        return 3;
    }
    sign = signbit(value) != 0;
    if (isinf(value)) {
        memcpy(to, sign ? "-Inf" : "+Inf", 4);
        return 4;
    }
    to[0] = '-';
    if (value == 0) {
        to[1] = '0';
        return 2;
    }
    memcpy(&bits, &value, sizeof(bits));
    return sign + put_decimal(to + sign, shortest_decimal(bits & ((UINT64_C(1) << 52) - 1),
                                                          (int)(bits >> 52 & 0x7ff)));
}

bool num_get_u64(struct str s, uint64_t *ret)
{
    uint64_t value = 0;

    if (!s.n)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned char)s.p[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

bool num_get_i64(struct str s, int64_t *ret)
{
    bool negative = s.n && s.p[0] == '-';
    uint64_t value;

    if (!num_get_u64(str_skip(s, negative), &value) || value > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)-value : (int64_t)value;
    return true;
}

static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Digits with at most a point among them whose value needs no rounding: both a whole number below
 * 2^53 and a power of ten up to 10^22 are exact, and their quotient is rounded once (William
 * Clinger, "How to read floating point numbers accurately"). Most numbers are so. */
static bool get_exact(struct str s, double *ret)
{
    static const double powers[] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
    uint64_t digits = 0;
    size_t point = s.n; /* where it is */

    if (!s.n || s.n > COUNT(powers))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '.' && point == s.n && i > 0 && i + 1 < s.n)
            point = i;
        else if (s.p[i] >= '0' && s.p[i] <= '9')
            digits = 10 * digits + (uint64_t)(s.p[i] - '0');
        else
            return false;
    }
    if (digits >> 53)
        return false;
    *ret = (double)digits / powers[point == s.n ? 0 : s.n - 1 - point];
    return true;
}

bool num_get_double(struct str s, double *ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[128];
    char *end;
    double value;

    if (!s.n || s.n >= sizeof(text) || s.p[0] == ' ' || (s.p[0] >= '\t' && s.p[0] <= '\r'))
        return false;
    if (FLT_EVAL_METHOD == 0 && get_exact(s, ret))
        return true;
    pthread_once(&once, make_c_locale);
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    value = strtod_l(text, &end, c_locale);
    if (end != text + s.n || (isinf(value) && !memchr(text, 'n', s.n) && !memchr(text, 'N', s.n)))
        return false; /* too large, where it does not say "inf" */
    *ret = value;
    return true;
}

static size_t number_length(struct str s)
{
    size_t n = 0;

    while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
        n++;
    return n;
}

/* The number at the start of *rest, with a fraction or without. */
static bool take_number(struct str *rest, double *ret)
{
    size_t n = number_length(*rest);
    bool ok = num_get_double(str_head(*rest, n), ret);

    *rest = str_skip(*rest, n);
    return ok;
}

bool num_get_duration_ns(struct str s, int64_t *ret)
{
    static const struct {
        struct str unit;
        double ns;
    } units[] = {
        { STR_INIT("ms"), 1e6 },          { STR_INIT("s"), 1e9 },     { STR_INIT("m"), 60e9 },
        { STR_INIT("h"), 3600e9 },        { STR_INIT("d"), 86400e9 }, { STR_INIT("w"), 604800e9 },
        { STR_INIT("y"), 365 * 86400e9 },
    };
    double total = 0;
    struct str rest = s;

    if (!s.n)
        return false;
    if (number_length(s) == s.n) {
        if (!take_number(&rest, &total))
            return false;
        total *= 1e9;
    }
    while (rest.n) {
        double number;
        size_t i;

        if (!take_number(&rest, &number))
            return false;
        for (i = 0; i < COUNT(units); i++)
            if (str_starts(rest, units[i].unit))
                break;
        if (i == COUNT(units))
            return false;
        total += number * units[i].ns;
        rest = str_skip(rest, units[i].unit.n);
    }
    if (total > 9.2e18)
        return false;
    *ret = (int64_t)(total + 0.5); /* llround would be the only reason to link libm */
    return true;
}

/* Whole numbers stay whole: they need not go through a double, which has only 53 bits. */
static bool multiply(struct str number, uint64_t factor, uint64_t *ret)
{
    uint64_t whole;
    double value;

    if (num_get_u64(number, &whole))
        return !__builtin_mul_overflow(whole, factor, ret);
    if (!num_get_double(number, &value) || value * (double)factor >= 18446744073709551616.0)
        return false;
    *ret = (uint64_t)(value * (double)factor);
    return true;
}

bool num_get_bytes(struct str s, uint64_t *ret)
{
    static const char prefixes[] = "KMGTP";
    size_t n = number_length(s);
    struct str unit = str_skip(s, n);
    uint64_t factor = 1, bytes;
    const char *prefix = unit.n ? memchr(prefixes, unit.p[0], sizeof(prefixes) - 1) : NULL;

    if (prefix) {
        factor = UINT64_C(1024) << 10 * (prefix - prefixes);
        unit = str_skip(unit, 1);
    }
    if (unit.n && !str_eq(unit, STR("B")) && !(prefix && str_eq(unit, STR("iB"))))
        return false;
    if (!multiply(str_head(s, n), factor, &bytes))
        return false;
    *ret = bytes;
    return true;
}
