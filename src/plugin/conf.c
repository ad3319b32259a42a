/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's lines of acct_gather.conf: Slurm's acct_gather.conf(5) for the form of the file,
 * RFC 3986 for the URL. */
#include "plugin/conf.h"

#include "base/num.h"
#include "base/quote.h"

#include <stdio.h>

#define CONF_NAME(key, name) [key] = (name),
const char *const conf_names[CONF_KEYS] = { CONF_ALL(CONF_NAME) };
#undef CONF_NAME

enum {
    FREQUENCY_SECONDS = 10,
    FREQUENCY_SECONDS_MAX = 3600,
    TIMEOUT_SECONDS = 2,
    TIMEOUT_SECONDS_MAX = 60,
};

struct word {
    const char *text;
    unsigned bits;
};

enum { ALL_KINDS = (1 << PROFILE_KINDS) - 1 };

/* Those that show a value come first, and the whole before its parts. */
static const struct word kinds[] = {
    { "all", ALL_KINDS },
    { "energy", 1 << PROFILE_OF_ENERGY },
    { "task", 1 << PROFILE_OF_TASK },
    { "filesystem", 1 << PROFILE_OF_FILESYSTEM },
    { "network", 1 << PROFILE_OF_NETWORK },
    { "lustre", 1 << PROFILE_OF_FILESYSTEM }, /* as --profile calls it */
    { "none", 0 },
};

static const struct word labels[] = {
    { "user", PROFILE_LABEL_USER },           { "account", PROFILE_LABEL_ACCOUNT },
    { "partition", PROFILE_LABEL_PARTITION }, { "step", PROFILE_LABEL_STEP },
    { "cluster", PROFILE_LABEL_CLUSTER },
};

static const struct word names[] = {
    { "both", PROFILE_NAMES_BOTH },
    { "original", PROFILE_NAMES_ORIGINAL },
    { "new", PROFILE_NAMES_NEW },
};

static const struct word *find_word(const struct word *words, size_t n, struct str text)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(str_of(words[i].text), text))
            return &words[i];
    return NULL;
}

/* Spaces and control characters: none of them belongs into a URL. */
static bool has_spaces(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return true;
    return false;
}

/* Where user, password and host stand: after the scheme, up to a slash. */
static struct str authority_of(const char *url)
{
    struct str rest = str_of(strstr(url, "://") + 3);

    return str_head(rest, str_find(rest, '/'));
}

/* The last @ parts, as for libcurl: a password may have one in it. */
static struct str host_of(struct str authority)
{
    size_t begin = authority.n;

    while (begin > 0 && authority.p[begin - 1] != '@')
        begin--;
    return str_skip(authority, begin);
}

/* "host", "host:9091", "[::1]:9091" */
static bool is_host(struct str host)
{
    size_t bracket = str_find(host, ']');
    struct str name = host, rest;
    uint64_t port;

    if (bracket < host.n) {
        rest = str_skip(host, bracket + 1);
        return host.p[0] == '[' && bracket > 1 &&
               (rest.n == 0 ||
                (rest.p[0] == ':' && num_get_u64(str_skip(rest, 1), &port) && port <= UINT16_MAX));
    }
    rest = host;
    name = str_cut(&rest, ':');
    return name.n && (!rest.p || (num_get_u64(rest, &port) && port <= UINT16_MAX));
}

/* What is wrong with it, without a word of it: there may be a password in it. */
static const char *fault_of_url(const char *url)
{
    struct str rest = str_of(url), scheme = str_head(rest, str_find_str(rest, STR("://")));
    struct str authority = authority_of(url);

    if (has_spaces(url) || strpbrk(url, "?#"))
        return "has spaces, ? or # in it";
    if (!str_eq_nocase(scheme, STR("http")) && !str_eq_nocase(scheme, STR("https")))
        return "begins with neither http:// nor https://";
    if (strchr(authority.p + authority.n, '@'))
        return "has a slash before its @: in a password, write %2F";
    if (!is_host(host_of(authority)))
        return "does not name a host, or a port that is no number";
    return NULL;
}

static bool read_host(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    char *url = ret->settings.url;
    size_t n = (size_t)snprintf(url, sizeof(ret->settings.url), "%s%s",
                                strstr(value, "://") ? "" : "http://", value);
    const char *fault =
        n < sizeof(ret->settings.url) ? fault_of_url(url) : "is longer than can be taken";

    if (fault) {
        snprintf(why, room, "%s %s: give http://HOST:PORT", conf_names[CONF_HOST], fault);
        return false;
    }
    while (url[n - 1] == '/')
        url[--n] = '\0';
    return true;
}

static bool read_default(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    bool has_none = false;

    ret->kinds = 0;
    for (struct str rest = str_of(value); rest.p;) {
        struct str part = str_trim(str_cut(&rest, ','));
        const struct word *word = find_word(kinds, COUNT(kinds), part);

        if (!word) {
            snprintf(why, room,
                     "%s does not know \"%s\": all, none, or some of energy, task, filesystem and "
                     "network, with commas between them",
                     conf_names[CONF_DEFAULT], quote(part).text);
            return false;
        }
        has_none |= word->bits == 0;
        ret->kinds |= word->bits;
    }
    if (has_none && ret->kinds) {
        snprintf(why, room, "%s says none and more than that", conf_names[CONF_DEFAULT]);
        return false;
    }
    return true;
}

static bool read_seconds(enum conf_key key, const char *value, unsigned max, unsigned *ret,
                         char *why, size_t room)
{
    uint64_t seconds;

    if (!num_get_u64(str_trim(str_of(value)), &seconds) || seconds == 0 || seconds > max) {
        snprintf(why, room, "%s is \"%s\": give whole seconds, from 1 to %u", conf_names[key],
                 quote(str_of(value)).text, max);
        return false;
    }
    *ret = (unsigned)seconds;
    return true;
}

static bool read_frequency(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    return read_seconds(CONF_FREQUENCY, value, FREQUENCY_SECONDS_MAX,
                        &ret->settings.frequency_seconds, why, room);
}

static bool read_timeout(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    unsigned seconds;

    if (!read_seconds(CONF_TIMEOUT, value, TIMEOUT_SECONDS_MAX, &seconds, why, room))
        return false;
    ret->settings.timeout_ms = seconds * 1000;
    return true;
}

static bool read_agent(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    size_t n = strlen(value);

    if (value[0] != '/' || n >= sizeof(ret->settings.socket)) {
        snprintf(
            why, room,
            "%s is \"%s\": give the absolute path of the agent's socket, of less than %zu bytes",
            conf_names[CONF_AGENT], quote(str_of(value)).text, sizeof(ret->settings.socket));
        return false;
    }
    memcpy(ret->settings.socket, value, n + 1);
    return true;
}

static bool read_labels(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    ret->settings.labels = 0;
    for (struct str rest = str_of(value); rest.p;) {
        struct str part = str_trim(str_cut(&rest, ','));
        const struct word *word = find_word(labels, COUNT(labels), part);

        if (!word) {
            snprintf(
                why, room,
                "%s does not know \"%s\": user, account, partition, step and cluster are known",
                conf_names[CONF_LABELS], quote(part).text);
            return false;
        }
        ret->settings.labels |= word->bits;
    }
    return true;
}

static bool read_names(const char *value, struct profile_conf *ret, char *why, size_t room)
{
    const struct word *word = find_word(names, COUNT(names), str_trim(str_of(value)));

    if (!word) {
        snprintf(why, room, "%s is \"%s\": give both, original or new", conf_names[CONF_NAMES],
                 quote(str_of(value)).text);
        return false;
    }
    ret->settings.names = (enum profile_names)word->bits;
    return true;
}

static bool (*const readers[CONF_KEYS])(const char *, struct profile_conf *, char *, size_t) = {
    [CONF_HOST] = read_host,       [CONF_DEFAULT] = read_default, [CONF_FREQUENCY] = read_frequency,
    [CONF_TIMEOUT] = read_timeout, [CONF_AGENT] = read_agent,     [CONF_LABELS] = read_labels,
    [CONF_NAMES] = read_names,
};

bool conf_read(const char *const values[CONF_KEYS], struct profile_conf *ret, char *why,
               size_t room)
{
    *ret = (struct profile_conf){
        .kinds = ALL_KINDS,
        .settings = { .names = PROFILE_NAMES_BOTH,
                      .frequency_seconds = FREQUENCY_SECONDS,
                      .timeout_ms = TIMEOUT_SECONDS * 1000 },
    };
    for (int key = 0; key < CONF_KEYS; key++)
        if (values[key] && !readers[key](values[key], ret, why, room))
            return false;
    if (!ret->settings.url[0] && !ret->settings.socket[0]) {
        snprintf(why, room, "acct_gather.conf has neither %s nor %s", conf_names[CONF_AGENT],
                 conf_names[CONF_HOST]);
        return false;
    }
    return true;
}

static void show_url(const char *url, char *to, size_t room)
{
    struct str authority = authority_of(url), host = host_of(authority);
    struct str user = str_span(authority.p, host.p);
    size_t colon = str_find(user, ':');

    if (colon < user.n)
        snprintf(to, room, "%.*s:***@%s", (int)(authority.p + colon - url), url, host.p);
    else
        snprintf(to, room, "%s", url);
}

/* Words that are wholly in `bits`, each bit once. */
static void show_words(const struct word *words, size_t n, unsigned bits, char *to, size_t room)
{
    size_t at = 0;

    if (room)
        to[0] = '\0';
    for (size_t i = 0; i < n && at < room; i++)
        if (words[i].bits == 0 ? at == 0 : (bits & words[i].bits) == words[i].bits) {
            at += (size_t)snprintf(to + at, room - at, "%s%s", at ? "," : "", words[i].text);
            bits &= ~words[i].bits;
        }
}

bool conf_show(const struct profile_conf *conf, enum conf_key key, char *to, size_t room)
{
    const struct profile_settings *settings = &conf->settings;

    switch (key) {
    case CONF_HOST:
        if (!settings->url[0])
            return false;
        show_url(settings->url, to, room);
        return true;
    case CONF_DEFAULT:
        show_words(kinds, COUNT(kinds), conf->kinds, to, room);
        return true;
    case CONF_FREQUENCY:
        snprintf(to, room, "%u", settings->frequency_seconds);
        return true;
    case CONF_TIMEOUT:
        snprintf(to, room, "%u", settings->timeout_ms / 1000);
        return true;
    case CONF_AGENT:
        snprintf(to, room, "%s", settings->socket);
        return settings->socket[0];
    case CONF_LABELS:
        show_words(labels, COUNT(labels), settings->labels, to, room);
        return settings->labels;
    case CONF_NAMES:
        show_words(names, COUNT(names), settings->names, to, room);
        return true;
    case CONF_KEYS:
        break;
    }
    return false;
}
