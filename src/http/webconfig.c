/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the file of --web.config.file. */
#include "http/webconfig.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/yaml.h"
#include "http/priority.h"

#include <fcntl.h>
#include <limits.h>

enum {
    LARGEST_PEM = 1 << 20,
    BCRYPT_LENGTH = 60,
    /* A check of this cost takes about 15 s: nobody waits longer, nor does http_stop. */
    HIGHEST_BCRYPT_COST = 18,
};

/* The file as it is written; what it means is found out when all of it is known. */
struct reader {
    const char *path;
    struct str directory;
    struct arena *arena;
    struct webconfig *web;
    struct webconfig_files *files;
    struct err *err;

    const struct yaml_node *tls; /* the section */
    struct str cert, key, client_ca, cert_file, key_file, client_ca_file;
    const struct yaml_node *client_auth, *sans;
    const struct yaml_node *min_version, *max_version;
    struct priority_settings priority;
    struct webconfig_header headers[WEBCONFIG_HEADERS];
    bool http2; /* the server speaks HTTP/1.1 only, so either value is fine */
};

struct key {
    const char *name;
    int (*set)(struct reader *reader, const struct yaml_node *node, void *place);
    size_t offset; /* of the place in struct reader */
};

/* The file may set all but the last, which the toolkit does not have. */
enum { SETTABLE_HEADERS = WEBCONFIG_HEADERS - 1 };

static const struct webconfig_header default_headers[WEBCONFIG_HEADERS] = {
    { "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'self'; "
      "base-uri 'none'",
      false },
    { "X-Frame-Options", "DENY", false },
    { "X-Content-Type-Options", "nosniff", false },
    { "X-XSS-Protection", "", false },
    { "Strict-Transport-Security", "", false },
    { "Referrer-Policy", "no-referrer", false },
};

static const struct priority_name client_auth_types[] = {
    [TLS_CLIENT_NONE] = { "NoClientCert", { 0 } },
    [TLS_CLIENT_REQUEST] = { "RequestClientCert", { 0 } },
    [TLS_CLIENT_REQUIRE_ANY] = { "RequireAnyClientCert", { 0 } },
    [TLS_CLIENT_VERIFY_IF_GIVEN] = { "VerifyClientCertIfGiven", { 0 } },
    [TLS_CLIENT_REQUIRE_AND_VERIFY] = { "RequireAndVerifyClientCert", { 0 } },
    { 0 },
};

static int unknown_key(struct reader *reader, const struct yaml_node *node, const struct key *keys)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;

    for (; keys->name; keys++) {
        size_t distance = str_distance(str_of(keys->name), node->key);

        if (distance < least) {
            least = distance;
            nearest = keys->name;
        }
    }
    return yaml_refuse(node, reader->path, reader->err,
                       "unknown key \"%s\", the nearest valid one is \"%s\"", quote(node->key).text,
                       nearest);
}

static int set_keys(struct reader *reader, const struct yaml_node *section, const struct key *keys)
{
    if (yaml_is_null(section))
        return 0;
    if (section->kind != YAML_MAPPING)
        return yaml_refuse(section, reader->path, reader->err,
                           "keys and values are expected here, beginning with \"%s:\"",
                           keys[0].name);
    for (const struct yaml_node *node = section->child; node; node = node->next) {
        const struct key *key = keys;
        int r;

        while (key->name && !str_eq(str_of(key->name), node->key))
            key++;
        if (!key->name)
            return unknown_key(reader, node, keys);
        r = key->set(reader, node, (char *)reader + key->offset);
        if (r < 0)
            return r;
    }
    return 0;
}

static struct str text_of(const struct yaml_node *node)
{
    return yaml_is_null(node) ? STR("") : node->text;
}

static int set_text(struct reader *reader, const struct yaml_node *node, void *place)
{
    if (node->kind != YAML_SCALAR)
        return yaml_refuse(node, reader->path, reader->err, "\"%s\" takes one text",
                           quote(node->key).text);
    *(struct str *)place = text_of(node);
    return 0;
}

/* A text that is looked at later, when its line is still wanted. */
static int set_word(struct reader *reader, const struct yaml_node *node, void *place)
{
    if (node->kind != YAML_SCALAR)
        return yaml_refuse(node, reader->path, reader->err, "\"%s\" takes one word",
                           quote(node->key).text);
    *(const struct yaml_node **)place = node;
    return 0;
}

static int set_list(struct reader *reader, const struct yaml_node *node, void *place)
{
    if (yaml_is_null(node))
        return 0;
    if (node->kind != YAML_LIST)
        return yaml_refuse(node, reader->path, reader->err, "\"%s\" takes a list",
                           quote(node->key).text);
    for (const struct yaml_node *item = node->child; item; item = item->next)
        if (item->kind != YAML_SCALAR || yaml_is_null(item))
            return yaml_refuse(item, reader->path, reader->err, "\"%s\" takes a list of texts",
                               quote(node->key).text);
    *(const struct yaml_node **)place = node;
    return 0;
}

static int set_bool(struct reader *reader, const struct yaml_node *node, void *place)
{
    if (node->kind != YAML_SCALAR || !yaml_get_bool(node->text, place))
        return yaml_refuse(node, reader->path, reader->err, "\"%s\" is true or false",
                           quote(node->key).text);
    return 0;
}

/* The row of a table of names; *ret stays as it is where nothing is said. */
static int find_word(struct reader *reader, const struct yaml_node *node,
                     const struct priority_name *names, size_t *ret)
{
    const struct priority_name *row;
    const char *nearest;

    if (!node || yaml_is_null(node))
        return 0;
    row = priority_find(names, node->text, &nearest);
    if (!row)
        return yaml_refuse(node, reader->path, reader->err,
                           "\"%s\" is not known, the nearest valid one is \"%s\"",
                           quote(node->text).text, nearest);
    *ret = (size_t)(row - names);
    return 0;
}

static int check_words(struct reader *reader, const struct yaml_node *list,
                       const struct priority_name *names)
{
    size_t row;
    int r = 0;

    for (const struct yaml_node *item = list ? list->child : NULL; item && r == 0;
         item = item->next)
        r = find_word(reader, item, names, &row);
    return r;
}

static const struct key tls_keys[] = {
    { "cert_file", set_text, offsetof(struct reader, cert_file) },
    { "key_file", set_text, offsetof(struct reader, key_file) },
    { "cert", set_text, offsetof(struct reader, cert) },
    { "key", set_text, offsetof(struct reader, key) },
    { "client_auth_type", set_word, offsetof(struct reader, client_auth) },
    { "client_ca_file", set_text, offsetof(struct reader, client_ca_file) },
    { "client_ca", set_text, offsetof(struct reader, client_ca) },
    { "client_allowed_sans", set_list, offsetof(struct reader, sans) },
    { "min_version", set_word, offsetof(struct reader, min_version) },
    { "max_version", set_word, offsetof(struct reader, max_version) },
    { "cipher_suites", set_list, offsetof(struct reader, priority.ciphers) },
    { "curve_preferences", set_list, offsetof(struct reader, priority.curves) },
    { "prefer_server_cipher_suites", set_bool, offsetof(struct reader, priority.prefers_server) },
    { 0 },
};

static int set_tls(struct reader *reader, const struct yaml_node *node, void *place)
{
    (void)place;
    reader->tls = node; /* also an empty one: who began it does not want plain HTTP */
    return set_keys(reader, node, tls_keys);
}

static bool is_one_line(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == '\x7f')
            return false;
    return true;
}

static int set_header(struct reader *reader, const struct yaml_node *node, void *place)
{
    struct webconfig_header *header = place;
    struct str value;

    if (node->kind != YAML_SCALAR || !is_one_line(node->text))
        return yaml_refuse(node, reader->path, reader->err, "\"%s\" takes one line of text",
                           quote(node->key).text);
    value = str_trim(text_of(node));
    if (value.n && str_eq(node->key, STR("X-Frame-Options")) &&
        !str_eq_nocase(value, STR("deny")) && !str_eq_nocase(value, STR("sameorigin")))
        return yaml_refuse(node, reader->path, reader->err,
                           "X-Frame-Options is deny or sameorigin");
    if (value.n && str_eq(node->key, STR("X-Content-Type-Options")) &&
        !str_eq_nocase(value, STR("nosniff")))
        return yaml_refuse(node, reader->path, reader->err, "X-Content-Type-Options is nosniff");
    header->value = arena_str(&reader->web->arena, value).p;
    header->from_file = true;
    return 0;
}

static int set_headers(struct reader *reader, const struct yaml_node *node, void *place)
{
    struct key keys[SETTABLE_HEADERS + 1] = { 0 };
    struct webconfig_header *headers = place;
    int r;

    memcpy(headers, default_headers, sizeof(default_headers));
    for (size_t i = 0; i < SETTABLE_HEADERS; i++)
        keys[i] = (struct key){ headers[i].name, set_header,
                                offsetof(struct reader, headers) + i * sizeof(headers[i]) };
    r = set_keys(reader, node, keys);
    memcpy(reader->web->headers, headers, sizeof(reader->web->headers));
    return r;
}

static int set_http(struct reader *reader, const struct yaml_node *node, void *place)
{
    static const struct key keys[] = {
        { "http2", set_bool, offsetof(struct reader, http2) },
        { "headers", set_headers, offsetof(struct reader, headers) },
        { 0 },
    };

    (void)place;
    return set_keys(reader, node, keys);
}

static bool is_bcrypt(struct str hash)
{
    if (hash.n != BCRYPT_LENGTH || !str_starts(hash, STR("$2")) || !memchr("aby", hash.p[2], 3) ||
        hash.p[3] != '$' || hash.p[6] != '$')
        return false;
    for (size_t i = 4; i < hash.n; i++) {
        char c = hash.p[i];
        bool is_digit = c >= '0' && c <= '9';
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

        if (i != 6 && !is_digit && (i < 6 || (!is_letter && c != '.' && c != '/')))
            return false;
    }
    return true;
}

static int check_user(struct reader *reader, const struct yaml_node *node)
{
    uint64_t cost;

    if (str_find(node->key, ':') < node->key.n)
        return yaml_refuse(node, reader->path, reader->err,
                           "the name of a user can't hold a colon");
    if (node->kind != YAML_SCALAR || !is_bcrypt(node->text))
        return yaml_refuse(
            node, reader->path, reader->err,
            "the password of \"%s\" is not a bcrypt hash: make one with htpasswd -nBC 10",
            quote(node->key).text);
    num_get_u64(str_head(str_skip(node->text, 4), 2), &cost);
    if (cost < 4 || cost > HIGHEST_BCRYPT_COST)
        return yaml_refuse(node, reader->path, reader->err,
                           "the bcrypt cost of \"%s\" must be from 4 to %d", quote(node->key).text,
                           HIGHEST_BCRYPT_COST);
    return 0;
}

static int set_users(struct reader *reader, const struct yaml_node *node, void *place)
{
    struct arena *arena = &reader->web->arena;
    struct webconfig_user *users;
    size_t n = 0;

    (void)place;
    if (yaml_is_null(node))
        return 0;
    if (node->kind != YAML_MAPPING)
        return yaml_refuse(node, reader->path, reader->err,
                           "basic_auth_users takes names and hashes: \"alice: $2y$…\"");
    for (const struct yaml_node *user = node->child; user; user = user->next)
        n++;
    users = ARENA_ARRAY(arena, struct webconfig_user, n);
    n = 0;
    for (const struct yaml_node *user = node->child; user; user = user->next) {
        int r = check_user(reader, user);

        if (r < 0)
            return r;
        users[n++] =
            (struct webconfig_user){ arena_str(arena, user->key), arena_str(arena, user->text).p };
    }
    reader->web->users = users;
    reader->web->n_users = n;
    return 0;
}

static int set_interval(struct reader *reader, const struct yaml_node *node, void *place)
{
    int64_t interval_ns;
    uint64_t bare;

    (void)place;
    /* Go reads a bare number as nanoseconds, people as seconds. */
    if (node->kind != YAML_SCALAR || !num_get_duration_ns(node->text, &interval_ns) ||
        (num_get_u64(node->text, &bare) && bare != 0))
        return yaml_refuse(node, reader->path, reader->err,
                           "\"interval\" takes a duration with its unit: \"1s\", \"250ms\"");
    reader->web->rate_interval_ns = interval_ns;
    return 0;
}

static int set_burst(struct reader *reader, const struct yaml_node *node, void *place)
{
    (void)place;
    if (node->kind != YAML_SCALAR || !num_get_u64(node->text, &reader->web->rate_burst) ||
        reader->web->rate_burst > UINT32_MAX)
        return yaml_refuse(node, reader->path, reader->err, "\"burst\" takes a number of requests");
    return 0;
}

static int set_rate(struct reader *reader, const struct yaml_node *node, void *place)
{
    static const struct key keys[] = {
        { "interval", set_interval, 0 },
        { "burst", set_burst, 0 },
        { 0 },
    };
    int r = set_keys(reader, node, keys);

    (void)place;
    if (r == 0 && reader->web->rate_interval_ns && !reader->web->rate_burst)
        r = yaml_refuse(node, reader->path, reader->err,
                        "rate_limit with a burst of 0 would refuse everything");
    return r;
}

/* The n-th file that this reading depends on. */
static void note_file(struct webconfig_files *files, const char *path)
{
    size_t n = files->n++;

    files->path[n] = heap_str(str_of(path));
    if (stat(path, &files->seen[n]) < 0)
        files->seen[n] = (struct stat){ 0 };
}

static const char *resolve(struct reader *reader, struct str file)
{
    struct buf path;
    const char *copy;

    buf_init(&path, PATH_MAX);
    if (file.p[0] != '/')
        buf_put(&path, reader->directory);
    buf_put(&path, file);
    copy = arena_str(reader->arena, buf_str(&path)).p;
    buf_free(&path);
    return copy;
}

static int read_whole(int fd, struct arena *arena, struct str *ret)
{
    struct stat info;
    char *text;
    size_t n = 0;

    if (fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode) || info.st_size > LARGEST_PEM)
        return -EFBIG;
    text = arena_alloc(arena, (size_t)info.st_size);
    while (n < (size_t)info.st_size) {
        ssize_t got = read(fd, text + n, (size_t)info.st_size - n);

        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret = (struct str){ text, n };
    return 0;
}

static int read_pem(struct reader *reader, const char *path, struct str *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int r = fd < 0 ? -errno : read_whole(fd, reader->arena, ret);

    if (fd >= 0)
        close(fd);
    if (r == -EFBIG)
        return err_set(reader->err, EFBIG, "%s: %s is not a file of less than %d bytes",
                       quote(str_of(reader->path)).text, quote(str_of(path)).text, LARGEST_PEM);
    if (r < 0)
        return err_set(reader->err, -r, "%s: can't read %s: %s", quote(str_of(reader->path)).text,
                       quote(str_of(path)).text, err_words(-r));
    return 0;
}

/* A text that stands in the file itself or in one of its own. */
static int find_pem(struct reader *reader, const char *name, struct str text, struct str file,
                    bool is_needed, struct str *ret)
{
    const char *path;

    if (text.n && file.n)
        return yaml_refuse(reader->tls, reader->path, reader->err,
                           "there is both %s and %s_file: leave one", name, name);
    if (!text.n && !file.n) {
        *ret = (struct str){ 0 };
        return is_needed
                   ? yaml_refuse(reader->tls, reader->path, reader->err,
                                 "tls_server_config lacks %s_file: add it, or remove the section "
                                 "for HTTP without TLS",
                                 name)
                   : 0;
    }
    if (text.n) {
        *ret = text;
        return 0;
    }
    path = resolve(reader, file);
    note_file(reader->files, path);
    return read_pem(reader, path, ret);
}

static int find_pems(struct reader *reader, struct tls_settings *settings)
{
    int r = find_pem(reader, "cert", reader->cert, reader->cert_file, true, &settings->cert);

    if (r == 0)
        r = find_pem(reader, "key", reader->key, reader->key_file, true, &settings->key);
    if (r == 0)
        r = find_pem(reader, "client_ca", reader->client_ca, reader->client_ca_file, false,
                     &settings->client_ca);
    return r;
}

static int find_clients(struct reader *reader, struct tls_settings *settings)
{
    size_t type = TLS_CLIENT_NONE;
    bool is_required, is_verified;
    int r;

    /* The toolkit's older name for it. */
    if (reader->client_auth && str_eq(reader->client_auth->text, STR("RequireClientCert")))
        type = TLS_CLIENT_REQUIRE_ANY;
    else if ((r = find_word(reader, reader->client_auth, client_auth_types, &type)) < 0)
        return r;
    settings->client_auth = (enum tls_client_auth)type;
    is_required = type == TLS_CLIENT_REQUIRE_ANY || type == TLS_CLIENT_REQUIRE_AND_VERIFY;
    is_verified = type == TLS_CLIENT_VERIFY_IF_GIVEN || type == TLS_CLIENT_REQUIRE_AND_VERIFY;
    if (settings->client_ca.n && type == TLS_CLIENT_NONE)
        return yaml_refuse(reader->tls, reader->path, reader->err,
                           "there is a client CA but clients are not asked for a certificate: add "
                           "\"client_auth_type: RequireAndVerifyClientCert\"");
    /* Go would trust every authority that the system trusts for web sites. */
    if (is_verified && !settings->client_ca.n)
        return yaml_refuse(reader->client_auth, reader->path, reader->err,
                           "\"%s\" needs a client_ca_file to check against",
                           client_auth_types[type].name);
    if (reader->sans && !is_required)
        return yaml_refuse(
            reader->sans, reader->path, reader->err,
            "client_allowed_sans needs client_auth_type RequireAndVerifyClientCert or "
            "RequireAnyClientCert: others let clients in without a certificate");
    return 0;
}

static void copy_sans(struct reader *reader, struct tls_settings *settings)
{
    struct arena *arena = &reader->web->arena;
    struct str *sans;
    size_t n = 0;

    if (!reader->sans)
        return;
    for (const struct yaml_node *san = reader->sans->child; san; san = san->next)
        n++;
    sans = ARENA_ARRAY(arena, struct str, n + 1);
    n = 0;
    for (const struct yaml_node *san = reader->sans->child; san; san = san->next)
        sans[n++] = arena_str(arena, san->text);
    settings->allowed_sans = sans;
    settings->n_allowed_sans = n;
}

static int find_versions(struct reader *reader)
{
    struct priority_settings *priority = &reader->priority;
    int r = find_word(reader, reader->min_version, priority_versions, &priority->min_version);

    if (r == 0)
        r = find_word(reader, reader->max_version, priority_versions, &priority->max_version);
    if (r == 0 && priority->min_version > priority->max_version)
        r = yaml_refuse(reader->tls, reader->path, reader->err, "min_version is above max_version");
    if (r == 0)
        r = check_words(reader, priority->ciphers, priority_ciphers);
    if (r == 0)
        r = check_words(reader, priority->curves, priority_curves);
    return r;
}

static int make_tls(struct reader *reader)
{
    struct tls_settings settings = { 0 };
    struct buf priority;
    int r;

    if (!reader->tls)
        return 0;
    r = find_versions(reader);
    if (r == 0)
        r = find_pems(reader, &settings);
    if (r == 0)
        r = find_clients(reader, &settings);
    if (r < 0)
        return r;
    copy_sans(reader, &settings);
    buf_init(&priority, 8192);
    priority_write(&priority, &reader->priority);
    settings.priority = priority.p;
    r = tls_new(&settings, &reader->web->tls, reader->err);
    explicit_bzero((void *)(uintptr_t)settings.key.p, settings.key.n);
    buf_free(&priority);
    return r < 0 ? err_prefix(reader->err, "%s:%u", quote(str_of(reader->path)).text,
                              reader->tls->line)
                 : 0;
}

static int read_all(struct reader *reader)
{
    static const struct key keys[] = {
        { "tls_server_config", set_tls, 0 },
        { "http_server_config", set_http, 0 },
        { "basic_auth_users", set_users, 0 },
        { "rate_limit", set_rate, 0 },
        { 0 },
    };
    struct yaml_node *root;
    int r;

    note_file(reader->files, reader->path);
    r = yaml_read_file(reader->arena, reader->path, &root, reader->err);
    if (r == 0)
        r = set_keys(reader, root, keys);
    if (r == 0)
        r = make_tls(reader);
    return r;
}

static struct webconfig *webconfig_new(void)
{
    static _Atomic uint64_t generations;
    struct webconfig *web = heap_alloc(sizeof(*web));

    atomic_init(&web->refs, 1);
    web->generation = ++generations;
    memcpy(web->headers, default_headers, sizeof(web->headers));
    return web;
}

int webconfig_load(const char *path, struct webconfig_files *files, struct webconfig **ret,
                   struct err *err)
{
    struct arena arena = { 0 };
    struct webconfig *web = webconfig_new();
    int r = 0;

    if (path) {
        const char *slash = strrchr(path, '/');
        struct reader reader = {
            .path = path,
            .directory = { path, slash ? (size_t)(slash + 1 - path) : 0 },
            .arena = &arena,
            .web = web,
            .files = files,
            .err = err,
            .priority = { .min_version = 2, .max_version = 3, .prefers_server = true },
        };

        r = read_all(&reader);
        arena_clear(&arena);
    }
    if (r < 0)
        webconfig_unref(web);
    else
        *ret = web;
    return r;
}

struct webconfig *webconfig_ref(struct webconfig *web)
{
    atomic_fetch_add_explicit(&web->refs, 1, memory_order_relaxed);
    return web;
}

struct webconfig *webconfig_unref(struct webconfig *web)
{
    if (web && atomic_fetch_sub_explicit(&web->refs, 1, memory_order_acq_rel) == 1) {
        tls_free(web->tls);
        arena_clear(&web->arena);
        free(web);
    }
    return NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool webconfig_files_changed(const struct webconfig_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        struct stat now = { 0 };

        if (stat(files->path[i], &now) < 0)
            now = (struct stat){ 0 };
        if (!is_same(&now, &files->seen[i]))
            return true;
    }
    return false;
}

void webconfig_files_clear(struct webconfig_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->path[i]);
    *files = (struct webconfig_files){ 0 };
}
