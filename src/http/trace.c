/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The route /trace: takes the posts of jobs and shows them as a table. */
#include "http/trace.h"

#include "base/arena.h"
#include "http/trace_page.h"
#include "http/unsealer.h"

#include <stdatomic.h>

#define SENTENCE "text/plain; charset=utf-8"

struct http_trace {
    struct http_trace_config config;
    struct unsealer *unsealer;
    atomic_bool is_open;
};

/* How each outcome of a post is told; where no sentence stands here, it is the error's. */
static const struct outcome {
    int code;
    unsigned status;
    const char *retry_after; /* seconds, or NULL */
    const char *sentence;
} outcomes[] = {
    { 0, 200, NULL, "taken and shown\n" },
    { 1, 202, NULL, "taken; shown as soon as the job is known to be in the queue, and yours\n" },
    { -EBADMSG, 400, NULL, NULL },
    { -EACCES, 403, NULL, NULL },
    { -EFBIG, 413, NULL, NULL },
    { -EBUSY, 429, "1", NULL },
    { -ENOSPC, 429, "60", NULL },
};

static const struct outcome cannot_unseal = { 0, 503, "10", NULL };
static const struct outcome bad_client = { 0, 429, "60", NULL };

static const struct outcome *outcome_of(int code)
{
    for (size_t i = 0; i < COUNT(outcomes); i++)
        if (outcomes[i].code == code)
            return &outcomes[i];
    return &cannot_unseal;
}

static void reply(struct http_exchange *x, const struct outcome *outcome, const struct err *err)
{
    char line[sizeof(err->text) + 1];

    if (outcome->retry_after)
        http_add_header(x, "Retry-After", outcome->retry_after);
    snprintf(line, sizeof(line), "%s\n", err->text);
    http_reply(x, outcome->status, SENTENCE, str_of(outcome->sentence ? outcome->sentence : line));
}

static void take(struct http_trace *trace, struct http_exchange *x, struct str body,
                 const struct trace_identity *who)
{
    struct err err = { 0 };
    bool is_simulated;
    struct section *jobs = trace->config.jobs(trace->config.ctx, &is_simulated);
    int code = trace_post(trace->config.trace, body, who, jobs, &err);

    section_unref(jobs);
    reply(x, outcome_of(code), &err);
}

static enum trace_refusal refusal_of(int code)
{
    switch (-code) {
    case EACCES:
        return TRACE_DENIED;
    case EFBIG:
        return TRACE_GARBLED;
    default:
        return TRACE_UNPROVED;
    }
}

/* Garbage is its sender's, and does not use up what all may post, as long as he is held to account
 * for it. That munged could not be asked is nobody's fault. */
static void account_for_refusal(struct http_trace *trace, struct http_exchange *x, int code)
{
    bool is_garbage = code == -EACCES || code == -EFBIG;

    if (code == -EAGAIN || (is_garbage && unsealer_blame(trace->unsealer, http_client(x))))
        trace_readmit(trace->config.trace);
}

static void refuse_credential(struct http_trace *trace, struct http_exchange *x, int code,
                              const struct err *err)
{
    enum trace_refusal why = refusal_of(code);

    if (why == TRACE_UNPROVED && code != -EAGAIN)
        LOG(trace->config.log, LOG_WARN, "the credential of a traced job cannot be opened",
            LOG_STR("error", err->text));
    trace_refuse(trace->config.trace, why);
    reply(x, outcome_of(code), err);
}

static void take_credential(struct http_trace *trace, struct http_exchange *x, struct str text)
{
    struct err err = { 0 };
    struct buf body;
    struct munge_origin origin;
    int code;

    buf_init(&body, TRACE_BODY_MAX);
    code = unsealer_open(trace->unsealer, text, &body, &origin, &err);
    if (code < 0) {
        account_for_refusal(trace, x, code);
        refuse_credential(trace, x, code, &err);
    } else {
        take(
            trace, x, buf_str(&body),
            &(struct trace_identity){ .proof = TRACE_UID, .uid = origin.uid, .is_admitted = true });
    }
    buf_free(&body);
}

/* As munge(1) prints it, with white space around it or without. */
static bool is_credential(struct str text)
{
    return str_starts(str_trim(text), STR("MUNGE:"));
}

/* Without a credential there is a password, or no proof is asked for: begin_post has seen to that.
 * Then a password that is not the owner's will do too: all jobs may share one. */
static void work_on_post(void *ctx, struct http_exchange *x)
{
    struct http_trace *trace = ctx;
    struct str body = http_request_body(x);
    struct trace_identity who = { .proof = TRACE_ANYBODY };

    if (is_credential(body)) {
        take_credential(trace, x, str_trim(body));
        return;
    }
    if (http_user(x).n && !atomic_load(&trace->is_open))
        who = (struct trace_identity){ .proof = TRACE_NAME, .name = http_user(x) };
    take(trace, x, body, &who);
}

/* Whoever reaches us can send credentials. munged, which Slurm needs too, is to see no more of them
 * than there may be posts, none while it hangs, and few from where they prove nothing. */
static enum http_verdict begin_credential(struct http_trace *trace, struct http_exchange *x)
{
    struct err err = { 0 };
    int code = unsealer_check(trace->unsealer, http_client(x), &err);

    if (code == -EBUSY) {
        trace_refuse(trace->config.trace, TRACE_TOO_OFTEN);
        reply(x, &bad_client, &err);
        return HTTP_DONE;
    }
    if (code < 0) {
        refuse_credential(trace, x, code, &err);
        return HTTP_DONE;
    }
    code = trace_admit(trace->config.trace, &err);
    if (code < 0) {
        reply(x, outcome_of(code), &err);
        return HTTP_DONE;
    }
    return HTTP_WORK;
}

static enum http_verdict begin_post(void *ctx, struct http_exchange *x)
{
    struct http_trace *trace = ctx;

    if (http_header(x, "Origin").n) {
        trace_refuse(trace->config.trace, TRACE_UNPROVED);
        http_reply(x, 403, SENTENCE, STR("not from a web page, please\n"));
        return HTTP_DONE;
    }
    if (is_credential(http_request_body(x)))
        return begin_credential(trace, x);
    if (http_user(x).n || atomic_load(&trace->is_open))
        return HTTP_WORK;
    trace_refuse(trace->config.trace, TRACE_UNPROVED);
    http_reply_unauthorized(x, "prove that the job is yours: send the post as a munge credential, "
                               "or with your name and password\n");
    return HTTP_DONE;
}

static enum http_verdict begin_page(void *ctx, struct http_exchange *x)
{
    const struct http_trace *trace = ctx;

    if (!trace->config.may_look || trace->config.may_look(trace->config.look_ctx, x))
        return HTTP_WORK;
    http_reply(x, 403, "text/plain; charset=utf-8",
               STR("traces name users and jobs: they are for staff (--web.staff)\n"));
    return HTTP_DONE;
}

static void work_on_page(void *ctx, struct http_exchange *x)
{
    struct http_trace *trace = ctx;
    bool is_simulated = false;
    struct section *jobs = trace->config.jobs(trace->config.ctx, &is_simulated);
    struct section *traces = trace_section(trace->config.trace, jobs);
    struct buf page;

    buf_init(&page, TRACE_PAGE_BYTES);
    trace_page(&page, traces, jobs, is_simulated);
    http_reply(x, 200, "text/html; charset=utf-8", buf_str(&page));
    buf_free(&page);
    section_unref(traces);
    section_unref(jobs);
}

struct http_trace *http_trace_new(const struct http_trace_config *config)
{
    struct http_trace *trace = heap_alloc(sizeof(*trace));
    const struct unsealer_config credentials = {
        .unseal = config->unseal,
        .socket = config->munge_socket,
        .clock = config->clock,
        .max_refused = 20,
        .refused_ns = 60 * NS_PER_SEC,
    };

    trace->config = *config;
    trace->unsealer = unsealer_new(&credentials);
    atomic_init(&trace->is_open, config->is_open);
    return trace;
}

struct http_trace *http_trace_free(struct http_trace *trace)
{
    if (trace) {
        unsealer_free(trace->unsealer);
        free(trace);
    }
    return NULL;
}

void http_trace_set_open(struct http_trace *trace, bool is_open)
{
    atomic_store(&trace->is_open, is_open);
}

void http_trace_routes(struct http_trace *trace, struct http_route to[HTTP_TRACE_ROUTES])
{
    to[0] = (struct http_route){
        .method = "GET",
        .path = trace->config.path,
        .handle = begin_page,
        .work = work_on_page,
        .ctx = trace,
    };
    to[1] = (struct http_route){
        .method = "POST",
        .path = trace->config.path,
        .max_body = TRACE_BODY_MAX,
        .access = HTTP_OTHER_PROOF,
        .handle = begin_post,
        .work = work_on_post,
        .ctx = trace,
    };
}
