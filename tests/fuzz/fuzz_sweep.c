/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Pushgateway's list of groups. In whatever pieces it comes it says the same, and no group is
 * found that the profile plugin could not have made. */
#include "push/sweep.h"

#include "fuzz.h"

#include <math.h>

enum { MOST_GROUPS = 16 };

static bool is_wanted(void *ctx, const struct sweep_group *group)
{
    (void)ctx;
    return group->job_id % 3 != 0;
}

static int read_list(struct str text, uint64_t seed, struct sweep_list *list, struct err *err)
{
    const struct sweep_wishes wishes = { is_wanted, NULL, MOST_GROUPS };
    struct sweep_reader *reader = sweep_reader_new(&wishes, list);
    int code = 0;

    for (struct str rest = text; rest.n && code == 0;) {
        struct str piece = str_head(rest, seed ? 1 + fuzz_random(&seed) % 100 : rest.n);

        code = sweep_reader_add(reader, piece, err);
        rest = str_skip(rest, piece.n);
    }
    if (code == 0)
        code = sweep_reader_end(reader, err);
    sweep_reader_free(reader);
    return code;
}

static void check_group(const struct sweep_group *group)
{
    FUZZ_CHECK(group->job_id && group->job_id % 3 != 0);
    FUZZ_CHECK(group->node[0] && memchr(group->node, '\0', sizeof(group->node)));
    FUZZ_CHECK(memchr(group->step, '\0', sizeof(group->step)) && !strchr(group->step, '/'));
    FUZZ_CHECK(memchr(group->cluster, '\0', sizeof(group->cluster)));
    FUZZ_CHECK(isfinite(group->pushed_seconds) && group->pushed_seconds > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct sweep_list whole = { 0 }, pieces = { 0 };
    struct err err = { 0 }, err_of_pieces = { 0 };
    int code = read_list(text, 0, &whole, &err);
    int code_of_pieces = read_list(text, fuzz_seed(data, size) | 1, &pieces, &err_of_pieces);

    FUZZ_CHECK(code == code_of_pieces && (code == 0 || (code == -err.code && err.text[0])));
    FUZZ_CHECK(strcmp(err.text, err_of_pieces.text) == 0, "%s | %s", err.text, err_of_pieces.text);
    FUZZ_CHECK(whole.n <= MOST_GROUPS && whole.n + whole.n_left_out <= whole.n_all);
    FUZZ_CHECK(whole.n == pieces.n && whole.n_all == pieces.n_all);
    for (size_t i = 0; i < whole.n; i++) {
        check_group(&whole.groups[i]);
        FUZZ_CHECK(memcmp(&whole.groups[i], &pieces.groups[i], sizeof(whole.groups[i])) == 0);
    }
    sweep_list_clear(&whole);
    sweep_list_clear(&pieces);
    return 0;
}
