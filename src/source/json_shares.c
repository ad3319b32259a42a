/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fair shares from sshare --all --json (from Slurm 23.11 on) and slurmrestd's /shares: the
 * SHARES_RESP_MSG parser of Slurm's data_parser plugins. What is told here is more than sshare's
 * text: it is made the same. */
#include "source/json_answers.h"
#include "source/json_table.h"

#include <math.h>

enum { USE_PARENT = 0x7fffffff }; /* slurmdb.h, SLURMDB_FS_USE_PARENT */

/* v0.0.40 has Slurm's NO_VAL for a level that is not set; 26.05 has 2^64 for one that is infinite.
 */
#define UNSET_LEVEL    4294967294.0
#define INFINITE_LEVEL 0x1p64

struct share_draft {
    struct share share;
    symbol name, parent; /* name: of an account, or of a user in the account `parent` */
    bool is_user;
};

struct json_shares {
    struct json_answer json;
    size_t room; /* of the section's array */
    struct share_draft draft;
};

#define SHARE(key, shape, field) MEMBER(struct share_draft, key, shape, share.field)
#define DRAFT(key, shape, field) MEMBER(struct share_draft, key, shape, field)

static const struct json_member share_members[] = {
    DRAFT("name", SHAPE_NAME, name),
    DRAFT("parent", SHAPE_NAME, parent),
    MEMBER_WORDS("type"),
    SHARE("partition", SHAPE_NAME, partition),
    SHARE("shares", SHAPE_U64, raw_shares),
    SHARE("shares_normalized", SHAPE_REAL, normalised_shares),
    SHARE("usage", SHAPE_REAL, raw_usage),
    SHARE("usage_normalized", SHAPE_REAL, normalised_usage),
    SHARE("effective_usage", SHAPE_REAL, effective_usage),
    SHARE("fairshare/factor", SHAPE_REAL, factor),
    SHARE("fairshare/level", SHAPE_REAL, level),
};

static void *begin_share(struct answer *answer)
{
    struct share_draft *draft = &((struct json_shares *)answer)->draft;

    *draft = (struct share_draft){ .share = {
                                       .raw_shares = MODEL_UNKNOWN_U64,
                                       .normalised_shares = NAN,
                                       .raw_usage = NAN,
                                       .normalised_usage = NAN,
                                       .effective_usage = NAN,
                                       .factor = NAN,
                                       .level = NAN,
                                   } };
    return draft;
}

static void add_type(struct answer *answer, void *record, const struct json_member *member,
                     struct str word)
{
    (void)answer;
    (void)member;
    ((struct share_draft *)record)->is_user |= str_eq(word, STR("USER"));
}

/* As sshare's text has it: no factor of an account, and see read_level of cli_sshare.c. */
static void settle_numbers(struct share *share)
{
    share->is_parent = share->raw_shares == USE_PARENT;
    if (share->is_parent)
        share->raw_shares = MODEL_UNKNOWN_U64;
    if (!share->user)
        share->factor = NAN;
    if (share->level >= INFINITE_LEVEL)
        share->level = INFINITY;
    share_round(share);
    if (share->is_parent || share->level == UNSET_LEVEL ||
        (share->level == 0 && !(share->normalised_shares == 0)))
        share->level = NAN;
}

static void end_share(struct answer *answer, void *record)
{
    struct json_shares *all = (struct json_shares *)answer;
    struct shares *shares = &answer->section->shares;
    struct share_draft *draft = record;
    struct share *share = &draft->share;

    if (!draft->name || (draft->is_user && !draft->parent)) {
        answer_leave_out(answer, STR("a share without a name"));
        return;
    }
    share->account = draft->is_user ? draft->parent : draft->name;
    share->user = draft->is_user ? draft->name : 0;
    share->parent = draft->parent;
    settle_numbers(share);
    shares->share =
        section_grow(answer->section, shares->share, shares->n, &all->room, sizeof(*shares->share));
    shares->share[shares->n++] = *share;
}

static const struct json_table share_table = {
    .members = share_members,
    .n = COUNT(share_members),
    .begin = begin_share,
    .word = add_type,
    .end = end_share,
};

static const struct json_member document_members[] = {
    MEMBER_LIST("shares/shares", &share_table),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    json_answer_begin(answer, &document);
}

static void release(struct answer *answer)
{
    json_answer_free(answer);
    arena_adopt(&answer->section->arena, answer->section->shares.share);
}

const struct answer_class answer_json_shares = {
    .size = sizeof(struct json_shares),
    .begin = begin,
    .feed = json_answer_feed,
    .end = json_answer_end,
    .free = release,
};
