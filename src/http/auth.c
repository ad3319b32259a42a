/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes as crypt(5) describes them; exporter-toolkit writes $2y$, htpasswd too, others $2a$, $2b$.
 */
#include "http/auth.h"

#include "base/arena.h"
#include "base/base64.h"
#include "http/pool.h"

#include <crypt.h>
#include <gnutls/crypto.h>

enum {
    MOST_VERDICTS = 1024,
    MOST_QUEUED = 64,
    MOST_QUEUED_OF_ONE_CLIENT = 8,
    BUCKETS = 1024,
    DIGEST_BYTES = 32,
    LONGEST_CREDENTIALS = 1024, /* name, colon and password */
};

static const int64_t verdict_lasts_ns = 600 * NS_PER_SEC;

struct digest {
    unsigned char bytes[DIGEST_BYTES];
};

struct verdict {
    struct digest digest;
    int64_t until_ns;
    bool is_right;
    struct verdict *next;          /* of the same bucket */
    struct verdict *older, *newer; /* of the same kind, by when they were last of use */
};

/* By age: the oldest goes when there is no room. */
struct verdict_queue {
    struct verdict *oldest, *newest;
};

struct auth_job {
    struct pool_job job;
    struct auth *auth;
    struct auth_job *next; /* of all that are under way */
    struct webconfig *web;
    struct digest digest;
    uint64_t client;
    const struct webconfig_user *user; /* whose hash is tried */
    bool is_known;                     /* else the outcome does not matter, only its cost */
    bool is_right;
    bool is_forgotten; /* the passwords changed meanwhile */
    struct auth_waiter *waiters;
    char password[LONGEST_CREDENTIALS];
};

struct auth {
    const struct clock *clock;
    void (*tell)(void *ctx);
    void *ctx;
    pthread_mutex_t lock; /* of the next: */
    struct pool_job *finished;
    struct pool *pool;         /* of one thread: a flood of guesses gets no more than that */
    struct crypt_data scratch; /* that thread's */
    gnutls_hmac_hd_t hmac;     /* with a key that is new in each process */
    struct auth_job *jobs;
    struct verdict verdicts[MOST_VERDICTS];
    struct verdict *unused;
    struct verdict *buckets[BUCKETS];
    struct verdict_queue right, wrong;
};

int auth_new(const struct clock *clock, void (*tell)(void *ctx), void *ctx, struct auth **ret,
             struct err *err)
{
    const struct pool_config pool = {
        .name = "passwords",
        .threads = 1,
        .most_queued = MOST_QUEUED,
    };
    struct auth *auth = heap_alloc(sizeof(*auth));
    unsigned char key[DIGEST_BYTES];
    int r;

    auth->clock = clock;
    auth->tell = tell;
    auth->ctx = ctx;
    pthread_mutex_init(&auth->lock, NULL);
    for (size_t i = 0; i < MOST_VERDICTS; i++) {
        auth->verdicts[i].next = auth->unused;
        auth->unused = &auth->verdicts[i];
    }
    r = gnutls_rnd(GNUTLS_RND_KEY, key, sizeof(key));
    if (r == 0)
        r = gnutls_hmac_init(&auth->hmac, GNUTLS_MAC_SHA256, key, sizeof(key));
    explicit_bzero(key, sizeof(key));
    if (r < 0)
        r = err_set(err, EIO, "can't make a key for checking passwords: %s", gnutls_strerror(r));
    else
        r = pool_new(&pool, &auth->pool, err);
    if (r < 0) {
        auth_free(auth);
        return r;
    }
    *ret = auth;
    return 0;
}

static void free_job(struct auth_job *job)
{
    webconfig_unref(job->web);
    explicit_bzero(job->password, sizeof(job->password));
    free(job);
}

struct auth *auth_free(struct auth *auth)
{
    if (!auth)
        return NULL;
    pool_free(auth->pool);
    while (auth->jobs) {
        struct auth_job *job = auth->jobs;

        auth->jobs = job->next;
        free_job(job);
    }
    if (auth->hmac)
        gnutls_hmac_deinit(auth->hmac, NULL);
    pthread_mutex_destroy(&auth->lock);
    explicit_bzero(auth, sizeof(*auth));
    free(auth);
    return NULL;
}

/* Cuts "Basic bmFtZTpwYXNzd29yZA==" into name and password, which stand in `text`. */
static bool parse_header(struct str header, char text[LONGEST_CREDENTIALS], struct str *ret_user,
                         struct str *ret_password)
{
    struct str rest = str_trim(header), scheme = str_cut(&rest, ' '), plain = { text, 0 };
    size_t colon;

    if (!rest.p || !str_eq_nocase(scheme, STR("Basic")) ||
        !base64_decode(str_trim(rest), text, LONGEST_CREDENTIALS, &plain.n))
        return false;
    colon = str_find(plain, ':');
    if (colon == plain.n)
        return false;
    *ret_user = str_head(plain, colon);
    *ret_password = str_skip(plain, colon + 1);
    return true;
}

static void hash_part(gnutls_hmac_hd_t hmac, struct str part)
{
    uint64_t n = part.n; /* first, so that "a"+"bc" is not "ab"+"c" */

    gnutls_hmac(hmac, &n, sizeof(n));
    gnutls_hmac(hmac, part.p, part.n);
}

static struct digest digest_of(struct auth *auth, struct str user, struct str password,
                               const char *hash)
{
    struct digest digest;

    hash_part(auth->hmac, user);
    hash_part(auth->hmac, password);
    hash_part(auth->hmac, str_of(hash));
    gnutls_hmac_output(auth->hmac, digest.bytes); /* and ready for the next */
    return digest;
}

static uint64_t first_bytes(const struct digest *digest)
{
    uint64_t number;

    memcpy(&number, digest->bytes, sizeof(number));
    return number;
}

static struct verdict **bucket_of(struct auth *auth, const struct digest *digest)
{
    return &auth->buckets[first_bytes(digest) % BUCKETS];
}

/* The user, or for a name that nobody has some user, always the same for one name: the answer then
 * takes as long as a wrong password does. */
static const struct webconfig_user *find_user(struct auth *auth, const struct webconfig *web,
                                              struct str name, bool *ret_is_known)
{
    struct digest digest;

    for (size_t i = 0; i < web->n_users; i++) {
        if (str_eq(web->users[i].name, name)) {
            *ret_is_known = true;
            return &web->users[i];
        }
    }
    *ret_is_known = false;
    digest = digest_of(auth, name, STR(""), "");
    return &web->users[first_bytes(&digest) % web->n_users];
}

static struct verdict_queue *queue_of(struct auth *auth, const struct verdict *verdict)
{
    return verdict->is_right ? &auth->right : &auth->wrong;
}

static void queue_remove(struct verdict_queue *queue, struct verdict *verdict)
{
    *(verdict->older ? &verdict->older->newer : &queue->oldest) = verdict->newer;
    *(verdict->newer ? &verdict->newer->older : &queue->newest) = verdict->older;
}

static void queue_append(struct verdict_queue *queue, struct verdict *verdict)
{
    verdict->older = queue->newest;
    verdict->newer = NULL;
    *(queue->newest ? &queue->newest->newer : &queue->oldest) = verdict;
    queue->newest = verdict;
}

static void drop(struct auth *auth, struct verdict *verdict)
{
    struct verdict **link = bucket_of(auth, &verdict->digest);

    while (*link != verdict)
        link = &(*link)->next;
    *link = verdict->next;
    queue_remove(queue_of(auth, verdict), verdict);
    verdict->next = auth->unused;
    auth->unused = verdict;
}

static struct verdict *find_verdict(struct auth *auth, const struct digest *digest, int64_t now)
{
    struct verdict *verdict = *bucket_of(auth, digest);

    while (verdict && gnutls_memcmp(verdict->digest.bytes, digest->bytes, DIGEST_BYTES) != 0)
        verdict = verdict->next;
    if (verdict && now >= verdict->until_ns) {
        drop(auth, verdict);
        verdict = NULL;
    }
    return verdict;
}

/* One that is in use lasts: else a flood of guesses could hold up the next check of it. */
static void renew(struct auth *auth, struct verdict *verdict, int64_t now)
{
    verdict->until_ns = now + verdict_lasts_ns;
    queue_remove(&auth->right, verdict);
    queue_append(&auth->right, verdict);
}

/* Guesses make room for guesses: they must not push out those who know their password. */
static void keep(struct auth *auth, const struct digest *digest, bool is_right, int64_t now)
{
    struct verdict **bucket = bucket_of(auth, digest);
    struct verdict *verdict;

    if (!auth->unused)
        drop(auth, auth->wrong.oldest ? auth->wrong.oldest : auth->right.oldest);
    verdict = auth->unused;
    auth->unused = verdict->next;
    *verdict = (struct verdict){
        .digest = *digest, .until_ns = now + verdict_lasts_ns, .is_right = is_right, .next = *bucket
    };
    *bucket = verdict;
    queue_append(queue_of(auth, verdict), verdict);
}

/* On the checking thread. */
static void check_password(struct pool_job *pool_job)
{
    struct auth_job *job = (struct auth_job *)pool_job;
    struct auth *auth = job->auth;
    struct crypt_data *scratch = &auth->scratch;
    const char *got = crypt_r(job->password, job->user->hash, scratch);
    size_t n = strlen(job->user->hash);

    job->is_right =
        got && strlen(got) == n && gnutls_memcmp(got, job->user->hash, n) == 0 && job->is_known;
    explicit_bzero(scratch, sizeof(*scratch));
    explicit_bzero(job->password, sizeof(job->password));
    pthread_mutex_lock(&auth->lock);
    pool_job->next = auth->finished;
    auth->finished = pool_job;
    pthread_mutex_unlock(&auth->lock);
    auth->tell(auth->ctx);
}

static struct auth_job *find_job(struct auth *auth, const struct digest *digest, uint64_t client,
                                 unsigned *ret_of_client)
{
    *ret_of_client = 0;
    for (struct auth_job *job = auth->jobs; job; job = job->next) {
        if (!job->is_forgotten &&
            gnutls_memcmp(job->digest.bytes, digest->bytes, DIGEST_BYTES) == 0)
            return job;
        *ret_of_client += job->client == client;
    }
    return NULL;
}

static bool start_job(struct auth *auth, struct webconfig *web, const struct auth_job *about,
                      struct str password)
{
    struct auth_job *job = heap_alloc(sizeof(*job));

    *job = *about;
    job->job.run = check_password;
    job->auth = auth;
    job->web = webconfig_ref(web);
    job->next = auth->jobs;
    /* crypt_r reads up to a NUL: a password with one inside is nobody's. */
    if (memchr(password.p, '\0', password.n))
        job->is_known = false;
    memcpy(job->password, password.p, password.n);
    job->password[password.n] = '\0';
    if (!pool_push(auth->pool, &job->job)) {
        free_job(job);
        return false;
    }
    auth->jobs = job;
    return true;
}

static enum auth_verdict check(struct auth *auth, struct webconfig *web, struct str name,
                               struct str password, uint64_t client, struct auth_waiter *waiter)
{
    struct auth_job about = { .client = client };
    int64_t now = clock_mono(auth->clock);
    struct verdict *verdict;
    struct auth_job *job;
    unsigned of_client;

    about.user = find_user(auth, web, name, &about.is_known);
    about.digest = digest_of(auth, name, password, about.user->hash);
    verdict = find_verdict(auth, &about.digest, now);
    if (verdict && verdict->is_right) {
        renew(auth, verdict, now);
        waiter->user = about.user->name;
        return AUTH_RIGHT;
    }
    if (verdict)
        return AUTH_WRONG;
    if (waiter->must_not_wait)
        return AUTH_BUSY;
    job = find_job(auth, &about.digest, client, &of_client);
    if (!job) {
        if (of_client >= MOST_QUEUED_OF_ONE_CLIENT || !start_job(auth, web, &about, password))
            return AUTH_BUSY;
        job = auth->jobs;
    }
    waiter->next = job->waiters;
    job->waiters = waiter;
    return AUTH_LATER;
}

enum auth_verdict auth_check(struct auth *auth, struct webconfig *web, struct str header,
                             uint64_t client, struct auth_waiter *waiter)
{
    char text[LONGEST_CREDENTIALS];
    enum auth_verdict verdict = AUTH_WRONG;
    struct str name, password;

    if (header.p && parse_header(header, text, &name, &password))
        verdict = check(auth, web, name, password, client, waiter);
    explicit_bzero(text, sizeof(text));
    return verdict;
}

static struct auth_job *take_finished(struct auth *auth)
{
    struct pool_job *job;

    pthread_mutex_lock(&auth->lock);
    job = auth->finished;
    if (job)
        auth->finished = job->next;
    pthread_mutex_unlock(&auth->lock);
    return (struct auth_job *)job;
}

bool auth_settle(struct auth *auth, struct auth_waiter **ret)
{
    struct auth_job *job = take_finished(auth);
    struct auth_job **link = &auth->jobs;

    if (!job)
        return false;
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    if (!job->is_forgotten)
        keep(auth, &job->digest, job->is_right, clock_mono(auth->clock));
    for (struct auth_waiter *waiter = job->waiters; waiter; waiter = waiter->next) {
        waiter->verdict = job->is_right ? AUTH_RIGHT : AUTH_WRONG;
        waiter->user = job->is_right ? job->user->name : (struct str){ 0 };
    }
    *ret = job->waiters;
    free_job(job);
    return true;
}

void auth_forget(struct auth *auth)
{
    while (auth->right.oldest)
        drop(auth, auth->right.oldest);
    while (auth->wrong.oldest)
        drop(auth, auth->wrong.oldest);
    for (struct auth_job *job = auth->jobs; job; job = job->next)
        job->is_forgotten = true;
}
