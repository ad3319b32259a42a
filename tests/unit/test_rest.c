/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A slurmrestd in this process that says what the test has put up, and whose faults can be chosen.
 */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "files.h"
#include "http_peer.h"
#include "manual_clock.h"
#include "source/source.h"

#include <pthread.h>
#include <sys/stat.h>

enum { PAGES_MAX = 40, NOW = 1794796010 };

/* {"exp":1794832008,"iat":1794796008,"sun":"root"} and {"exp":1794796109,"iat":1794796009,
 * "sun":"alice"} */
#define ROOT_TOKEN  "h.eyJleHAiOjE3OTQ4MzIwMDgsImlhdCI6MTc5NDc5NjAwOCwic3VuIjoicm9vdCJ9.root"
#define ALICE_TOKEN "h.eyJleHAiOjE3OTQ3OTYxMDksImlhdCI6MTc5NDc5NjAwOSwic3VuIjoiYWxpY2UifQ.alice"

#define JSON "application/json"

/* What is found at a path; the last one that was put up counts. */
struct page {
    char path[100]; /* with its query */
    unsigned status;
    const char *type, *body;
};

struct fixture {
    struct http_peer *peer; /* whose lock is that of what it looks at */
    struct page pages[PAGES_MAX];
    size_t n_pages;
    const char *wanted_token; /* others get a 401; NULL: all are served */
    const char *next_token;   /* a file, moved into place while a 401 is under way, or NULL */

    struct manual_clock clock;
    const char *token_file;
    char url[300];
    struct source_settings settings;
    struct source *source;
    struct section *section;
    char warning[SOURCE_WARNING];
    struct err err;
};

static struct fixture *fixture;

static void put_token(const char *text)
{
    const char *fresh = write_file("fresh", text);

    assert_int_equal(chmod(fresh, 0600), 0);
    assert_int_equal(rename(fresh, fixture->token_file), 0);
    fixture->settings.rest_token_file = str_of(fixture->token_file);
}

static const struct page *find(const char *path, const char *token)
{
    static const struct page unknown = { "", 404, "text/plain", "Unable find requested URL." };
    static const struct page denied = { "", 401, "text/plain", "Authentication failure" };

    if (fixture->wanted_token && strcmp(fixture->wanted_token, token) != 0) {
        if (fixture->next_token)
            rename(fixture->next_token, fixture->token_file);
        return &denied;
    }
    for (size_t i = fixture->n_pages; i-- > 0;)
        if (strcmp(fixture->pages[i].path, path) == 0)
            return &fixture->pages[i];
    return &unknown;
}

static void reply(const struct peer_request *request, struct peer_reply *ret)
{
    const struct page *page = find(request->target, peer_header(request, "X-SLURM-USER-TOKEN"));

    ret->status = page->status;
    ret->type = page->type;
    ret->body = str_of(page->body);
    if (page->status == 302)
        ret->headers = "Location: /elsewhere";
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    manual_clock_init(&fixture->clock, NOW * NS_PER_SEC, 1000 * NS_PER_SEC);
    fixture->token_file = test_path("token");
    fixture->peer = peer_open(NULL);
    peer_reply_by(fixture->peer, reply);
    snprintf(fixture->url, sizeof(fixture->url), "%s", peer_url(fixture->peer));
    fixture->settings = (struct source_settings){
        .spec = STR("rest"),
        .rest_url = str_of(fixture->url),
        .max_answer = 1 << 20,
    };
}

static void teardown(void)
{
    source_close(fixture->source);
    peer_free(fixture->peer);
    section_unref(fixture->section);
    manual_clock_destroy(&fixture->clock);
    free(fixture);
}

FIXTURE(setup, teardown)

static void put_up(unsigned version, const char *name, unsigned status, const char *type,
                   const char *body)
{
    struct page *page;

    assert_true(fixture->n_pages < PAGES_MAX);
    peer_lock(fixture->peer);
    page = &fixture->pages[fixture->n_pages++];
    *page = (struct page){ .status = status, .type = type, .body = body };
    snprintf(page->path, sizeof(page->path), "/slurm/v0.0.%u/%s", version, name);
    peer_unlock(fixture->peer);
}

#define META                                                                                       \
    "\"meta\": {\"slurm\": {\"release\": \"24.11.5\", \"cluster\": \"one\"}}, \"errors\": []"
#define UPDATED "\"last_update\": {\"set\": true, \"infinite\": false, \"number\": 1794796000}, "
#define JOBS                                                                                       \
    "{\"jobs\": [{\"job_id\": 7, \"job_state\": [\"RUNNING\"], \"user_name\": "                    \
    "\"alice\"}], " UPDATED META "}"
#define NO_CHANGE                                                                                  \
    "{\"jobs\": [], \"last_update\": {\"set\": true, \"infinite\": false, \"number\": 0}, " META "}"
#define NO_JOBS    "{\"jobs\": [], " UPDATED META "}"
#define NODES      "{\"nodes\": [{\"name\": \"n1\", \"partitions\": [\"cpu\"]}], " META "}"
#define PARTITIONS "{\"partitions\": [{\"name\": \"cpu\"}, {\"name\": \"empty\"}], " META "}"
#define DIAG       "{\"statistics\": {\"jobs_running\": 3}, " META "}"

/* What a slurmrestd of that version has for these tests. */
static void put_up_version(unsigned version)
{
    put_up(version, "diag", 200, JSON, DIAG);
    put_up(version, "nodes", 200, JSON, NODES);
    put_up(version, version < 42 ? "jobs" : "jobs?flags=ALL", 200, JSON, JOBS);
    put_up(version, version < 42 ? "partitions" : "partitions?flags=ALL", 200, JSON, PARTITIONS);
}

static int look_within(enum kind kind, int64_t ns)
{
    fixture->section = section_unref(fixture->section);
    fixture->err = (struct err){ 0 };
    fixture->warning[0] = '\0';
    if (!fixture->source &&
        source_open(&fixture->settings, &fixture->clock.clock, &fixture->source, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
    return fixture->source->class->read(fixture->source, kind, clock_mono(&clock_real) + ns,
                                        &fixture->section, fixture->warning, &fixture->err);
}

static int look(enum kind kind)
{
    return look_within(kind, TEST_DEADLINE);
}

static void assert_look(enum kind kind)
{
    int code = look(kind);

    if (code)
        fail_msg("%d: %s", code, fixture->err.text);
}

/* A look that fails so, with a sentence in which @ is the origin. */
static void assert_fails(enum kind kind, int code, const char *sentence)
{
    char expected[600];

    assert_int_equal(look(kind), code);
    snprintf(expected, sizeof(expected), "%.*s%s%s", (int)strcspn(sentence, "@"), sentence,
             strchr(sentence, '@') ? fixture->url : "",
             strchr(sentence, '@') ? strchr(sentence, '@') + 1 : "");
    assert_string_equal(fixture->err.text, expected);
}

static const char *word_of(const struct peer_request *request, const char *header)
{
    return peer_header(request, header)[0] ? peer_header(request, header) : "-";
}

/* All requests since the last time, as "GET /path user token\n". */
static void assert_seen(const char *expected)
{
    struct buf seen;

    buf_init(&seen, 1 << 20);
    for (size_t i = 1; i <= peer_requests(fixture->peer); i++) {
        const struct peer_request *request = peer_request(fixture->peer, i);

        buf_printf(&seen, "%s %s %s %s\n", request->method, request->target,
                   word_of(request, "X-SLURM-USER-NAME"), word_of(request, "X-SLURM-USER-TOKEN"));
    }
    assert_str(buf_str(&seen), expected);
    buf_free(&seen);
    peer_forget(fixture->peer);
}

static const char *interface_of(void)
{
    static struct source_about about;

    source_tell(fixture->source, &about);
    return about.interface;
}

TEST(the_newest_version_that_both_speak_is_found_and_remembered)
{
    put_up_version(40);
    put_up_version(42);
    put_up_version(47);
    assert_look(KIND_JOBS);
    assert_string_equal(interface_of(), "v0.0.42");
    assert_seen("GET /slurm/v0.0.46/diag - -\nGET /slurm/v0.0.45/diag - -\n"
                "GET /slurm/v0.0.44/diag - -\nGET /slurm/v0.0.43/diag - -\n"
                "GET /slurm/v0.0.42/diag - -\nGET /slurm/v0.0.42/jobs?flags=ALL - -\n");
    assert_int_equal(fixture->section->jobs.n, 1);
    assert_str(section_text(fixture->section, fixture->section->jobs.job[0].user), "alice");
    assert_int_equal(fixture->section->bytes_read, strlen(JOBS));
    assert_look(KIND_DIAG);
    assert_int_equal(fixture->section->diag.jobs_running, 3);
    assert_seen("GET /slurm/v0.0.42/diag - -\n");
}

TEST(one_connection_serves_many_questions)
{
    put_up_version(46);
    for (int i = 0; i < 5; i++)
        assert_look(KIND_NODES);
    assert_int_equal(peer_connections(fixture->peer), 1);
}

TEST(nodes_are_completed_by_the_partitions)
{
    put_up_version(46);
    assert_look(KIND_NODES);
    assert_int_equal(fixture->section->nodes.n, 1);
    assert_int_equal(fixture->section->nodes.n_partitions, 2);
    assert_int_equal(fixture->section->bytes_read, strlen(NODES) + strlen(PARTITIONS));
    put_up(46, "partitions?flags=ALL", 500, JSON,
           "{\"errors\": [{\"description\": \"no partitions today\"}]}");
    assert_fails(
        KIND_NODES, -EREMOTEIO,
        "@ answers /slurm/v0.0.46/partitions?flags=ALL with status 500: no partitions today");
    put_up(46, "partitions?flags=ALL", 404, "text/plain", "not here");
    assert_fails(KIND_NODES, -EOPNOTSUPP,
                 "@ has no /slurm/v0.0.46/partitions: slurmrestd was started without it (-s), or "
                 "something before it does not let it through");
}

static void put_up_limits(unsigned version, const char *associations)
{
    put_up(version, "", 200, JSON, associations);
    snprintf(fixture->pages[fixture->n_pages - 1].path, 100, "/slurmdb/v0.0.%u/associations%s",
             version, version < 42 ? "" : "?cluster=one");
    put_up(version, "", 200, JSON, "{\"qos\": [{\"name\": \"normal\"}], \"errors\": []}");
    snprintf(fixture->pages[fixture->n_pages - 1].path, 100, "/slurmdb/v0.0.%u/qos", version);
}

TEST(limits_of_our_cluster_come_from_slurmdb)
{
    put_up_version(42);
    put_up_limits(42, "{\"associations\": [{\"account\": \"bio\"}]}");
    assert_look(KIND_ASSOCIATIONS);
    assert_int_equal(fixture->section->associations.n, 1);
    assert_int_equal(fixture->section->associations.n_qos, 1);
}

TEST(limits_of_several_clusters_are_not_mixed)
{
    /* Up to v0.0.39 no document tells which cluster it is about. */
    put_up(38, "diag", 200, JSON,
           "{\"meta\": {\"Slurm\": {\"release\": \"22.05.8\"}}, \"statistics\": {}}");
    put_up_limits(38, "{\"associations\": [{\"account\": \"bio\", \"cluster\": \"one\"}, "
                      "{\"account\": \"ops\", \"cluster\": \"one\"}]}");
    assert_look(KIND_ASSOCIATIONS);
    assert_int_equal(fixture->section->associations.n, 2);
    put_up_limits(38, "{\"associations\": [{\"account\": \"bio\", \"cluster\": \"one\"}, "
                      "{\"account\": \"bio\", \"cluster\": \"two\"}]}");
    assert_fails(KIND_ASSOCIATIONS, -EOPNOTSUPP,
                 "slurmdbd keeps the limits of several clusters, and it is not known which of them "
                 "is ours");
}

TEST(the_cluster_is_told_by_any_document)
{
    put_up_version(42);
    assert_look(KIND_CONFIG);
    assert_str(section_text(fixture->section, fixture->section->config.cluster), "one");
    assert_str(section_text(fixture->section, fixture->section->config.version), "24.11.5");
}

TEST(a_cluster_that_no_document_names_is_the_only_one_of_slurmdb)
{
    put_up(38, "diag", 200, JSON,
           "{\"meta\": {\"Slurm\": {\"release\": \"22.05.8\"}}, \"statistics\": {}}");
    assert_look(KIND_CONFIG);
    assert_int_equal(fixture->section->config.cluster, 0);
    put_up(38, "", 200, JSON, "{\"clusters\": [{\"name\": \"one\"}]}");
    snprintf(fixture->pages[fixture->n_pages - 1].path, 100, "/slurmdb/v0.0.38/clusters");
    assert_look(KIND_CONFIG);
    assert_str(section_text(fixture->section, fixture->section->config.cluster), "one");
    put_up(38, "", 200, JSON, "{\"clusters\": [{\"name\": \"one\"}, {\"name\": \"two\"}]}");
    snprintf(fixture->pages[fixture->n_pages - 1].path, 100, "/slurmdb/v0.0.38/clusters");
    assert_look(KIND_CONFIG);
    assert_int_equal(fixture->section->config.cluster, 0);
}

TEST(a_version_that_goes_with_an_upgrade_is_replaced)
{
    put_up_version(38);
    assert_look(KIND_JOBS);
    assert_string_equal(interface_of(), "v0.0.38");
    peer_lock(fixture->peer);
    fixture->n_pages = 0;
    peer_unlock(fixture->peer);
    put_up_version(45);
    assert_look(KIND_JOBS);
    assert_string_equal(interface_of(), "v0.0.45");
    peer_lock(fixture->peer);
    fixture->n_pages = 0;
    peer_unlock(fixture->peer);
    put_up_version(46);
    assert_look(KIND_JOBS); /* where only changes were asked for */
    assert_string_equal(interface_of(), "v0.0.46");
}

TEST(a_newer_version_is_found_after_slurmrestd_was_away)
{
    put_up_version(42);
    assert_look(KIND_JOBS);
    peer_close(fixture->peer);
    assert_fails(KIND_JOBS, -ECONNREFUSED,
                 "cannot connect to @: Connection refused; is it running, and listening there?");
    put_up_version(43);
    peer_reopen(fixture->peer);
    assert_look(KIND_JOBS);
    assert_string_equal(interface_of(), "v0.0.43");
}

TEST(no_version_at_all_is_said_to_be_a_wrong_address)
{
    assert_fails(KIND_JOBS, -EOPNOTSUPP,
                 "@ knows no version from v0.0.36 to v0.0.46 (404 for each): is --slurm.rest-url "
                 "that of slurmrestd?");
}

TEST(what_a_release_lacks_is_unsupported)
{
    put_up_version(38);
    assert_fails(KIND_SHARES, -EOPNOTSUPP,
                 "slurmrestd's v0.0.38 has no shares: they came with v0.0.40, of Slurm 23.11");
    peer_forget(fixture->peer);
    assert_int_equal(look(KIND_SHARES), -EOPNOTSUPP);
    assert_seen("");
    assert_fails(KIND_LICENSES, -EOPNOTSUPP,
                 "@ has no /slurm/v0.0.38/licenses: slurmrestd was started without it (-s), or "
                 "something before it does not let it through");
    assert_seen("GET /slurm/v0.0.38/licenses - -\nGET /slurm/v0.0.38/diag - -\n");
    assert_fails(KIND_ASSOCIATIONS, -EOPNOTSUPP,
                 "@ has no /slurmdb/v0.0.38/associations: slurmrestd was started without it (-s), "
                 "or something before it does not let it through, or the cluster has no slurmdbd");
}

TEST(a_path_before_slurms_own_is_kept)
{
    snprintf(fixture->url + strlen(fixture->url), 20, "/gate/");
    fixture->settings.rest_url = str_of(fixture->url);
    assert_int_equal(look(KIND_JOBS), -EOPNOTSUPP);
    assert_string_equal(peer_request(fixture->peer, 1)->target, "/gate/slurm/v0.0.46/diag");
}

TEST(the_token_and_its_user_are_sent)
{
    struct source_about about;

    put_up_version(46);
    put_token("SLURM_JWT=" ROOT_TOKEN "\n");
    assert_look(KIND_DIAG);
    assert_seen("GET /slurm/v0.0.46/diag root " ROOT_TOKEN
                "\nGET /slurm/v0.0.46/diag root " ROOT_TOKEN "\n");
    source_tell(fixture->source, &about);
    assert_string_equal(about.door, "rest");
    assert_int_equal(about.token_expires, 1794832008);
}

TEST(the_user_that_was_set_counts_for_more)
{
    put_up_version(46);
    put_token(ROOT_TOKEN);
    fixture->settings.rest_user = STR("monitor");
    assert_look(KIND_DIAG);
    assert_seen("GET /slurm/v0.0.46/diag monitor " ROOT_TOKEN
                "\nGET /slurm/v0.0.46/diag monitor " ROOT_TOKEN "\n");
}

TEST(a_token_that_is_replaced_is_taken_at_once)
{
    put_up_version(46);
    put_token(ROOT_TOKEN);
    assert_look(KIND_DIAG);
    put_token(ALICE_TOKEN);
    peer_forget(fixture->peer);
    assert_look(KIND_DIAG);
    assert_seen("GET /slurm/v0.0.46/diag alice " ALICE_TOKEN "\n");
}

TEST(a_token_that_is_replaced_while_it_is_refused_is_taken)
{
    put_up_version(46);
    put_token("one");
    assert_look(KIND_DIAG);
    fixture->wanted_token = "two";
    fixture->next_token = write_file("next", "two");
    assert_int_equal(chmod(fixture->next_token, 0600), 0);
    peer_forget(fixture->peer);
    assert_look(KIND_DIAG);
    assert_seen("GET /slurm/v0.0.46/diag - one\nGET /slurm/v0.0.46/diag - two\n");
}

TEST(a_token_that_is_not_taken_is_denied)
{
    char expected[400];

    put_up_version(46);
    put_token(ROOT_TOKEN);
    fixture->wanted_token = "another";
    snprintf(expected, sizeof(expected),
             "@ does not take the token in %s for the user root (Authentication failure): is it of "
             "this cluster? scontrol token username=root lifespan=SECONDS makes one",
             fixture->token_file);
    assert_fails(KIND_JOBS, -EACCES, expected);
    fixture->wanted_token = NULL;
    /* 24.11 of one that slurmctld does not take, */
    put_up(46, "jobs?flags=ALL", 511, JSON,
           "{\"errors\": [{\"description\": \"Unable to query jobs\", \"error_number\": 1007, "
           "\"error\": \"Protocol authentication error\", \"source\": \"slurm_load_jobs()\"}]}");
    assert_int_equal(look(KIND_JOBS), -EACCES);
    assert_contains(fixture->err.text, "(Unable to query jobs: Protocol authentication error)");
    /* and 22.05. */
    put_up(46, "jobs?flags=ALL", 500, JSON,
           "{\"errors\": [{\"description\": \"Failed while looking for jobs\", \"error_number\": "
           "-1, \"error\": \"Unspecified error\"}], \"jobs\": []}");
    assert_fails(
        KIND_JOBS, -EREMOTEIO,
        "@ answers /slurm/v0.0.46/jobs?flags=ALL with status 500: Failed while looking for jobs: "
        "Unspecified error; is slurmctld running? It says so too of a token that slurmctld does "
        "not "
        "take.");
    put_up(46, "jobs?flags=ALL", 403, "text/html", "<html>no</html>");
    assert_int_equal(look(KIND_JOBS), -EACCES);
    assert_contains(fixture->err.text, "(an HTML page)");
}

TEST(a_token_that_has_expired_is_called_so)
{
    char expected[400];

    put_up_version(46);
    put_token(ALICE_TOKEN);
    put_up(46, "jobs?flags=ALL", 500, JSON,
           "{\"errors\": [{\"error\": \"Unspecified error\", \"errno\": -1}], \"jobs\": []}");
    assert_int_equal(look(KIND_JOBS), -EREMOTEIO);
    manual_clock_advance(&fixture->clock, 100 * NS_PER_SEC);
    snprintf(expected, sizeof(expected),
             "the token in %s has expired at 2026-11-16T02:28:29Z: put a new one there, made with "
             "scontrol token username=alice lifespan=SECONDS",
             fixture->token_file);
    assert_fails(KIND_JOBS, -EACCES, expected);
    /* A clock of ours that is wrong does no harm. */
    assert_look(KIND_DIAG);
}

TEST(a_token_near_its_end_is_warned_of_by_one_kind)
{
    put_up_version(46);
    put_token(ALICE_TOKEN);
    assert_look(KIND_DIAG);
    assert_string_equal(fixture->warning, "");
    manual_clock_advance(&fixture->clock, 90 * NS_PER_SEC);
    assert_look(KIND_NODES);
    assert_contains(fixture->warning, "expires at 2026-11-16T02:28:29Z");
    assert_look(KIND_JOBS);
    assert_string_equal(fixture->warning, "");
    assert_look(KIND_NODES);
    assert_contains(fixture->warning, "expires at 2026-11-16T02:28:29Z");
}

TEST(a_list_of_tasks_that_is_cut_short_is_warned_of)
{
    put_up(40, "diag", 200, JSON, DIAG);
    put_up(40, "jobs", 200, JSON,
           "{\"jobs\": [{\"job_id\": 1, \"array_task_string\": \"1,3,5,...\"}], \"errors\": []}");
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.job[0].tasks, 3);
    assert_contains(fixture->warning, "SLURM_BITSTR_LEN=0");
}

TEST(a_missing_token_is_asked_for)
{
    fixture->wanted_token = "secret";
    assert_fails(
        KIND_JOBS, -EACCES,
        "@ wants a token (Authentication failure): name its file with "
        "--slurm.rest-token-file; scontrol token username=NAME lifespan=SECONDS makes one");
}

TEST(a_token_file_that_is_missing_is_named_and_nothing_asked)
{
    char expected[200];

    fixture->settings.rest_token_file = str_of(fixture->token_file);
    assert_int_equal(look(KIND_JOBS), -ENOENT);
    snprintf(expected, sizeof(expected), "cannot open the token file %s: No such file or directory",
             fixture->token_file);
    assert_string_equal(fixture->err.text, expected);
    assert_seen("");
    assert_int_equal(fixture->source->class->probe(fixture->source, &fixture->err), -ENOENT);
}

TEST(no_sentence_holds_the_token)
{
    unsigned statuses[] = { 400, 401, 403, 500, 302, 404 };

    put_token("verysecret");
    put_up(46, "diag", 200, JSON, DIAG);
    assert_look(KIND_DIAG);
    for (size_t i = 0; i < COUNT(statuses); i++) {
        put_up(46, "jobs?flags=ALL", statuses[i], "text/plain", "no");
        assert_true(look(KIND_JOBS) < 0);
        assert_null(strstr(fixture->err.text, "verysecret"));
    }
    peer_close(fixture->peer);
    assert_true(look(KIND_JOBS) < 0);
    assert_null(strstr(fixture->err.text, "verysecret"));
}

TEST(a_unix_socket_is_asked_without_a_token)
{
    const char *path = test_path("socket");
    char expected[600];

    snprintf(fixture->url, sizeof(fixture->url), "unix:%s", path);
    fixture->settings.rest_url = str_of(fixture->url);
    assert_int_equal(look(KIND_JOBS), -ENOENT);
    assert_contains(fixture->err.text, "/socket: No such file or directory; is it running");
    assert_int_equal(fixture->source->class->probe(fixture->source, &fixture->err), -ENOENT);

    peer_free(fixture->peer);
    fixture->peer = peer_open_unix(path);
    peer_reply_by(fixture->peer, reply);
    put_up_version(42);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->source->class->probe(fixture->source, &fixture->err), 0);
    fixture->wanted_token = "secret";
    snprintf(expected, sizeof(expected),
             "%s turns us away (Authentication failure): without a token it serves root and its "
             "own user; run as one of them, or name a token with --slurm.rest-token-file",
             fixture->url);
    assert_int_equal(look(KIND_DIAG), -EACCES);
    assert_string_equal(fixture->err.text, expected);
}

TEST(jobs_that_have_not_changed_are_not_read_again)
{
    const struct job *job;

    put_up_version(42);
    put_up(42, "jobs?flags=ALL&update_time=1794796000", 200, JSON, NO_CHANGE);
    assert_look(KIND_JOBS);
    job = fixture->section->jobs.job;
    peer_forget(fixture->peer);
    manual_clock_advance(&fixture->clock, 59 * NS_PER_SEC);
    assert_look(KIND_JOBS);
    assert_seen("GET /slurm/v0.0.42/jobs?flags=ALL&update_time=1794796000 - -\n");
    assert_int_equal(fixture->section->jobs.n, 1);
    assert_ptr_equal(fixture->section->jobs.job, job);
    assert_int_equal(fixture->section->bytes_read, strlen(NO_CHANGE));
    /* Everything is asked for now and then. */
    manual_clock_advance(&fixture->clock, 1 * NS_PER_SEC);
    assert_look(KIND_JOBS);
    assert_seen("GET /slurm/v0.0.42/jobs?flags=ALL - -\n");
    /* Newer ones may use the status that was made for it. */
    put_up(42, "jobs?flags=ALL&update_time=1794796000", 304, NULL, "");
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 1);
}

TEST(no_jobs_any_more_is_a_change)
{
    put_up_version(42);
    put_up(42, "jobs?flags=ALL&update_time=1794796000", 200, JSON, NO_JOBS);
    assert_look(KIND_JOBS);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 0);
}

TEST(a_clock_that_is_set_back_freezes_nothing)
{
    put_up_version(42);
    put_up(42, "jobs?flags=ALL&update_time=1794796000", 200, JSON, NO_CHANGE);
    assert_look(KIND_JOBS);
    manual_clock_set_wall(&fixture->clock, (NOW - 3600) * NS_PER_SEC);
    put_up(42, "jobs?flags=ALL", 200, JSON, NO_JOBS);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 0);
}

#define GPU_NODES                                                                                  \
    "{\"nodes\": [{\"name\": \"n1\"}, {\"name\": \"g1\", \"gres\": \"gpu:a100:4\"}], " META "}"
#define GPU_JOBS(details)                                                                          \
    "{\"jobs\": [{\"job_id\": 7, \"job_state\": [\"RUNNING\"], \"nodes\": \"g1\", "                \
    "\"tres_alloc_str\": \"cpu=1,gres/gpu=2\", \"gres_detail\": [" details "]}], " UPDATED META    \
    "}"
#define DETAILED "jobs?flags=ALL&flags=DETAIL"

TEST(the_gpus_of_jobs_are_asked_for_where_there_are_any)
{
    put_up_version(42);
    put_up(42, "nodes", 200, JSON, GPU_NODES);
    put_up(42, DETAILED, 200, JSON, GPU_JOBS("\"gpu:a100:2(IDX:1-2)\""));
    assert_look(KIND_NODES);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n_gpus, 1);
    assert_str(section_text(fixture->section, fixture->section->jobs.gpus[0].node), "g1");
    assert_str(section_text(fixture->section, fixture->section->jobs.gpus[0].gpus), "1-2");
    /* That nothing has changed can be said of the same question only. */
    put_up(42, DETAILED "&update_time=1794796000", 200, JSON, NO_CHANGE);
    put_up(42, "jobs?flags=ALL&update_time=1794796000", 200, JSON, NO_CHANGE);
    peer_forget(fixture->peer);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n_gpus, 1);
    fixture->source->depth = SOURCE_PLAIN;
    assert_look(KIND_JOBS);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 1);
    fixture->source->depth = SOURCE_DETAILS;
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n_gpus, 1);
    assert_seen("GET /slurm/v0.0.42/" DETAILED "&update_time=1794796000 - -\n"
                "GET /slurm/v0.0.42/jobs?flags=ALL - -\n"
                "GET /slurm/v0.0.42/jobs?flags=ALL&update_time=1794796000 - -\n"
                "GET /slurm/v0.0.42/" DETAILED " - -\n");
}

TEST(jobs_that_have_gpus_tell_that_there_are_some)
{
    put_up_version(42);
    put_up(42, "jobs?flags=ALL", 200, JSON, GPU_JOBS(""));
    put_up(42, DETAILED, 200, JSON, GPU_JOBS("\"gpu:a100:2(IDX:1-2)\""));
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n_gpus, 0);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n_gpus, 1);
}

#define DIAG_38                                                                                    \
    "{\"meta\": {\"Slurm\": {\"release\": \"22.05.8\"}}, \"statistics\": {\"req_time\": "          \
    "1794796005}}"

TEST(versions_without_times_in_their_answers_are_asked_for_the_time_first)
{
    put_up_version(38);
    put_up(38, "diag", 200, JSON, DIAG_38);
    put_up(38, "jobs", 200, JSON, "{\"jobs\": [{\"job_id\": 7}], \"errors\": []}");
    put_up(38, "jobs?update_time=1794796005", 304, NULL, "");
    assert_look(KIND_JOBS);
    peer_forget(fixture->peer);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 1);
    assert_seen("GET /slurm/v0.0.38/diag - -\n"
                "GET /slurm/v0.0.38/jobs?update_time=1794796005 - -\n");
    /* They say "no change" in no other way. */
    put_up(38, "jobs?update_time=1794796005", 200, JSON, "{\"jobs\": [], \"errors\": []}");
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 0);
    /* Without the time, everything is asked for. */
    put_up(38, "diag", 500, JSON, "{\"errors\": [{\"error\": \"busy\"}]}");
    assert_look(KIND_JOBS);
    peer_forget(fixture->peer);
    assert_look(KIND_JOBS);
    assert_seen("GET /slurm/v0.0.38/diag - -\nGET /slurm/v0.0.38/jobs - -\n");
}

TEST(versions_that_cannot_tell_changes_are_asked_for_everything)
{
    put_up_version(41);
    assert_look(KIND_JOBS);
    peer_forget(fixture->peer);
    assert_look(KIND_JOBS);
    assert_seen("GET /slurm/v0.0.41/jobs - -\n");
}

TEST(a_question_for_changes_that_is_refused_is_not_asked_again)
{
    put_up_version(44);
    put_up(44, "jobs?flags=ALL&update_time=1794796000", 422, JSON,
           "{\"errors\": [{\"description\": \"Parsing of 1794796000 for timestamp failed\"}]}");
    assert_look(KIND_JOBS);
    peer_forget(fixture->peer);
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 1);
    assert_look(KIND_JOBS);
    assert_seen("GET /slurm/v0.0.44/jobs?flags=ALL&update_time=1794796000 - -\n"
                "GET /slurm/v0.0.44/jobs?flags=ALL - -\nGET /slurm/v0.0.44/jobs?flags=ALL - -\n");
}

TEST(a_gate_that_lets_no_more_through_is_not_asked_for_everything)
{
    put_up_version(44);
    put_up(44, "jobs?flags=ALL&update_time=1794796000", 429, "text/plain", "slowly");
    assert_look(KIND_JOBS);
    peer_forget(fixture->peer);
    for (int i = 0; i < 2; i++)
        assert_fails(KIND_JOBS, -EREMOTEIO,
                     "@ answers /slurm/v0.0.44/jobs?flags=ALL&update_time=1794796000 with status "
                     "429: slowly");
    assert_seen("GET /slurm/v0.0.44/jobs?flags=ALL&update_time=1794796000 - -\n"
                "GET /slurm/v0.0.44/jobs?flags=ALL&update_time=1794796000 - -\n");
}

TEST(every_wrong_answer_has_its_sentence)
{
    static const struct {
        unsigned status;
        const char *type, *body;
        int code;
        const char *sentence;
    } wrong[] = {
        { 500, JSON,
          "{\"errors\": [{\"description\": \"Unable to query jobs\", \"error_number\": 1800, "
          "\"error\": \"Unable to contact slurm controller\"}, {\"error\": \"second\"}]}",
          -EREMOTEIO,
          "@ answers /slurm/v0.0.46/jobs?flags=ALL with status 500: Unable to query jobs: Unable "
          "to contact "
          "slurm controller; is slurmctld running?" },
        { 502, "text/html; charset=utf-8", "<html>bad gateway</html>", -EREMOTEIO,
          "@ answers /slurm/v0.0.46/jobs?flags=ALL with status 502: an HTML page" },
        { 500, "text/plain", "it\nbroke", -EREMOTEIO,
          "@ answers /slurm/v0.0.46/jobs?flags=ALL with status 500: it\\nbroke" },
        { 500, NULL, "", -EREMOTEIO,
          "@ answers /slurm/v0.0.46/jobs?flags=ALL with status 500: no words" },
        { 200, "text/html", "<html>log in</html>", -EBADMSG,
          "@ answers with an HTML page to /slurm/v0.0.46/jobs?flags=ALL: is --slurm.rest-url that "
          "of "
          "slurmrestd, or does something before it want a login?" },
        { 302, NULL, "", -EREMOTEIO,
          "@ sends us elsewhere (status 302) from /slurm/v0.0.46/jobs?flags=ALL: give "
          "--slurm.rest-url the "
          "address to which it leads" },
        { 200, JSON, "{\"errors\": [{\"description\": \"it failed\"}], \"jobs\": []}", -EREMOTEIO,
          "@ answers /slurm/v0.0.46/jobs?flags=ALL with an error: Slurm says in its JSON: it "
          "failed" },
        { 200, JSON, "{}", -EBADMSG,
          "cannot read what @ answered to /slurm/v0.0.46/jobs?flags=ALL: the document has no "
          "\"jobs\"" },
    };

    put_up_version(46);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        put_up(46, "jobs?flags=ALL", wrong[i].status, wrong[i].type, wrong[i].body);
        assert_fails(KIND_JOBS, wrong[i].code, wrong[i].sentence);
    }
    put_up(46, "jobs?flags=ALL", 200, JSON, "{\"jobs\": [{\"job_id\": 1}");
    assert_int_equal(look(KIND_JOBS), -EBADMSG);
    put_up(46, "jobs?flags=ALL", 200, "text/plain", "hello");
    assert_int_equal(look(KIND_JOBS), -EBADMSG);
    put_up(46, "jobs?flags=ALL", 200, JSON, JOBS);
    assert_look(KIND_JOBS);
}

TEST(a_page_where_a_version_is_looked_for_is_found_out)
{
    put_up(46, "diag", 200, "text/html", "<html>hello</html>");
    assert_int_equal(look(KIND_JOBS), -EBADMSG);
    put_up(46, "diag", 503, "text/html", "<html>down</html>");
    assert_int_equal(look(KIND_JOBS), -EREMOTEIO);
    put_up(46, "diag", 302, NULL, "");
    assert_int_equal(look(KIND_JOBS), -EREMOTEIO);
    assert_string_equal(interface_of(), "");
    /* slurmctld is down, but slurmrestd speaks that version. */
    put_up(46, "diag", 500, JSON, "{\"errors\": [{\"error\": \"down\"}]}");
    put_up(46, "jobs?flags=ALL", 200, JSON, JOBS);
    assert_look(KIND_JOBS);
}

TEST(a_cut_answer_is_no_answer)
{
    put_up_version(46);
    assert_look(KIND_DIAG);
    peer_reply_with(fixture->peer, (struct peer_reply){ .manner = PEER_HALF });
    assert_int_equal(look(KIND_JOBS), -EREMOTEIO);
    assert_contains(fixture->err.text, "closed the connection before its answer was whole");
}

/* `repeated` so many times between `before` and `after`, as what is told of the jobs. */
static void put_up_jobs(struct buf *body, const char *before, const char *repeated, size_t n,
                        const char *after)
{
    buf_init(body, 16 << 20);
    buf_text(body, before);
    for (size_t i = 0; i < n; i++)
        buf_text(body, repeated);
    buf_text(body, after);
    put_up(46, "jobs?flags=ALL", 200, JSON, body->p);
}

TEST(an_answer_that_takes_too_much_memory_is_refused)
{
    struct buf body;

    put_up_version(46);
    put_up_jobs(&body, "{\"jobs\": [", "{\"job_id\": 7},", 20000, "{\"job_id\": 7}]}");
    assert_fails(KIND_JOBS, -EFBIG,
                 "cannot keep what @ answered to /slurm/v0.0.46/jobs?flags=ALL: the jobs take more "
                 "than 1048576 bytes of memory; raise --slurm.max-answer if the cluster is that "
                 "large");
    buf_free(&body);
}

TEST(an_answer_may_be_longer_than_the_memory_that_it_takes)
{
    struct buf body;

    put_up_version(46);
    put_up_jobs(&body, "{\"jobs\": [{\"job_id\": 7, \"comment\": \"", "0123456789abcdef", 1 << 17,
                "\"}]}");
    assert_look(KIND_JOBS);
    assert_int_equal(fixture->section->jobs.n, 1);
    assert_true(fixture->section->bytes_read > fixture->settings.max_answer);
    buf_free(&body);
}

TEST(a_server_that_never_answers_ends_at_the_deadline)
{
    peer_hold(fixture->peer, "");
    assert_int_equal(look_within(KIND_JOBS, 200 * NS_PER_MS), -ETIMEDOUT);
    /* What follows depends on whether there was time to connect. */
    assert_contains(fixture->err.text,
                    "slurmrestd or slurmctld is busy or down, or --slurm.timeout too short: ");
    assert_int_equal(look_within(KIND_JOBS, -1), -ETIMEDOUT);
}

static void *cancel(void *arg)
{
    (void)arg;
    peer_request(fixture->peer, 1);
    source_cancel(fixture->source);
    return NULL;
}

TEST(a_look_can_be_cancelled)
{
    pthread_t thread;

    assert_int_equal(look_within(KIND_JOBS, -1), -ETIMEDOUT); /* opens it */
    peer_hold(fixture->peer, "");
    assert_int_equal(pthread_create(&thread, NULL, cancel, fixture), 0);
    assert_int_equal(look(KIND_JOBS), -ECANCELED);
    pthread_join(thread, NULL);
}

TEST(wrong_settings_are_refused)
{
    static const struct {
        const char *url, *user, *sentence;
    } wrong[] = {
        { "", "", "--slurm.rest-url: the URL is not of the form http" },
        { "slurmrestd:6820", "", "--slurm.rest-url: the URL is not of the form http" },
        { "ftp://host", "", "--slurm.rest-url: the URL is not of the form http" },
        { "unix:", "", "--slurm.rest-url has no path of a socket: unix:/PATH" },
        { "unix:socket", "", "--slurm.rest-url has no path of a socket: unix:/PATH" },
        { "http://host/?a=b", "", "--slurm.rest-url must be http://HOST:PORT" },
        { "http://host", "al ice", "--slurm.rest-user: \"al ice\" is not the name of a user" },
        { "http://host", "a\nX: y", "--slurm.rest-user: \"a\\nX: y\" is not the name" },
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        fixture->settings.rest_url = str_of(wrong[i].url);
        fixture->settings.rest_user = str_of(wrong[i].user);
        assert_int_equal(
            source_open(&fixture->settings, &fixture->clock.clock, &fixture->source, &fixture->err),
            -EINVAL);
        assert_contains(fixture->err.text, wrong[i].sentence);
    }
}
