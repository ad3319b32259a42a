/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/token: tokens for slurmrestd. */
#include "test.h"

#include "base/arena.h"
#include "files.h"
#include "source/token.h"

#include <fcntl.h>

/* { "alg": "HS256", "typ": "JWT" }, then the claims, then nothing that signs them. */
#define HEADER "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
/* {"exp":1794832008,"iat":1794796008,"sun":"root"} */
#define ROOT_TOKEN HEADER ".eyJleHAiOjE3OTQ4MzIwMDgsImlhdCI6MTc5NDc5NjAwOCwic3VuIjoicm9vdCJ9.c2ln"
/* {"exp":1794796109,"iat":1794796009,"sun":"alice"} */
#define ALICE_TOKEN                                                                                \
    HEADER ".eyJleHAiOjE3OTQ3OTYxMDksImlhdCI6MTc5NDc5NjAwOSwic3VuIjoiYWxpY2UifQ.c2ln"

struct fixture {
    const char *path;
    struct token *token;
    struct err err;
    char warning[300];
};

static struct fixture *fixture;

static void put(struct str text)
{
    assert_int_equal(chmod(write_bytes(fixture->path, text), 0600), 0);
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    fixture->path = test_path("token");
    put(STR(""));
    fixture->token = token_new(str_of(fixture->path));
}

static void teardown(void)
{
    token_free(fixture->token);
    free(fixture);
}

FIXTURE(setup, teardown)

static void assert_read(void)
{
    if (token_refresh(fixture->token, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

TEST(a_token_says_whose_it_is_and_when_it_ends)
{
    put(STR(ROOT_TOKEN));
    assert_read();
    assert_string_equal(fixture->token->text, ROOT_TOKEN);
    assert_string_equal(fixture->token->user, "root");
    assert_int_equal(fixture->token->expires, 1794832008);
    assert_int_equal(fixture->token->issued, 1794796008);
    assert_false(token_has_expired(fixture->token, 1794832007));
    assert_true(token_has_expired(fixture->token, 1794832008));
}

TEST(what_scontrol_prints_can_be_put_into_the_file)
{
    put(STR(" \tSLURM_JWT=" ROOT_TOKEN "\r\n\n"));
    assert_read();
    assert_string_equal(fixture->token->text, ROOT_TOKEN);
}

TEST(what_is_no_token_is_refused_and_not_shown)
{
    static const struct str texts[] = {
        STR_INIT(""),
        STR_INIT(" \n"),
        STR_INIT("SLURM_JWT="),
        STR_INIT("secret\nsecret"),
        STR_INIT("secret secret"),
        STR_INIT("secret\rX-Other: header"),
        STR_INIT("secret\0secret"),
        STR_INIT("s\xc3\xa9"
                 "cret"),
        STR_INIT("secret\x7f"),
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        put(texts[i]);
        assert_int_equal(token_refresh(fixture->token, &fixture->err), -EINVAL);
        assert_contains(fixture->err.text, "holds no token");
        assert_null(strstr(fixture->err.text, "secret"));
        assert_null(fixture->token->text);
    }
}

TEST(a_file_that_is_too_large_or_none_is_refused)
{
    char *large = heap_array(TOKEN_MAX + 1, 1);

    memset(large, 'x', TOKEN_MAX + 1);
    put((struct str){ large, TOKEN_MAX + 1 });
    assert_int_equal(token_refresh(fixture->token, &fixture->err), -EFBIG);
    put((struct str){ large, TOKEN_MAX });
    assert_read();
    free(large);

    fixture->token = token_free(fixture->token);
    fixture->token = token_new(STR("/tmp"));
    assert_int_equal(token_refresh(fixture->token, &fixture->err), -EINVAL);
    assert_string_equal(fixture->err.text, "the token file /tmp is not a file");
    fixture->token = token_free(fixture->token);
    fixture->token = token_new(STR("/nowhere/token"));
    assert_int_equal(token_refresh(fixture->token, &fixture->err), -ENOENT);
    assert_string_equal(fixture->err.text,
                        "cannot open the token file /nowhere/token: No such file or directory");
}

TEST(nobody_waits_for_a_pipe)
{
    unlink(fixture->path);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(token_refresh(fixture->token, &fixture->err), -EINVAL);
}

TEST(another_token_in_the_file_is_seen)
{
    const char *fresh = test_path("fresh");

    put(STR(ROOT_TOKEN));
    assert_read();
    put(STR(ALICE_TOKEN));
    assert_read();
    assert_string_equal(fixture->token->user, "alice");

    /* As most programs replace a file. */
    assert_int_equal(rename(fixture->path, fresh), 0);
    put(STR(ROOT_TOKEN));
    assert_read();
    assert_int_equal(rename(fresh, fixture->path), 0);
    assert_read();
    assert_string_equal(fixture->token->user, "alice");
}

TEST(another_token_of_the_same_look_is_found_when_it_is_looked_for)
{
    put(STR(ROOT_TOKEN));
    assert_read();
    assert_false(token_reread(fixture->token));
    put(STR(ALICE_TOKEN));
    assert_int_equal(stat(fixture->path, &fixture->token->seen), 0);
    assert_read();
    assert_string_equal(fixture->token->user, "root");
    assert_true(token_reread(fixture->token));
    assert_string_equal(fixture->token->user, "alice");
}

TEST(a_file_that_goes_leaves_the_token_in_use)
{
    put(STR(ROOT_TOKEN));
    assert_read();
    unlink(fixture->path);
    assert_read();
    assert_false(token_reread(fixture->token));
    assert_string_equal(fixture->token->text, ROOT_TOKEN);
    token_warn(fixture->token, 1794796008, fixture->warning, sizeof(fixture->warning));
    assert_contains(fixture->warning, "cannot open the token file ");
    assert_contains(fixture->warning, "; the token that was read before is still in use");

    put(STR("half\n written"));
    assert_read();
    assert_string_equal(fixture->token->text, ROOT_TOKEN);
    put(STR(ALICE_TOKEN));
    assert_read();
    assert_string_equal(fixture->token->user, "alice");
    token_warn(fixture->token, 1794796010, fixture->warning, sizeof(fixture->warning));
    assert_string_equal(fixture->warning, "");
}

TEST(its_end_is_warned_of_in_the_last_tenth_of_its_life)
{
    char expected[300];

    put(STR(ALICE_TOKEN));
    assert_read();
    token_warn(fixture->token, 1794796098, fixture->warning, sizeof(fixture->warning));
    assert_string_equal(fixture->warning, "");
    token_warn(fixture->token, 1794796099, fixture->warning, sizeof(fixture->warning));
    snprintf(expected, sizeof(expected),
             "the token in %s expires at 2026-11-16T02:28:29Z: put a new one there, made with "
             "scontrol token username=alice lifespan=SECONDS",
             fixture->path);
    assert_string_equal(fixture->warning, expected);
}

TEST(the_end_of_one_that_lives_long_is_warned_of_a_day_before)
{
    /* {"exp":1794796008,"iat":1763260008} */
    put(STR(HEADER ".eyJleHAiOjE3OTQ3OTYwMDgsImlhdCI6MTc2MzI2MDAwOH0.c2ln"));
    assert_read();
    token_warn(fixture->token, 1794796008 - 86401, fixture->warning, sizeof(fixture->warning));
    assert_string_equal(fixture->warning, "");
    token_warn(fixture->token, 1794796008 - 86400, fixture->warning, sizeof(fixture->warning));
    assert_contains(fixture->warning, "username=NAME");
}

TEST(a_file_that_others_can_read_is_warned_of)
{
    put(STR(ROOT_TOKEN));
    assert_int_equal(chmod(fixture->path, 0644), 0);
    assert_read();
    token_warn(fixture->token, 1794796008, fixture->warning, sizeof(fixture->warning));
    assert_contains(fixture->warning, "anybody on this machine can read or change ");
    assert_int_equal(chmod(fixture->path, 0640), 0);
    assert_read();
    token_warn(fixture->token, 1794796008, fixture->warning, sizeof(fixture->warning));
    assert_string_equal(fixture->warning, "");
}

/* Payloads that say nothing of use; the token itself is slurmctld's to judge. */
TEST(claims_that_cannot_be_read_are_not_said)
{
    static const char *const tokens[] = {
        "opaque",
        "a.b",
        "...",
        HEADER ".!!!!.c2ln",
        HEADER ".bm90IGpzb24.c2ln",                                        /* not json */
        HEADER ".W10.c2ln",                                                /* [] */
        HEADER ".MQ.c2ln",                                                 /* 1 */
        HEADER ".eyJleHAiOiIxNzk0ODMyMDA4In0.c2ln",                        /* exp is a text */
        HEADER ".eyJleHAiOi01fQ.c2ln",                                     /* -5 */
        HEADER ".eyJleHAiOjFlMzB9.c2ln",                                   /* 1e30 */
        HEADER ".eyJhIjp7ImV4cCI6MTc5NDgzMjAwOCwic3VuIjoicm9vdCJ9fQ.c2ln", /* {"a":{…}} */
        HEADER ".eyJleHAiOjE3OTQ4MzIwMDgsInN1biI6InJvb3Qi.c2ln",           /* cut off */
        HEADER ".eyJzdW4iOiJyb290XHJcblg6IHkifQ.c2ln",                     /* "root\r\nX: y" */
    };

    for (size_t i = 0; i < COUNT(tokens); i++) {
        put(str_of(tokens[i]));
        assert_true(token_reread(fixture->token));
        assert_string_equal(fixture->token->text, tokens[i]);
        if (fixture->token->expires || fixture->token->user[0])
            fail_msg("%s: %lld %s", tokens[i], (long long)fixture->token->expires,
                     fixture->token->user);
    }
}

TEST(slurms_own_name_of_the_user_counts_for_more)
{
    /* {"sun":"alice","username":"bob"} */
    put(STR(HEADER ".eyJzdW4iOiJhbGljZSIsInVzZXJuYW1lIjoiYm9iIn0.c2ln"));
    assert_read();
    assert_string_equal(fixture->token->user, "alice");
    /* {"username":"bob","exp":1794832008.5} */
    put(STR(HEADER ".eyJ1c2VybmFtZSI6ImJvYiIsImV4cCI6MTc5NDgzMjAwOC41fQ.c2ln"));
    assert_read();
    assert_string_equal(fixture->token->user, "bob");
    assert_int_equal(fixture->token->expires, 1794832008);
}
