/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples as bytes, as one tick, as the times of many, and as a sealed series: what is read stays
 * within its bounds, and written again it is read as the same. Any bytes at all, taken as values,
 * come back as they are. */
#include "base/arena.h"
#include "store/ticks_blob.h"

#include "fuzz.h"

enum { TICKS = 600, BLOB_MAX = 16 << 20 };

static void check_tick(struct str blob)
{
    struct tick_value *value = heap_array(blob.n, sizeof(*value)), again;
    struct tick_cursor cursor;
    struct buf written;
    size_t n = 0;
    int r = -1;

    if (tick_open(blob, &cursor))
        while ((r = tick_next(&cursor, &value[n])) > 0)
            n++;
    if (r == 0) {
        buf_init(&written, BLOB_MAX);
        tick_put(&written, value, n);
        FUZZ_CHECK(tick_open(buf_str(&written), &cursor) && cursor.left == n);
        for (size_t i = 0; i < n; i++) {
            FUZZ_CHECK(!i || value[i].series > value[i - 1].series);
            FUZZ_CHECK(tick_next(&cursor, &again) == 1 && again.series == value[i].series);
            FUZZ_CHECK(memcmp(&again.value, &value[i].value, sizeof(double)) == 0);
        }
        FUZZ_CHECK(tick_next(&cursor, &again) == 0);
        buf_free(&written);
    }
    free(value);
}

static void check_times(struct str blob)
{
    int64_t *time = heap_array(TICKS_BATCH_MAX, sizeof(*time)),
            *again = heap_array(TICKS_BATCH_MAX, sizeof(*again));
    struct buf written;
    size_t n, n_again;

    if (sealed_get_times(blob, time, &n)) {
        for (size_t i = 1; i < n; i++)
            FUZZ_CHECK(time[i] > time[i - 1]);
        if (n && time[0] >= 0) {
            buf_init(&written, BLOB_MAX);
            sealed_put_times(&written, time, n);
            FUZZ_CHECK(sealed_get_times(buf_str(&written), again, &n_again) && n_again == n);
            FUZZ_CHECK(memcmp(time, again, n * sizeof(*time)) == 0);
            buf_free(&written);
        }
    }
    free(time);
    free(again);
}

/* In blocks of just their size, so that the address sanitizer sees a write past the end. */
static void check_again(const uint32_t *tick, const double *value, size_t n, size_t n_ticks)
{
    uint32_t *tick_again = heap_array(n_ticks, sizeof(*tick));
    double *again = heap_array(n_ticks, sizeof(*again));
    struct buf written;
    size_t n_again;

    buf_init(&written, BLOB_MAX);
    sealed_put(&written, tick, value, n);
    FUZZ_CHECK(sealed_get(buf_str(&written), n_ticks, tick_again, again, &n_again));
    FUZZ_CHECK(n_again == n, "%zu / %zu", n_again, n);
    FUZZ_CHECK(memcmp(tick, tick_again, n * sizeof(*tick)) == 0);
    FUZZ_CHECK(memcmp(value, again, n * sizeof(*value)) == 0);
    buf_free(&written);
    free(tick_again);
    free(again);
}

static void check_sealed(struct str blob)
{
    uint32_t *tick = heap_array(TICKS, sizeof(*tick));
    double *value = heap_array(TICKS, sizeof(*value));
    size_t n;

    if (sealed_get(blob, TICKS, tick, value, &n)) {
        FUZZ_CHECK(n && n <= TICKS);
        for (size_t i = 0; i < n; i++)
            FUZZ_CHECK(tick[i] < TICKS && (!i || tick[i] > tick[i - 1]));
        check_again(tick, value, n, TICKS);
    }
    free(tick);
    free(value);
}

static void check_values(struct str bytes)
{
    size_t n = bytes.n / sizeof(double);
    uint32_t *tick = heap_array(n, sizeof(*tick)), next = 0;
    double *value = heap_array(n, sizeof(*value));

    for (size_t i = 0; i < n; i++) {
        tick[i] = next;
        next += 1 + ((unsigned char)bytes.p[i] % 3 == 0);
    }
    if (n) {
        memcpy(value, bytes.p, n * sizeof(*value));
        check_again(tick, value, n, next);
    }
    free(tick);
    free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = { (const char *)data, size };

    check_tick(bytes);
    check_times(bytes);
    check_sealed(bytes);
    check_values(bytes);
    return 0;
}
