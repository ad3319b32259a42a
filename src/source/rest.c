/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm through slurmrestd(8), over TCP with a JSON web token or over a unix socket:
 * https://slurm.schedmd.com/rest_api.html. */
#include "base/fetch.h"
#include "base/quote.h"
#include "model/job_gpus.h"
#include "source/json_answers.h"
#include "source/json_table.h"
#include "source/refusal.h"
#include "source/source.h"
#include "source/token.h"

#include <sys/stat.h>

enum {
    OLDEST = 36, /* of v0.0.N that we speak */
    NEWEST = 46,
    QUESTIONS_MAX = 2,
    PATH_MAX_BYTES = 400,
    CLUSTER_MAX = 100,
    REFUSAL_MAX = 16 * 1024, /* bytes of a body that is no answer */
    FIRST_WITH_QUERIES = 42, /* flags, and last_update in the answer: docs/sources.md */
    EVERYTHING_SECONDS = 60, /* how often all jobs are asked for, changed or not */
};

/* A kind, and what to ask. The second question completes the section of the first. */
static const struct question {
    const char *plugin, *name; /* /PLUGIN/v0.0.N/NAME */
    const struct answer_class *answer;
    unsigned since; /* N of the first that has it, */
    const char *release;
    const char *query;       /* or NULL; from FIRST_WITH_QUERIES on */
    bool is_of_all_clusters; /* unless ours is named */
} questions[KINDS][QUESTIONS_MAX] = {
    /* Hidden partitions are told only on request. */
    [KIND_NODES] = { { "slurm", "nodes", &answer_json_nodes, OLDEST, "20.11", NULL, false },
                     { "slurm", "partitions", &answer_json_partitions, OLDEST, "20.11",
                       "?flags=ALL", false } },
    [KIND_JOBS] = { { "slurm", "jobs", &answer_json_jobs, OLDEST, "20.11", "?flags=ALL", false } },
    [KIND_RESERVATIONS] = { { "slurm", "reservations", &answer_json_reservations, 37, "21.08", NULL,
                              false } },
    [KIND_LICENSES] = { { "slurm", "licenses", &answer_json_licenses, 38, "22.05", NULL, false } },
    [KIND_DIAG] = { { "slurm", "diag", &answer_json_diag, OLDEST, "20.11", NULL, false } },
    [KIND_SHARES] = { { "slurm", "shares", &answer_json_shares, 40, "23.11", NULL, false } },
    [KIND_ASSOCIATIONS] = { { "slurmdb", "associations", &answer_json_associations, OLDEST, "20.11",
                              NULL, true },
                            { "slurmdb", "qos", &answer_json_qos, OLDEST, "20.11", NULL, false } },
    /* Not /ping: that waits for every controller, also for one that is down. */
    [KIND_CONFIG] = { { "slurm", "diag", &answer_json_config, OLDEST, "20.11", NULL, false } },
};

/* The same with DETAIL, the default, which tells the GPUs of jobs and with them each core of each
 * of their nodes: several kilobytes a node. */
static const struct question of_details = { "slurm", "jobs",  &answer_json_jobs,
                                            OLDEST,  "20.11", "?flags=ALL&flags=DETAIL",
                                            false };

static const struct question of_clusters = { "slurmdb", "clusters", &answer_json_clusters,
                                             OLDEST,    "20.11",    NULL,
                                             false };

/* How a version answers ?update_time= to jobs that have not changed; those that are not here do not
 * take a number, or were never tried. Nodes are not asked so: 24.11 fails when they have changed
 * and the partitions have not. */
static const struct changes {
    unsigned first, last;
    bool tells_time;   /* from when its answer is, as last_update */
    bool may_be_empty; /* "no change" is a list of no jobs whose last_update is 0. Else it is status
                        * 304, and such a list means that there are none. */
} all_changes[] = {
    { 37, 38, false, false },
    { FIRST_WITH_QUERIES, NEWEST, true, true },
};

struct rest {
    struct source source;
    char *url;         /* without a slash at its end */
    char *unix_socket; /* or NULL */
    char origin[FETCH_ORIGIN];
    char *user;          /* as was set, or NULL */
    struct token *token; /* or NULL */
    struct fetch_line *line;
    size_t max_answer;
    unsigned version;          /* N of v0.0.N; 0: to be found */
    char cluster[CLUSTER_MAX]; /* its name, if that version tells it */
    struct {
        struct section *section; /* of all jobs; NULL: none is kept */
        int64_t last_update;     /* slurmctld's time, in seconds */
        int64_t wall_ns, mono_ns;
        bool has_details;
    } kept;
    bool has_gpus;      /* the cluster, as far as has been seen */
    bool lacks_changes; /* ?update_time= was refused */
    enum kind warner;   /* whose readings carry the warnings of the token; KINDS: none has yet */
};

/* One request, and what came of it. */
struct exchange {
    struct answer *answer; /* what reads the document */
    bool is_document;
    struct buf refusal; /* the beginning of anything else */
    struct fetch_result result;
};

static int begin(void *ctx, const struct fetch_result *so_far, struct err *err)
{
    struct exchange *exchange = ctx;

    (void)err;
    exchange->is_document = so_far->status == 200 && !refusal_is_page(so_far->content_type);
    return 0;
}

static int feed(void *ctx, struct str piece, struct err *err)
{
    struct exchange *exchange = ctx;

    if (exchange->is_document)
        return answer_feed(exchange->answer, piece, err);
    buf_put(&exchange->refusal, str_head(piece, REFUSAL_MAX - exchange->refusal.n));
    return 0;
}

static const char *user_of(const struct rest *rest)
{
    if (rest->user)
        return rest->user;
    return rest->token && rest->token->user[0] ? rest->token->user : NULL;
}

static void explain(const struct rest *rest, const char *path, int code, struct err *err)
{
    if (code == -EBADMSG)
        err_prefix(err, "cannot read what %s answered to %s", rest->origin, path);
    else if (code == -ETIMEDOUT)
        err_prefix(err, "slurmrestd or slurmctld is busy or down, or --slurm.timeout too short");
    else if (code == -EFBIG)
        err_prefix(err, "cannot keep what %s answered to %s", rest->origin, path);
}

/* Sends it with the token at hand. */
static int send_request(struct rest *rest, const char *path, int64_t deadline_ns,
                        struct exchange *exchange, struct err *err)
{
    char url[2048], user[TOKEN_USER + 32] = "", token[TOKEN_MAX + 32] = "";
    const char *headers[] = { "Accept: application/json", NULL, NULL, NULL };
    struct fetch fetch = {
        .url = url,
        .unix_socket = rest->unix_socket,
        .headers = headers,
        .timeout_ms = (deadline_ns - clock_mono(&clock_real)) / NS_PER_MS,
        .max_answer = SIZE_MAX, /* answer_feed has the ceiling */
        .cancelled = &rest->source.cancelled,
        .line = rest->line,
        .begin = begin,
        .sink = feed,
        .ctx = exchange,
    };
    size_t n = 1;
    int code;

    snprintf(url, sizeof(url), "%s%s", rest->url, path);
    if (rest->token) {
        snprintf(token, sizeof(token), "X-SLURM-USER-TOKEN: %s", rest->token->text);
        headers[n++] = token;
    }
    if (user_of(rest)) {
        snprintf(user, sizeof(user), "X-SLURM-USER-NAME: %s", user_of(rest));
        headers[n++] = user;
    }
    buf_reset(&exchange->refusal);
    code = fetch_run(&fetch, &exchange->result, err);
    explicit_bzero(token, sizeof(token));
    if (code < 0)
        explain(rest, path, code, err);
    return code;
}

static int64_t now_seconds(const struct rest *rest)
{
    return clock_wall(rest->source.clock) / NS_PER_SEC;
}

static bool is_refusal(const struct exchange *exchange)
{
    return !exchange->is_document && exchange->result.status != 304;
}

/* Asks once more if the file holds another token by now. */
static int request(struct rest *rest, const char *path, int64_t deadline_ns,
                   struct exchange *exchange, struct err *err)
{
    int code = rest->token ? token_refresh(rest->token, err) : 0;

    if (code == 0)
        code = send_request(rest, path, deadline_ns, exchange, err);
    if (code == 0 && is_refusal(exchange) && exchange->result.status != 404 && rest->token &&
        token_reread(rest->token))
        code = send_request(rest, path, deadline_ns, exchange, err);
    return code;
}

static int deny(const struct rest *rest, const char *words, struct err *err)
{
    const struct token *token = rest->token;
    const char *user = user_of(rest);

    if (!token && rest->unix_socket)
        return err_set(err, EACCES,
                       "%s turns us away (%s): without a token it serves root and its own user; "
                       "run as one of them, or name a token with --slurm.rest-token-file",
                       rest->origin, words);
    if (!token)
        return err_set(err, EACCES,
                       "%s wants a token (%s): name its file with --slurm.rest-token-file; "
                       "scontrol token username=NAME lifespan=SECONDS makes one",
                       rest->origin, words);
    if (token_has_expired(token, now_seconds(rest)))
        return err_set(err, EACCES,
                       "the token in %s has expired at %s: put a new one there, made with scontrol "
                       "token username=%s lifespan=SECONDS",
                       quote(str_of(token->path)).text, token_end(token).text,
                       user ? user : "NAME");
    return err_set(err, EACCES,
                   "%s does not take the token in %s for the user %s (%s): is it of this cluster? "
                   "scontrol token username=%s lifespan=SECONDS makes one%s",
                   rest->origin, quote(str_of(token->path)).text,
                   user ? user : "whom it does not name", words, user ? user : "NAME",
                   user ? "" : "; --slurm.rest-user names him");
}

/* What is no document. */
/* What slurmrestd says of itself while slurmctld does not answer it. */
static bool is_of_controller(const struct refusal *refusal)
{
    return strstr(refusal->words, "Unspecified error") || strstr(refusal->words, "controller");
}

static int judge(const struct rest *rest, const char *path, const struct exchange *exchange,
                 struct err *err)
{
    long status = exchange->result.status;
    struct refusal refusal;

    refusal_read(buf_str(&exchange->refusal), exchange->result.content_type, &refusal);
    if (status == 200)
        return err_set(
            err, EBADMSG,
            "%s answers with an HTML page to %s: is --slurm.rest-url that of slurmrestd, "
            "or does something before it want a login?",
            rest->origin, path);
    if (status >= 300 && status < 400)
        return err_set(err, EREMOTEIO,
                       "%s sends us elsewhere (status %ld) from %s: give --slurm.rest-url the "
                       "address to which it leads",
                       rest->origin, status, path);
    if (status == 401 || status == 403 || status == 511 || refusal_is_of_token(&refusal) ||
        (rest->token && token_has_expired(rest->token, now_seconds(rest))))
        return deny(rest, refusal.words, err);
    return err_set(err, EREMOTEIO, "%s answers %s with status %ld: %s%s%s", rest->origin, path,
                   status, refusal.words,
                   is_of_controller(&refusal) ? "; is slurmctld running?" : "",
                   rest->token && refusal_may_be_of_token(&refusal)
                       ? " It says so too of a token that slurmctld does not take."
                       : "");
}

/* Nothing that a query would have to escape; Slurm allows no more. */
static bool is_cluster(struct str name)
{
    static const struct str bytes = STR_INIT("abcdefghijklmnopqrstuvwxyz0123456789"
                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-.");

    for (size_t i = 0; i < name.n; i++)
        if (str_find(bytes, name.p[i]) == bytes.n)
            return false;
    return name.n && name.n < CLUSTER_MAX;
}

static void note_cluster(struct rest *rest, const struct section *section)
{
    struct str name = section_text(section, section->config.cluster);

    if (is_cluster(name))
        snprintf(rest->cluster, sizeof(rest->cluster), "%.*s", STR_ARG(name));
}

/* 1: spoken there; 0: not. Any answer but 404 is from somebody who knows the version. */
static int speaks(struct rest *rest, unsigned version, int64_t deadline_ns, struct err *err)
{
    struct section *section = section_new(KIND_CONFIG);
    struct exchange exchange = { .answer =
                                     answer_new(&answer_json_config, section, rest->max_answer) };
    char path[PATH_MAX_BYTES];
    int code;

    snprintf(path, sizeof(path), "/slurm/v0.0.%u/diag", version);
    buf_init(&exchange.refusal, REFUSAL_MAX);
    code = request(rest, path, deadline_ns, &exchange, err);
    if (code == 0 && exchange.is_document && answer_json_config.end(exchange.answer, NULL) == 0)
        note_cluster(rest, section);
    if (code == 0 && exchange.result.status != 404) {
        bool is_known = exchange.is_document ||
                        str_starts(str_of(exchange.result.content_type), STR("application/json"));

        code = is_known ? 1 : judge(rest, path, &exchange, err);
    }
    buf_free(&exchange.refusal);
    answer_free(exchange.answer);
    section_unref(section);
    return code;
}

static int find_version(struct rest *rest, int64_t deadline_ns, struct err *err)
{
    int code = rest->version ? speaks(rest, rest->version, deadline_ns, err) : 0;

    if (code)
        return code < 0 ? code : 0;
    rest->version = 0;
    for (unsigned version = NEWEST; version >= OLDEST; version--) {
        code = speaks(rest, version, deadline_ns, err);
        if (code < 0)
            return code;
        if (code) {
            rest->version = version;
            rest->lacks_changes = false;
            return 0;
        }
    }
    return err_set(
        err, EOPNOTSUPP,
        "%s knows no version from v0.0.%d to v0.0.%d (404 for each): is --slurm.rest-url "
        "that of slurmrestd?",
        rest->origin, OLDEST, NEWEST);
}

static void put_path(const struct rest *rest, const struct question *question, int64_t since,
                     char ret[PATH_MAX_BYTES])
{
    bool has_query = question->query && rest->version >= FIRST_WITH_QUERIES;
    int n = snprintf(ret, PATH_MAX_BYTES, "/%s/v0.0.%u/%s%s", question->plugin, rest->version,
                     question->name, has_query ? question->query : "");

    if (since)
        snprintf(ret + n, (size_t)(PATH_MAX_BYTES - n), "%cupdate_time=%lld", has_query ? '&' : '?',
                 (long long)since);
    if (question->is_of_all_clusters && rest->cluster[0])
        snprintf(ret + n, (size_t)(PATH_MAX_BYTES - n), "?cluster=%s", rest->cluster);
}

/* Reads the answer to one question into the section, or that there is nothing new since then.
 * *ret_status is 200, 304 or 404 on success. */
static int ask(struct rest *rest, const struct question *question, int64_t since,
               int64_t deadline_ns, struct answer *answer, long *ret_status, struct err *err)
{
    struct exchange exchange = { .answer = answer };
    char path[PATH_MAX_BYTES];
    int code;

    put_path(rest, question, since, path);
    buf_init(&exchange.refusal, REFUSAL_MAX);
    code = request(rest, path, deadline_ns, &exchange, err);
    if (code == 0 && exchange.is_document) {
        code = answer->class->end(answer, err);
        /* A whole document that tells of an error instead. */
        if (code == -EREMOTEIO && ((struct json_answer *)answer)->has_errors)
            code = err_set(err, EREMOTEIO, "%s answers %s with an error: %s", rest->origin, path,
                           quote(str_of(err->text)).text);
        else if (code < 0)
            explain(rest, path, code, err);
    } else if (code == 0 && is_refusal(&exchange) && exchange.result.status != 404) {
        code = judge(rest, path, &exchange, err);
    }
    answer->section->bytes_read += code == 0 ? exchange.result.bytes : 0;
    *ret_status = exchange.result.status;
    buf_free(&exchange.refusal);
    return code;
}

static const struct changes *changes_of(const struct rest *rest)
{
    for (size_t i = 0; i < COUNT(all_changes); i++)
        if (rest->version >= all_changes[i].first && rest->version <= all_changes[i].last)
            return &all_changes[i];
    return NULL;
}

static bool wants_details(const struct rest *rest)
{
    return rest->has_gpus && rest->source.depth == SOURCE_DETAILS;
}

static bool may_ask_for_changes(const struct rest *rest)
{
    const struct clock *clock = rest->source.clock;

    /* A clock that has been set back may be slurmctld's as well, and then its last change would be
     * newer than all that come for a while. */
    return rest->kept.section && rest->kept.has_details == wants_details(rest) &&
           changes_of(rest) && !rest->lacks_changes &&
           clock_mono(clock) - rest->kept.mono_ns < EVERYTHING_SECONDS * NS_PER_SEC &&
           clock_wall(clock) >= rest->kept.wall_ns;
}

static void keep(struct rest *rest, struct section *section, int64_t last_update)
{
    rest->kept.section = section_unref(rest->kept.section);
    if (last_update <= 0)
        return;
    rest->kept.section = section_ref(section);
    rest->kept.last_update = last_update;
    rest->kept.wall_ns = clock_wall(rest->source.clock);
    rest->kept.mono_ns = clock_mono(rest->source.clock);
    rest->kept.has_details = wants_details(rest);
}

/* slurmctld's time now, which its statistics have; 0: unknown. Our own clock may be another. */
static int64_t ask_of_time(struct rest *rest, int64_t deadline_ns, struct section *jobs)
{
    struct section *section = section_new(KIND_DIAG);
    struct answer *answer = answer_new(&answer_json_diag, section, rest->max_answer);
    struct err unwanted;
    int64_t seconds;
    long status;
    bool ok = ask(rest, questions[KIND_DIAG], 0, deadline_ns, answer, &status, &unwanted) == 0;

    answer_free(answer);
    seconds = ok && status == 200 ? section->diag.time : 0;
    jobs->bytes_read += section->bytes_read;
    section_unref(section);
    return seconds;
}

/* Those that have changed since then, 0: all. *ret_last_update is what to ask from the next time,
 * or 0 if that is not known. */
static int ask_of_jobs(struct rest *rest, int64_t since, int64_t deadline_ns,
                       struct section *section, long *ret_status, int64_t *ret_last_update,
                       struct err *err)
{
    const struct changes *changes = changes_of(rest);
    int64_t asked_at = changes && !changes->tells_time && !rest->lacks_changes
                           ? ask_of_time(rest, deadline_ns, section)
                           : 0;
    struct answer *answer = answer_new(&answer_json_jobs, section, rest->max_answer);
    int code = ask(rest, wants_details(rest) ? &of_details : questions[KIND_JOBS], since,
                   deadline_ns, answer, ret_status, err);

    *ret_last_update = changes && changes->tells_time
                           ? ((const struct json_answer *)answer)->last_update
                           : asked_at;
    answer_free(answer);
    return code;
}

/* Completes the section if it can. */
static void ask_of_cluster(struct rest *rest, int64_t deadline_ns, struct section *section)
{
    struct answer *answer = answer_new(of_clusters.answer, section, rest->max_answer);
    struct err unwanted;
    long status;

    ask(rest, &of_clusters, 0, deadline_ns, answer, &status, &unwanted);
    answer_free(answer);
}

static int lacks(const struct rest *rest, const struct question *question, struct err *err)
{
    if (rest->version < question->since)
        return err_set(err, EOPNOTSUPP,
                       "slurmrestd's v0.0.%u has no %s: they came with v0.0.%u, of Slurm %s",
                       rest->version, question->name, question->since, question->release);
    return err_set(err, EOPNOTSUPP,
                   "%s has no /%s/v0.0.%u/%s: slurmrestd was started without it (-s), or something "
                   "before it does not let it through%s",
                   rest->origin, question->plugin, rest->version, question->name,
                   strcmp(question->plugin, "slurmdb") == 0 ? ", or the cluster has no slurmdbd"
                                                            : "");
}

static int read_questions(struct rest *rest, enum kind kind, int64_t deadline_ns,
                          struct section *section, long *ret_status, struct err *err)
{
    int code = 0;

    *ret_status = 200;
    for (size_t i = 0; i < QUESTIONS_MAX && questions[kind][i].name; i++) {
        struct answer *answer = answer_new(questions[kind][i].answer, section, rest->max_answer);

        code = ask(rest, &questions[kind][i], 0, deadline_ns, answer, ret_status, err);
        answer_free(answer);
        if (code == 0 && *ret_status == 404 && i > 0)
            code = lacks(rest, &questions[kind][i], err);
        if (code < 0 || *ret_status != 200)
            break;
    }
    return code;
}

static int read_all_jobs(struct rest *rest, int64_t deadline_ns, struct section *section,
                         long *ret_status, struct err *err)
{
    int64_t last_update;
    int code = ask_of_jobs(rest, 0, deadline_ns, section, ret_status, &last_update, err);

    if (code == 0 && *ret_status == 200)
        keep(rest, section, last_update);
    return code;
}

/* The jobs if they have changed, what is kept of them if not. 1: all have to be asked for. */
static int read_changes(struct rest *rest, int64_t deadline_ns, struct section **ret,
                        struct err *err)
{
    struct section *section = section_new(KIND_JOBS), *kept = rest->kept.section;
    int64_t last_update;
    long status;
    int code =
        ask_of_jobs(rest, rest->kept.last_update, deadline_ns, section, &status, &last_update, err);
    bool is_unknown = status == 400 || status == 422;

    if ((is_unknown || status == 404 || status >= 500) && code != -EACCES) {
        rest->lacks_changes = is_unknown;
        code = 1;
    } else if (code == 0 && (status == 304 || (changes_of(rest)->may_be_empty && !section->jobs.n &&
                                               !last_update))) {
        *ret = section_again(kept);
        (*ret)->bytes_read = section->bytes_read;
    } else if (code == 0) {
        keep(rest, section, last_update);
        *ret = section_ref(section);
    }
    section_unref(section);
    return code;
}

static int read_whole(struct rest *rest, enum kind kind, int64_t deadline_ns, struct section **ret,
                      long *ret_status, struct err *err)
{
    struct section *section = section_new(kind);
    int code = kind == KIND_JOBS
                   ? read_all_jobs(rest, deadline_ns, section, ret_status, err)
                   : read_questions(rest, kind, deadline_ns, section, ret_status, err);

    if (code == 0 && *ret_status == 200)
        *ret = section;
    else
        section_unref(section);
    return code;
}

/* The answer in the version that is spoken, found anew if it has gone with an upgrade. */
static int read_kind(struct rest *rest, enum kind kind, int64_t deadline_ns, struct section **ret,
                     struct err *err)
{
    unsigned before = rest->version;
    long status = 404;
    int code = before ? 0 : find_version(rest, deadline_ns, err);

    if (code == 0 && rest->version >= questions[kind]->since)
        code = read_whole(rest, kind, deadline_ns, ret, &status, err);
    if (code < 0 || status == 200)
        return code;
    if (before && rest->version >= questions[kind]->since) {
        code = find_version(rest, deadline_ns, err);
        if (code == 0 && rest->version != before && rest->version >= questions[kind]->since)
            code = read_whole(rest, kind, deadline_ns, ret, &status, err);
    }
    return code < 0 || status == 200 ? code : lacks(rest, questions[kind], err);
}

/* slurmrestd makes the lists of waiting tasks as short as its environment says. */
static void warn_of_cuts(const struct section *section, char ret_warning[SOURCE_WARNING])
{
    if (section->kind == KIND_JOBS && section->jobs.n_cut && !ret_warning[0])
        snprintf(ret_warning, SOURCE_WARNING,
                 "slurmrestd cuts long lists of array tasks short, so that too few are counted: "
                 "start it with SLURM_BITSTR_LEN=0 in its environment");
}

static void warn_of_token(struct rest *rest, enum kind kind, char ret_warning[SOURCE_WARNING])
{
    if (!rest->token || (rest->warner != KINDS && rest->warner != kind))
        return;
    token_warn(rest->token, now_seconds(rest), ret_warning, SOURCE_WARNING);
    if (ret_warning[0])
        rest->warner = kind;
}

static int rest_read(struct source *source, enum kind kind, int64_t deadline_ns,
                     struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct rest *rest = (struct rest *)source;
    int code = 1;

    ret_warning[0] = '\0';
    if (kind == KIND_JOBS && may_ask_for_changes(rest))
        code = read_changes(rest, deadline_ns, ret, err);
    if (code > 0)
        code = read_kind(rest, kind, deadline_ns, ret, err);
    if (code == 0 && kind == KIND_CONFIG && !(*ret)->config.cluster)
        ask_of_cluster(rest, deadline_ns, *ret);
    if (code == 0 && kind == KIND_CONFIG)
        note_cluster(rest, *ret);
    if (code == 0 && (kind == KIND_NODES || kind == KIND_JOBS) && !rest->has_gpus)
        rest->has_gpus = section_has_gpus(*ret);
    if (code == 0) {
        warn_of_token(rest, kind, ret_warning);
        warn_of_cuts(*ret, ret_warning);
    }
    /* What comes back may be another release. */
    if (code == -ECONNREFUSED || code == -ENOENT)
        rest->version = 0;
    return code;
}

static int rest_probe(const struct source *source, struct err *err)
{
    const struct rest *rest = (const struct rest *)source;
    struct stat found;

    if (rest->unix_socket && stat(rest->unix_socket, &found) < 0)
        return err_set(err, errno, "there is no socket %s: %s; is slurmrestd running?",
                       quote(str_of(rest->unix_socket)).text, err_words(errno));
    if (rest->token && access(rest->token->path, R_OK) < 0)
        return err_set(err, errno, "cannot read the token file %s: %s",
                       quote(str_of(rest->token->path)).text, err_words(errno));
    return 0;
}

static void rest_tell(const struct source *source, struct source_about *about)
{
    const struct rest *rest = (const struct rest *)source;

    if (rest->version)
        snprintf(about->interface, sizeof(about->interface), "v0.0.%u", rest->version);
    if (rest->token)
        about->token_expires = rest->token->expires;
}

static void rest_close(struct source *source)
{
    struct rest *rest = (struct rest *)source;

    section_unref(rest->kept.section);
    fetch_line_free(rest->line);
    token_free(rest->token);
    free(rest->url);
    free(rest->unix_socket);
    free(rest->user);
    free(rest);
}

static const struct source_class rest_class = {
    .name = "rest",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
             KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
             KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
    .read = rest_read,
    .close = rest_close,
    .probe = rest_probe,
    .tell = rest_tell,
};

/* "http://host:6820/", "unix:/run/slurmrestd/socket" */
static int take_url(struct rest *rest, struct str url, struct err *err)
{
    struct str path = url;

    if (str_starts(url, STR("unix:"))) {
        path = str_skip(url, strlen("unix:"));
        if (!path.n || path.p[0] != '/' || memchr(path.p, '\0', path.n))
            return err_set(err, EINVAL, "--slurm.rest-url has no path of a socket: unix:/PATH");
        rest->unix_socket = heap_str(path);
        url = STR("http://localhost");
    }
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    if (url.n > 1024 || str_find(url, '?') < url.n || str_find(url, '#') < url.n)
        return err_set(err, EINVAL,
                       "--slurm.rest-url must be http://HOST:PORT, https://… or "
                       "unix:/PATH, and no more");
    rest->url = heap_str(url);
    if (fetch_origin(rest->url, rest->unix_socket, rest->origin, err) < 0)
        return err_prefix(err, "--slurm.rest-url");
    return 0;
}

static int take_user(struct rest *rest, struct str user, struct err *err)
{
    if (!user.n)
        return 0;
    for (size_t i = 0; i < user.n; i++)
        if (user.p[i] <= ' ' || user.p[i] > '~' || user.n >= TOKEN_USER)
            return err_set(err, EINVAL, "--slurm.rest-user: \"%s\" is not the name of a user",
                           quote(user).text);
    rest->user = heap_str(user);
    return 0;
}

int source_open_rest(const struct source_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err)
{
    struct rest *rest = heap_alloc(sizeof(*rest));
    int code;

    rest->source.class = &rest_class;
    rest->source.clock = clock;
    rest->max_answer = settings->max_answer;
    rest->warner = KINDS;
    code = take_url(rest, settings->rest_url, err);
    if (code == 0)
        code = take_user(rest, settings->rest_user, err);
    if (code < 0) {
        rest_close(&rest->source);
        return code;
    }
    if (settings->rest_token_file.n)
        rest->token = token_new(settings->rest_token_file);
    rest->line = fetch_line_new();
    *ret = &rest->source;
    return 0;
}
