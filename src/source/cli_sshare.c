/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fair shares from sshare(1), "sshare --all --noheader --parsable2" with the fields of
 * cli_format.h. An account is indented by a blank for each level of the tree, and stands before
 * what is in it. */
#include "base/num.h"
#include "source/cli.h"
#include "source/cli_format.h"

#include <math.h>

enum { DEPTH_MAX = 100 };

struct sshare {
    struct lined lined;
    size_t room;                /* of the section's array */
    symbol accounts[DEPTH_MAX]; /* the account last seen at each level */
};

static bool cut_fields(struct str line, struct str fields[SSHARE_N_FIELDS])
{
    size_t n = 0;

    for (struct str rest = line; rest.p; n++) {
        struct str field = str_cut(&rest, '|');

        if (n < SSHARE_N_FIELDS)
            fields[n] = field;
    }
    return n == SSHARE_N_FIELDS;
}

static double read_double(struct str field)
{
    double value;

    return num_get_double(field, &value) ? value : NAN;
}

/* Before the first calculation, and always with PriorityFlags=NO_FAIR_TREE, sshare prints 0 instead
 * of no level. A level is shares by usage: truly 0 for those without shares only. */
static double read_level(struct str field, double normalised_shares)
{
    double level = read_double(field);

    return level == 0 && !(normalised_shares == 0) ? NAN : level;
}

static symbol parent_of(const struct sshare *sshare, const struct share *share, size_t depth)
{
    if (share->user)
        return share->account;
    return depth ? sshare->accounts[depth - 1] : 0;
}

static void read_share(void *ctx, struct str line)
{
    struct sshare *sshare = ctx;
    struct answer *answer = &sshare->lined.answer;
    struct shares *shares = &answer->section->shares;
    struct str fields[SSHARE_N_FIELDS];
    struct share share;
    size_t depth = 0;

    if (!line.n)
        return;
    while (depth < line.n && line.p[depth] == ' ')
        depth++;
    if (!cut_fields(str_skip(line, depth), fields) || answer_is_nameless(fields[SSHARE_ACCOUNT]) ||
        depth >= DEPTH_MAX) {
        answer_leave_out(answer, line);
        return;
    }
    share = (struct share){
        .account = answer_name(answer, fields[SSHARE_ACCOUNT]),
        .user = answer_name(answer, fields[SSHARE_USER]),
        .partition = answer_name(answer, fields[SSHARE_PARTITION]),
        .is_parent = str_eq(fields[SSHARE_RAW_SHARES], STR("parent")),
        .raw_shares = answer_u64(fields[SSHARE_RAW_SHARES]),
        .normalised_shares = read_double(fields[SSHARE_NORM_SHARES]),
        .raw_usage = read_double(fields[SSHARE_RAW_USAGE]),
        .normalised_usage = read_double(fields[SSHARE_NORM_USAGE]),
        .effective_usage = read_double(fields[SSHARE_EFFECTIVE_USAGE]),
        .factor = read_double(fields[SSHARE_FACTOR]),
        .level = read_level(fields[SSHARE_LEVEL], read_double(fields[SSHARE_NORM_SHARES])),
    };
    share.parent = parent_of(sshare, &share, depth);
    if (!share.user)
        sshare->accounts[depth] = share.account;
    shares->share = section_grow(answer->section, shares->share, shares->n, &sshare->room,
                                 sizeof(*shares->share));
    shares->share[shares->n++] = share;
}

static void begin(struct answer *answer)
{
    lined_begin(answer, read_share);
}

static void put_format(const struct answer *answer, struct buf *to)
{
    (void)answer;
    for (size_t i = 0; i < SSHARE_N_FIELDS; i++)
        buf_printf(to, "%s%s", i ? "," : "", sshare_fields[i]);
}

static int end(struct answer *answer, struct err *err)
{
    return lined_end(answer, &answer->section->shares.n, err);
}

static void release(struct answer *answer)
{
    lined_free(answer);
    arena_adopt(&answer->section->arena, answer->section->shares.share);
}

const struct answer_class answer_sshare = {
    .size = sizeof(struct sshare),
    .begin = begin,
    .put_format = put_format,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
