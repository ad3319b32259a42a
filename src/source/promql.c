/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quotes text for PromQL queries. */
#include "source/promql.h"

#include "base/quote.h"

/* Without quotes. Go reads \xNN as a byte: what is not UTF-8 stays what it is. */
static void put_escaped(struct buf *to, struct str text)
{
    while (text.n) {
        size_t n = str_printable_len(text);

        if (!n) {
            buf_printf(to, "\\x%02x", (unsigned char)text.p[0]);
            n = 1;
        } else {
            if (*text.p == '"' || *text.p == '\\')
                buf_byte(to, '\\');
            buf_put(to, str_head(text, n));
        }
        text = str_skip(text, n);
    }
}

void promql_string(struct buf *to, struct str text)
{
    buf_byte(to, '"');
    put_escaped(to, text);
    buf_byte(to, '"');
}

/* A text that a regular expression (RE2) takes to the letter. */
static void put_literal(struct buf *to, struct str text)
{
    for (; text.n; text = str_skip(text, 1)) {
        if (memchr("\\.+*?()|[]{}^$", *text.p, 14))
            buf_byte(to, '\\');
        buf_byte(to, *text.p);
    }
}

static void put_expression(struct buf *to, struct buf *expression)
{
    promql_string(to, buf_str(expression));
    to->over |= expression->over;
    buf_free(expression);
}

/* What all begin with; it does not end inside a character. */
static struct str common_beginning(const struct str *texts, size_t n)
{
    struct str common = texts[0];

    for (size_t i = 1; i < n; i++) {
        size_t k = 0;

        while (k < common.n && k < texts[i].n && common.p[k] == texts[i].p[k])
            k++;
        common = str_head(common, k);
    }
    while (common.n && (unsigned char)common.p[common.n - 1] >= 0x80)
        common.n--;
    return common;
}

void promql_one_of(struct buf *to, const struct str *texts, size_t n)
{
    struct str common = common_beginning(texts, n);
    struct buf expression;

    buf_init(&expression, to->max);
    put_literal(&expression, common);
    for (size_t i = 0; i < n && n > 1; i++) {
        buf_byte(&expression, i ? '|' : '(');
        put_literal(&expression, str_skip(texts[i], common.n));
    }
    if (n > 1)
        buf_byte(&expression, ')');
    put_expression(to, &expression);
}

void promql_beginning(struct buf *to, const struct str *texts, size_t n)
{
    struct buf expression;

    buf_init(&expression, to->max);
    put_literal(&expression, common_beginning(texts, n));
    buf_text(&expression, ".*");
    put_expression(to, &expression);
}

static bool is_name_byte(char byte, bool is_first)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (!is_first && byte >= '0' && byte <= '9');
}

static bool skip_name(struct str *rest)
{
    size_t n = 0;

    while (n < rest->n && is_name_byte(rest->p[n], n == 0))
        n++;
    *rest = str_skip(*rest, n);
    return n > 0;
}

static bool skip_operator(struct str *rest)
{
    static const struct str operators[] = { STR_INIT("=~"), STR_INIT("!~"), STR_INIT("!="),
                                            STR_INIT("=") };

    for (size_t i = 0; i < COUNT(operators); i++) {
        if (str_starts(*rest, operators[i])) {
            *rest = str_skip(*rest, operators[i].n);
            return true;
        }
    }
    return false;
}

/* In one of three kinds of quotes; between the last nothing is escaped. */
static bool skip_string(struct str *rest)
{
    char quotes = rest->n ? *rest->p : '\0';

    if (quotes != '"' && quotes != '\'' && quotes != '`')
        return false;
    for (size_t i = 1; i < rest->n; i++) {
        if (rest->p[i] == '\0' || (rest->p[i] == '\n' && quotes != '`'))
            return false;
        if (rest->p[i] == quotes) {
            *rest = str_skip(*rest, i + 1);
            return true;
        }
        i += rest->p[i] == '\\' && quotes != '`';
    }
    return false;
}

static bool skip_matcher(struct str *rest)
{
    *rest = str_trim(*rest);
    if (!skip_name(rest))
        return false;
    *rest = str_trim(*rest);
    if (!skip_operator(rest))
        return false;
    *rest = str_trim(*rest);
    return skip_string(rest);
}

int promql_check_matchers(struct str matchers, struct err *err)
{
    struct str rest = matchers;
    bool is_matcher;

    do {
        is_matcher = skip_matcher(&rest);
        rest = str_trim(rest);
        if (!is_matcher || (rest.n && *rest.p != ','))
            return err_set(err, EINVAL,
                           "%s are no PromQL label matchers: write them as cluster=\"name\"",
                           matchers.n ? quote(matchers).text : "none");
        rest = str_skip(rest, 1);
    } while (rest.n);
    return 0;
}
