/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever a text holds, a piece of a page has the same elements and attributes. */
#include "test.h"

#include "report/words.h"
#include "web/html.h"

#include <math.h>

static const char *const hostile[] = {
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</td></tr></table><h1>",
    "--><!-- ]]>",
    "javascript:alert(1)",
    "a&b&amp;c&#60;",
    "../../etc?x=1&y=2#z",
    "%00%2e%2e/",
    "\x01\x02\x1b[31m\r\n\t",
    "\xff\xfe\xc3",
    "\xe2\x80\xae evil \xe2\x80\x8b",
    "//evil.example/",
};

/* Elements and the names of their attributes: "<a href>text</a>" without text and values. */
static void put_shape(struct buf *to, struct str page)
{
    bool is_in_tag = false, is_in_value = false;

    for (size_t i = 0; i < page.n; i++) {
        char c = page.p[i];

        assert_true(c == '\n' || (unsigned char)c >= ' ');
        if (is_in_value) {
            is_in_value = c != '"';
            assert_true(c != '<');
        } else if (is_in_tag) {
            assert_true(c != '<' && c != '\'');
            is_in_value = c == '"';
            is_in_tag = c != '>';
            buf_byte(to, c);
        } else if (c == '<') {
            is_in_tag = true;
            buf_byte(to, c);
        } else {
            assert_true(c != '>' && c != '"');
        }
    }
    assert_false(is_in_tag);
}

static void text(struct buf *to, const char *word)
{
    html_text(to, str_of(word));
    html_textz(to, word);
}

static void links(struct buf *to, const char *word)
{
    struct html_address address = html_begin_link(to, "/node/");

    html_part(&address, str_of(word));
    html_argument(&address, "cluster", str_of(word));
    html_argument(&address, word, str_of("1"));
    html_end_link(&address, str_of(word));
    html_link(to, "/user/", str_of(word), str_of(word));
}

static void meter(struct buf *to, const char *word)
{
    html_meter(to, 0.5, word, str_of(word));
    html_meter(to, NAN, NULL, str_of(word));
}

static void bar(struct buf *to, const char *word)
{
    const struct html_part_of part[] = { { word, word, 3, "/jobs?a=\"b" },
                                         { word, word, NAN, NULL } };

    html_bar(to, &(struct html_bar){ word, 4, "/nodes?a=\"b", words_number }, part, COUNT(part));
}

static void table(struct buf *to, const char *word)
{
    const struct html_column column[] = { { word, word, false }, { word, NULL, true } };
    struct html_table made;

    html_begin_table(&made, to, word, column, COUNT(column), str_of(word), true, STR("/a?b=c"));
    html_begin_row(&made);
    html_begin_cell(&made, 0);
    html_text(to, str_of(word));
    html_begin_cell(&made, 1);
    html_end_row(&made);
    html_end_table(&made);
}

static void rest(struct buf *to, const char *word)
{
    html_empty(to, word);
    html_chart(to, &(struct html_chart){ str_of(word), str_of(word), str_of(word), true });
}

TEST(no_text_becomes_markup)
{
    void (*const pieces[])(struct buf * to, const char *word) = { text, links, meter,
                                                                  bar,  table, rest };
    struct buf page, shape, harmless;

    buf_init(&page, 1 << 20);
    buf_init(&shape, 1 << 20);
    buf_init(&harmless, 1 << 20);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        buf_reset(&page);
        buf_reset(&harmless);
        pieces[i](&page, "x");
        put_shape(&harmless, buf_str(&page));
        assert_true(harmless.n > 0 || pieces[i] == text);
        for (size_t j = 0; j < COUNT(hostile); j++) {
            buf_reset(&page);
            buf_reset(&shape);
            pieces[i](&page, hostile[j]);
            put_shape(&shape, buf_str(&page));
            assert_str(buf_str(&shape), harmless.p);
        }
    }
    buf_free(&page);
    buf_free(&shape);
    buf_free(&harmless);
}

#define assert_made(expected, call)                                                                \
    do {                                                                                           \
        struct buf to_;                                                                            \
        struct buf *to = &to_;                                                                     \
        buf_init(to, 1 << 16);                                                                     \
        call;                                                                                      \
        assert_str(buf_str(to), expected);                                                         \
        buf_free(to);                                                                              \
    } while (0)

TEST(what_cannot_be_shown_is_a_question_mark)
{
    assert_made("a?b?&lt;é", html_text(to, STR("a\nb\xff<é")));
    assert_made("?evil", html_text(to, STR("\xe2\x80\xae"
                                           "evil")));
}

TEST(parts_of_an_address_are_encoded_and_empty_arguments_left_out)
{
    assert_made("<a href=\"/user/a%2Fb%3F?cluster=c%26d\">a/b?</a>",
                html_link(to, "/user/", STR("a/b?"), STR("c&d")));
    assert_made("<a href=\"/user/a\">a</a>", html_link(to, "/user/", STR("a"), STR("")));
    assert_made("", html_link(to, "/user/", STR(""), STR("c")));
    assert_made("<a href=\"/jobs?state=PENDING&amp;user=a\">b</a>", {
        struct html_address link = html_begin_link(to, "/jobs?state=PENDING");
        html_argument(&link, "user", STR("a"));
        html_end_link(&link, STR("b"));
    });
    assert_made("<a href=\"/jobs?user=a#b%23c\"><span data-value=\"3\">3</span></a>", {
        struct html_address link = html_begin_link(to, "/jobs");
        html_argument(&link, "user", STR("a"));
        html_fragment(&link, "b#c");
        html_end_number(&link, 3);
    });
}

TEST(what_is_unknown_is_a_dash_and_never_zero)
{
    assert_made("–", html_number(to, NAN));
    assert_made("–", html_bytes(to, NAN));
    assert_made("–", html_span(to, NAN));
    assert_made("–", html_time(to, 0));
    assert_made("<span data-value=\"0\">0</span>", html_number(to, 0));
    assert_made("<span data-value=\"5153960755.2\">4.8 GiB</span>", html_bytes(to, 5153960755.2));
    assert_made("<span class=\"meter\">no idea</span>", html_meter(to, NAN, NULL, STR("no idea")));
}

TEST(a_time_has_its_zone)
{
    setenv("TZ", "UTC", 1);
    tzset();
    assert_made("<time datetime=\"2026-09-21T13:33:20+00:00\">2026-09-21 13:33:20</time>",
                html_time(to, 1789997600));
}

TEST(a_bar_leaves_out_what_is_not_there_and_fits_its_total)
{
    const struct html_part_of part[] = {
        { "allocated", "allocated", 6, "/jobs?state=RUNNING&user=a" },
        { "idle", "idle", 0, NULL },
        { "down", "down", NAN, NULL },
        { "other", NULL, 3, "https://evil.example/" },
    };

    assert_made(
        "<div class=\"bar\"><p>CPUs <b>8</b></p><div class=\"parts\" aria-hidden=\"true\">"
        "<i class=\"allocated\" style=\"width:66.67%\"></i>"
        "<i style=\"width:33.33%\"></i></div><ul class=\"legend\">"
        "<li><i class=\"allocated\"></i>"
        "<a href=\"/jobs?state=RUNNING&amp;user=a\">allocated <b>6</b></a></li>"
        "<li><i></i>other <b>3</b></li></ul></div>\n",
        html_bar(to, &(struct html_bar){ "CPUs", 8, NULL, words_number }, part, COUNT(part)));
    assert_made("<div class=\"bar\"><p>CPUs</p><div class=\"parts\" aria-hidden=\"true\"></div>"
                "</div>\n",
                html_bar(to, &(struct html_bar){ "CPUs", NAN, NULL, words_number }, part + 1, 2));
    assert_made(
        "<div class=\"bar\"><p><a href=\"/nodes?a=1&amp;b=2\">CPUs <b>8</b></a></p>"
        "<div class=\"parts\" aria-hidden=\"true\"></div></div>\n",
        html_bar(to, &(struct html_bar){ "CPUs", 8, "/nodes?a=1&b=2", words_number }, part + 1, 2));
}

TEST(only_a_chart_that_goes_on_is_renewed)
{
    struct html_chart chart = { STR("/plot/1/time.svg"), STR(""), STR("Time"), false };

    assert_made("<figure class=\"chart\"><picture><source media=\"(max-width: 40rem)\" "
                "srcset=\"/plot/1/time.svg?narrow=1\">"
                "<img src=\"/plot/1/time.svg\" width=\"680\" height=\"240\" "
                "loading=\"lazy\" alt=\"Time\"></picture></figure>\n",
                html_chart(to, &chart));
    chart.goes_on = true;
    chart.src = STR("/chart/cpus.svg?a=b&c=d");
    chart.series = STR("/api/v1/trends/cpus?a=b&c=d");
    assert_made("<figure class=\"chart\" data-goes-on><picture><source "
                "media=\"(max-width: 40rem)\" "
                "srcset=\"/chart/cpus.svg?a=b&amp;c=d&amp;narrow=1\">"
                "<img src=\"/chart/cpus.svg?a=b&amp;c=d\" "
                "data-series=\"/api/v1/trends/cpus?a=b&amp;c=d\" width=\"680\" height=\"240\" "
                "loading=\"lazy\" alt=\"Time\"></picture></figure>\n",
                html_chart(to, &chart));
}

TEST(a_column_is_sorted_by_a_link_that_turns_round)
{
    static const struct html_column column[] = { { "User", "user", false },
                                                 { "CPUs", "cpus", true },
                                                 { "Why", NULL, false } };
    struct html_table table;
    bool is_descending;

    assert_made("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Jobs\"><table>"
                "<caption>Jobs</caption>\n<thead><tr>"
                "<th scope=\"col\"><a href=\"/jobs?a=b&amp;sort=user\">User</a></th>"
                "<th scope=\"col\" class=\"number\" aria-sort=\"descending\">"
                "<a href=\"/jobs?a=b&amp;sort=cpus\">CPUs</a></th>"
                "<th scope=\"col\">Why</th></tr></thead>\n<tbody>\n"
                "<tr><th scope=\"row\">alice</th><td class=\"number\">1</td></tr>\n"
                "</tbody></table></div>\n",
                {
                    html_begin_table(&table, to, "Jobs", column, 3, STR("cpus"), true,
                                     STR("/jobs?a=b"));
                    html_begin_row(&table);
                    html_begin_cell(&table, 0);
                    buf_text(to, "alice");
                    html_begin_cell(&table, 1);
                    buf_text(to, "1");
                    html_end_row(&table);
                    html_end_table(&table);
                });
    assert_str(html_sort_word(STR("-cpus"), &is_descending), "cpus");
    assert_true(is_descending);
    assert_str(html_sort_word(STR("cpus"), &is_descending), "cpus");
    assert_false(is_descending);
}
