/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Pushgateway's README, "API": a PUT takes the place of a whole group, a DELETE removes it. One
 * connection, kept alive, by libcurl's multi interface, so that a request can be dropped at once.
 *
 * A task must inherit none of its descriptors: through the connection it could push in root's name.
 * libcurl before 8.11 closes none of its own on exec. So sockets are made here, names are resolved
 * here (libcurl's resolver opens a pair for each), and the pair of the multi handle is marked when
 * it is made, before there are tasks. */
#include "plugin/outlet.h"

#include "base/curl.h"
#include "base/str.h"
#include "plugin/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum {
    LANDING_MS = 40,         /* for a request that is under way when the step ends */
    DESCRIPTORS = 4,         /* of a multi handle: a pair of sockets, or an eventfd */
    MOST_TEXT = 4 << 20,     /* memory that is not written to is not taken */
    MOST_ANSWER = 64 * 1024, /* bytes, with headers; a Pushgateway sends some hundred */
    MOST_ADDRESSES = 8,
};

struct gateway {
    struct outlet outlet;
    const struct libcurl *curl;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers, *addresses;
    char host[256], port[8];
    bool is_name;     /* the host */
    bool is_resolved; /* and no request has failed since then */
    bool may_exist;   /* the group: a PUT has left */
    uint64_t serial;  /* of the samples that were told last */
    size_t received;  /* of the current answer */
    char *text;
};

static bool is_packed(struct str line)
{
    struct str name = str_cut(&line, ':');

    return str_eq_nocase(name, STR("Transfer-Encoding")) &&
           !str_eq_nocase(str_trim(line), STR("chunked"));
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct gateway *gateway = ctx;

    (void)bytes;
    gateway->received += size * n;
    return gateway->received <= MOST_ANSWER ? size * n : 0;
}

/* libcurl would unpack what nobody has asked for, to any size. */
static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    return is_packed((struct str){ line, size * n }) ? 0 : on_body(line, size, n, ctx);
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)ctx;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

#define SET(option, value)                                                                         \
    ok = LIBCURL_SETOPT(gateway->curl, gateway->easy, option, value) == CURLE_OK && ok

static bool set_limits(struct gateway *gateway)
{
    bool ok = true;

#if CURL_AT_LEAST_VERSION(7, 85, 0)
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    /* Nothing but the configuration says where root's requests go. */
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, gateway);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, gateway);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    return ok;
}

static bool set_request(struct gateway *gateway, const char *url)
{
    bool ok = true;

    SET(CURLOPT_URL, url);
    SET(CURLOPT_HTTPHEADER, gateway->headers);
    SET(CURLOPT_USERAGENT, "sonde/" SONDE_VERSION);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_BUFFERSIZE, 4096L);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
    return ok;
}

static bool set_user(struct gateway *gateway, CURLU *parts)
{
    const struct libcurl *curl = gateway->curl;
    char *user = NULL, *password = NULL;
    bool ok = true;

    curl->url_get(parts, CURLUPART_USER, &user, CURLU_URLDECODE);
    curl->url_get(parts, CURLUPART_PASSWORD, &password, CURLU_URLDECODE);
    if (user) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, user);
        SET(CURLOPT_PASSWORD, password ? password : "");
    }
    if (password)
        explicit_bzero(password, strlen(password));
    curl->free(user);
    curl->free(password);
    curl->url_set(parts, CURLUPART_USER, NULL, 0);
    curl->url_set(parts, CURLUPART_PASSWORD, NULL, 0);
    return ok;
}

static bool get_part(const struct libcurl *curl, CURLU *parts, CURLUPart part, unsigned flags,
                     char *to, size_t room)
{
    char *text = NULL;
    bool ok = curl->url_get(parts, part, &text, flags) == CURLUE_OK &&
              snprintf(to, room, "%s", text) < (int)room;

    curl->free(text);
    return ok;
}

static bool is_number(const char *host)
{
    struct in_addr address;

    return host[0] == '[' || inet_pton(AF_INET, host, &address) == 1;
}

/* Where the requests go, and what may be shown of that. */
static bool read_host(struct gateway *gateway, CURLU *parts)
{
    const struct libcurl *curl = gateway->curl;
    char scheme[8];

    if (!get_part(curl, parts, CURLUPART_SCHEME, 0, scheme, sizeof(scheme)) ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
        !get_part(curl, parts, CURLUPART_HOST, 0, gateway->host, sizeof(gateway->host)) ||
        !get_part(curl, parts, CURLUPART_PORT, CURLU_DEFAULT_PORT, gateway->port,
                  sizeof(gateway->port)))
        return false;
    snprintf(gateway->outlet.peer, sizeof(gateway->outlet.peer), "the Pushgateway %s://%s:%s",
             scheme, gateway->host, gateway->port);
    gateway->is_name = !is_number(gateway->host);
    return true;
}

/* That of the group, without user and password. */
static bool make_url(struct gateway *gateway, CURLU *parts, const struct profile_step *step,
                     char *to, size_t room)
{
    size_t n;

    if (!get_part(gateway->curl, parts, CURLUPART_URL, 0, to, room))
        return false;
    for (n = strlen(to); n && to[n - 1] == '/'; n--)
        continue;
    return text_group_path(step, to + n, room - n) > 0;
}

static int set_url(struct gateway *gateway, const char *url, const struct profile_step *step,
                   struct err *err)
{
    const struct libcurl *curl = gateway->curl;
    CURLU *parts = curl->url();
    char group[2048];
    bool ok = parts && !strpbrk(url, "?#") &&
              curl->url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
              read_host(gateway, parts) && set_user(gateway, parts) &&
              make_url(gateway, parts, step, group, sizeof(group));

    curl->url_cleanup(parts);
    if (!ok)
        return err_set(
            err, EINVAL,
            "the Pushgateway's URL is not of the form http://HOST:PORT/PATH or https://…");
    if (!set_limits(gateway) || !set_request(gateway, group))
        return err_set(err, ENOTSUP,
                       "the installed libcurl cannot push to a Pushgateway; %s or newer is needed",
                       LIBCURL_VERSION);
    return 0;
}

/* libcurl's own descriptors, which it does not tell: the lowest that are free are taken, and
 * whoever starts a sender is the one who starts the tasks, later. */
static CURLM *make_multi(const struct libcurl *curl)
{
    int next[DESCRIPTORS];
    CURLM *multi;

    for (size_t i = 0; i < DESCRIPTORS; i++)
        next[i] = eventfd(0, EFD_CLOEXEC);
    for (size_t i = 0; i < DESCRIPTORS; i++)
        if (next[i] >= 0)
            close(next[i]);
    multi = curl->multi_init();
    for (size_t i = 0; i < DESCRIPTORS; i++)
        if (next[i] >= 0)
            fcntl(next[i], F_SETFD, FD_CLOEXEC); /* one that is not open fails, and that is all */
    return multi;
}

/* One at a time: a list that could not be made longer is still there. */
static bool add_header(struct gateway *gateway, const char *line)
{
    struct curl_slist *longer = gateway->curl->slist_append(gateway->headers, line);

    if (longer)
        gateway->headers = longer;
    return longer;
}

static int prepare(struct gateway *gateway, const char *url, const struct profile_step *step,
                   struct err *err)
{
    int code = libcurl_open(&gateway->curl, err);

    if (code < 0)
        return code;
    gateway->text = malloc(MOST_TEXT);
    gateway->multi = make_multi(gateway->curl);
    gateway->easy = gateway->curl->easy_init();
    if (!gateway->text || !gateway->multi || !gateway->easy ||
        !add_header(gateway, "Content-Type: text/plain; version=0.0.4; charset=utf-8") ||
        /* Servers that ignore this one cost a second of waiting. */
        !add_header(gateway, "Expect:"))
        return err_set(err, ENOMEM, "there is no memory to push to a Pushgateway");
    return set_url(gateway, url, step, err);
}

/* "HOST:PORT:ADDRESS,ADDRESS", for CURLOPT_RESOLVE. */
static void write_addresses(const struct gateway *gateway, const struct addrinfo *found, char *to,
                            size_t room)
{
    size_t n = (size_t)snprintf(to, room, "%s:%s:", gateway->host, gateway->port);
    char text[INET6_ADDRSTRLEN];

    for (unsigned i = 0; found && i < MOST_ADDRESSES; found = found->ai_next, i++)
        if (getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
                        NI_NUMERICHOST) == 0)
            n +=
                (size_t)snprintf(to + n, room - n, found->ai_family == AF_INET6 ? "%s[%s]" : "%s%s",
                                 i ? "," : "", text);
}

static int resolve(struct gateway *gateway, struct err *err)
{
    const struct libcurl *curl = gateway->curl;
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    char line[sizeof(gateway->host) + 16 + MOST_ADDRESSES * (INET6_ADDRSTRLEN + 3)];
    struct addrinfo *found;
    struct curl_slist *addresses;
    int code = getaddrinfo(gateway->host, NULL, &hints, &found);
    bool ok = true;

    if (code)
        return err_set(err, ENOENT,
                       "the host name of %s cannot be resolved: %s; check its spelling and the "
                       "name service",
                       gateway->outlet.peer, gai_strerror(code));
    write_addresses(gateway, found, line, sizeof(line));
    freeaddrinfo(found);
    addresses = curl->slist_append(NULL, line);
    if (!addresses)
        return err_set(err, ENOMEM, "there is no memory for an address");
    SET(CURLOPT_RESOLVE, addresses);
    curl->slist_free_all(gateway->addresses);
    gateway->addresses = addresses;
    gateway->is_resolved = ok;
    return ok ? 0 : err_set(err, ENOMEM, "libcurl takes no address");
}

static const struct {
    CURLcode result;
    const char *words;
} failures[] = {
    { CURLE_COULDNT_CONNECT, "takes no connection; is it running, and listening there?" },
    { CURLE_OPERATION_TIMEDOUT, "did not answer in time" },
    { CURLE_WRITE_ERROR, "answered what no Pushgateway answers; what is listening there?" },
    { CURLE_GOT_NOTHING, "closed the connection before its answer was whole" },
    { CURLE_PARTIAL_FILE, "closed the connection before its answer was whole" },
    { CURLE_SEND_ERROR, "closed the connection before its answer was whole" },
    { CURLE_RECV_ERROR, "closed the connection before its answer was whole" },
    { CURLE_PEER_FAILED_VERIFICATION, "has no certificate that this node trusts" },
    { CURLE_SSL_CONNECT_ERROR, "makes no TLS connection; is it https that it speaks?" },
};

static const struct {
    long status;
    const char *advice;
} refusals[] = {
    { 400, "what was pushed is at odds with what others have pushed, or wrong" },
    { 401, "are the user and the password right?" },
    { 403, "is this user allowed to push?" },
    { 404, "is the path right, and a Pushgateway there?" },
    { 405, "is the path right, and a Pushgateway there?" },
    { 413, "what takes the requests there must take larger ones" },
};

static int judge_result(const struct gateway *gateway, CURLcode result, struct err *err)
{
    for (size_t i = 0; i < COUNT(failures); i++)
        if (failures[i].result == result)
            return err_set(err, EREMOTEIO, "%s %s", gateway->outlet.peer, failures[i].words);
    return err_set(err, EREMOTEIO, "a request to %s failed: %s", gateway->outlet.peer,
                   gateway->curl->easy_strerror(result));
}

static int judge_status(const struct gateway *gateway, struct err *err)
{
    const char *advice = "see its log";
    long status = 0;

    LIBCURL_GETINFO(gateway->curl, gateway->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status / 100 == 2)
        return 0;
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (refusals[i].status == status)
            advice = refusals[i].advice;
    return err_set(err, EREMOTEIO, "%s answered with status %ld; %s", gateway->outlet.peer, status,
                   advice);
}

/* What became of a request that libcurl no longer works on. */
static int judge(const struct gateway *gateway, struct err *err)
{
    int n_left;
    const CURLMsg *message = gateway->curl->multi_info_read(gateway->multi, &n_left);

    if (!message || message->msg != CURLMSG_DONE)
        return err_set(err, EIO, "libcurl lost a request to %s", gateway->outlet.peer);
    if (message->data.result != CURLE_OK)
        return judge_result(gateway, message->data.result, err);
    return judge_status(gateway, err);
}

static int wait_for_more(struct gateway *gateway, const struct patience *patience, struct err *err)
{
    struct curl_waitfd wake = { .fd = patience->wake_fd, .events = CURL_WAIT_POLLIN };
    int left_ms = patience_left_ms(patience);

    if (!left_ms)
        return judge_result(gateway, CURLE_OPERATION_TIMEDOUT, err);
    if (gateway->curl->multi_poll(gateway->multi, &wake, wake.fd >= 0, left_ms, NULL) != CURLM_OK)
        return err_set(err, EIO, "libcurl cannot wait for %s", gateway->outlet.peer);
    return wake.revents ? -ECANCELED : 0;
}

/* Dropped at once, it might be carried out after the DELETE that follows: a Pushgateway that has
 * all of it does not notice that nobody waits. */
static void let_it_land(struct gateway *gateway, int *n_running, struct err *err)
{
    const struct patience patience = { clock_mono(&clock_real) + LANDING_MS * NS_PER_MS, -1 };
    int code = 0;

    while (code == 0 && *n_running) {
        code = wait_for_more(gateway, &patience, err);
        if (code == 0 && gateway->curl->multi_perform(gateway->multi, n_running) != CURLM_OK)
            code = -EIO;
    }
}

static int perform(struct gateway *gateway, const struct patience *patience, struct err *err)
{
    const struct libcurl *curl = gateway->curl;
    int n_running = 1, code = 0;

    gateway->received = 0;
    if (curl->multi_add_handle(gateway->multi, gateway->easy) != CURLM_OK)
        return err_set(err, ENOMEM, "libcurl takes no request");
    while (code == 0 && n_running) {
        if (curl->multi_perform(gateway->multi, &n_running) != CURLM_OK)
            code = err_set(err, EIO, "libcurl cannot go on with a request");
        else if (n_running)
            code = wait_for_more(gateway, patience, err);
    }
    if (code == -ECANCELED)
        let_it_land(gateway, &n_running, err);
    if (code == 0)
        code = judge(gateway, err);
    /* Drops it if it is under way, and the connection with it. */
    curl->multi_remove_handle(gateway->multi, gateway->easy);
    return code;
}

static int put(struct gateway *gateway, size_t n, const struct patience *patience, struct err *err)
{
    long sent = 0;
    bool ok = true;
    int code;

    SET(CURLOPT_POSTFIELDS, gateway->text);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
    SET(CURLOPT_CUSTOMREQUEST, "PUT");
    if (!ok)
        return err_set(err, ENOMEM, "libcurl takes no request");
    code = perform(gateway, patience, err);
    LIBCURL_GETINFO(gateway->curl, gateway->easy, CURLINFO_REQUEST_SIZE, &sent);
    gateway->may_exist = gateway->may_exist || sent > 0;
    gateway->is_resolved = gateway->is_resolved && code == 0;
    return code;
}

/* A name service that needs longer than a request may is of use in the next turn. */
static int find_server(struct gateway *gateway, const struct patience *patience, struct err *err)
{
    int code = 0;

    if (gateway->is_name && !gateway->is_resolved)
        code = resolve(gateway, err);
    if (code == 0 && !patience_left_ms(patience))
        code = err_set(err, ETIMEDOUT, "the name service was late with the address of %s",
                       gateway->outlet.peer);
    return code;
}

static int tell(struct outlet *outlet, const struct telling *telling,
                const struct patience *patience, struct err *err)
{
    struct gateway *gateway = (struct gateway *)outlet;
    uint64_t serial = samples_serial(telling->samples);
    size_t n;
    int code;

    if (serial == gateway->serial)
        return 0;
    n = text_exposition(telling->samples, telling->step, telling->settings, gateway->text,
                        MOST_TEXT, &outlet->n_too_large);
    if (!n)
        return 0;
    code = find_server(gateway, patience, err);
    if (code == 0)
        code = put(gateway, n, patience, err);
    if (code == 0)
        gateway->serial = serial;
    return code;
}

static int end(struct outlet *outlet, const struct telling *telling,
               const struct patience *patience, struct err *err)
{
    struct gateway *gateway = (struct gateway *)outlet;
    bool ok = true;

    (void)telling;
    if (!gateway->may_exist)
        return 0;
    SET(CURLOPT_HTTPGET, 1L);
    SET(CURLOPT_CUSTOMREQUEST, "DELETE");
    if (!ok)
        return err_set(err, ENOMEM, "libcurl takes no request");
    return perform(gateway, patience, err);
}

static struct outlet *gateway_free(struct outlet *outlet)
{
    struct gateway *gateway = (struct gateway *)outlet;
    const struct libcurl *curl = gateway->curl;

    if (curl) {
        curl->easy_cleanup(gateway->easy);
        if (gateway->multi)
            curl->multi_cleanup(gateway->multi);
        curl->slist_free_all(gateway->headers);
        curl->slist_free_all(gateway->addresses);
    }
    free(gateway->text);
    free(gateway);
    return NULL;
}

struct outlet *outlet_pushgateway_new(const struct profile_settings *settings,
                                      const struct profile_step *step, struct err *err)
{
    struct gateway *gateway = calloc(1, sizeof(*gateway));

    if (!gateway) {
        err_set(err, ENOMEM, "there is no memory to push to a Pushgateway");
        return NULL;
    }
    gateway->outlet =
        (struct outlet){ .tell = tell, .end = end, .free = gateway_free, .is_remote = true };
    if (prepare(gateway, settings->url, step, err) < 0)
        return gateway_free(&gateway->outlet);
    return &gateway->outlet;
}
