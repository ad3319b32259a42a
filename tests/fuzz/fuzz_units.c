/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Amounts and times: what is read, written again as Slurm writes it, is read as the same; what is
 * refused writes nothing. */
#include "base/num.h"
#include "model/units.h"

#include "fuzz.h"

#include <math.h>

static const uint64_t untouched = UINT64_C(0x5a5a5a5a5a5a5a5a);

static bool is_nearly(long double a, long double b)
{
    return fabsl(a - b) <= 0.5L + fabsl(b) * 1e-15L;
}

static void check_memory(struct str text)
{
    static const char letters[] = "KMGTPE";
    uint64_t bytes = untouched, mebibytes;
    char per = '?';
    long double value = 0, digit = 1;

    if (!units_memory(text, 1, &bytes, &per)) {
        FUZZ_CHECK(bytes == untouched && per == '?');
        return;
    }
    for (size_t i = 0, after_point = 0; i < text.n; i++) {
        const char *letter = memchr(letters, text.p[i], sizeof(letters) - 1);

        if (text.p[i] == '.')
            after_point = 1;
        else if (letter)
            value *= powl(1024, (long double)(letter - letters + 1));
        else if (text.p[i] >= '0' && text.p[i] <= '9')
            value = after_point ? value + (digit /= 10) * (text.p[i] - '0')
                                : value * 10 + (text.p[i] - '0');
    }
    FUZZ_CHECK(is_nearly(bytes, value), "%llu / %Lf", (unsigned long long)bytes, value);
    if (units_memory(text, 1 << 20, &mebibytes, NULL))
        FUZZ_CHECK(mebibytes >= bytes);
}

static void check_count(struct str text)
{
    uint64_t count = untouched, whole;

    if (!units_count(text, &count))
        FUZZ_CHECK(count == untouched);
    else if (num_get_u64(text, &whole))
        FUZZ_CHECK(count == whole);
}

static void check_time_limit(struct str text)
{
    uint64_t seconds = untouched, again;
    char form[64];

    if (!units_time_limit(text, &seconds)) {
        FUZZ_CHECK(seconds == untouched);
        return;
    }
    if (seconds == UNITS_UNLIMITED)
        return;
    snprintf(form, sizeof(form), "%llu-%02u:%02u:%02u", (unsigned long long)seconds / 86400,
             (unsigned)(seconds / 3600 % 24), (unsigned)(seconds / 60 % 60),
             (unsigned)(seconds % 60));
    FUZZ_CHECK(units_time_limit(str_of(form), &again) && again == seconds, "%s", form);
}

static void check_elapsed(struct str text)
{
    double seconds = -1;

    if (units_elapsed(text, &seconds))
        FUZZ_CHECK(seconds >= 0 && isfinite(seconds));
    else
        FUZZ_CHECK(seconds == -1);
}

static void check_timestamp(struct str text)
{
    int64_t seconds = -1, again;
    struct tm tm;
    char form[64];

    if (!units_timestamp(text, &seconds)) {
        FUZZ_CHECK(seconds == -1);
        return;
    }
    FUZZ_CHECK(seconds >= 0);
    if (str_find(text, 'T') == text.n || str_ends(text, STR(":60")))
        return;
    FUZZ_CHECK(gmtime_r(&(time_t){ seconds }, &tm));
    strftime(form, sizeof(form), "%Y-%m-%dT%H:%M:%S", &tm);
    FUZZ_CHECK(str_eq(text, str_of(form)), "%.*s / %s", STR_ARG(text), form);
    FUZZ_CHECK(units_timestamp(str_of(form), &again) && again == seconds);
}

static void check_lists(struct str text)
{
    uint64_t counts[4] = { untouched, untouched, untouched, untouched }, tasks = untouched;

    if (!units_aiot(text, counts))
        FUZZ_CHECK(counts[0] == untouched && counts[3] == untouched);
    if (units_array_tasks(text, &tasks))
        FUZZ_CHECK(tasks > 0);
    else
        FUZZ_CHECK(tasks == untouched);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };

    check_memory(text);
    check_count(text);
    check_time_limit(text);
    check_elapsed(text);
    check_timestamp(text);
    check_lists(text);
    units_absent(text);
    return 0;
}
