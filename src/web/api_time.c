/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses times in a query. */
#include "web/api_time.h"

#include "base/num.h"

static const int64_t earliest = 100000000, latest = INT64_C(253402300799); /* 1973 … 9999 */

/* Exactly so many digits. */
static bool take_number(struct str *rest, size_t digits, int *ret)
{
    uint64_t number;

    if (rest->n < digits || !num_get_u64(str_head(*rest, digits), &number))
        return false;
    *ret = (int)number;
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

static bool take_day(struct str *rest, struct tm *tm)
{
    if (!take_number(rest, 4, &tm->tm_year) || !take_byte(rest, '-') ||
        !take_number(rest, 2, &tm->tm_mon) || !take_byte(rest, '-') ||
        !take_number(rest, 2, &tm->tm_mday))
        return false;
    tm->tm_year -= 1900;
    tm->tm_mon--;
    return true;
}

static bool take_hours(struct str *rest, struct tm *tm)
{
    if (!take_number(rest, 2, &tm->tm_hour) || !take_byte(rest, ':') ||
        !take_number(rest, 2, &tm->tm_min) || tm->tm_hour > 23 || tm->tm_min > 59)
        return false;
    return !take_byte(rest, ':') || (take_number(rest, 2, &tm->tm_sec) && tm->tm_sec <= 59);
}

/* What a clock there is ahead of UTC. */
static bool take_zone(struct str *rest, int64_t *ret_seconds)
{
    bool is_behind = rest->n && rest->p[0] == '-';
    int hours, minutes;

    *ret_seconds = 0;
    if (take_byte(rest, 'Z') || take_byte(rest, 'z'))
        return true;
    if (!take_byte(rest, '+') && !take_byte(rest, ' ') && !take_byte(rest, '-'))
        return false;
    if (!take_number(rest, 2, &hours) || !take_byte(rest, ':') || !take_number(rest, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    *ret_seconds = (hours * 60 + minutes) * (is_behind ? -60 : 60);
    return true;
}

bool api_time_read(struct str text, int64_t *ret)
{
    struct tm tm = { 0 }, same;
    struct str rest = text;
    int64_t ahead_seconds = 0, time;
    uint64_t seconds;
    time_t at;

    if (num_get_u64(text, &seconds)) {
        if (seconds < (uint64_t)earliest || seconds > (uint64_t)latest)
            return false;
        *ret = (int64_t)seconds;
        return true;
    }
    if (!take_day(&rest, &tm))
        return false;
    if (rest.n && ((!take_byte(&rest, 'T') && !take_byte(&rest, 't')) || !take_hours(&rest, &tm) ||
                   !take_zone(&rest, &ahead_seconds) || rest.n))
        return false;
    same = tm;
    at = timegm(&same); /* makes the 31st of February a day in March */
    if (same.tm_mday != tm.tm_mday || same.tm_mon != tm.tm_mon || same.tm_year != tm.tm_year)
        return false;
    time = at - ahead_seconds;
    if (time < earliest || time > latest)
        return false;
    *ret = time;
    return true;
}
