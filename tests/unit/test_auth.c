/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of http/auth: passwords of HTTP requests. */
#include "test.h"

#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "http/auth.h"

#include <crypt.h>
#include <semaphore.h>

static struct auth *auth;
static struct manual_clock manual;
static struct webconfig *web;
static struct webconfig_user users[2];
static char hashes[2][100];
static sem_t finished;

/* A password that begins with "guess" is wrong at once: a thousand real checks take a second. */
char *__real_crypt_r(const char *password, const char *hash, struct crypt_data *data);
char *__wrap_crypt_r(const char *password, const char *hash, struct crypt_data *data);
char *__wrap_crypt_r(const char *password, const char *hash, struct crypt_data *data)
{
    if (strncmp(password, "guess", 5) == 0) {
        snprintf(data->output, sizeof(data->output), "*0");
        return data->output;
    }
    return __real_crypt_r(password, hash, data);
}

static void tell(void *ctx)
{
    (void)ctx;
    sem_post(&finished);
}

static void make_hash(const char *password, char hash[100])
{
    static struct crypt_data data; /* 32 KB */
    char salt[CRYPT_GENSALT_OUTPUT_SIZE];

    assert_non_null(crypt_gensalt_rn("$2y$", 4, "0123456789abcdef", 16, salt, sizeof(salt)));
    snprintf(hash, 100, "%s", crypt_r(password, salt, &data));
    assert_int_equal(strlen(hash), 60);
}

static void set_up(void)
{
    struct webconfig_files files = { 0 };
    struct err err;

    manual_clock_init(&manual, 0, 1000 * NS_PER_SEC);
    sem_init(&finished, 0, 0);
    assert_int_equal(webconfig_load(NULL, &files, &web, &err), 0);
    make_hash("wonderland", hashes[0]);
    make_hash("a:b", hashes[1]);
    users[0] = (struct webconfig_user){ STR("alice"), hashes[0] };
    users[1] = (struct webconfig_user){ STR("bob"), hashes[1] };
    web->users = users;
    web->n_users = 2;
    assert_int_equal(auth_new(&manual.clock, tell, NULL, &auth, &err), 0);
}

static void tear_down(void)
{
    auth = auth_free(auth);
    web = webconfig_unref(web);
    sem_destroy(&finished);
    manual_clock_destroy(&manual);
}

FIXTURE(set_up, tear_down)

static void put_base64(struct buf *out, struct str in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < in.n; i += 3) {
        unsigned bits = 0;

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < in.n ? (unsigned char)in.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_byte(out, i + k > in.n ? '=' : digits[bits >> (18 - 6 * k) & 63]);
    }
}

static enum auth_verdict check_of(struct str credentials, uint64_t who, struct auth_waiter *waiter)
{
    enum auth_verdict verdict;
    struct buf header;

    buf_init(&header, 10000);
    buf_text(&header, "Basic ");
    put_base64(&header, credentials);
    verdict = auth_check(auth, web, buf_str(&header), who, waiter);
    buf_free(&header);
    return verdict;
}

static enum auth_verdict check(const char *credentials, struct auth_waiter *waiter)
{
    *waiter = (struct auth_waiter){ 0 };
    return check_of(str_of(credentials), 1, waiter);
}

/* The number of those that waited for the next check that ends. */
static size_t settle(void)
{
    struct auth_waiter *waiters;
    size_t n = 0;

    while (sem_wait(&finished) != 0)
        ;
    assert_true(auth_settle(auth, &waiters));
    for (; waiters; waiters = waiters->next)
        n++;
    return n;
}

static enum auth_verdict check_to_the_end(const char *credentials)
{
    struct auth_waiter waiter;
    enum auth_verdict verdict = check(credentials, &waiter);

    if (verdict == AUTH_LATER) {
        assert_int_equal(settle(), 1);
        verdict = waiter.verdict;
    }
    return verdict;
}

TEST(a_right_password_is_checked_once)
{
    struct auth_waiter waiter;

    assert_int_equal(check("alice:wonderland", &waiter), AUTH_LATER);
    assert_int_equal(settle(), 1);
    assert_int_equal(waiter.verdict, AUTH_RIGHT);
    assert_str(waiter.user, "alice");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check("alice:wonderland", &waiter), AUTH_RIGHT);
        assert_str(waiter.user, "alice");
    }
    assert_int_equal(check_to_the_end("bob:a:b"), AUTH_RIGHT);
}

TEST(a_wrong_password_is_checked_once_too)
{
    struct auth_waiter waiter;

    assert_int_equal(check("alice:wonderlan", &waiter), AUTH_LATER);
    settle();
    assert_int_equal(waiter.verdict, AUTH_WRONG);
    assert_int_equal(waiter.user.n, 0);
    assert_int_equal(check("alice:wonderlan", &waiter), AUTH_WRONG);
    assert_int_equal(check_to_the_end("alice:"), AUTH_WRONG);
    assert_int_equal(check_to_the_end("bob:wonderland"), AUTH_WRONG);
    assert_int_equal(check_to_the_end("alice:wonderland"), AUTH_RIGHT);
}

TEST(an_unknown_name_costs_a_check_and_is_wrong_even_with_somebodys_password)
{
    struct auth_waiter waiter;

    for (int i = 0; i < 20; i++) {
        char credentials[40];

        snprintf(credentials, sizeof(credentials), "nobody%d:wonderland", i);
        assert_int_equal(check(credentials, &waiter), AUTH_LATER);
        settle();
        assert_int_equal(waiter.verdict, AUTH_WRONG);
    }
}

TEST(those_who_ask_the_same_share_a_check)
{
    struct auth_waiter waiters[20];

    for (int i = 0; i < 20; i++)
        assert_int_equal(check("alice:wonderland", &waiters[i]), AUTH_LATER);
    assert_int_equal(settle(), 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(waiters[i].verdict, AUTH_RIGHT);
    assert_int_equal(sem_trywait(&finished), -1);
}

TEST(one_client_can_not_take_the_whole_queue)
{
    struct auth_waiter waiters[9], mine;
    char credentials[40];

    for (int i = 0; i < 8; i++) {
        snprintf(credentials, sizeof(credentials), "alice:guess%d", i);
        assert_int_equal(check(credentials, &waiters[i]), AUTH_LATER);
    }
    assert_int_equal(check("alice:guess8", &waiters[8]), AUTH_BUSY);
    mine = (struct auth_waiter){ 0 };
    assert_int_equal(check_of(STR("alice:wonderland"), 2, &mine), AUTH_LATER);
    for (int i = 0; i < 9; i++)
        settle();
    assert_int_equal(mine.verdict, AUTH_RIGHT);
    assert_int_equal(check_to_the_end("alice:guess8"), AUTH_WRONG);
}

TEST(a_flood_of_guesses_does_not_push_out_a_right_verdict)
{
    struct auth_waiter waiter;

    assert_int_equal(check_to_the_end("alice:wonderland"), AUTH_RIGHT);
    for (int i = 0; i < 1100; i++) {
        char credentials[40];

        snprintf(credentials, sizeof(credentials), "alice:guess%d", i);
        assert_int_equal(check_to_the_end(credentials), AUTH_WRONG);
    }
    assert_int_equal(check("alice:wonderland", &waiter), AUTH_RIGHT);
    assert_int_equal(check("alice:guess1099", &waiter), AUTH_WRONG); /* kept */
    assert_int_equal(check("alice:guess0", &waiter), AUTH_LATER);    /* made room */
    settle();
}

TEST(a_verdict_lasts_ten_minutes_and_longer_if_right_and_used)
{
    struct auth_waiter waiter;

    assert_int_equal(check_to_the_end("alice:wonderland"), AUTH_RIGHT);
    assert_int_equal(check_to_the_end("bob:a:b"), AUTH_RIGHT);
    assert_int_equal(check_to_the_end("alice:guess"), AUTH_WRONG);
    for (int minute = 0; minute < 10; minute++) {
        assert_int_equal(check("alice:wonderland", &waiter), AUTH_RIGHT);
        assert_int_equal(check("alice:guess", &waiter), AUTH_WRONG);
        manual_clock_advance(&manual, 60 * NS_PER_SEC);
    }
    assert_int_equal(check("alice:wonderland", &waiter), AUTH_RIGHT);
    assert_int_equal(check("bob:a:b", &waiter), AUTH_LATER);
    settle();
    assert_int_equal(check("alice:guess", &waiter), AUTH_LATER);
    settle();
}

TEST(when_passwords_change_no_verdict_counts)
{
    struct auth_waiter waiter;

    assert_int_equal(check_to_the_end("alice:wonderland"), AUTH_RIGHT);
    assert_int_equal(check("bob:a:b", &waiter), AUTH_LATER); /* under way meanwhile */
    auth_forget(auth);
    settle();
    assert_int_equal(waiter.verdict, AUTH_RIGHT); /* it was asked before */
    assert_int_equal(check("alice:wonderland", &waiter), AUTH_LATER);
    settle();
    assert_int_equal(check("bob:a:b", &waiter), AUTH_LATER);
    settle();
}

TEST(what_is_no_credentials_is_wrong_at_once)
{
    static const struct str headers[] = {
        { NULL, 0 },
        STR_INIT(""),
        STR_INIT("Basic"),
        STR_INIT("Basic "),
        STR_INIT("Bearer YTpi"),
        STR_INIT("Basic !!!!"),
        STR_INIT("Basic YWI="), /* "ab", no colon */
        STR_INIT("Basic YTpi YTpi"),
        STR_INIT("BasicYTpi"),
    };
    struct auth_waiter waiter = { 0 };
    struct buf long_one;

    for (size_t i = 0; i < COUNT(headers); i++)
        assert_int_equal(auth_check(auth, web, headers[i], 1, &waiter), AUTH_WRONG);
    buf_init(&long_one, 10000);
    buf_text(&long_one, "alice:");
    for (int i = 0; i < 1500; i++)
        buf_byte(&long_one, 'x');
    assert_int_equal(check_of(buf_str(&long_one), 1, &waiter), AUTH_WRONG);
    buf_free(&long_one);
    assert_int_equal(sem_trywait(&finished), -1);
}

TEST(a_nul_byte_does_not_end_a_password)
{
    struct auth_waiter waiter = { 0 };

    assert_int_equal(check_of(STR("alice:wonderland\0x"), 1, &waiter), AUTH_LATER);
    settle();
    assert_int_equal(waiter.verdict, AUTH_WRONG);
}

TEST(it_can_end_with_checks_under_way)
{
    struct auth_waiter waiters[8];
    char credentials[40];

    for (int i = 0; i < 8; i++) {
        snprintf(credentials, sizeof(credentials), "alice:guess%d", i);
        assert_int_equal(check(credentials, &waiters[i]), AUTH_LATER);
    }
}
