/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a test needs of the machine; with copies of this program that run its last test. */
#include "test.h"

#include "base/buf.h"
#include "base/spawn.h"

static int collect(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

/* What the test below prints as TAP on a machine that lacks these things. */
static struct buf run_where_is_missing(const char *missing)
{
    const char *const argv[] = { "/proc/self/exe", "a_test_that_needs_a_flux_capacitor", NULL };
    const char *const env[] = { "CMOCKA_MESSAGE_OUTPUT=TAP", missing, NULL };
    struct buf output;
    struct spawn spawn = {
        .argv = argv,
        .env = env,
        .deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE,
        .max_output = 1 << 16,
        .sink = collect,
        .ctx = &output,
    };
    struct spawn_result result;
    struct err err;

    buf_init(&output, 1 << 16);
    if (spawn_run(&spawn, &result, &err) < 0)
        fail_msg("%s", err.text);
    return output;
}

TEST(what_is_missing_skips_with_its_name_and_reason)
{
    struct buf output = run_where_is_missing(
        "SONDE_MISSING=flux: no\nflux-capacitor: it costs 1.21: too much\nplutonium: none");

    assert_contains(output.p, "ok 1 - a_test_that_needs_a_flux_capacitor # SKIP "
                              "needs flux-capacitor: it costs 1.21: too much\n");
    buf_free(&output);
}

TEST(where_it_is_not_missing_the_test_runs)
{
    struct buf output = run_where_is_missing("SONDE_MISSING=flux: no\nplutonium: none");

    assert_contains(output.p, "ok 1 - a_test_that_needs_a_flux_capacitor\n");
    buf_free(&output);
    output = run_where_is_missing("SONDE_MISSING=");
    assert_contains(output.p, "ok 1 - a_test_that_needs_a_flux_capacitor\n");
    buf_free(&output);
}

TEST(a_test_that_needs_a_flux_capacitor)
{
    need("flux-capacitor");
}
