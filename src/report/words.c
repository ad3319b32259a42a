/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats amounts with their units. */
#include "report/words.h"

#include "base/moment.h"

#include <math.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* As many decimals as are worth reading, and no zeros behind them. */
static void put_decimals(struct buf *to, double number, int decimals)
{
    size_t begin = to->n;

    buf_printf(to, "%.*f", decimals, number);
    if (to->over || !memchr(to->p + begin, '.', to->n - begin))
        return;
    while (to->p[to->n - 1] == '0')
        to->n--;
    if (to->p[to->n - 1] == '.')
        to->n--;
    buf_end(to);
}

void words_bytes(struct buf *to, double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    size_t unit = 0;

    if (!isfinite(bytes))
        return;
    /* 1023.97 KiB would be rounded to 1024 KiB */
    while (fabs(bytes) >= 1023.5 && unit + 1 < COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    put_decimals(to, bytes, unit == 0 || fabs(bytes) >= 99.95 ? 0 : 1);
    buf_printf(to, " %s", units[unit]);
}

void words_duration(struct buf *to, double seconds)
{
    uint64_t whole;

    if (!isfinite(seconds))
        return;
    if (seconds < 0) {
        buf_byte(to, '-');
        seconds = -seconds;
    }
    if (seconds < MINUTE - 0.5) {
        put_decimals(to, seconds, seconds < 9.95 ? 2 : 0);
        buf_text(to, " s");
        return;
    }
    whole = seconds < 1e15 ? (uint64_t)(seconds + 0.5) : (uint64_t)1e15;
    if (whole >= DAY)
        buf_printf(to, "%llu d ", (unsigned long long)(whole / DAY));
    buf_printf(to, "%02u:%02u:%02u", (unsigned)(whole % DAY / HOUR),
               (unsigned)(whole % HOUR / MINUTE), (unsigned)(whole % MINUTE));
}

static void put_grouped(struct buf *to, uint64_t number)
{
    if (number >= 1000) {
        put_grouped(to, number / 1000);
        buf_printf(to, ",%03u", (unsigned)(number % 1000));
    } else {
        buf_u64(to, number);
    }
}

void words_number(struct buf *to, double number)
{
    if (!isfinite(number))
        return;
    if (number < 0) {
        buf_byte(to, '-');
        number = -number;
    }
    if (number < 99.95)
        put_decimals(to, number, number < 0.095 ? 2 : 1);
    else if (number < 1e15)
        put_grouped(to, (uint64_t)(number + 0.5));
    else
        buf_printf(to, "%.3g", number);
}

bool words_are_none(double number)
{
    return fabs(number) < 0.005;
}

/* Shares of a cluster are small, and differ in digits that matter: two of them would be 0. */
void words_fraction(struct buf *to, double number)
{
    if (!isfinite(number))
        return;
    if (fabs(number) < 99.95)
        buf_printf(to, "%.4f", number);
    else
        words_number(to, number);
}

void words_part(struct buf *to, double number)
{
    int decimals = 3;

    if (!isfinite(number) || fabs(number) >= 0.95 || fabs(number) < 1e-9) {
        words_number(to, number);
        return;
    }
    for (double digit = 0.1; fabs(number) < digit; digit /= 10)
        decimals++;
    put_decimals(to, number, decimals);
}

bool words_are_no_percent(double ratio)
{
    return fabs(ratio) < 0.0005;
}

void words_percent(struct buf *to, double ratio)
{
    double percent = ratio * 100;

    if (!isfinite(percent))
        return;
    put_decimals(to, percent, fabs(percent) < 9.95 ? 1 : 0);
    buf_text(to, " %");
}

void words_time(struct buf *to, int64_t moment)
{
    size_t begin = to->n;

    if (!moment)
        return;
    moment_put(to, moment);
    for (size_t i = begin; i < to->n; i++)
        if (to->p[i] == 'T')
            to->p[i] = ' ';
}
