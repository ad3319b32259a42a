/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses and prints times in the forms that people use. */
#include "base/moment.h"

#include "base/num.h"
#include "base/quote.h"

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, WEEK = 7 * DAY };

static const int64_t latest = INT64_C(253402300799); /* the end of the year 9999 */

/* A number of exactly `digits` digits at the start of *rest. */
static bool take_number(struct str *rest, size_t digits, int *ret)
{
    uint64_t value;

    if (rest->n < digits || !num_get_u64(str_head(*rest, digits), &value))
        return false;
    *ret = (int)value;
    *rest = str_skip(*rest, digits);
    return true;
}

static bool take_byte(struct str *rest, char byte)
{
    if (!rest->n || rest->p[0] != byte)
        return false;
    *rest = str_skip(*rest, 1);
    return true;
}

/* "12:00" or "12:00:30". */
static bool take_clock(struct str *rest, struct tm *tm)
{
    bool ok = take_number(rest, 2, &tm->tm_hour) && take_byte(rest, ':') &&
              take_number(rest, 2, &tm->tm_min);

    if (ok && take_byte(rest, ':'))
        ok = take_number(rest, 2, &tm->tm_sec);
    return ok && tm->tm_hour <= 24 && tm->tm_min <= 59 && tm->tm_sec <= 59 &&
           (tm->tm_hour < 24 || tm->tm_min + tm->tm_sec == 0);
}

static int days_of(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month] + (month == 1 && is_leap);
}

/* "2026-10-01" or "2026-10". */
static bool take_date(struct str *rest, struct tm *tm)
{
    int year, month, day = 1;
    bool ok = take_number(rest, 4, &year) && take_byte(rest, '-') && take_number(rest, 2, &month);

    if (ok && take_byte(rest, '-'))
        ok = take_number(rest, 2, &day);
    if (!ok || year < 1970 || month < 1 || month > 12 || day < 1 || day > days_of(year, month - 1))
        return false;
    *tm = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
    return true;
}

static long offset_at(int64_t moment)
{
    time_t seconds = moment;
    struct tm tm = { 0 };

    localtime_r(&seconds, &tm);
    return tm.tm_gmtoff;
}

/* By the offsets of the day before and the day after: mktime does not say which of two times it
 * gives, or that there is none. */
static int64_t of_local(struct tm tm)
{
    int64_t as_utc = timegm(&tm);
    long before = offset_at(as_utc - DAY), after = offset_at(as_utc + DAY);
    int64_t first = as_utc - (before > after ? before : after);
    int64_t second = as_utc - (before > after ? after : before);

    if (first + offset_at(first) == as_utc)
        return first;
    return second;
}

/* "Z", "+02:00", "-0330" at the end; sets *ret to the offset. False if there is something else. */
static bool read_zone(struct str rest, int *ret)
{
    int sign, hours, minutes = 0;

    *ret = 0;
    if (str_eq(rest, STR("Z")) || str_eq(rest, STR("z")))
        return true;
    sign = take_byte(&rest, '+') ? 1 : take_byte(&rest, '-') ? -1 : 0;
    if (!sign || !take_number(&rest, 2, &hours))
        return false;
    take_byte(&rest, ':');
    if (rest.n && !take_number(&rest, 2, &minutes))
        return false;
    *ret = sign * (hours * HOUR + minutes * MINUTE);
    return !rest.n && hours <= 14 && minutes <= 59;
}

static bool read_calendar(struct str text, int64_t now, int64_t *ret)
{
    struct str rest = text;
    struct tm tm;
    bool has_clock;
    int offset;

    (void)now;
    if (!take_date(&rest, &tm))
        return false;
    has_clock = take_byte(&rest, 'T') || take_byte(&rest, 't') || take_byte(&rest, ' ');
    if (has_clock && !take_clock(&rest, &tm))
        return false;
    if (!rest.n) {
        *ret = of_local(tm);
        return true;
    }
    if (!has_clock || !read_zone(rest, &offset))
        return false;
    *ret = (int64_t)timegm(&tm) - offset;
    return true;
}

/* So many days from today, at this hour. */
static int64_t of_day(int64_t now, int days, const struct tm *clock)
{
    time_t moment = now;
    struct tm tm;

    localtime_r(&moment, &tm);
    tm.tm_mday += days;
    tm.tm_hour = clock->tm_hour;
    tm.tm_min = clock->tm_min;
    tm.tm_sec = clock->tm_sec;
    return of_local(tm);
}

static bool read_word(struct str text, int64_t now, int64_t *ret)
{
    static const struct {
        struct str word;
        int days, hour;
    } words[] = {
        { STR_INIT("today"), 0, 0 },    { STR_INIT("midnight"), 0, 0 },
        { STR_INIT("noon"), 0, 12 },    { STR_INIT("elevenses"), 0, 11 },
        { STR_INIT("fika"), 0, 15 },    { STR_INIT("teatime"), 0, 16 },
        { STR_INIT("tomorrow"), 1, 0 }, { STR_INIT("yesterday"), -1, 0 },
    };

    for (size_t i = 0; i < COUNT(words); i++) {
        if (str_eq_nocase(text, words[i].word)) {
            *ret = of_day(now, words[i].days, &(struct tm){ .tm_hour = words[i].hour });
            return true;
        }
    }
    return false;
}

static bool read_hour(struct str text, int64_t now, int64_t *ret)
{
    struct tm clock = { 0 };
    struct str rest = text;

    if (!take_clock(&rest, &clock) || rest.n)
        return false;
    *ret = of_day(now, 0, &clock);
    return true;
}

/* Slurm takes any beginning of these. */
static bool read_unit(struct str text, int64_t *ret)
{
    static const struct {
        struct str word;
        int64_t seconds;
    } units[] = { { STR_INIT("seconds"), 1 },
                  { STR_INIT("minutes"), MINUTE },
                  { STR_INIT("hours"), HOUR },
                  { STR_INIT("days"), DAY },
                  { STR_INIT("weeks"), WEEK } };

    for (size_t i = 0; i < COUNT(units); i++) {
        if (text.n <= units[i].word.n && str_eq_nocase(text, str_head(units[i].word, text.n))) {
            *ret = units[i].seconds;
            return true;
        }
    }
    return false;
}

/* "now", "now-1day", "now+30". */
static bool read_now(struct str text, int64_t now, int64_t *ret)
{
    const struct str word = STR("now");
    struct str rest = str_skip(text, word.n);
    size_t digits = 0;
    uint64_t count;
    int64_t seconds;
    int sign;

    if (!str_eq_nocase(str_head(text, word.n), word))
        return false;
    *ret = now;
    if (!rest.n)
        return true;
    sign = take_byte(&rest, '+') ? 1 : take_byte(&rest, '-') ? -1 : 0;
    while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    if (!sign || !num_get_u64(str_head(rest, digits), &count) || count > (uint64_t)latest ||
        !read_unit(str_trim(str_skip(rest, digits)), &seconds))
        return false;
    return !__builtin_mul_overflow((int64_t)count * sign, seconds, &seconds) &&
           !__builtin_add_overflow(now, seconds, ret);
}

/* "@1790812800", or without the sign if it cannot be taken for a year or a clock. */
static bool read_seconds(struct str text, int64_t now, int64_t *ret)
{
    enum { LEAST_DIGITS = 9 };

    (void)now;
    return (take_byte(&text, '@') || text.n >= LEAST_DIGITS) && num_get_i64(text, ret);
}

int moment_parse(struct str text, int64_t now, int64_t *ret, struct err *err)
{
    static bool (*const forms[])(struct str text, int64_t now, int64_t * ret) = {
        read_calendar, read_word, read_now, read_hour, read_seconds,
    };
    struct str trimmed = str_trim(text);
    int64_t moment;

    for (size_t i = 0; i < COUNT(forms); i++) {
        if (!forms[i](trimmed, now, &moment))
            continue;
        if (moment <= 0 || moment > latest)
            return err_set(err, EINVAL, "\"%s\" lies before 1970 or after 9999", quote(text).text);
        *ret = moment;
        return 0;
    }
    return err_set(err, EINVAL,
                   "\"%s\" is no time; write one like 2026-10-01, 2026-10-01T12:00, today or "
                   "now-1day",
                   quote(text).text);
}

static void put_local(struct buf *out, int64_t moment, long *ret_offset)
{
    time_t seconds = moment;
    struct tm tm = { 0 };

    localtime_r(&seconds, &tm);
    *ret_offset = tm.tm_gmtoff;
    buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
               tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void moment_put(struct buf *out, int64_t moment)
{
    long offset;

    put_local(out, moment, &offset);
}

void moment_put_zoned(struct buf *out, int64_t moment)
{
    long offset, size;

    put_local(out, moment, &offset);
    size = (offset < 0 ? -offset : offset) / MINUTE;
    buf_printf(out, "%c%02ld:%02ld", offset < 0 ? '-' : '+', size / 60, size % 60);
}
