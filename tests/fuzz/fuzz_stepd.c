/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Titles and sockets of slurmstepd: what is taken from them is short, printable and stands in the
 * text, and a job's id is a number. */
#include "source/stepd.h"

#include "fuzz.h"

static void check_word(struct str text, const char *word, const char *allowed)
{
    size_t n = strlen(word);

    FUZZ_CHECK(n > 0 && n < USAGE_ID);
    FUZZ_CHECK(strspn(word, allowed) == n, "%s", word);
    FUZZ_CHECK(str_find_str(text, str_of(word)) < text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size }, node;
    struct stepd stepd;

    memset(&stepd, 'x', sizeof(stepd));
    if (stepd_title_parse(text, &stepd)) {
        check_word(text, stepd.job, "0123456789");
        check_word(text, stepd.step, "0123456789+abcdefghijklmnopqrstuvwxyz");
    }
    if (stepd_socket_parse(text, "123", &node)) {
        FUZZ_CHECK(node.n > 0 && node.n < USAGE_NODE);
        FUZZ_CHECK(node.p > text.p && node.p + node.n < text.p + text.n);
        FUZZ_CHECK(str_find(node, '/') == node.n);
    }
    return 0;
}
