/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of pages and API, for `sonde web` and `sonde up`. */
#include "cmd/web_options.h"

#include "base/clock.h"

#define SETTING(member) offsetof(struct web_options, member)

static const struct option rows_of_web[] = {
    { "web.auth", OPTION_CHOICE, SETTING(auth), "HOW", NULL, NULL, "none basic proxy", "Web",
      "How it is learned who looks. none: not at all, whoever reaches it sees everything; only on "
      "addresses of this machine, unless --web.allow-anonymous. basic: by the passwords of "
      "--web.config.file. proxy: by a header of a proxy. Without it, basic where "
      "--web.config.file has users, else none." },
    { "web.proxy-header", OPTION_STRING, SETTING(proxy_header), "NAME", "X-Remote-User", NULL, NULL,
      "Web", "With --web.auth=proxy: the header in which the proxy tells the user." },
    { "web.proxy-from", OPTION_LIST, SETTING(proxies), "ADDRESS", NULL, NULL, NULL, "Web",
      "With --web.auth=proxy: an address of the proxy, as 10.1.2.3, 10.0.0.0/8, ::1, or unix for "
      "unix sockets. The header is believed from there; all others are refused. The proxy may have "
      "any share of the connections." },
    { "web.staff", OPTION_LIST, SETTING(staff), "USER", NULL, NULL, NULL, "Web",
      "A user who sees everything. Others see their own jobs, and totals without names." },
    { "web.coordinator", OPTION_LIST, SETTING(coordinators), "ACCOUNT:USER", NULL, NULL, NULL,
      "Web", "A user who sees all jobs of that account too." },
    { "web.allow-anonymous", OPTION_BOOL, SETTING(allows_anonymous), NULL, "false", NULL, NULL,
      "Web",
      "Answer everybody who reaches the address, where it is not one of this machine alone and "
      "nobody is asked for a name. Whoever asks sees the jobs of all." },
    { "web.host", OPTION_LIST, SETTING(hosts), "NAME", NULL, NULL, NULL, "Web",
      "Where it listens on loopback addresses only: a name, beside localhost, by which it is "
      "asked, as by a proxy that passes the browser's on. Others are refused with 421." },
    { "checks.file", OPTION_STRING, SETTING(checks_file), "FILE", NULL, NULL, NULL, "Reports",
      "What is judged of jobs and how: docs/report.md tells what can stand in it." },
    { "api.timeout", OPTION_DURATION, SETTING(timeout_ns), "DURATION", "10s", NULL, NULL, "API",
      "How long an answer or a page may take; past it there is 504." },
};
_Static_assert(COUNT(rows_of_web) == WEB_OPTIONS, "as many rows as the header says");

void web_options_rows(size_t offset, struct option rows[WEB_OPTIONS])
{
    for (size_t i = 0; i < WEB_OPTIONS; i++) {
        rows[i] = rows_of_web[i];
        rows[i].offset += offset;
    }
}

static enum viewer_auth auth_of(const struct web_options *options, bool has_users)
{
    static const struct {
        struct str word;
        enum viewer_auth auth;
    } words[] = {
        { STR_INIT("none"), VIEWER_NONE },
        { STR_INIT("basic"), VIEWER_BASIC },
        { STR_INIT("proxy"), VIEWER_PROXY },
    };

    for (size_t i = 0; i < COUNT(words); i++)
        if (str_eq(options->auth, words[i].word))
            return words[i].auth;
    return has_users ? VIEWER_BASIC : VIEWER_NONE;
}

struct viewer_config web_options_viewer(const struct web_options *options, bool has_users)
{
    return (struct viewer_config){
        .auth = auth_of(options, has_users),
        .header = options->proxy_header,
        .proxies = options->proxies.items,
        .n_proxies = options->proxies.n,
        .staff = options->staff.items,
        .n_staff = options->staff.n,
        .coordinators = options->coordinators.items,
        .n_coordinators = options->coordinators.n,
    };
}

int web_options_check(const struct web_options *options, bool has_users, struct err *err)
{
    const struct viewer_config viewer = web_options_viewer(options, has_users);

    if (options->timeout_ns <= 0)
        return err_set(err, EINVAL, "--api.timeout must be more than 0");
    if (viewer.auth == VIEWER_BASIC && !has_users)
        return err_set(err, EINVAL,
                       "--web.auth=basic wants users: give them in --web.config.file, as "
                       "basic_auth_users");
    if (viewer.auth == VIEWER_PROXY && !options->proxies.n)
        return err_set(err, EINVAL,
                       "--web.auth=proxy wants to know the proxy: give its address by "
                       "--web.proxy-from, as 127.0.0.1");
    return viewer_config_check(&viewer, err);
}

bool web_options_equal(const struct web_options *a, const struct web_options *b)
{
    return str_eq(a->auth, b->auth) && str_eq(a->proxy_header, b->proxy_header) &&
           option_list_equal(a->proxies, b->proxies) && option_list_equal(a->staff, b->staff) &&
           option_list_equal(a->coordinators, b->coordinators) &&
           option_list_equal(a->hosts, b->hosts) && a->allows_anonymous == b->allows_anonymous &&
           a->timeout_ns == b->timeout_ns && str_eq(a->checks_file, b->checks_file);
}

static struct option_list copy_list(struct option_list list, struct arena *arena)
{
    struct option_list copy = { .items = ARENA_ARRAY(arena, struct str, list.n), .n = list.n };

    for (size_t i = 0; i < list.n; i++)
        copy.items[i] = arena_str(arena, list.items[i]);
    return copy;
}

struct web_options web_options_copy(const struct web_options *options, struct arena *arena)
{
    return (struct web_options){
        .auth = arena_str(arena, options->auth),
        .proxy_header = arena_str(arena, options->proxy_header),
        .proxies = copy_list(options->proxies, arena),
        .staff = copy_list(options->staff, arena),
        .coordinators = copy_list(options->coordinators, arena),
        .hosts = copy_list(options->hosts, arena),
        .allows_anonymous = options->allows_anonymous,
        .timeout_ns = options->timeout_ns,
        .checks_file = arena_str(arena, options->checks_file),
    };
}
