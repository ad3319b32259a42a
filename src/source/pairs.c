/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses lines of Name=value as scontrol prints them. */
#include "source/pairs.h"

static bool is_key_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/';
}

/* How many bytes at the start of s are a key; 0 if no equals sign follows them. */
static size_t key_length(struct str s)
{
    size_t n = 0;

    while (n < s.n && is_key_byte(s.p[n]))
        n++;
    return n < s.n && s.p[n] == '=' ? n : 0;
}

static size_t value_length(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ' ' && key_length(str_skip(s, i + 1)))
            return i;
    return s.n;
}

bool pairs_next(struct str *rest, struct pair *ret)
{
    struct str s = str_trim(*rest);
    size_t n = key_length(s);

    if (!n)
        return false;
    ret->key = str_head(s, n);
    s = str_skip(s, n + 1);
    n = value_length(s);
    ret->value = str_trim(str_head(s, n));
    *rest = str_skip(s, n);
    return true;
}

/* Where " KEY=" begins. */
static size_t find_key(struct str s, struct str key)
{
    for (size_t i = 0; i < s.n; i++) {
        struct str next = str_skip(s, i + 1);

        if (s.p[i] == ' ' && key_length(next) == key.n && str_starts(next, key))
            return i;
    }
    return s.n;
}

static void keep(const struct pair *pair, const struct str *keys, size_t n, struct str *values)
{
    for (size_t i = 0; i < n; i++)
        if (!values[i].p && str_eq(pair->key, keys[i])) {
            values[i] = pair->value;
            return;
        }
}

bool pairs_read(struct str line, const struct str *keys, size_t n, struct str *values)
{
    struct pair pair;
    size_t end;

    if (!str_starts(line, keys[0]) || key_length(line) != keys[0].n)
        return false;
    line = str_skip(line, keys[0].n + 1);
    end = find_key(line, keys[1]);
    if (end == line.n)
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = (struct str){ NULL, 0 };
    values[0] = str_head(line, end);
    for (struct str rest = str_skip(line, end); pairs_next(&rest, &pair);)
        keep(&pair, keys, n, values);
    return true;
}

struct str pairs_name(struct str value, struct str *ret_number)
{
    size_t open = value.n;

    if (str_ends(value, STR(")")))
        while (open && value.p[open - 1] != '(')
            open--;
    if (!open || open == value.n) {
        if (ret_number)
            *ret_number = STR("");
        return value;
    }
    if (ret_number)
        *ret_number = str_head(str_skip(value, open), value.n - open - 1);
    return str_head(value, open - 1);
}
