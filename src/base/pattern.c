/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiles and matches PCRE2 patterns from the configuration. */
#include "base/pattern.h"

#include "base/arena.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { STEPS_MAX = 100000 }; /* of one search: milliseconds */

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
};

int pattern_new(struct str text, struct pattern **ret, struct err *err)
{
    struct pattern *pattern;
    PCRE2_SIZE offset;
    pcre2_code *code;
    int mistake;

    code = pcre2_compile((PCRE2_SPTR)text.p, text.n, PCRE2_UTF, &mistake, &offset, NULL);
    if (!code) {
        PCRE2_UCHAR words[120];

        pcre2_get_error_message(mistake, words, sizeof(words));
        return err_set(err, EINVAL, "\"%.*s\" is not a regular expression: %s at character %zu",
                       STR_ARG(str_head(text, 80)), (const char *)words, (size_t)offset);
    }
    pattern = heap_alloc(sizeof(*pattern));
    pattern->code = code;
    pattern->match = pcre2_match_data_create(1, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(pattern->context, STEPS_MAX);
    *ret = pattern;
    return 0;
}

struct pattern *pattern_free(struct pattern *pattern)
{
    if (pattern) {
        pcre2_match_context_free(pattern->context);
        pcre2_match_data_free(pattern->match);
        pcre2_code_free(pattern->code);
        free(pattern);
    }
    return NULL;
}

bool pattern_finds(const struct pattern *pattern, struct str text)
{
    return pcre2_match(pattern->code, (PCRE2_SPTR)text.p, text.n, 0, 0, pattern->match,
                       pattern->context) >= 0;
}
