/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/trace: what jobs post about themselves. */
#include "test.h"

#include "manual_clock.h"

#include "base/arena.h"
#include "base/thread.h"
#include "source/trace.h"

#include <math.h>

enum { ANNA = 1001, BERT = 1002, CARL = 1003 };

static const struct trace_config usual = {
    .life_ns = 10 * NS_PER_SEC,
    .max_senders = 1000,
    .max_senders_per_user = 500,
    .max_senders_per_job = 200,
    .max_posts_per_second = 100000,
    .max_posts_per_second_per_user = 100000,
};

static struct manual_clock manual;
static struct trace *trace;
static struct section *jobs, *shown;
static struct err err;

static void start(const struct trace_config *config)
{
    struct trace_config with_clock = *config;

    with_clock.clock = &manual.clock;
    trace = trace_new(&with_clock);
}

static void set_up(void)
{
    manual_clock_init(&manual, 1700000000 * NS_PER_SEC, 0);
}

static void tear_down(void)
{
    shown = section_unref(shown);
    jobs = section_unref(jobs);
    trace = trace_free(trace);
    manual_clock_destroy(&manual);
}

FIXTURE(set_up, tear_down)

/* A queue of these jobs; user may be NULL. */
struct queued {
    uint32_t id, uid;
    const char *user;
    uint32_t cpus;
    uint64_t memory_bytes;
    enum job_base state;
};

static void set_queue(const struct queued *queued, size_t n)
{
    section_unref(jobs);
    jobs = section_new(KIND_JOBS);
    jobs->jobs.job = ARENA_ARRAY(&jobs->arena, struct job, n);
    for (; jobs->jobs.n < n; queued++) {
        jobs->jobs.job[jobs->jobs.n++] = (struct job){
            .id = queued->id,
            .user_id = queued->uid,
            .user = symbols_put(&jobs->symbols, str_of(queued->user)),
            .cpus = queued->cpus,
            .memory_bytes = queued->memory_bytes,
            .state = { (uint8_t)queued->state, 0 },
            .node_count = MODEL_UNKNOWN_U32,
        };
    }
}

/* The first of them has three nodes. */
static void set_usual_queue(void)
{
    static const struct queued queue[] = {
        { 7, ANNA, "anna", 4, 8192, JOB_RUNNING },
        { 9, BERT, "bert", 2, 4096, JOB_RUNNING },
        { 8, CARL, "carl", 1, 1024, JOB_RUNNING },
    };

    set_queue(queue, COUNT(queue));
    jobs->jobs.job[0].node_count = 3;
    jobs->jobs.job[0].nodes = symbols_put(&jobs->symbols, STR("n[1-3]"));
}

static struct trace_identity uid(uint32_t number)
{
    return (struct trace_identity){ .proof = TRACE_UID, .uid = number };
}

static struct trace_identity name(const char *text)
{
    return (struct trace_identity){ .proof = TRACE_NAME, .name = str_of(text) };
}

static const struct trace_identity anybody = { .proof = TRACE_ANYBODY };

static int post(struct trace_identity who, const char *body)
{
    return trace_post(trace, str_of(body), &who, jobs, &err);
}

/* From a process of its own. */
static int post_pid(struct trace_identity who, uint32_t job, unsigned pid)
{
    char body[200];

    snprintf(body, sizeof(body), "{\"job_id\": %u, \"pid\": %u, \"cpus\": 1}", job, pid);
    return post(who, body);
}

static void look(void)
{
    section_unref(shown);
    shown = trace_section(trace, jobs);
    assert_int_equal(shown->kind, KIND_TRACES);
}

/* The job as it is shown now, or NULL. */
static const struct traced_job *find(uint32_t id)
{
    look();
    for (size_t i = 0; i < shown->traces.n; i++)
        if (shown->traces.job[i].id == id)
            return &shown->traces.job[i];
    return NULL;
}

static double cpus_of(uint32_t id)
{
    const struct traced_job *job = find(id);

    return job ? job->cpu_percent : -1;
}

static void go_on(double seconds)
{
    manual_clock_advance(&manual, (int64_t)(seconds * NS_PER_SEC));
}

TEST(an_owners_post_is_shown_beside_what_slurm_allocated)
{
    const struct traced_job *job;

    start(&usual);
    set_usual_queue();
    assert_int_equal(post(uid(ANNA), "{\"job_id\": 7, \"pid\": 35642, \"cpus\": 150.5, "
                                     "\"write_bytes\": 10, \"read_bytes\": 20.0, \"threads\": 3, "
                                     "\"mem\": 1032192, \"username\": \"whoever\", "
                                     "\"hostname\": \"node1\"}"),
                     0);
    job = find(7);
    assert_non_null(job);
    assert_int_equal(shown->traces.n, 1);
    assert_str(section_text(shown, job->user), "anna");
    assert_true(job->cpu_percent == 150.5);
    assert_true(job->memory_bytes == 1032192);
    assert_true(job->read_bytes == 20);
    assert_true(job->write_bytes == 10);
    assert_true(job->threads == 3);
    assert_int_equal(job->allocated_cpus, 4);
    assert_int_equal(job->allocated_memory_bytes, 8192);
    assert_int_equal(job->n_hosts, 1);
    assert_str(section_text(shown, shown->traces.host[job->first_host].name), "node1");
    assert_int_equal(shown->traces.host[job->first_host].pid, 35642);
    assert_int_equal(shown->wall_ns, 1700000000 * NS_PER_SEC);
}

TEST(posts_of_a_jobs_hosts_steps_tasks_and_processes_are_added_up)
{
    static const char *const bodies[] = {
        "{\"job_id\":7,\"pid\":50,\"cpus\":1,\"hostname\":\"b\"}",
        "{\"job_id\":7,\"pid\":50,\"cpus\":2,\"hostname\":\"a\"}",
        "{\"job_id\":7,\"pid\":40,\"cpus\":4,\"hostname\":\"b\"}",
        "{\"job_id\":7,\"pid\":50,\"cpus\":8,\"hostname\":\"b\",\"step\":0}",
        "{\"job_id\":7,\"pid\":50,\"cpus\":16,\"hostname\":\"b\",\"step\":0,\"task\":1}",
        "{\"job_id\":7,\"cpus\":32,\"hostname\":\"c\"}",
    };
    const struct traced_job *job;

    start(&usual);
    set_usual_queue();
    for (size_t i = 0; i < COUNT(bodies); i++)
        assert_int_equal(post(uid(ANNA), bodies[i]), 0);
    job = find(7);
    assert_true(job->cpu_percent == 63);
    assert_int_equal(job->allocated_cpus, 4);
    /* by name, with the lowest process; none that did not tell its process */
    assert_int_equal(job->n_hosts, 2);
    assert_str(section_text(shown, shown->traces.host[0].name), "a");
    assert_int_equal(shown->traces.host[0].pid, 50);
    assert_str(section_text(shown, shown->traces.host[1].name), "b");
    assert_int_equal(shown->traces.host[1].pid, 40);
}

static int post_host(uint32_t user, uint32_t job, const char *host)
{
    char body[200];

    snprintf(body, sizeof(body), "{\"job_id\":%u,\"pid\":5,\"cpus\":1,\"hostname\":\"%s\"}", job,
             host);
    return post(uid(user), body);
}

static void assert_hosts(uint32_t id, const char *const *names, uint32_t n)
{
    const struct traced_job *job = find(id);

    assert_int_equal(job->n_hosts, n);
    for (uint32_t i = 0; i < n; i++)
        assert_str(section_text(shown, shown->traces.host[job->first_host + i].name), names[i]);
}

TEST(a_job_shows_no_more_hosts_than_it_has_nodes_and_these_first)
{
    static const char *const early[] = { "a", "b", "c" }, *const nodes[] = { "a", "n2.x", "n3" };

    start(&usual);
    set_usual_queue();
    for (int i = 0; i < 26; i++) {
        char later[] = { (char)('d' + i % 23), '0', '\0' };

        if (i == 3)
            go_on(1);
        assert_int_equal(post_host(ANNA, 7, i < 3 ? early[2 - i] : later), 0);
        assert_int_equal(post_host(CARL, 8, i < 3 ? early[2 - i] : later), 0);
    }
    assert_hosts(7, early, 3);
    assert_true(cpus_of(7) == 26);
    post_host(ANNA, 7, "n3");
    post_host(ANNA, 7, "n2.x");
    post_host(ANNA, 7, "n4");
    assert_hosts(7, nodes, 3);
    assert_true(cpus_of(7) == 29);
    assert_hosts(8, early, 1);
    assert_true(cpus_of(8) == 26);
}

TEST(hosts_that_are_shown_do_not_make_way_for_new_names)
{
    static const char *const first[] = { "x" };
    char host[20];

    start(&usual);
    set_usual_queue();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(post_host(CARL, 8, "x"), 0);
        go_on(1);
        snprintf(host, sizeof(host), "a%d", i);
        assert_int_equal(post_host(CARL, 8, host), 0);
        assert_hosts(8, first, 1);
    }
}

TEST(a_process_that_posts_again_is_not_added_to_itself)
{
    start(&usual);
    set_usual_queue();
    post(uid(ANNA), "{\"job_id\":7,\"pid\":5,\"cpus\":100,\"mem\":5}");
    post(uid(ANNA), "{\"job_id\":7,\"pid\":5,\"cpus\":30}");
    assert_true(find(7)->cpu_percent == 30);
    assert_true(isnan(find(7)->memory_bytes));
}

TEST(what_is_not_told_is_unknown_and_what_is_unknown_is_ignored)
{
    const struct traced_job *job;

    start(&usual);
    set_usual_queue();
    assert_int_equal(post(uid(ANNA), "{\"io_wait\":{\"job_id\":[8,{\"cpus\":\"x\"}]},\"mem\":null,"
                                     "\"job_id\":7,\"threads\":-0.0,\"\":[],\"Cpus\":-1}"),
                     0);
    job = find(7);
    assert_true(isnan(job->cpu_percent));
    assert_true(isnan(job->memory_bytes));
    assert_true(isnan(job->read_bytes));
    assert_true(job->threads == 0 && !signbit(job->threads));
    assert_int_equal(job->n_hosts, 0);
}

TEST(a_wrong_member_is_refused_by_its_name)
{
    static const struct {
        const char *body, *sentence;
    } wrong[] = {
        { "", "no JSON" },
        { "nonsense", "no JSON" },
        { "{\"job_id\":7", "no JSON" },
        { "{\"job_id\":7}}", "no JSON" },
        { "{\"job_id\":7} {\"job_id\":7}", "no JSON" },
        { "[7]", "JSON object" },
        { "7", "JSON object" },
        { "{}", "job_id is missing" },
        { "{\"job_id\":null}", "job_id is missing" },
        { "{\"job_id\":0}", "job_id must be a whole number from 1" },
        { "{\"job_id\":-7}", "job_id" },
        { "{\"job_id\":7.5}", "job_id" },
        { "{\"job_id\":4294967294}", "job_id" },
        { "{\"job_id\":\"7\"}", "not \"7\"" },
        { "{\"job_id\":[7]}", "job_id" },
        { "{\"job_id\":{}}", "job_id" },
        { "{\"job_id\":true}", "job_id" },
        { "{\"job_id\":7,\"pid\":0}", "pid" },
        { "{\"job_id\":7,\"pid\":-3}", "pid" },
        { "{\"job_id\":7,\"pid\":2147483648}", "pid" },
        { "{\"job_id\":7,\"step\":-1}", "step" },
        { "{\"job_id\":7,\"task\":\"0\"}", "task" },
        { "{\"job_id\":7,\"period\":-1}", "period" },
        { "{\"job_id\":7,\"cpus\":NaN}", "cpus" },
        { "{\"job_id\":7,\"cpus\":-0.1}", "cpus" },
        { "{\"job_id\":7,\"mem\":Infinity}", "mem" },
        { "{\"job_id\":7,\"mem\":1e19}", "mem" },
        { "{\"job_id\":7,\"read_bytes\":1e999}", "read_bytes" },
        { "{\"job_id\":7,\"write_bytes\":\"much\"}", "write_bytes" },
        { "{\"job_id\":7,\"threads\":false}", "threads" },
        { "{\"job_id\":7,\"username\":1}", "username" },
        { "{\"job_id\":7,\"hostname\":1}", "hostname" },
        { "{\"job_id\":7,\"hostname\":\"a\\nb\"}", "hostname" },
        { "{\"job_id\":7,\"hostname\":\"a\\u0000b\"}", "hostname" },
        { "{\"job_id\":7,\"hostname\":\"a\\u0085b\"}", "hostname" },
        { "{\"job_id\":7,\"hostname\":\"\xff\"}", "hostname" },
    };
    struct trace_stats stats;

    start(&usual);
    set_usual_queue();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (post(uid(ANNA), wrong[i].body) != -EBADMSG)
            fail_msg("%s was taken", wrong[i].body);
        assert_contains(err.text, wrong[i].sentence);
    }
    assert_null(find(7));
    trace_stats(trace, &stats);
    assert_int_equal(stats.refused[TRACE_GARBLED], COUNT(wrong));
    assert_int_equal(stats.posts, 0);
    assert_int_equal(stats.senders, 0);
}

TEST(a_long_host_name_is_cut_between_characters)
{
    char body[1000], host[601] = "";

    start(&usual);
    set_usual_queue();
    for (size_t i = 0; i < 300; i++)
        memcpy(host + 2 * i, "ä", 2);
    snprintf(body, sizeof(body), "{\"job_id\":7,\"pid\":1,\"hostname\":\"%s\"}", host);
    assert_int_equal(post(uid(ANNA), body), 0);
    look();
    assert_int_equal(section_text(shown, shown->traces.host[0].name).n, 254);
}

TEST(a_post_that_is_too_long_is_refused_unread)
{
    char *body = heap_alloc(TRACE_BODY_MAX + 2);

    start(&usual);
    set_usual_queue();
    memset(body, ' ', TRACE_BODY_MAX + 1);
    memcpy(body, "{\"job_id\":7}", 12);
    assert_int_equal(post(uid(ANNA), body), -EFBIG);
    body[TRACE_BODY_MAX] = '\0';
    assert_int_equal(post(uid(ANNA), body), 0);
    free(body);
}

TEST(a_post_is_kept_until_its_job_is_in_the_queue)
{
    static const struct queued queue[] = { { 70, ANNA, "anna", 1, 1, JOB_PENDING } };
    struct trace_stats stats;

    start(&usual);
    assert_int_equal(post_pid(uid(ANNA), 70, 1), 1);
    assert_null(find(70));
    set_usual_queue();
    assert_int_equal(post_pid(uid(ANNA), 70, 1), 1);
    assert_null(find(70));
    trace_stats(trace, &stats);
    assert_int_equal(stats.senders, 1);
    set_queue(queue, COUNT(queue));
    assert_non_null(find(70));
    assert_int_equal(post_pid(uid(ANNA), 70, 1), 0);
    set_usual_queue();
    assert_null(find(70));
}

TEST(a_stranger_cannot_post_for_a_job_not_even_before_it_is_known)
{
    start(&usual);
    assert_int_equal(post_pid(uid(BERT), 7, 1), 1);
    set_usual_queue();
    assert_null(find(7));
    assert_int_equal(post_pid(uid(BERT), 7, 1), -EACCES);
    assert_contains(err.text, "job 7 is not yours");
    assert_int_equal(post_pid(uid(ANNA), 7, 2), 0);
    assert_true(find(7)->cpu_percent == 1);
}

TEST(a_stranger_cannot_use_up_the_senders_of_a_job)
{
    start(&usual);
    for (unsigned pid = 1; pid <= usual.max_senders_per_job; pid++)
        assert_int_equal(post_pid(uid(BERT), 7, pid), 1);
    assert_int_equal(post_pid(uid(BERT), 7, 9999), -ENOSPC);
    set_usual_queue();
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 0);
    assert_true(cpus_of(7) == 1);
}

TEST(root_and_whoever_need_not_prove_it_may_post_for_every_job)
{
    start(&usual);
    set_usual_queue();
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 0);
    assert_int_equal(post_pid(uid(0), 7, 1), 0);
    assert_int_equal(post_pid(anybody, 7, 1), 0);
    assert_true(cpus_of(7) == 3);
    assert_int_equal(shown->traces.n, 1);
    assert_str(section_text(shown, shown->traces.job[0].user), "anna");
}

TEST(a_proved_name_must_be_the_owners)
{
    char long_name[2000];

    start(&usual);
    set_usual_queue();
    memset(long_name, 'a', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    assert_int_equal(post_pid(name("anna"), 7, 1), 0);
    assert_int_equal(post_pid(name("ann"), 7, 1), -EACCES);
    assert_int_equal(post_pid(name("root"), 7, 1), -EACCES);
    assert_int_equal(post_pid(name(""), 7, 1), -EACCES);
    assert_int_equal(post_pid(name(long_name), 7, 1), -EACCES);
    assert_true(cpus_of(7) == 1);
}

TEST(nobodys_name_is_not_the_name_of_a_job_whose_owner_is_unknown)
{
    static const struct queued queue[] = { { 7, MODEL_UNKNOWN_U32, "", 4, 1, JOB_RUNNING } };

    start(&usual);
    set_queue(queue, COUNT(queue));
    assert_int_equal(post_pid(name(""), 7, 1), 1);
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 1);
    assert_null(find(7));
}

static bool find_user(void *ctx, uid_t number, char to[USERS_NAME_MAX])
{
    (void)ctx;
    if (number != ANNA && number != BERT)
        return false;
    snprintf(to, USERS_NAME_MAX, "%s", number == ANNA ? "anna" : "bert");
    return true;
}

TEST(where_slurm_tells_no_numbers_the_owner_is_known_by_name)
{
    static const struct queued queue[] = {
        { 7, MODEL_UNKNOWN_U32, "anna", 4, 1, JOB_RUNNING },
        { 8, MODEL_UNKNOWN_U32, "1003", 4, 1, JOB_RUNNING },
    };
    const struct users_lookup lookup = { .user = find_user };
    struct users *users = users_new(&lookup, &clock_real);
    struct trace_config config = usual;

    config.users = users;
    start(&config);
    set_queue(queue, COUNT(queue));
    /* the directory has not answered yet, and nobody waits for it */
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 1);
    post_pid(uid(BERT), 7, 1);
    assert_true(users_settle(users, clock_mono(&clock_real) + TEST_DEADLINE));
    assert_true(cpus_of(7) == 1);
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 0);
    assert_int_equal(post_pid(uid(BERT), 7, 1), -EACCES);
    /* one without a name is called by his number, as squeue does */
    assert_int_equal(post_pid(uid(CARL), 8, 1), 0);
    trace = trace_free(trace);
    users_free(users);
}

TEST(a_post_lives_for_the_rate)
{
    start(&usual);
    set_usual_queue();
    post_pid(uid(ANNA), 7, 1);
    go_on(9.9);
    assert_non_null(find(7));
    go_on(0.2);
    assert_null(find(7));
}

TEST(or_for_two_and_a_half_periods_if_that_is_longer)
{
    start(&usual);
    set_usual_queue();
    post(uid(ANNA), "{\"job_id\":7,\"period\":30}");
    post(uid(BERT), "{\"job_id\":9,\"period\":0.5}");
    go_on(11);
    assert_null(find(9));
    go_on(63.9);
    assert_non_null(find(7));
    go_on(0.2);
    assert_null(find(7));
}

TEST(a_period_that_is_not_told_is_measured_also_when_it_is_longer_than_the_rate)
{
    start(&usual);
    set_usual_queue();
    post_pid(uid(ANNA), 7, 1);
    go_on(30);
    assert_null(find(7));
    post_pid(uid(ANNA), 7, 1);
    for (int i = 0; i < 5; i++) {
        go_on(29.5);
        assert_non_null(find(7));
        go_on(0.5);
        post_pid(uid(ANNA), 7, 1);
    }
    go_on(74.9);
    assert_non_null(find(7));
    go_on(0.2);
    assert_null(find(7));
}

TEST(a_period_of_0_ends_what_was_measured)
{
    start(&usual);
    set_usual_queue();
    post_pid(uid(ANNA), 7, 1);
    go_on(30);
    post_pid(uid(ANNA), 7, 1);
    go_on(30);
    assert_int_equal(post(uid(ANNA), "{\"job_id\":7,\"pid\":1,\"period\":0}"), 0);
    go_on(9.9);
    assert_non_null(find(7));
    go_on(0.2);
    assert_null(find(7));
}

TEST(no_period_is_longer_than_an_hour)
{
    start(&usual);
    set_usual_queue();
    post(uid(ANNA), "{\"job_id\":7,\"period\":1e18}");
    go_on(2.5 * 3600 - 1);
    assert_non_null(find(7));
    go_on(2);
    assert_null(find(7));
}

TEST(the_longest_rate_is_not_too_long)
{
    struct trace_config config = usual;

    config.life_ns = INT64_MAX;
    start(&config);
    set_usual_queue();
    go_on(3600);
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 0);
    go_on(30 * 86400);
    assert_non_null(find(7));
}

TEST(a_users_senders_have_a_limit_and_root_has_none)
{
    struct trace_config config = usual;

    config.max_senders_per_user = 3;
    start(&config);
    set_usual_queue();
    for (unsigned pid = 1; pid <= 3; pid++)
        assert_int_equal(post_pid(uid(ANNA), 7, pid), 0);
    assert_int_equal(post_pid(uid(ANNA), 77, 4), -ENOSPC);
    assert_int_equal(post_pid(uid(ANNA), 7, 3), 0);
    assert_int_equal(post_pid(uid(BERT), 9, 1), 0);
    for (unsigned pid = 1; pid <= 10; pid++)
        assert_int_equal(post_pid(uid(0), 7, pid), 0);
    go_on(11);
    assert_int_equal(post_pid(uid(ANNA), 7, 4), 0);
}

TEST(when_all_is_full_the_stale_make_room_first)
{
    struct trace_config config = usual;
    struct trace_stats stats;

    config.max_senders = 4;
    start(&config);
    set_usual_queue();
    post_pid(uid(BERT), 9, 1);
    go_on(11);
    for (unsigned pid = 1; pid <= 3; pid++)
        assert_int_equal(post_pid(uid(ANNA), 7, pid), 0);
    assert_int_equal(post_pid(uid(CARL), 8, 1), 0);
    trace_stats(trace, &stats);
    assert_int_equal(stats.displaced, 0);
    assert_int_equal(stats.senders, 4);
    assert_true(cpus_of(7) == 3);
}

TEST(then_the_heaviest_users_longest_silent_sender)
{
    struct trace_config config = usual;
    struct trace_stats stats;

    config.max_senders = 6;
    start(&config);
    set_usual_queue();
    for (unsigned pid = 1; pid <= 6; pid++)
        post(uid(ANNA), (const char *[]){ "{\"job_id\":7,\"pid\":1,\"cpus\":1}",
                                          "{\"job_id\":7,\"pid\":2,\"cpus\":10}",
                                          "{\"job_id\":7,\"pid\":3,\"cpus\":100}",
                                          "{\"job_id\":7,\"pid\":4,\"cpus\":1000}",
                                          "{\"job_id\":7,\"pid\":5,\"cpus\":10000}",
                                          "{\"job_id\":7,\"pid\":6,\"cpus\":100000}" }[pid - 1]);
    go_on(1);
    post(uid(ANNA), "{\"job_id\":7,\"pid\":1,\"cpus\":1}");
    /* who has most can't have more */
    assert_int_equal(post_pid(uid(ANNA), 7, 7), -ENOSPC);
    /* but who has little gets his share, and no more than that */
    assert_int_equal(post_pid(uid(BERT), 9, 1), 0);
    assert_true(cpus_of(7) == 111101);
    assert_int_equal(post_pid(uid(BERT), 9, 2), 0);
    assert_true(cpus_of(7) == 111001);
    assert_int_equal(post_pid(uid(BERT), 9, 3), 0);
    assert_int_equal(post_pid(uid(BERT), 9, 4), -ENOSPC);
    assert_int_equal(post_pid(uid(CARL), 8, 1), 0);
    assert_int_equal(post_pid(uid(ANNA), 7, 2), -ENOSPC);
    assert_true(cpus_of(8) == 1);
    trace_stats(trace, &stats);
    assert_int_equal(stats.displaced, 4);
    assert_int_equal(stats.senders, 6);
    assert_int_equal(stats.refused[TRACE_TOO_MANY], 3);
}

TEST(lower_limits_hold_at_once)
{
    struct trace_config config = usual;
    struct trace_stats stats;

    start(&usual);
    set_usual_queue();
    for (unsigned pid = 1; pid <= 100; pid++)
        post_pid(uid(ANNA), 7, pid);
    post_pid(uid(BERT), 9, 1);
    config.max_senders = 2;
    config.clock = &manual.clock;
    trace_tune(trace, &config);
    trace_stats(trace, &stats);
    assert_int_equal(stats.senders, 2);
    assert_true(cpus_of(7) == 1);
    assert_true(cpus_of(9) == 1);
    config.max_senders = 0;
    trace_tune(trace, &config);
    assert_int_equal(post_pid(uid(BERT), 9, 1), -ENOSPC);
}

static int post_many(uint32_t number, uint32_t job, unsigned most)
{
    unsigned taken = 0;

    while (taken < most && post_pid(uid(number), job, 1) == 0)
        taken++;
    return (int)taken;
}

TEST(a_user_posts_at_his_rate_and_all_at_theirs)
{
    struct trace_config config = usual;
    struct trace_stats stats;

    config.max_posts_per_second_per_user = 2;
    config.max_posts_per_second = 3;
    start(&config);
    set_usual_queue();
    assert_int_equal(post_many(ANNA, 7, 100), 20);
    assert_int_equal(post(uid(ANNA), "nonsense"), -EBUSY);
    assert_int_equal(post_many(BERT, 9, 100), 10);
    assert_int_equal(post_pid(uid(0), 7, 1), -EBUSY);
    go_on(1);
    assert_int_equal(post_many(ANNA, 7, 100), 2);
    assert_int_equal(post_pid(uid(0), 7, 1), 0);
    assert_int_equal(post_pid(uid(0), 7, 1), -EBUSY);
    /* nonsense counts too, though nothing is kept of it */
    go_on(100);
    for (int i = 0; i < 20; i++)
        assert_int_equal(post(uid(CARL), "nonsense"), -EBADMSG);
    assert_int_equal(post(uid(CARL), "nonsense"), -EBUSY);
    trace_stats(trace, &stats);
    assert_int_equal(stats.refused[TRACE_TOO_OFTEN], 7);
}

TEST(a_post_that_was_admitted_counts_once)
{
    struct trace_config config = usual;
    struct trace_identity who = uid(0);
    struct trace_stats stats;

    config.max_posts_per_second = 1;
    start(&config);
    set_usual_queue();
    who.is_admitted = true;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(trace_admit(trace, &err), 0);
        assert_int_equal(post_pid(who, 7, 1), 0);
    }
    assert_int_equal(trace_admit(trace, &err), -EBUSY);
    assert_contains(err.text, "try again in a second");
    assert_int_equal(post_pid(uid(0), 7, 1), -EBUSY);
    config.max_posts_per_second = 5;
    trace_tune(trace, &config);
    go_on(1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(trace_admit(trace, &err), 0);
    assert_int_equal(trace_admit(trace, &err), -EBUSY);
    trace_stats(trace, &stats);
    assert_int_equal(stats.posts, 10);
    assert_int_equal(stats.refused[TRACE_TOO_OFTEN], 3);
}

TEST(an_id_that_many_waiting_tasks_share_counts_once)
{
    static const struct queued queue[] = {
        { 7, ANNA, "anna", 2, 10, JOB_PENDING },
        { 7, ANNA, "anna", 4, 20, JOB_RUNNING },
        { 7, ANNA, "anna", 2, 10, JOB_PENDING },
    };

    start(&usual);
    set_queue(queue, COUNT(queue));
    assert_int_equal(post_pid(uid(ANNA), 7, 1), 0);
    assert_int_equal(find(7)->allocated_cpus, 4);
    assert_int_equal(shown->traces.n, 1);
}

TEST(jobs_come_in_the_order_of_their_ids)
{
    start(&usual);
    set_usual_queue();
    post_pid(uid(BERT), 9, 1);
    post_pid(uid(ANNA), 7, 1);
    post_pid(uid(CARL), 8, 1);
    look();
    assert_int_equal(shown->traces.n, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(shown->traces.job[i].id, 7 + i);
}

TEST(nothing_is_held_of_a_queue_once_nothing_is_traced)
{
    start(&usual);
    set_usual_queue();
    post_pid(uid(ANNA), 7, 1);
    look();
    assert_int_equal(atomic_load(&jobs->refs), 2);
    go_on(11);
    look();
    assert_int_equal(atomic_load(&jobs->refs), 1);
}

/* Thousands of senders that come and go: what was kept before is still found. */
TEST(many_senders_are_all_found_again)
{
    enum { MANY = 3000 };
    struct trace_config config = usual;
    struct trace_stats stats;

    config.max_senders = config.max_senders_per_user = config.max_senders_per_job = MANY;
    start(&config);
    set_usual_queue();
    for (int round = 0; round < 3; round++) {
        for (unsigned pid = 1; pid <= MANY; pid++)
            assert_int_equal(post_pid(uid(ANNA), 7, (unsigned)round / 2 * MANY + pid), 0);
        assert_true(cpus_of(7) == MANY);
        trace_stats(trace, &stats);
        assert_int_equal(stats.senders, MANY);
        go_on(round == 1 ? 26 : 5);
    }
    go_on(3 * 3600);
    assert_null(find(7));
}

enum { THREADS = 4, POSTS_EACH = 500 };

static void *post_from_a_thread(void *arg)
{
    uint32_t number = *(uint32_t *)arg;
    struct trace_identity who = uid(number);
    char body[100];

    for (unsigned i = 0; i < POSTS_EACH; i++) {
        struct trace_stats stats;

        snprintf(body, sizeof(body), "{\"job_id\":%u,\"pid\":%u,\"cpus\":1}", number % 2 ? 7 : 9,
                 1 + i % 100);
        who.is_admitted = i % 2 && trace_admit(trace, NULL) == 0;
        trace_post(trace, str_of(body), &who, jobs, NULL);
        trace_stats(trace, &stats);
        if (i % 50 == 0)
            section_unref(trace_section(trace, jobs));
    }
    return NULL;
}

TEST(threads_may_post_and_look_at_once)
{
    uint32_t numbers[THREADS] = { ANNA, BERT, 0, CARL };
    pthread_t threads[THREADS];
    struct trace_stats stats;

    start(&usual);
    set_usual_queue();
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(thread_start(&threads[i], "poster", post_from_a_thread, &numbers[i], NULL),
                         0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    trace_stats(trace, &stats);
    assert_int_equal(stats.posts, (THREADS - 1) * POSTS_EACH);
    assert_int_equal(stats.refused[TRACE_DENIED], POSTS_EACH);
    assert_int_equal(stats.senders, (THREADS - 1) * 100);
    assert_true(cpus_of(7) == 100);
    assert_true(cpus_of(9) == 200);
}
