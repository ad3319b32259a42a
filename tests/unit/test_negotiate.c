/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of http/negotiate: format and encoding of a response. */
#include "test.h"

#include "base/clock.h"
#include "http/negotiate.h"

TEST(prometheus_gets_openmetrics_and_others_the_text_format)
{
    assert_int_equal(negotiate_format(STR("application/openmetrics-text;version=1.0.0;q=0.5,"
                                          "application/openmetrics-text;version=0.0.1;q=0.4,"
                                          "text/plain;version=0.0.4;q=0.3,*/*;q=0.2")),
                     METRIC_OPENMETRICS);
    assert_int_equal(negotiate_format(STR("application/openmetrics-text")), METRIC_OPENMETRICS);
    assert_int_equal(negotiate_format(STR("")), METRIC_TEXT);
    assert_int_equal(negotiate_format((struct str){ NULL, 0 }), METRIC_TEXT);
    assert_int_equal(negotiate_format(STR("*/*")), METRIC_TEXT);
    assert_int_equal(negotiate_format(STR("text/html, */*;q=0.8")), METRIC_TEXT);
    assert_int_equal(negotiate_format(STR("text/plain, application/openmetrics-text")),
                     METRIC_TEXT);
    assert_int_equal(
        negotiate_format(STR("text/plain;q=0.3 , application/openmetrics-text; q=0.4")),
        METRIC_OPENMETRICS);
    assert_int_equal(negotiate_format(STR("application/openmetrics-text;q=nonsense")), METRIC_TEXT);
    assert_int_equal(negotiate_format(STR("text/plain,application/openmetrics-text;q=5")),
                     METRIC_TEXT);
    assert_int_equal(negotiate_format(STR(",;,;;q=,")), METRIC_TEXT);
}

TEST(gzip_is_used_only_where_it_is_allowed)
{
    assert_true(negotiate_gzip(STR("gzip")));
    assert_true(negotiate_gzip(STR("deflate, GZIP;q=0.1")));
    assert_false(negotiate_gzip(STR("gzip;q=0")));
    assert_false(negotiate_gzip(STR("identity")));
    assert_false(negotiate_gzip(STR("")));
}

TEST(patience_is_the_scrape_timeout_less_a_margin)
{
    assert_int_equal(negotiate_patience_ns(STR("10"), 7), 9750 * NS_PER_MS);
    assert_int_equal(negotiate_patience_ns(STR("1"), 7), 900 * NS_PER_MS);
    assert_int_equal(negotiate_patience_ns(STR(""), 7), 7);
    assert_int_equal(negotiate_patience_ns(STR("-5"), 7), 7);
    assert_int_equal(negotiate_patience_ns(STR("nan"), 7), 7);
    assert_int_equal(negotiate_patience_ns(STR("1e300"), 7), 7);
    assert_int_equal(negotiate_patience_ns(STR("soon"), 7), 7);
}
