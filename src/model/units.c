/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Amounts as convert_num_unit(), secs2time_str() and slurm_make_time_str() of Slurm print them.
 * Whole numbers stay whole: nothing goes through a double but the fraction of an elapsed time. */
#include "model/units.h"

#include "base/num.h"

/* whole + part / scale */
struct decimal {
    uint64_t whole, part, scale;
};

static size_t count_digits(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

/* Takes the ".34" of "12.34" from the start of *rest, if it is there. Digits that 64 bits can't
 * hold are worth nothing and left out. */
static bool take_fraction(struct str *rest, struct decimal *decimal)
{
    size_t n;

    decimal->part = 0;
    decimal->scale = 1;
    if (!rest->n || rest->p[0] != '.')
        return true;
    *rest = str_skip(*rest, 1);
    n = count_digits(*rest);
    for (size_t i = 0; i < n && i < 18; i++) {
        decimal->part = decimal->part * 10 + (uint64_t)(rest->p[i] - '0');
        decimal->scale *= 10;
    }
    *rest = str_skip(*rest, n);
    return n > 0;
}

static bool take_decimal(struct str *rest, struct decimal *ret)
{
    size_t n = count_digits(*rest);

    if (!num_get_u64(str_head(*rest, n), &ret->whole))
        return false;
    *rest = str_skip(*rest, n);
    return take_fraction(rest, ret);
}

static bool multiply(struct decimal decimal, uint64_t factor, uint64_t *ret)
{
    unsigned __int128 part = (unsigned __int128)decimal.part * factor + decimal.scale / 2;
    uint64_t whole;

    return !__builtin_mul_overflow(decimal.whole, factor, &whole) &&
           !__builtin_add_overflow(whole, (uint64_t)(part / decimal.scale), ret);
}

/* The factor for a letter at the start of *rest, which is taken, or `bare` without one. */
static uint64_t take_factor(struct str *rest, uint64_t bare)
{
    static const char letters[] = "KMGTPE";
    const char *letter = rest->n ? memchr(letters, rest->p[0], sizeof(letters) - 1) : NULL;

    if (!letter)
        return bare;
    *rest = str_skip(*rest, 1);
    return UINT64_C(1024) << 10 * (letter - letters);
}

bool units_memory(struct str text, uint64_t unit, uint64_t *ret_bytes, char *ret_per)
{
    struct decimal decimal;
    uint64_t factor, bytes;
    char per = 0;

    if (!take_decimal(&text, &decimal))
        return false;
    factor = take_factor(&text, unit);
    if (text.n && (text.p[0] == 'c' || text.p[0] == 'n')) {
        per = text.p[0];
        text = str_skip(text, 1);
    }
    if (text.n || !multiply(decimal, factor, &bytes))
        return false;
    *ret_bytes = bytes;
    if (ret_per)
        *ret_per = per;
    return true;
}

bool units_count(struct str text, uint64_t *ret)
{
    struct decimal decimal;
    uint64_t factor, count;

    if (!take_decimal(&text, &decimal))
        return false;
    factor = take_factor(&text, 1);
    if (text.n || !multiply(decimal, factor, &count))
        return false;
    *ret = count;
    return true;
}

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* Adds a field of a time, `seconds` each. One that does not lead has a limit: 75 minutes after an
 * hour were not printed by Slurm. */
static bool add_field(uint64_t *total, struct str field, uint64_t limit, uint64_t seconds)
{
    uint64_t value;

    return num_get_u64(field, &value) && value < limit &&
           !__builtin_mul_overflow(value, seconds, &value) &&
           !__builtin_add_overflow(*total, value, total);
}

/* [DAYS-]HOURS:MINUTES:SECONDS, MINUTES:SECONDS, DAYS-HOURS[:MINUTES], or one number of `bare`. */
static bool read_time(struct str text, uint64_t bare, uint64_t *ret_seconds)
{
    static const struct {
        uint64_t limit, seconds;
    } all_units[] = { { 24, HOUR }, { 60, MINUTE }, { 60, 1 } };
    struct str fields[COUNT(all_units)];
    size_t n = 0, dash = str_find(text, '-'), unit;
    bool has_days = dash < text.n;
    uint64_t total = 0;

    if (has_days && !add_field(&total, str_head(text, dash), UINT64_MAX, DAY))
        return false;
    for (struct str rest = has_days ? str_skip(text, dash + 1) : text; rest.p;) {
        if (n == COUNT(fields))
            return false;
        fields[n++] = str_cut(&rest, ':');
    }
    if (!has_days && n == 1) {
        if (!add_field(&total, fields[0], UINT64_MAX, bare))
            return false;
    } else {
        unit = has_days ? 0 : COUNT(all_units) - n;
        for (size_t i = 0; i < n; i++, unit++) {
            bool leads = i == 0 && !has_days;

            if (!add_field(&total, fields[i], leads ? UINT64_MAX : all_units[unit].limit,
                           all_units[unit].seconds))
                return false;
        }
    }
    *ret_seconds = total;
    return true;
}

bool units_time_limit(struct str text, uint64_t *ret_seconds)
{
    uint64_t seconds;

    if (str_eq_nocase(text, STR("UNLIMITED")) || str_eq_nocase(text, STR("INFINITE"))) {
        *ret_seconds = UNITS_UNLIMITED;
        return true;
    }
    if (!text.n || !read_time(text, MINUTE, &seconds) || seconds == UNITS_UNLIMITED)
        return false;
    *ret_seconds = seconds;
    return true;
}

bool units_elapsed(struct str text, double *ret_seconds)
{
    size_t point = str_find(text, '.');
    struct str fraction = str_skip(text, point);
    struct decimal decimal;

    if (!text.n || !take_fraction(&fraction, &decimal) || fraction.n ||
        !read_time(str_head(text, point), 1, &decimal.whole))
        return false;
    *ret_seconds = (double)decimal.whole + (double)decimal.part / (double)decimal.scale;
    return true;
}

/* Days since 1970 in the Gregorian calendar. */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    static const int64_t before_month[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    int64_t leap_years = year - (month <= 2); /* the last one whose 29 February may be past */

    return (year - 1970) * 365 + leap_years / 4 - leap_years / 100 + leap_years / 400 - 477 +
           before_month[month - 1] + day - 1;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    return month == 12 ? 31 : days_since_1970(year, month + 1, 1) - days_since_1970(year, month, 1);
}

static bool read_iso_time(struct str text, int64_t *ret_seconds)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    int64_t parts[6] = { 0 }; /* year, month, day, hour, minute, second */
    size_t part = 0;

    if (text.n != sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (form[i] != 'd') {
            if (text.p[i] != form[i])
                return false;
            part++;
        } else {
            if (text.p[i] < '0' || text.p[i] > '9')
                return false;
            parts[part] = parts[part] * 10 + (text.p[i] - '0');
        }
    }
    if (parts[0] < 1970 || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 ||
        parts[2] > days_in_month(parts[0], parts[1]) || parts[3] > 23 || parts[4] > 59 ||
        parts[5] > 60)
        return false;
    *ret_seconds = days_since_1970(parts[0], parts[1], parts[2]) * DAY + parts[3] * HOUR +
                   parts[4] * MINUTE + parts[5];
    return true;
}

bool units_timestamp(struct str text, int64_t *ret_seconds)
{
    int64_t seconds;

    if (num_get_i64(text, &seconds) && seconds >= 0) {
        *ret_seconds = seconds;
        return true;
    }
    return read_iso_time(text, ret_seconds);
}

bool units_aiot(struct str text, uint64_t ret[4])
{
    uint64_t counts[4];
    struct str rest = text;

    for (size_t i = 0; i < COUNT(counts); i++)
        if (!rest.p || !num_get_u64(str_cut(&rest, '/'), &counts[i]))
            return false;
    if (rest.p)
        return false;
    memcpy(ret, counts, sizeof(counts));
    return true;
}

/* "7", "0-15", "0-15:4" */
static bool count_range(struct str range, uint64_t *ret)
{
    uint64_t first, last, step = 1;
    struct str rest = range, ends = str_cut(&rest, ':');
    bool has_step = rest.p;
    struct str last_text = ends, first_text = str_cut(&last_text, '-');

    if (has_step && (!num_get_u64(rest, &step) || !step || !last_text.p))
        return false;
    if (!num_get_u64(first_text, &first))
        return false;
    last = first;
    if (last_text.p && !num_get_u64(last_text, &last))
        return false;
    if (last < first)
        return false;
    *ret = (last - first) / step;
    return !__builtin_add_overflow(*ret, 1, ret);
}

bool units_array_tasks(struct str text, uint64_t *ret_count)
{
    struct str limit = text, rest = str_cut(&limit, '%');
    uint64_t total = 0, ignored;

    if (limit.p && !num_get_u64(limit, &ignored))
        return false;
    while (rest.p) {
        uint64_t count;

        if (!count_range(str_cut(&rest, ','), &count) ||
            __builtin_add_overflow(total, count, &total))
            return false;
    }
    if (!total)
        return false;
    *ret_count = total;
    return true;
}

bool units_absent(struct str text)
{
    static const struct str words[] = {
        STR_INIT("N/A"),     STR_INIT("(null)"),  STR_INIT("none"),
        STR_INIT("Unknown"), STR_INIT("NOT_SET"), STR_INIT("INVALID"),
    };

    if (!text.n)
        return true;
    for (size_t i = 0; i < COUNT(words); i++)
        if (str_eq_nocase(text, words[i]))
            return true;
    return false;
}
