/* SPDX-License-Identifier: GPL-2.0-or-later */
/* As src/common/parse_config.c of Slurm reads them. */
#include "source/slurm_conf.h"

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_key(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static struct str take_while(struct str *rest, bool (*is_one)(char c), bool wanted)
{
    struct str all = *rest;

    while (rest->n && is_one(rest->p[0]) == wanted)
        *rest = str_skip(*rest, 1);
    return str_head(all, all.n - rest->n);
}

/* A comment begins with a # before which there is an even number of backslashes. */
static struct str without_comment(struct str line)
{
    bool is_escaped = false;

    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] == '#' && !is_escaped)
            return str_head(line, i);
        is_escaped = line.p[i] == '\\' && !is_escaped;
    }
    return line;
}

/* Its last word ends with an odd number of backslashes. */
static bool goes_on(struct str line)
{
    bool is_odd = false;

    line = str_trim(line);
    for (size_t i = line.n; i && line.p[i - 1] == '\\'; i--)
        is_odd = !is_odd;
    return is_odd;
}

static struct str value_of(struct str rest)
{
    take_while(&rest, is_space, true);
    if (rest.n && rest.p[0] == '"') {
        rest = str_skip(rest, 1);
        return str_head(rest, str_find(rest, '"'));
    }
    return take_while(&rest, is_space, false);
}

static bool read_line(struct str line, struct slurm_conf_line *ret)
{
    take_while(&line, is_space, true);
    ret->key = take_while(&line, is_key, true);
    if (str_eq_nocase(ret->key, STR("include")) && line.n && is_space(line.p[0])) {
        ret->value = value_of(line);
        return true;
    }
    take_while(&line, is_space, true);
    if (line.n > 1 && strchr("+-*/", line.p[0]))
        line = str_skip(line, 1);
    if (!ret->key.n || !line.n || line.p[0] != '=')
        return false;
    ret->value = value_of(str_skip(line, 1));
    return true;
}

static struct str take_line(struct str *rest, unsigned *number)
{
    ++*number;
    return without_comment(str_cut(rest, '\n'));
}

bool slurm_conf_next(struct str *rest, unsigned *number, struct slurm_conf_line *ret)
{
    while (rest->n) {
        struct str line = take_line(rest, number);
        bool is_found = read_line(line, ret);

        ret->number = *number;
        while (goes_on(line) && rest->n)
            line = take_line(rest, number);
        if (is_found)
            return true;
    }
    return false;
}
