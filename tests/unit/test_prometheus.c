/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Prometheus in this process that says what the test has put up, and whose faults can be chosen.
 */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "certificates.h"
#include "files.h"
#include "http_peer.h"
#include "source/prometheus.h"

#include <math.h>

#define JSON "application/json"
#define VECTOR(elements)                                                                           \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" elements "]}}"
#define MATRIX(series)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" series "]}}"
#define SERIES(labels, points) "{\"metric\":{" labels "},\"values\":[" points "]}"
#define ELEMENT(labels, value) "{\"metric\":{" labels "},\"value\":[1700000000.5,\"" value "\"]}"

struct fixture {
    struct http_peer *peer;
    struct certificate *certificate; /* NULL: no TLS */
    struct peer_reply reply;
    bool echoes; /* the Authorization header, as words of its own */

    char url[200];
    const char *password_file, *bearer_file;
    struct prometheus_settings settings;
    struct prometheus *prometheus;
    struct prometheus_query query;
    struct prometheus_range range;
    bool asks_range; /* instead of the other */
    struct prometheus_result result;
    struct buf samples; /* "label,label,label,label value\n" of each; of a series "time:value …" */
    atomic_bool cancelled;
    bool is_cancelled_by_sample;
    struct err err;
};

static struct fixture *fixture;

static void reply(const struct peer_request *request, struct peer_reply *ret)
{
    *ret = fixture->reply;
    if (fixture->echoes)
        ret->body = str_of(peer_header(request, "Authorization"));
    if (ret->status / 100 == 3)
        ret->headers = "Location: /login";
}

static void serve(void)
{
    fixture->peer = peer_open(fixture->certificate);
    peer_reply_by(fixture->peer, reply);
}

static const struct peer_request *last_request(void)
{
    return peer_request(fixture->peer, peer_requests(fixture->peer));
}

static void assert_authorization(const char *expected)
{
    assert_string_equal(peer_header(last_request(), "Authorization"), expected);
}

/* The tests ask for four at most. */
static void put_labels(const struct str label[PROMETHEUS_LABELS])
{
    for (size_t i = 0; i < 4; i++) {
        buf_put(&fixture->samples, label[i]);
        buf_byte(&fixture->samples, i < 3 ? ',' : ' ');
    }
    for (size_t i = 4; i < PROMETHEUS_LABELS; i++)
        assert_int_equal(label[i].n, 0);
}

static void take(void *ctx, const struct prometheus_sample *sample)
{
    (void)ctx;
    put_labels(sample->label);
    buf_double(&fixture->samples, sample->value);
    buf_byte(&fixture->samples, '\n');
    if (fixture->is_cancelled_by_sample)
        atomic_store(&fixture->cancelled, true);
}

static void take_series(void *ctx, const struct prometheus_series *series)
{
    (void)ctx;
    put_labels(series->label);
    for (size_t i = 0; i < series->n_points; i++) {
        buf_double(&fixture->samples, series->point[i].time);
        buf_byte(&fixture->samples, ':');
        buf_double(&fixture->samples, series->point[i].value);
        buf_byte(&fixture->samples, i + 1 < series->n_points ? ' ' : '\n');
    }
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    buf_init(&fixture->samples, 8 << 20);
    fixture->password_file = test_path("password");
    fixture->bearer_file = test_path("bearer");
    serve();
    fixture->settings = (struct prometheus_settings){ .url = str_of(peer_url(fixture->peer)),
                                                      .max_answer = 8 << 20 };
    fixture->query = (struct prometheus_query){
        .text = "up",
        .labels = { "jobid", "target" },
        .timeout_ms = TEST_DEADLINE / NS_PER_MS,
        .cancelled = &fixture->cancelled,
        .sink = take,
        .ctx = fixture,
    };
    fixture->range = (struct prometheus_range){
        .text = "up",
        .begin = 1700000000,
        .end = 1700000060,
        .step_seconds = 15,
        .labels = { "node", "gpu" },
        .timeout_ms = TEST_DEADLINE / NS_PER_MS,
        .cancelled = &fixture->cancelled,
        .sink = take_series,
        .ctx = fixture,
    };
}

static void teardown(void)
{
    prometheus_close(fixture->prometheus);
    for (size_t i = 1; i <= peer_requests(fixture->peer); i++) {
        assert_string_equal(peer_request(fixture->peer, i)->method, "GET");
        assert_string_equal(peer_header(peer_request(fixture->peer, i), "Accept"), JSON);
    }
    peer_free(fixture->peer);
    if (fixture->certificate)
        certificate_free(fixture->certificate);
    free(fixture->certificate);
    buf_free(&fixture->samples);
    free(fixture);
}

FIXTURE(setup, teardown)

static void put_up_bytes(unsigned status, const char *type, struct str body)
{
    peer_lock(fixture->peer);
    fixture->reply.status = status;
    fixture->reply.type = type;
    fixture->reply.body = body;
    peer_unlock(fixture->peer);
}

static void put_up(unsigned status, const char *type, const char *body)
{
    put_up_bytes(status, type, str_of(body));
}

static void put_up_manner(enum peer_manner manner)
{
    peer_lock(fixture->peer);
    fixture->reply.manner = manner;
    peer_unlock(fixture->peer);
}

static int ask(void)
{
    fixture->err = (struct err){ 0 };
    memset(&fixture->result, 0xa5, sizeof(fixture->result));
    buf_reset(&fixture->samples);
    if (!fixture->prometheus &&
        prometheus_open(&fixture->settings, &fixture->prometheus, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
    if (fixture->asks_range)
        return prometheus_range(fixture->prometheus, &fixture->range, &fixture->result,
                                &fixture->err);
    return prometheus_query(fixture->prometheus, &fixture->query, &fixture->result, &fixture->err);
}

static void assert_samples(const char *samples)
{
    int code = ask();

    if (code)
        fail_msg("%d: %s", code, fixture->err.text);
    assert_str(buf_str(&fixture->samples), samples);
}

static void assert_answer(const char *body, const char *samples)
{
    put_up(200, JSON, body);
    assert_samples(samples);
}

/* A sentence in which @ is the origin. */
static void assert_sentence(const char *actual, const char *sentence)
{
    const char *origin = prometheus_origin(fixture->prometheus);
    struct str rest = str_of(sentence), before = str_cut(&rest, '@');
    struct buf expected;

    buf_init(&expected, 1000);
    buf_put(&expected, before);
    if (rest.p) {
        buf_text(&expected, origin);
        buf_put(&expected, rest);
    }
    assert_str(str_of(actual), expected.p);
    buf_free(&expected);
}

static void assert_fails(int code, const char *sentence)
{
    int actual = ask();

    if (actual != code)
        fail_msg("%d: %s", actual, fixture->err.text);
    assert_int_equal(fixture->err.code, -code);
    assert_sentence(fixture->err.text, sentence);
}

static void assert_refused(const char *sentence)
{
    struct prometheus *prometheus = NULL;

    fixture->err = (struct err){ 0 };
    assert_int_equal(prometheus_open(&fixture->settings, &prometheus, &fixture->err), -EINVAL);
    assert_null(prometheus);
    assert_string_equal(fixture->err.text, sentence);
}

TEST(a_query_is_one_get_with_its_text_escaped)
{
    fixture->query.text = "sum by(jobid)(irate(a{b=\"c&d=+#%\"}[1m])!=0)\n";
    fixture->query.timeout_ms = 315250;
    assert_answer(VECTOR(""), "");
    assert_string_equal(last_request()->target,
                        "/api/v1/query?query=sum%20by%28jobid%29%28irate%28a%7Bb%3D%22c%26d%3D%2B"
                        "%23%25%22%7D%5B1m%5D%29%21%3D0%29%0A&timeout=315.250");
}

TEST(a_path_may_stand_behind_the_host)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%d/select/0/prometheus/",
             peer_port(fixture->peer));
    fixture->settings.url = str_of(fixture->url);
    fixture->query.timeout_ms = 320000;
    assert_answer(VECTOR(""), "");
    assert_string_equal(last_request()->target,
                        "/select/0/prometheus/api/v1/query?query=up&timeout=320.000");
    assert_null(strchr(prometheus_origin(fixture->prometheus) + 7, '/'));
}

TEST(no_query_takes_longer_than_the_settings_say)
{
    fixture->settings.timeout_ms = 300500;
    fixture->query.timeout_ms = 900000;
    assert_answer(VECTOR(""), "");
    assert_string_equal(last_request()->target, "/api/v1/query?query=up&timeout=300.500");
}

TEST(a_query_that_is_too_long_is_not_sent)
{
    char *text = heap_array(100001, 1);

    memset(text, '{', 100000);
    fixture->query.text = text;
    put_up(200, JSON, VECTOR(""));
    assert_fails(-EINVAL, "the query to @ is longer than 262144 bytes");
    assert_int_equal(peer_requests(fixture->peer), 0);
    free(text);
}

TEST(samples_have_the_labels_that_were_asked_for)
{
    const char *body =
        VECTOR(ELEMENT("\"jobid\":\"17\",\"target\":\"a-MDT0000\"", "12.5") "," ELEMENT(
            "\"target\":\"x\",\"__name__\":\"up\",\"jobid\":\"18\"", "0") "," ELEMENT("", "1e+06"));

    assert_answer(body, "17,a-MDT0000,, 12.5\n18,x,, 0\n,,, 1000000\n");
    assert_int_equal(fixture->result.samples, 3);
    assert_int_equal(fixture->result.skipped, 0);
    assert_int_equal(fixture->result.bytes, strlen(body));
    assert_string_equal(fixture->result.warning, "");
    fixture->query.labels[0] = NULL;
    fixture->query.labels[3] = "jobid";
    assert_samples(",a-MDT0000,,17 12.5\n,x,,18 0\n,,, 1000000\n");
}

TEST(keys_come_in_any_order_and_others_among_them)
{
    assert_answer(
        " { \"infos\": [\"is it a counter?\"], \"x\": [{\"status\": \"error\"}],\n"
        "\"data\": {\"stats\": {\"result\": [1]}, \"result\": [\n"
        "{\"value\": [1, \"2\"], \"histogram\": null, \"metric\": {\"a\": \"b\", \"jobid\": "
        "\"7\"}}\n"
        "], \"resultType\": \"vector\"}, \"error\": \"\", \"status\": \"success\", \"y\": null } ",
        "7,,, 2\n");
    assert_string_equal(fixture->result.warning, "");
}

TEST(pieces_of_one_byte_make_no_difference)
{
    put_up_manner(PEER_BYTE_BY_BYTE);
    assert_answer(VECTOR(ELEMENT("\"jobid\":\"\\u00e9\xc3\xa9\"", "-12.5e3")),
                  "\xc3\xa9\xc3\xa9,,, -12500\n");
}

TEST(numbers_are_texts_or_bare_and_may_be_none)
{
    assert_answer(
        VECTOR(ELEMENT("", "NaN") "," ELEMENT("", "+Inf") "," ELEMENT(
            "", "-Inf") ",{"
                        "\"metric\":{},\"value\":[1,2.5]},{\"metric\":{},\"value\":[\"1\",NaN]}"),
        ",,, NaN\n,,, +Inf\n,,, -Inf\n,,, 2.5\n,,, NaN\n");
}

TEST(what_a_vector_does_not_have_is_passed_over_and_counted)
{
    assert_answer(
        VECTOR("1,\"x\",null,[],{},{\"metric\":{}},{\"value\":[1,\"1\"]},"
               "{\"metric\":[],\"value\":[1,\"1\"]},{\"metric\":{},\"value\":{\"a\":[1,\"1\"]}},"
               "{\"metric\":{},\"value\":[1]},{\"metric\":{},\"value\":[1,\"1\",2]},"
               "{\"metric\":{},\"value\":[1,[\"1\"]]},{\"metric\":{},\"value\":[1,\"ten\"]},"
               "{\"metric\":{},\"value\":[1,\"1e999\"]},{\"metric\":{},\"value\":[1,\"\"]},"
               "{\"metric\":{\"jobid\":5},\"value\":[1,\"1\"]},"
               "{\"metric\":{\"jobid\":{\"a\":\"b\"}},\"value\":[1,\"1\"]},"
               "{\"metric\":{},\"values\":[[1,\"1\"]]}," ELEMENT("\"jobid\":\"1\"", "1")),
        "1,,, 1\n");
    assert_int_equal(fixture->result.samples, 1);
    assert_int_equal(fixture->result.skipped, 18);
}

TEST(an_empty_result_is_an_answer_of_any_type)
{
    assert_answer(VECTOR(""), "");
    assert_int_equal(fixture->result.samples, 0);
    assert_answer("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
                  "");
    assert_answer("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":null}}",
                  "");
}

TEST(another_type_than_a_vector_is_refused)
{
    put_up(200, JSON,
           "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}");
    assert_fails(-EBADMSG,
                 "cannot read what @ answered: the query gives a scalar where a vector is "
                 "expected");
    put_up(200, JSON,
           "{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{},\"values\":[[1,\"2\"]]}],"
           "\"resultType\":\"matrix\"}}");
    assert_fails(-EBADMSG,
                 "cannot read what @ answered: the query gives a matrix where a vector is "
                 "expected");
}

TEST(a_query_may_be_for_another_time)
{
    fixture->query.time = 1700000000;
    fixture->query.timeout_ms = 320000;
    assert_answer(VECTOR(""), "");
    assert_string_equal(last_request()->target,
                        "/api/v1/query?query=up&time=1700000000&timeout=320.000");
}

TEST(a_range_is_one_get_with_its_ends_and_step)
{
    fixture->asks_range = true;
    fixture->range.text = "rate(a{b=\"c\"}[1m])";
    fixture->range.timeout_ms = 315250;
    assert_answer(MATRIX(""), "");
    assert_string_equal(last_request()->target,
                        "/api/v1/query_range?query=rate%28a%7Bb%3D%22c%22%7D%5B1m%5D%29"
                        "&start=1700000000&end=1700000060&step=15&timeout=315.250");
}

TEST(series_have_their_labels_and_points)
{
    static const char body[] =
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
        "{\"metric\":{\"node\":\"n1\",\"gpu\":\"0\"},"
        "\"values\":[[1700000000,\"1.5\"],[1700000015.5,\"NaN\"]]},"
        "{\"metric\":{\"gpu\":\"1\",\"x\":\"y\"},"
        "\"values\":[[1700000000,2],[1700000015,\"+Inf\"],[1700000030,\"-3\"]]}]}}";

    fixture->asks_range = true;
    assert_answer(body, "n1,0,, 1700000000:1.5 1700000015.5:NaN\n"
                        ",1,, 1700000000:2 1700000015:+Inf 1700000030:-3\n");
    assert_int_equal(fixture->result.samples, 2);
    assert_int_equal(fixture->result.skipped, 0);
    put_up_manner(PEER_BYTE_BY_BYTE);
    assert_answer(MATRIX(SERIES("", "[1,\"2\"]")), ",,, 1:2\n");
}

TEST(what_a_matrix_does_not_have_is_passed_over_and_counted)
{
    static const char *const odd[] = {
        MATRIX("1"),
        MATRIX("{\"metric\":{}}"),
        MATRIX("{\"values\":[[1,\"1\"]]}"),
        MATRIX("{\"metric\":{},\"values\":{}}"),
        MATRIX("{\"metric\":{},\"value\":[1,\"1\"]}"),
        MATRIX("{\"metric\":{},\"histograms\":[[1,{\"count\":\"1\"}]]}"),
        MATRIX(SERIES("", "")),
        MATRIX(SERIES("", "[1,\"1\"],2")),
        MATRIX(SERIES("", "[1,\"1\"],[1]")),
        MATRIX(SERIES("", "[1,\"2\",3]")),
        MATRIX(SERIES("", "[\"Inf\",\"1\"]")),
        MATRIX(SERIES("", "[null,\"1\"]")),
        MATRIX(SERIES("", "[1,\"x\"]")),
        MATRIX(SERIES("\"node\":1", "[1,\"1\"]")),
    };

    fixture->asks_range = true;
    for (size_t i = 0; i < COUNT(odd); i++) {
        assert_answer(odd[i], "");
        assert_int_equal(fixture->result.samples, 0);
        assert_int_equal(fixture->result.skipped, 1);
    }
}

TEST(a_series_with_more_points_than_steps_is_none)
{
    fixture->asks_range = true;
    fixture->range.end = fixture->range.begin + 29; /* two steps, the second at 15 */
    assert_answer(MATRIX(SERIES("", "[1,\"1\"],[2,\"2\"]")), ",,, 1:1 2:2\n");
    assert_answer(MATRIX(SERIES("", "[1,\"1\"],[2,\"2\"],[3,\"3\"]")), "");
    assert_int_equal(fixture->result.skipped, 1);
}

TEST(another_type_than_a_matrix_is_refused)
{
    fixture->asks_range = true;
    put_up(200, JSON, VECTOR(ELEMENT("", "1")));
    assert_fails(-EBADMSG,
                 "cannot read what @ answered: the query gives a vector where a matrix is "
                 "expected");
}

TEST(a_range_fails_as_a_query_does)
{
    fixture->asks_range = true;
    put_up(422, JSON,
           "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many samples\"}");
    assert_fails(-EREMOTEIO, "@ cannot answer the query (status 422): execution: too many samples");
    put_up(401, "text/plain", "who?");
    assert_int_equal(ask(), -EACCES);
    atomic_store(&fixture->cancelled, true);
    put_up_manner(PEER_NEVER);
    assert_int_equal(ask(), -ECANCELED);
}

TEST(json_of_somebody_else_is_refused)
{
    static const struct {
        const char *body, *sentence;
    } others[] = {
        { "{}", "it says neither \"status\":\"success\" nor \"error\"" },
        { "[]", "it says neither \"status\":\"success\" nor \"error\"" },
        { "\"success\"", "it says neither \"status\":\"success\" nor \"error\"" },
        { "{\"status\":{\"status\":\"success\"}}",
          "it says neither \"status\":\"success\" nor \"error\"" },
        { "{\"status\":\"success\"}", "it says success, but has no list of results" },
        { "{\"status\":\"success\",\"data\":[1]}", "it says success, but has no list of results" },
        { "{\"status\":\"success\",\"data\":{\"result\":{}}}",
          "it says success, but has no list of results" },
        { "ok", "line 1, column 1: expected a value, found 'o'" },
        { VECTOR("") "}", "line 1, column 64: expected nothing more, found '}'" },
        { "{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{",
          "line 1, column 50: the document ends where a key in quotes or } is expected, cut "
          "short" },
    };

    for (size_t i = 0; i < COUNT(others); i++) {
        char sentence[300];

        put_up(200, JSON, others[i].body);
        snprintf(sentence, sizeof(sentence), "cannot read what @ answered: %s", others[i].sentence);
        assert_fails(-EBADMSG, sentence);
    }
}

TEST(the_words_of_an_error_are_told_whatever_the_status)
{
    static const unsigned statuses[] = { 200, 400, 422, 503 };

    for (size_t i = 0; i < COUNT(statuses); i++) {
        char sentence[300];

        put_up(statuses[i], JSON,
               "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:5: parse error\"}");
        snprintf(sentence, sizeof(sentence),
                 "@ cannot answer the query (status %u): bad_data: 1:5: parse error", statuses[i]);
        assert_fails(-EREMOTEIO, sentence);
    }
    put_up(200, JSON,
           "{\"data\":{\"resultType\":\"vector\",\"result\":[" ELEMENT(
               "", "1") "]},\"error\":\"half done\",\"status\":\"error\"}");
    assert_fails(-EREMOTEIO, "@ cannot answer the query (status 200): half done");
    put_up(422, JSON, "{\"status\":\"error\",\"error\":{\"a\":\"b\"}}");
    assert_fails(-EREMOTEIO, "@ cannot answer the query (status 422): it does not say why");
}

TEST(words_cannot_break_a_line_and_are_cut)
{
    struct buf body;

    put_up(400, JSON,
           "{\"status\":\"error\",\"errorType\":\"a\\u001b[2J\",\"error\":\"b\\nc\\u0000d\"}");
    assert_fails(-EREMOTEIO, "@ cannot answer the query (status 400): a?[2J: b?c?d");
    buf_init(&body, 2 << 20);
    buf_text(&body, "{\"status\":\"error\",\"error\":\"");
    for (size_t i = 0; i < 500000; i++)
        buf_text(&body, "\xc3\xa9");
    buf_text(&body, "\",\"errorType\":\"long\"}");
    put_up_bytes(400, JSON, buf_str(&body));
    assert_int_equal(ask(), -EREMOTEIO);
    assert_contains(fixture->err.text, "(status 400): long: \xc3\xa9\xc3\xa9");
    assert_true(strlen(fixture->err.text) < 400);
    put_up_bytes(500, "text/plain", buf_str(&body));
    assert_int_equal(ask(), -EREMOTEIO);
    buf_free(&body);
}

TEST(who_is_turned_away_is_told_what_to_set)
{
    char sentence[400];

    put_up(401, "text/plain", "no org id\n");
    assert_fails(-EACCES, "@ wants to know who asks (status 401: no org id): name a user and "
                          "--prometheus.password-file, or --prometheus.bearer-file");
    put_up(403, "text/html", "<p>no</p>");
    assert_fails(-EACCES, "@ wants to know who asks (status 403): name a user and "
                          "--prometheus.password-file, or --prometheus.bearer-file");

    fixture->prometheus = prometheus_close(fixture->prometheus);
    write_file(fixture->password_file, "wrong");
    fixture->settings.user = STR("alice");
    fixture->settings.password_file = str_of(fixture->password_file);
    snprintf(sentence, sizeof(sentence),
             "@ does not take the user alice with the password in %s (status 403): are both right, "
             "and may this user query?",
             fixture->password_file);
    assert_fails(-EACCES, sentence);

    fixture->prometheus = prometheus_close(fixture->prometheus);
    write_file(fixture->bearer_file, "wrong");
    fixture->settings.user = fixture->settings.password_file = STR("");
    fixture->settings.bearer_file = str_of(fixture->bearer_file);
    snprintf(sentence, sizeof(sentence),
             "@ does not take the token in %s (status 403): is it right, and may it query?",
             fixture->bearer_file);
    assert_fails(-EACCES, sentence);
}

TEST(what_is_no_prometheus_is_told_from_one)
{
    static const struct {
        unsigned status;
        const char *type, *body;
        int code;
        const char *sentence;
    } others[] = {
        { 404, "text/plain", "404 page not found\n", -EREMOTEIO,
          "@ answers with status 404: 404 page not found; is the path of --prometheus.url right, "
          "and a Prometheus there?" },
        { 302, "text/html", "<a href='/login'>Found</a>", -EREMOTEIO,
          "@ answers with status 302; it sends us elsewhere: give --prometheus.url the address to "
          "which that leads" },
        { 503, "text/plain", "Service Unavailable", -EREMOTEIO,
          "@ answers with status 503: Service Unavailable; is it running, and ready?" },
        { 502, NULL, "<html>Bad gateway</html>", -EREMOTEIO,
          "@ answers with status 502; is it running, and ready?" },
        { 500, NULL, "", -EREMOTEIO, "@ answers with status 500; see its log" },
        { 418, JSON, VECTOR(""), -EREMOTEIO,
          "@ answers with status 418: " VECTOR("") "; see its log" },
        { 200, "text/html; charset=utf-8", "Log in here", -EBADMSG,
          "@ answers with an HTML page: is --prometheus.url that of a Prometheus, or does "
          "something before it want a login?" },
        { 200, NULL, " \n<!DOCTYPE html>", -EBADMSG,
          "@ answers with an HTML page: is --prometheus.url that of a Prometheus, or does "
          "something before it want a login?" },
        { 200, JSON, "", -EBADMSG,
          "@ answers with nothing: is --prometheus.url that of a Prometheus?" },
    };

    for (size_t i = 0; i < COUNT(others); i++) {
        put_up(others[i].status, others[i].type, others[i].body);
        assert_fails(others[i].code, others[i].sentence);
    }
}

TEST(an_answer_that_is_cut_off_is_no_answer)
{
    put_up_manner(PEER_HALF);
    put_up(200, JSON, VECTOR(ELEMENT("", "1") "," ELEMENT("", "2") "," ELEMENT("", "3")));
    assert_fails(-EREMOTEIO, "@ closed the connection before its answer was whole");
}

TEST(an_answer_over_the_ceiling_is_not_read_to_its_end)
{
    fixture->settings.max_answer = 100;
    put_up(200, JSON, VECTOR(ELEMENT("", "1") "," ELEMENT("", "2")));
    assert_fails(-EFBIG,
                 "if there are that many series, raise --prometheus.max-answer: the answer of @ is "
                 "larger than 100 bytes; raise the ceiling if it has to be");
}

TEST(the_first_warning_is_kept)
{
    assert_answer("{\"warnings\":[{\"a\":\"b\"},\"no store\\nmatched\",\"and more\"],"
                  "\"status\":\"success\",\"isPartial\":true,\"data\":{\"result\":[]}}",
                  "");
    assert_sentence(fixture->result.warning, "@ warns: no store?matched");
}

TEST(a_partial_answer_is_a_warning)
{
    assert_answer("{\"status\":\"success\",\"isPartial\":true,\"data\":{\"result\":[]},"
                  "\"warnings\":null}",
                  "");
    assert_sentence(fixture->result.warning,
                    "@ answers in part: some of its storage does not answer it");
    assert_answer("{\"status\":\"success\",\"isPartial\":false,\"data\":{\"result\":[]}}", "");
    assert_string_equal(fixture->result.warning, "");
}

TEST(a_warning_of_any_length_fits)
{
    struct buf body;

    buf_init(&body, 1 << 20);
    buf_text(&body, "{\"status\":\"success\",\"data\":{\"result\":[]},\"warnings\":[\"");
    for (size_t i = 0; i < 1000; i++)
        buf_text(&body, "\xe2\x82\xac");
    buf_text(&body, "\"]}");
    put_up_bytes(200, JSON, buf_str(&body));
    assert_samples("");
    assert_contains(fixture->result.warning, " warns: \xe2\x82\xac");
    assert_true(strlen(fixture->result.warning) < PROMETHEUS_WARNING);
    for (struct str rest = str_of(fixture->result.warning); rest.n;
         rest = str_skip(rest, str_utf8_len(rest)))
        assert_true(str_utf8_len(rest));
    buf_free(&body);
}

TEST(a_password_is_read_again_at_each_query)
{
    write_file(fixture->password_file, "secret\r\n");
    fixture->settings.user = STR("alice");
    fixture->settings.password_file = str_of(fixture->password_file);
    assert_answer(VECTOR(""), "");
    assert_authorization("Basic YWxpY2U6c2VjcmV0");
    write_file(fixture->password_file, "other");
    assert_samples("");
    assert_authorization("Basic YWxpY2U6b3RoZXI=");
    unlink(fixture->password_file);
    assert_int_equal(ask(), -ENOENT);
    assert_contains(fixture->err.text, "cannot read the password file ");
}

TEST(a_user_may_stand_in_the_url)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://al%%40ice@127.0.0.1:%d",
             peer_port(fixture->peer));
    fixture->settings.url = str_of(fixture->url);
    write_file(fixture->password_file, "secret");
    fixture->settings.password_file = str_of(fixture->password_file);
    assert_answer(VECTOR(""), "");
    assert_authorization("Basic YWxAaWNlOnNlY3JldA==");
    assert_null(strchr(prometheus_origin(fixture->prometheus), '@'));

    fixture->prometheus = prometheus_close(fixture->prometheus);
    snprintf(fixture->url, sizeof(fixture->url), "http://alice:secret@127.0.0.1:%d",
             peer_port(fixture->peer));
    fixture->settings.url = str_of(fixture->url);
    fixture->settings.password_file = STR("");
    assert_samples("");
    assert_authorization("Basic YWxpY2U6c2VjcmV0");
    put_up(401, NULL, "");
    assert_fails(-EACCES,
                 "@ does not take the user alice with the password in the URL (status 401): are "
                 "both right, and may this user query?");
}

TEST(a_token_is_read_again_at_each_query)
{
    write_file(fixture->bearer_file, "first\n");
    fixture->settings.bearer_file = str_of(fixture->bearer_file);
    assert_answer(VECTOR(""), "");
    assert_authorization("Bearer first");
    write_file(fixture->bearer_file, "second\n");
    assert_samples("");
    assert_authorization("Bearer second");
    write_file(fixture->bearer_file, "two\nlines\n");
    assert_int_equal(ask(), -EINVAL);
    assert_contains(fixture->err.text, "holds no token: one line is expected");
    assert_null(strstr(fixture->err.text, "lines"));
}

TEST(a_server_that_says_the_password_again_is_not_repeated)
{
    static const unsigned statuses[] = { 200, 400, 401, 404, 500 };

    fixture->echoes = true;
    write_file(fixture->bearer_file, "eyJhbGciOiJIUzI1NiJ9.a.b");
    fixture->settings.bearer_file = str_of(fixture->bearer_file);
    for (size_t i = 0; i < COUNT(statuses); i++) {
        put_up(statuses[i], "text/plain", "");
        assert_true(ask() < 0);
        assert_null(strstr(fixture->err.text, "eyJ"));
    }
    fixture->prometheus = prometheus_close(fixture->prometheus);
    write_file(fixture->password_file, "secret");
    fixture->settings.bearer_file = STR("");
    fixture->settings.user = STR("alice");
    fixture->settings.password_file = str_of(fixture->password_file);
    for (size_t i = 0; i < COUNT(statuses); i++) {
        put_up(statuses[i], "text/plain", "");
        assert_true(ask() < 0);
        assert_null(strstr(fixture->err.text, "c2Vjc"));
    }
    fixture->echoes = false;
    put_up(400, JSON,
           "{\"status\":\"error\",\"errorType\":\"auth\",\"error\":\"alice:secret is wrong\"}");
    assert_fails(-EREMOTEIO,
                 "@ cannot answer the query (status 400): auth: its words hold the password or the "
                 "token and are not shown here");
    assert_answer("{\"status\":\"success\",\"data\":{\"result\":[]},\"warnings\":[\"secret\"]}",
                  "");
    assert_contains(fixture->result.warning, "not shown here");
}

TEST(what_cannot_be_used_is_refused_at_the_start)
{
    struct prometheus_settings plain = fixture->settings;

    fixture->settings.url = STR("");
    assert_refused("the URL is not of the form http://HOST:PORT/PATH or https://…");
    fixture->settings.url = STR("ftp://127.0.0.1");
    assert_refused("the URL is not of the form http://HOST:PORT/PATH or https://…");
    fixture->settings.url = STR("http://127.0.0.1:9090/?x=1");
    assert_refused("the URL is not of the form http://HOST:PORT/PATH or https://…");

    fixture->settings = plain;
    fixture->settings.user = STR("alice");
    assert_refused("the user alice has no password: name its file with "
                   "--prometheus.password-file");
    fixture->settings.bearer_file = STR("/x");
    assert_refused("a user or a password and --prometheus.bearer-file are two ways to say "
                   "who asks: take one of them out");
    fixture->settings.bearer_file = STR("");
    fixture->settings.url = STR("http://bob:secret@127.0.0.1");
    assert_refused("a user stands in --prometheus.url and another in --prometheus.user: "
                   "take one of them out");
    fixture->settings.user = STR("");
    fixture->settings.password_file = STR("/x");
    assert_refused("a password stands in --prometheus.url, and --prometheus.password-file "
                   "names another: take it out of the URL");
    fixture->settings.url = plain.url;
    assert_refused("there is a password, but no user: name one with --prometheus.user");
}

TEST(one_connection_serves_all_queries)
{
    assert_answer(VECTOR(""), "");
    put_up(400, JSON, "{\"status\":\"error\",\"error\":\"x\"}");
    assert_int_equal(ask(), -EREMOTEIO);
    assert_answer(VECTOR(ELEMENT("", "1")), ",,, 1\n");
    assert_int_equal(peer_connections(fixture->peer), 1);
}

TEST(a_prometheus_may_go_and_come_back)
{
    assert_answer(VECTOR(ELEMENT("", "1")), ",,, 1\n");
    peer_close(fixture->peer);
    assert_fails(-ECONNREFUSED,
                 "cannot connect to @: Connection refused; is it running, and listening there?");
    peer_reopen(fixture->peer);
    assert_samples(",,, 1\n");
}

TEST(a_prometheus_that_hangs_is_not_waited_for)
{
    put_up_manner(PEER_NEVER);
    put_up(200, JSON, VECTOR(""));
    fixture->query.timeout_ms = 200;
    assert_fails(-ETIMEDOUT,
                 "Prometheus is busy or down, or --prometheus.timeout too short: @ did not answer "
                 "in time");
}

TEST(a_slow_drip_does_not_move_the_deadline)
{
    put_up_manner(PEER_TRICKLE);
    put_up(200, JSON, VECTOR(""));
    fixture->query.timeout_ms = 300;
    /* It may have sent nothing until then: that is up to the machine. */
    assert_int_equal(ask(), -ETIMEDOUT);
    assert_contains(fixture->err.text, "answer");
    assert_contains(fixture->err.text, "in time");
}

TEST(a_query_can_be_cancelled_while_its_answer_comes)
{
    put_up_manner(PEER_TRICKLE);
    put_up(200, JSON, VECTOR(ELEMENT("", "1")));
    fixture->query.timeout_ms = 300000;
    fixture->is_cancelled_by_sample = true;
    assert_fails(-ECANCELED, "the request to @ was stopped");
    assert_str(buf_str(&fixture->samples), ",,, 1\n");
}

TEST(no_time_is_no_query)
{
    fixture->query.timeout_ms = 0;
    assert_fails(
        -ETIMEDOUT,
        "Prometheus is busy or down, or --prometheus.timeout too short: no time is left for "
        "a request");
}

static void put_depth(struct buf *body, size_t depth)
{
    buf_reset(body);
    buf_text(body, "{\"x\":");
    for (size_t i = 0; i < depth; i++)
        buf_byte(body, '[');
    for (size_t i = 0; i < depth; i++)
        buf_byte(body, ']');
    buf_text(body, ",\"status\":\"success\",\"data\":{\"result\":[]}}");
}

TEST(what_is_nested_too_deep_is_refused)
{
    struct buf body;

    buf_init(&body, 1 << 20);
    put_depth(&body, 63);
    put_up_bytes(200, JSON, buf_str(&body));
    assert_samples("");
    put_depth(&body, 100000);
    put_up_bytes(200, JSON, buf_str(&body));
    assert_fails(-EFBIG,
                 "cannot read what @ answered: line 1, column 69: objects and arrays are nested "
                 "deeper than 64 levels");
    buf_free(&body);
}

static void put_label(struct buf *body, const char *name, size_t n)
{
    buf_reset(body);
    buf_printf(body,
               "{\"status\":\"success\",\"data\":{\"result\":[{\"value\":[1,\"1\"],"
               "\"metric\":{\"%s\":\"",
               name);
    for (size_t i = 0; i < n; i++)
        buf_byte(body, 'x');
    buf_text(body, "\"}}]}}");
}

TEST(a_label_has_a_ceiling_if_it_is_wanted)
{
    size_t most = 1 << 20;
    struct buf body;

    buf_init(&body, 4 << 20);
    put_label(&body, "jobid", most);
    put_up_bytes(200, JSON, buf_str(&body));
    assert_int_equal(ask(), 0);
    assert_int_equal(fixture->samples.n, most + strlen(",,, 1\n"));
    put_label(&body, "jobid", most + 1);
    put_up_bytes(200, JSON, buf_str(&body));
    assert_fails(-EFBIG,
                 "cannot read what @ answered: line 1, column 74: the string or number that begins "
                 "here is longer than 1048576 bytes");
    put_label(&body, "other", 3 * most);
    put_up_bytes(200, JSON, buf_str(&body));
    assert_samples(",,, 1\n");
    buf_free(&body);
}

TEST(bytes_that_are_not_utf8_are_replaced)
{
    assert_answer(VECTOR(ELEMENT("\"jobid\":\"a\xff\\ud800z\"", "1")),
                  "a\xef\xbf\xbd\xef\xbf\xbdz,,, 1\n");
}

TEST(certificates_may_be_named)
{
    struct certificate *authority = heap_alloc(sizeof(*authority));
    const char *ca_file;

    peer_free(fixture->peer);
    fixture->certificate = heap_alloc(sizeof(*fixture->certificate));
    certificate_make(authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(fixture->certificate,
                     &(struct certificate_wish){ .name = "localhost", .signer = authority });
    ca_file = write_file("ca", authority->cert_pem);
    certificate_free(authority);
    free(authority);
    serve();
    snprintf(fixture->url, sizeof(fixture->url), "https://localhost:%d", peer_port(fixture->peer));
    fixture->settings.url = str_of(fixture->url);
    put_up(200, JSON, VECTOR(ELEMENT("", "1")));
    assert_int_equal(ask(), -EACCES);
    assert_contains(fixture->err.text, "no trusted TLS connection to https://localhost:");
    fixture->prometheus = prometheus_close(fixture->prometheus);
    fixture->settings.ca_file = str_of(ca_file);
    assert_samples(",,, 1\n");
    assert_samples(",,, 1\n");
}
