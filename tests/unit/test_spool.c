/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Against a server in this process that does what the exporter's /ingest does, or what one must
 * not. With an argument the program is an agent that hands in records until it is killed. */
#include "test.h"

#include "files.h"
#include "http_peer.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"
#include "agent/final.h"
#include "agent/spool.h"
#include "model/ingest_claim.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_IDS = 20000, MOST_BODY = 2 << 20 };

static const int64_t now_seconds = 1700000000;

/* What it has seen is under the lock of the peer. */
struct exporter {
    uint32_t ids[MOST_IDS]; /* of records that were acknowledged, in their order */
    size_t n_ids, most_records, most_bytes;
    bool is_garbled;     /* a post was no JSON */
    uint32_t bad_id;     /* posts with this one are refused */
    bool names_bad;      /* with its index */
    unsigned bad_status; /* as */
    unsigned status;     /* of all posts, if not 200 */
    const char *headers; /* of all answers */
};

struct fixture {
    struct http_peer *peer;
    struct exporter exporter;
    struct manual_clock manual;
    struct spool_config config;
    struct spool *spool;
    const char *path, *token_file;
    char url[100];
};

static struct fixture *fixture;

/* What munge does: 0: it makes a credential that contains the payload; or it fails so. */
static atomic_int munge_code;
static atomic_bool munge_is_missing, munge_hangs;
static atomic_uint munge_calls;

int __wrap_munge_seal(const char *socket, struct str payload, char **ret, struct err *err);
int __wrap_munge_find(struct err *err);

int __wrap_munge_seal(const char *socket, struct str payload, char **ret, struct err *err)
{
    struct buf credential;

    assert_string_equal(socket, "/run/munge.test");
    munge_calls++;
    while (munge_hangs)
        sched_yield();
    if (atomic_load(&munge_code))
        return err_set(err, atomic_load(&munge_code), "munged is away");
    buf_init(&credential, 1000);
    buf_printf(&credential, "MUNGE:%.*s:", STR_ARG(payload));
    *ret = credential.p;
    return 0;
}

int __wrap_munge_find(struct err *err)
{
    return munge_is_missing ? err_set(err, ENOENT, "libmunge.so.2 cannot be loaded") : 0;
}

/* --- the exporter --- */

struct post {
    uint32_t ids[MOST_IDS];
    size_t n;
};

static bool read_post(struct str body, struct post *post)
{
    struct json *json = json_new();
    bool is_id = false, is_whole;
    enum json_event event;
    uint64_t id;

    json_feed(json, body);
    json_finish(json);
    while ((event = json_next(json)) > JSON_END) {
        if (event == JSON_KEY) {
            is_id = json_depth(json) == 3 && str_eq(json_text(json), STR("job_id"));
        } else if (is_id && post->n < MOST_IDS && json_u64(json, &id)) {
            post->ids[post->n++] = (uint32_t)id;
            is_id = false;
        }
    }
    is_whole = event == JSON_END;
    json_free(json);
    return is_whole;
}

/* What is wrong with a post, if something is. */
static void judge(const struct exporter *exporter, const struct post *post, struct peer_reply *ret)
{
    static char answer[100];

    ret->status = exporter->status;
    ret->headers = exporter->headers;
    if (exporter->status)
        return;
    snprintf(answer, sizeof(answer), "{\"records\":%zu}", post->n);
    for (size_t i = 0; i < post->n; i++) {
        if (!exporter->bad_id || post->ids[i] != exporter->bad_id)
            continue;
        ret->status = exporter->bad_status;
        snprintf(answer, sizeof(answer),
                 exporter->names_bad ? "{\"error\":\"no\",\"record\":%zu}" : "no", i);
    }
    ret->body = str_of(answer);
}

static void take_post(const struct peer_request *request, struct peer_reply *ret)
{
    struct exporter *exporter = &fixture->exporter;
    struct post *post;

    if (strcmp(request->target, "/prefix/ingest") != 0 || strcmp(request->method, "POST") != 0) {
        ret->status = 404;
        return;
    }
    post = heap_alloc(sizeof(*post));
    exporter->is_garbled |= !read_post(request->body, post);
    if (post->n > exporter->most_records)
        exporter->most_records = post->n;
    if (request->body.n > exporter->most_bytes)
        exporter->most_bytes = request->body.n;
    judge(exporter, post, ret);
    for (size_t i = 0; i < post->n && !ret->status && exporter->n_ids < MOST_IDS; i++)
        exporter->ids[exporter->n_ids++] = post->ids[i];
    free(post);
}

static size_t count_taken(void)
{
    size_t n;

    peer_lock(fixture->peer);
    n = fixture->exporter.n_ids;
    peer_unlock(fixture->peer);
    return n;
}

static bool has_taken(uint32_t id)
{
    bool is_there = false;

    peer_lock(fixture->peer);
    for (size_t i = 0; i < fixture->exporter.n_ids && !is_there; i++)
        is_there = fixture->exporter.ids[i] == id;
    peer_unlock(fixture->peer);
    return is_there;
}

static void set_status(unsigned status)
{
    peer_lock(fixture->peer);
    fixture->exporter.status = status;
    peer_unlock(fixture->peer);
}

/* --- the spool --- */

static struct spool_stats stats_of(struct spool *spool)
{
    struct spool_stats stats;

    spool_stats(spool, &stats);
    return stats;
}

static uint64_t on_disk(struct spool *spool)
{
    struct spool_stats stats = stats_of(spool);

    return stats.waiting - stats.in_memory;
}

static void start(void)
{
    struct err err = { 0 };

    if (spool_start(&fixture->config, &fixture->spool, &err) < 0)
        fail_msg("%s", err.text);
}

static void stop(void)
{
    fixture->spool = spool_stop(fixture->spool, TEST_DEADLINE);
}

static void add(struct spool *spool, uint32_t id)
{
    struct job_use use;

    job_use_clear(&use);
    snprintf(use.id, sizeof(use.id), "%u", id);
    snprintf(use.node, sizeof(use.node), "n1");
    use.seen_wall_ns = now_seconds * NS_PER_SEC;
    spool_add(spool, &use, 0, (now_seconds + 3) * NS_PER_SEC);
}

static size_t count_files(const char *directory)
{
    DIR *listing = opendir(directory);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(listing);
    while ((entry = readdir(listing)))
        n += entry->d_name[0] != '.';
    closedir(listing);
    return n;
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    fixture->exporter.bad_status = 400;
    munge_code = ENOENT;
    munge_is_missing = munge_hangs = false;
    munge_calls = 0;
    fixture->peer = peer_open(NULL);
    peer_reply_by(fixture->peer, take_post);
    fixture->path = test_path("spool");
    fixture->token_file = write_file("token", "s3cret\n");
    snprintf(fixture->url, sizeof(fixture->url), "%s/prefix/", peer_url(fixture->peer));
    manual_clock_init(&fixture->manual, now_seconds * NS_PER_SEC, NS_PER_SEC);
    fixture->config = (struct spool_config){
        .directory = fixture->path,
        .url = fixture->url,
        .token_file = fixture->token_file,
        .munge_socket = "/run/munge.test",
        .cluster = "one",
        .timeout_ns = TEST_DEADLINE,
        .retry_ns = 10 * NS_PER_MS,
        .max_backoff_ns = 50 * NS_PER_MS,
        .max_bytes = 16 << 20,
        .max_age_ns = INT64_C(36500) * 24 * 3600 * NS_PER_SEC,
        .clock = &clock_real,
        .log = test_log(&clock_real),
    };
}

static void teardown(void)
{
    peer_close(fixture->peer);
    munge_hangs = false;
    stop();
    peer_free(fixture->peer);
    log_free(fixture->config.log);
    manual_clock_destroy(&fixture->manual);
    free(fixture);
}

FIXTURE(setup, teardown)

/* --- what is told --- */

static struct job_use full_use(void)
{
    static struct device_use devices[] = { { "sda", 1, 2, 3, 4 } };
    static struct name_use names[] = {
        { "other", 0, 0, 0, 0 },
        { "sh", 0, 0, 0, 100000000 },
        { "py\"t\n\xff", 0, 0, 0, 2000000000 },
    };
    static struct job_gpu gpus[2];
    static struct step_use steps[1];
    struct job_use use;

    job_use_clear(&use);
    snprintf(use.id, sizeof(use.id), "4711");
    snprintf(use.node, sizeof(use.node), "n1");
    snprintf(use.user, sizeof(use.user), "alice");
    snprintf(use.account, sizeof(use.account), "physics");
    use.uid = 2001;
    use.seen_wall_ns = now_seconds * NS_PER_SEC + 999999999;
    use.allocated_cpus = 4;
    use.allocated_memory_bytes = 1 << 30;
    use.allocated_gpus = 2;
    use.cgroup.cpu_ns = 3500000000;
    use.cgroup.cpu_user_ns = 3000000000;
    use.cgroup.cpu_system_ns = 500000000;
    use.cgroup.throttled_ns = 250000000;
    use.cgroup.memory_peak_bytes = 123456789;
    use.cgroup.limit_hits = 2;
    use.cgroup.oom_kills = 1;
    use.cgroup.page_faults = 10;
    use.cgroup.major_page_faults = 0;
    use.cgroup.pressure_ns[PRESSURE_IO_FULL] = 1500000000;
    use.cgroup.devices = devices;
    use.cgroup.n_devices = 1;
    use.io = (struct io_use){ 11, 12, 13, 14, 15, 16 };
    use.processes_peak = 7;
    use.threads_peak = 8;
    use.files_peak = 9;
    use.uses_scratch = 1;
    use.names = names;
    use.n_names = COUNT(names);
    gpus[0] = (struct job_gpu){ .id = "0",
                                .model = "NVIDIA A100",
                                .memory_peak_bytes = 1024,
                                .energy_begin_mj = 1000,
                                .energy_mj = 2500 };
    gpus[1] = (struct job_gpu){ .id = "1",
                                .memory_peak_bytes = MODEL_UNKNOWN_U64,
                                .energy_begin_mj = MODEL_UNKNOWN_U64,
                                .energy_mj = MODEL_UNKNOWN_U64 };
    use.gpus = gpus;
    use.n_gpus = 2;
    steps[0] = (struct step_use){ .id = "batch" };
    cgroup_use_clear(&steps[0].cgroup);
    steps[0].cgroup.cpu_ns = 3400000000;
    steps[0].io = (struct io_use){ 1, 2, 3, 4, 5, 6 };
    use.steps = steps;
    use.n_steps = 1;
    return use;
}

#define FULL_RECORD                                                                                \
    "{\"job_id\":4711,\"node\":\"n1\",\"begin_time\":1700000000,\"end_time\":1700000003,"          \
    "\"uid\":2001,\"user\":\"alice\",\"account\":\"physics\",\"allocated\":{\"cpus\":4,"           \
    "\"memory_bytes\":1073741824,\"gpus\":2},\"cpu_seconds\":3.5,\"user_seconds\":3,"              \
    "\"system_seconds\":0.5,\"throttled_seconds\":0.25,\"memory_peak_bytes\":123456789,"           \
    "\"limit_hits\":2,\"oom_kills\":1,\"page_faults\":10,\"major_page_faults\":0,"                 \
    "\"pressure_seconds\":{\"io_full\":1.5},\"io\":{\"read_bytes\":11,\"write_bytes\":12,"         \
    "\"read_chars\":13,\"write_chars\":14,\"reads\":15,\"writes\":16},\"devices\":[{\"name\":"     \
    "\"sda\",\"read_bytes\":1,\"write_bytes\":2,\"reads\":3,\"writes\":4}],\"processes_peak\":7,"  \
    "\"threads_peak\":8,\"files_peak\":9,\"uses_scratch\":true,\"names\":[{\"name\":"              \
    "\"py\\\"t\\u000a\xef\xbf\xbd\",\"cpu_seconds\":2},{\"name\":\"sh\",\"cpu_seconds\":0.1}],"    \
    "\"gpus\":[{\"id\":\"0\",\"model\":\"NVIDIA A100\",\"memory_peak_bytes\":1024,"                \
    "\"energy_joules\":1.5},{\"id\":\"1\"}],\"steps\":[{\"id\":\"batch\",\"cpu_seconds\":3.4,"     \
    "\"io\":{\"read_bytes\":1,\"write_bytes\":2,\"read_chars\":3,\"write_chars\":4,\"reads\":5,"   \
    "\"writes\":6}}],\"steps_left_out\":2}"

TEST(what_a_job_used_arrives_with_the_token)
{
    struct job_use use = full_use();
    const struct peer_request *post;

    start();
    spool_add(fixture->spool, &use, 2, (now_seconds + 3) * NS_PER_SEC);
    wait_until_true(stats_of(fixture->spool).posted == 1);
    post = peer_request(fixture->peer, 1);
    assert_str(post->body, "{\"cluster\":\"one\",\"records\":[" FULL_RECORD "]}");
    assert_string_equal(peer_header(post, "Authorization"), "Bearer s3cret");
    assert_string_equal(peer_header(post, "Content-Type"), "application/json");
    wait_until_true(stats_of(fixture->spool).waiting == 0);
    assert_int_equal(count_files(fixture->path), 0);
    assert_true(stats_of(fixture->spool).is_up);
    assert_int_equal(stats_of(fixture->spool).records, 1);
    assert_true(stats_of(fixture->spool).last_success_wall_ns > 0);
}

TEST(what_is_not_known_is_absent)
{
    struct job_use use;
    struct buf text;

    job_use_clear(&use);
    snprintf(use.id, sizeof(use.id), "1");
    snprintf(use.node, sizeof(use.node), "n1");
    snprintf(use.user, sizeof(use.user), "2001"); /* nobody knows her name */
    use.seen_wall_ns = now_seconds * NS_PER_SEC;
    buf_init(&text, FINAL_MAX);
    assert_true(final_put(&text, &use, 0, now_seconds - 5)); /* the clock was put back */
    assert_string_equal(text.p, "{\"job_id\":1,\"node\":\"n1\",\"begin_time\":1700000000,"
                                "\"end_time\":1700000000}");
    buf_free(&text);
}

TEST(a_job_of_another_scheduler_is_passed_over)
{
    static const char *const ids[] = { "", "12.server", "0", "-1", "4294967294", "12[3]" };
    struct job_use use = full_use();
    struct buf text;

    buf_init(&text, FINAL_MAX);
    for (size_t i = 0; i < COUNT(ids); i++) {
        snprintf(use.id, sizeof(use.id), "%s", ids[i]);
        assert_false(final_put(&text, &use, 0, now_seconds));
    }
    buf_free(&text);
}

TEST(steps_that_would_be_too_much_are_counted_instead)
{
    struct job_use use = full_use();
    struct buf text;

    use.n_steps = 200;
    use.steps = heap_array(use.n_steps, sizeof(*use.steps));
    for (size_t i = 0; i < use.n_steps; i++) {
        memset(&use.steps[i], 0x7e, sizeof(use.steps[i]));
        snprintf(use.steps[i].id, sizeof(use.steps[i].id), "%zu", i);
    }
    buf_init(&text, FINAL_MAX);
    assert_true(final_put(&text, &use, 3, now_seconds + 3));
    assert_null(strstr(text.p, "\"steps\":"));
    assert_contains(text.p, ",\"steps_left_out\":203}");
    buf_free(&text);
    free(use.steps);
}

/* --- an exporter that is away, or refuses --- */

TEST(while_the_exporter_is_away_records_wait_on_disk)
{
    struct stat status;

    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 5; id++)
        add(fixture->spool, id);
    wait_until_true(on_disk(fixture->spool) == 5);
    wait_until_true(stats_of(fixture->spool).failures > 2);
    assert_false(stats_of(fixture->spool).is_up);
    wait_until_true(stats_of(fixture->spool).in_memory == 0);
    assert_true(stats_of(fixture->spool).waiting_bytes > 5 * 60);
    assert_int_equal(count_logged("cannot hand in"), 1);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).posted == 5);
    wait_until_true(stats_of(fixture->spool).waiting == 0);
    assert_true(stats_of(fixture->spool).is_up);
    wait_until_true(count_logged("the exporter takes") == 1);
    assert_int_equal(count_files(fixture->path), 0);
}

TEST(what_an_earlier_agent_has_left_is_sent_first)
{
    peer_close(fixture->peer);
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    stop();
    start();
    wait_until_true(on_disk(fixture->spool) == 1);
    add(fixture->spool, 2);
    wait_until_true(on_disk(fixture->spool) == 2);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).posted == 2);
    assert_int_equal(fixture->exporter.ids[0], 1);
    assert_int_equal(fixture->exporter.ids[1], 2);
}

TEST(whatever_is_no_fault_of_a_record_keeps_it)
{
    static const unsigned statuses[] = { 401, 403, 404, 408, 429, 500, 503, 302, 202 };

    start();
    for (size_t i = 0; i < COUNT(statuses); i++) {
        uint64_t before = stats_of(fixture->spool).failures;

        set_status(statuses[i]);
        add(fixture->spool, (uint32_t)i + 1);
        wait_until_true(stats_of(fixture->spool).failures > before + 1);
        /* For a moment one is both in memory and on disk. */
        wait_until_true(stats_of(fixture->spool).waiting == i + 1);
    }
    set_status(0);
    wait_until_true(stats_of(fixture->spool).posted == COUNT(statuses));
    assert_int_equal(stats_of(fixture->spool).dropped, 0);
}

TEST(a_busy_exporter_says_when_to_come_again)
{
    fixture->config.clock = &fixture->manual.clock;
    fixture->exporter.headers = "Retry-After: 20\r\n";
    set_status(503);
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    manual_clock_advance(&fixture->manual, fixture->config.retry_ns);
    wait_until_true(stats_of(fixture->spool).failures == 1);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    set_status(0);
    manual_clock_advance(&fixture->manual, 19 * NS_PER_SEC);
    add(fixture->spool, 2);
    wait_until_true(on_disk(fixture->spool) == 2);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(stats_of(fixture->spool).posted, 0);
    manual_clock_advance(&fixture->manual, 21 * NS_PER_SEC);
    wait_until_true(stats_of(fixture->spool).posted == 2);
}

/* Of 100 records that wait, number 42 is bad. */
static void refuse_one(void)
{
    fixture->exporter.bad_id = 42;
    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 100; id++)
        add(fixture->spool, id);
    wait_until_true(on_disk(fixture->spool) == 100);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).waiting == 0);
    assert_int_equal(stats_of(fixture->spool).dropped, 1);
    assert_int_equal(stats_of(fixture->spool).posted, 99);
    for (uint32_t id = 1; id <= 100; id++)
        assert_int_equal(has_taken(id), id != 42);
    wait_until_true(count_logged("refuses what it was told") == 1);
}

TEST(a_record_that_the_exporter_names_is_dropped)
{
    fixture->exporter.names_bad = true;
    refuse_one();
    assert_true(peer_requests(fixture->peer) < 10);
}

TEST(one_that_it_does_not_name_is_found_by_halves)
{
    refuse_one();
    assert_true(peer_requests(fixture->peer) < 40);
}

TEST(one_that_is_too_large_is_found_by_halves)
{
    fixture->exporter.bad_status = 413;
    refuse_one();
}

TEST(when_all_are_refused_without_a_name_none_is_dropped)
{
    set_status(400); /* a proxy that finds something wrong, for instance */
    start();
    for (uint32_t id = 1; id <= 3; id++)
        add(fixture->spool, id);
    wait_until_true(stats_of(fixture->spool).failures > 2);
    wait_until_true(stats_of(fixture->spool).waiting == 3);
    assert_int_equal(stats_of(fixture->spool).dropped, 0);
    set_status(0);
    wait_until_true(stats_of(fixture->spool).posted == 3);
}

TEST(the_token_is_read_again_each_time)
{
    start();
    unlink(fixture->token_file);
    add(fixture->spool, 1);
    wait_until_true(stats_of(fixture->spool).failures > 0);
    wait_until_true(count_logged("cannot read the token file") == 1);
    write_file(fixture->token_file, "another\n");
    wait_until_true(stats_of(fixture->spool).posted == 1);
    assert_string_equal(peer_header(peer_request(fixture->peer, 1), "Authorization"),
                        "Bearer another");
}

static const char *authorization_of(size_t request)
{
    return peer_header(peer_request(fixture->peer, request + 1), "Authorization");
}

TEST(a_munge_credential_is_made_for_each_post)
{
    char claim[INGEST_CLAIM_SIZE], expected[200];

    munge_code = 0;
    fixture->config.token_file = NULL;
    start();
    for (uint32_t id = 1; id <= 2; id++) {
        add(fixture->spool, id);
        wait_until_true(stats_of(fixture->spool).posted == id);
        assert_int_equal(ingest_claim(peer_request(fixture->peer, id)->body, claim, NULL), 0);
        snprintf(expected, sizeof(expected), "Munge MUNGE:%s:", claim);
        assert_string_equal(authorization_of(id - 1), expected);
    }
}

static void refuse_munge(const struct peer_request *request, struct peer_reply *ret)
{
    if (strcmp(peer_header(request, "Authorization"), "Bearer s3cret") == 0)
        take_post(request, ret);
    else
        ret->status = fixture->exporter.bad_status;
}

static void post_one(uint32_t id)
{
    add(fixture->spool, id);
    wait_until_true(on_disk(fixture->spool) == 1);
    manual_clock_advance(&fixture->manual, fixture->config.retry_ns);
    wait_until_true(stats_of(fixture->spool).posted == id);
    wait_until_true(on_disk(fixture->spool) == 0);
}

static void check_token_after(unsigned status)
{
    munge_code = 0;
    fixture->exporter.bad_status = status;
    fixture->config.clock = &fixture->manual.clock;
    peer_reply_by(fixture->peer, refuse_munge);
    start();
    post_one(1);
    post_one(2);
    manual_clock_advance(&fixture->manual, 600 * NS_PER_SEC);
    post_one(3);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(str_starts(str_of(authorization_of(i)), STR("Munge")), i == 0 || i == 3);
    assert_int_equal(stats_of(fixture->spool).failures, 0);
}

TEST(an_exporter_that_knows_no_munge_gets_the_token)
{
    check_token_after(401);
}

TEST(an_exporter_that_refuses_the_credential_gets_the_token)
{
    check_token_after(403);
}

static void refuse_all(const struct peer_request *request, struct peer_reply *ret)
{
    bool is_munge = str_starts(str_of(peer_header(request, "Authorization")), STR("Munge"));

    ret->status = is_munge ? 403 : 401;
    ret->body = is_munge ? STR("the node is elsewhere") : STR("no tokens here");
}

TEST(an_exporter_that_accepts_neither_says_why_of_the_credential)
{
    munge_code = 0;
    peer_reply_by(fixture->peer, refuse_all);
    start();
    add(fixture->spool, 1);
    wait_until_true(stats_of(fixture->spool).failures == 2);
    wait_until_true(count_logged("the node is elsewhere") == 1);
    assert_int_equal(count_logged("no tokens here"), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(str_starts(str_of(authorization_of(i)), STR("Munge")), i % 2 == 0);
}

TEST(without_munge_and_without_a_token_it_does_not_start)
{
    struct err err;

    munge_is_missing = true;
    fixture->config.token_file = NULL;
    assert_int_equal(spool_start(&fixture->config, &fixture->spool, &err), -ENOENT);
    assert_contains(err.text, "without --ingest.token-file");
}

TEST(while_munged_is_away_records_wait)
{
    fixture->config.token_file = NULL;
    start();
    add(fixture->spool, 1);
    wait_until_true(stats_of(fixture->spool).failures > 0);
    munge_code = 0;
    wait_until_true(stats_of(fixture->spool).posted == 1);
}

TEST(many_are_posted_in_batches)
{
    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 1700; id++)
        add(fixture->spool, id);
    wait_until_true(on_disk(fixture->spool) == 1700);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).posted == 1700);
    assert_int_equal(fixture->exporter.most_records, 500);
    assert_true(fixture->exporter.most_bytes <= 1 << 20);
    for (uint32_t id = 1; id <= 1700; id++)
        assert_int_equal(fixture->exporter.ids[id - 1], id);
}

TEST(what_cannot_be_used_is_told_at_the_start)
{
    struct err err;

    fixture->config.url = "http://user:password@127.0.0.1:1";
    assert_int_equal(spool_start(&fixture->config, &fixture->spool, &err), -EINVAL);
    assert_null(strstr(err.text, "password"));
    fixture->config.url = "gopher://127.0.0.1";
    assert_int_equal(spool_start(&fixture->config, &fixture->spool, &err), -EINVAL);
    fixture->config.url = fixture->url;
    unlink(fixture->token_file);
    assert_int_equal(spool_start(&fixture->config, &fixture->spool, &err), -ENOENT);
    assert_contains(err.text, "token file");
}

/* --- the disk --- */

TEST(half_a_line_and_rubbish_are_not_sent)
{
    const char *path = test_path("spool/0000000000000001.spool");
    char text[10000];
    size_t n;
    int fd;

    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 3; id++)
        add(fixture->spool, id);
    wait_until_true(on_disk(fixture->spool) == 3);
    stop();
    assert_int_equal(count_files(fixture->path), 1);
    fd = open(path, O_RDWR | O_CLOEXEC);
    n = (size_t)pread(fd, text, sizeof(text), 0);
    text[n / 2] ^= 1; /* the second is damaged, the third cut */
    assert_int_equal(pwrite(fd, text, n, 0), n);
    assert_int_equal(ftruncate(fd, (off_t)n - 1), 0);
    close(fd);
    write_file("spool/0000000000000002.spool", "\n\n00000000 1 {}\nx\n\xff\xfe 1 2 3\n");
    write_file("spool/README", "somebody's own");
    peer_reopen(fixture->peer);
    start();
    wait_until_true(stats_of(fixture->spool).posted == 1);
    wait_until_true(stats_of(fixture->spool).waiting_bytes == 0);
    assert_false(fixture->exporter.is_garbled);
    assert_int_equal(fixture->exporter.n_ids, 1);
    assert_int_equal(fixture->exporter.ids[0], 1);
    assert_int_equal(count_files(fixture->path), 1); /* what is not ours stays */
}

TEST(past_its_size_the_oldest_go)
{
    struct spool_stats stats;

    fixture->config.max_bytes = 40000;
    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 1000; id++)
        add(fixture->spool, id);
    wait_until_true(stats_of(fixture->spool).in_memory == 0);
    wait_until_true(stats_of(fixture->spool).dropped > 0);
    wait_until_true(on_disk(fixture->spool) + stats_of(fixture->spool).dropped == 1000);
    stats = stats_of(fixture->spool);
    assert_true(stats.waiting_bytes <= 40000);
    assert_true(stats.waiting_bytes > 20000);
    assert_int_equal(count_logged("the spool is full") > 0, true);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).posted == stats.waiting);
    assert_true(has_taken(1000));
    assert_false(has_taken(1));
}

TEST(what_looks_too_old_is_posted_all_the_same)
{
    fixture->config.max_age_ns = 3600 * NS_PER_SEC;
    start();
    add(fixture->spool, 1); /* it ended in 2023 */
    wait_until_true(stats_of(fixture->spool).waiting == 0);
    assert_int_equal(stats_of(fixture->spool).dropped, 0);
    assert_true(has_taken(1));
}

/* Returns how often it could not be posted, when it waits for the next try. */
static uint64_t start_without_exporter(void)
{
    peer_close(fixture->peer);
    fixture->config.clock = &fixture->manual.clock;
    fixture->config.max_age_ns = 30 * 60 * NS_PER_SEC;
    start();
    add(fixture->spool, 1);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, fixture->config.retry_ns);
    wait_until_true(stats_of(fixture->spool).failures > 0);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    return stats_of(fixture->spool).failures;
}

TEST(what_could_not_be_delivered_for_too_long_is_dropped_and_logged)
{
    uint64_t failures = start_without_exporter();

    manual_clock_advance(&fixture->manual, 3600 * NS_PER_SEC);
    wait_until_true(stats_of(fixture->spool).dropped == 1);
    wait_until_true(stats_of(fixture->spool).waiting == 0);
    assert_true(stats_of(fixture->spool).failures > failures);
    assert_int_equal(count_files(fixture->path), 0);
    assert_int_equal(count_logged("too old\" records=1"), 1);
    assert_false(stats_of(fixture->spool).is_retention_paused);
}

TEST(a_clock_that_jumps_ahead_drops_nothing)
{
    uint64_t failures = start_without_exporter();

    manual_clock_set_wall(&fixture->manual, (now_seconds + 31 * 24 * 3600) * NS_PER_SEC);
    manual_clock_advance(&fixture->manual, NS_PER_SEC);
    wait_until_true(stats_of(fixture->spool).failures > failures);
    wait_until_true(count_logged("the clock jumped") == 1);
    wait_until_true(stats_of(fixture->spool).is_retention_paused);
    peer_reopen(fixture->peer);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, NS_PER_SEC);
    wait_until_true(stats_of(fixture->spool).posted == 1);
    assert_int_equal(stats_of(fixture->spool).dropped, 0);
    assert_false(stats_of(fixture->spool).is_retention_paused);
}

TEST(without_a_directory_records_are_posted_from_memory)
{
    fixture->config.directory = test_path("token/spool"); /* below a file */
    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 10; id++)
        add(fixture->spool, id);
    wait_until_true(stats_of(fixture->spool).failures > 2);
    assert_int_equal(stats_of(fixture->spool).in_memory, 10);
    assert_int_equal(stats_of(fixture->spool).waiting, 10);
    assert_int_equal(count_logged("cannot be spooled on disk"), 1);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).posted == 10);
    wait_until_true(stats_of(fixture->spool).waiting == 0);
}

TEST(memory_has_its_bounds_too)
{
    fixture->config.directory = test_path("token/spool");
    peer_close(fixture->peer);
    start();
    for (uint32_t id = 1; id <= 2500; id++)
        add(fixture->spool, id);
    assert_int_equal(stats_of(fixture->spool).in_memory, 2000);
    assert_int_equal(stats_of(fixture->spool).dropped, 500);
    assert_int_equal(stats_of(fixture->spool).records, 2500);
    assert_int_equal(count_logged("waits in memory: more is dropped"), 1);
    peer_reopen(fixture->peer);
    wait_until_true(stats_of(fixture->spool).posted == 2000);
}

TEST(a_directory_that_is_removed_is_made_again)
{
    peer_close(fixture->peer);
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    remove_all("spool");
    add(fixture->spool, 2);
    wait_until_true(stats_of(fixture->spool).in_memory == 0 && on_disk(fixture->spool) == 1);
    assert_int_equal(count_files(fixture->path), 1);
    peer_reopen(fixture->peer);
    wait_until_true(has_taken(2));
}

TEST(a_directory_that_others_may_write_into_is_not_used)
{
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_int_equal(chmod(fixture->path, 0777), 0);
    peer_close(fixture->peer);
    start();
    add(fixture->spool, 1);
    wait_until_true(stats_of(fixture->spool).failures > 0);
    assert_int_equal(stats_of(fixture->spool).in_memory, 1);
    assert_contains(logged().p, "others may write into");
    assert_int_equal(chmod(fixture->path, 0700), 0);
    wait_until_true(stats_of(fixture->spool).in_memory == 0);
    assert_int_equal(on_disk(fixture->spool), 1);
}

TEST(two_agents_do_not_share_a_directory)
{
    struct spool *first;

    peer_close(fixture->peer);
    start();
    first = fixture->spool;
    add(first, 1);
    wait_until_true(on_disk(first) == 1);
    start();
    wait_until_true(count_logged("another agent has it") == 1);
    spool_stop(first, TEST_DEADLINE);
}

/* As when the disk is full: writes are cut short, then refused. */
TEST(when_the_disk_is_full_records_stay_in_memory_until_it_has_room)
{
    struct rlimit limit, small;

    signal(SIGXFSZ, SIG_IGN);
    peer_close(fixture->peer);
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 60; /* part of a record */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    add(fixture->spool, 2);
    add(fixture->spool, 3);
    wait_until_true(stats_of(fixture->spool).failures > 2);
    assert_int_equal(stats_of(fixture->spool).in_memory, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    wait_until_true(stats_of(fixture->spool).in_memory == 0);
    peer_reopen(fixture->peer);
    wait_until_true(has_taken(1) && has_taken(2) && has_taken(3));
    assert_false(fixture->exporter.is_garbled);
    assert_int_equal(stats_of(fixture->spool).dropped, 0);
}

/* --- ends --- */

TEST(at_its_end_it_tries_once_more)
{
    fixture->config.retry_ns = 3600 * NS_PER_SEC; /* the first post would be somewhen */
    fixture->config.max_backoff_ns = 3600 * NS_PER_SEC;
    start();
    for (uint32_t id = 1; id <= 700; id++)
        add(fixture->spool, id);
    stop();
    assert_int_equal(count_taken(), 700);
    assert_int_equal(count_files(fixture->path), 0);
}

static void *stop_it(void *arg)
{
    stop();
    return arg;
}

TEST(an_exporter_that_hangs_does_not_keep_it)
{
    pthread_t thread;

    fixture->config.clock = &fixture->manual.clock;
    peer_hold(fixture->peer, "");
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    manual_clock_advance(&fixture->manual, fixture->config.retry_ns);
    peer_request(fixture->peer, 1);
    assert_int_equal(pthread_create(&thread, NULL, stop_it, NULL), 0);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, TEST_DEADLINE);
    pthread_join(thread, NULL);
    assert_int_equal(peer_held(fixture->peer), 1);
    assert_int_equal(count_files(fixture->path), 1);
}

TEST(a_save_does_not_wait_for_an_exporter_that_hangs)
{
    fixture->config.clock = &fixture->manual.clock;
    peer_hold(fixture->peer, "");
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    manual_clock_advance(&fixture->manual, fixture->config.retry_ns);
    peer_request(fixture->peer, 1);
    add(fixture->spool, 2);
    assert_int_equal(stats_of(fixture->spool).in_memory, 1);
    assert_true(spool_save(fixture->spool, INT64_MAX));
    assert_int_equal(on_disk(fixture->spool), 2);
    assert_int_equal(peer_held(fixture->peer), 1);
}

TEST(a_save_does_not_wait_for_munged_that_hangs)
{
    munge_hangs = true;
    start();
    add(fixture->spool, 1);
    wait_until_true(munge_calls == 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    for (uint32_t id = 2; id <= 3; id++) {
        add(fixture->spool, id);
        assert_int_equal(stats_of(fixture->spool).in_memory, 1);
        assert_true(spool_save(fixture->spool, INT64_MAX));
        assert_int_equal(on_disk(fixture->spool), id);
    }
    assert_int_equal(munge_calls, 1);
    munge_hangs = false;
    wait_until_true(stats_of(fixture->spool).posted == 3);
    assert_int_equal(stats_of(fixture->spool).failures, 0);
}

/* The directory cannot be used, and the record is in a post that the exporter does not answer. */
static void post_from_memory(void)
{
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_int_equal(chmod(fixture->path, 0777), 0);
    peer_hold(fixture->peer, "");
    start();
    add(fixture->spool, 1);
    peer_request(fixture->peer, 1);
    assert_int_equal(stats_of(fixture->spool).in_memory, 1);
}

TEST(a_save_that_fails_leaves_the_post_alone)
{
    post_from_memory();
    assert_false(spool_save(fixture->spool, INT64_MAX));
    peer_release(fixture->peer);
    stop();
    assert_true(has_taken(1));
    assert_int_equal(count_logged("is lost"), 0);
}

TEST(a_record_in_memory_that_is_being_posted_can_be_saved)
{
    post_from_memory();
    assert_int_equal(chmod(fixture->path, 0700), 0);
    assert_true(spool_save(fixture->spool, INT64_MAX));
    assert_int_equal(on_disk(fixture->spool), 1);
    add(fixture->spool, 2);
    peer_release(fixture->peer);
    wait_until_true(has_taken(2));
    wait_until_true(stats_of(fixture->spool).waiting == 0);
}

TEST(a_save_that_drops_the_file_being_posted_loses_no_other)
{
    uint64_t n_left;

    fixture->config.max_bytes = 40000;
    peer_hold(fixture->peer, "");
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    peer_request(fixture->peer, 1);
    for (uint32_t id = 2; id <= 1000; id++)
        add(fixture->spool, id);
    assert_true(spool_save(fixture->spool, INT64_MAX));
    n_left = on_disk(fixture->spool);
    assert_int_equal(n_left + stats_of(fixture->spool).dropped, 1000);
    peer_release(fixture->peer);
    wait_until_true(stats_of(fixture->spool).waiting == 0);
    assert_int_equal(stats_of(fixture->spool).posted, n_left + 1);
}

TEST(a_save_into_a_directory_that_is_gone_makes_it_again)
{
    peer_hold(fixture->peer, "");
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    peer_request(fixture->peer, 1);
    unlink(test_path("spool/0000000000000001.spool"));
    assert_int_equal(rmdir(fixture->path), 0);
    add(fixture->spool, 2);
    assert_false(spool_save(fixture->spool, INT64_MAX));
    peer_release(fixture->peer);
    wait_until_true(has_taken(1) && has_taken(2));
    wait_until_true(stats_of(fixture->spool).waiting == 0);
}

TEST(a_save_ends_although_the_disk_takes_nothing)
{
    peer_close(fixture->peer);
    start();
    add(fixture->spool, 1);
    wait_until_true(on_disk(fixture->spool) == 1);
    assert_int_equal(chmod(fixture->path, 0777), 0); /* which it refuses to use */
    fixture->spool = spool_stop(fixture->spool, 0);
    start();
    add(fixture->spool, 2);
    assert_false(spool_save(fixture->spool, INT64_MAX));
    assert_int_equal(chmod(fixture->path, 0700), 0);
    assert_true(spool_save(fixture->spool, INT64_MAX));
    assert_true(spool_save(NULL, 0));
}

/* The child: tells each id that is safe. */
static int hand_in_until_killed(char **argv)
{
    const struct spool_config config = {
        .directory = argv[1],
        .url = argv[2],
        .munge_socket = "/run/munge.test",
        .token_file = argv[3],
        .cluster = "one",
        .timeout_ns = TEST_DEADLINE,
        .retry_ns = NS_PER_MS,
        .max_backoff_ns = 5 * NS_PER_MS,
        .max_bytes = 16 << 20,
        .max_age_ns = INT64_C(36500) * 24 * 3600 * NS_PER_SEC,
        .clock = &clock_real,
        .log = log_new(STDERR_FILENO, LOG_ERROR + 1, &clock_real),
    };
    struct spool *spool;
    struct err err;
    uint64_t id;

    if (!num_get_u64(str_of(argv[4]), &id) || spool_start(&config, &spool, &err) < 0)
        return 1;
    for (;; id++) {
        uint32_t told = (uint32_t)id;

        add(spool, told);
        while (stats_of(spool).in_memory)
            sched_yield();
        if (write(STDOUT_FILENO, &told, sizeof(told)) != sizeof(told))
            return 1;
    }
}

static pid_t start_child(uint32_t first_id, int *ret_fd)
{
    char id[20];
    char *argv[] = { (char *)"/proc/self/exe",
                     (char *)"--hand-in",
                     (char *)fixture->path,
                     fixture->url,
                     (char *)fixture->token_file,
                     id,
                     NULL };
    posix_spawn_file_actions_t actions;
    int fds[2];
    pid_t pid;

    snprintf(id, sizeof(id), "%u", first_id);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    /* It gets no further ahead of its reader than MOST_IDS has room for. */
    assert_true(fcntl(fds[0], F_SETPIPE_SZ, 4096) >= 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

TEST(whenever_it_is_killed_nothing_that_was_on_disk_is_lost)
{
    uint32_t told[MOST_IDS], id;
    size_t n_told = 0;

    for (uint32_t round = 0; round < 12; round++) {
        size_t until = n_told + 1 + round * 7 % 23;
        int fd, status;
        pid_t pid = start_child(1 + round * 100000, &fd);

        /* In turn the exporter is there, goes away and comes back. */
        if (round % 3 == 1)
            peer_close(fixture->peer);
        while (n_told < until && read(fd, &id, sizeof(id)) == sizeof(id))
            told[n_told++] = id;
        kill(pid, SIGKILL);
        while (n_told < MOST_IDS && read(fd, &id, sizeof(id)) == sizeof(id))
            told[n_told++] = id;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        close(fd);
        if (round % 3 == 1)
            peer_reopen(fixture->peer);
    }
    start();
    wait_until_true(stats_of(fixture->spool).waiting_bytes > 0 || count_files(fixture->path) == 0);
    wait_until_true(count_files(fixture->path) == 0);
    assert_true(n_told >= 12);
    for (size_t i = 0; i < n_told; i++)
        if (!has_taken(told[i]))
            fail_msg("record %u is lost", told[i]);
    assert_false(fixture->exporter.is_garbled);
}

void test_child_main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--hand-in") == 0)
        _exit(hand_in_until_killed(argv + 1));
}
