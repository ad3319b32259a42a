/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one place that knows who looks: a proof is a password that the server has checked, or the
 * word of a proxy that is listed. */
#include "web/viewer.h"

#include "base/network.h"
#include "base/quote.h"

enum { USER_BYTES = 256 };

static bool is_listed(const struct viewer_config *config, struct str address)
{
    struct network peer, network;

    if (!network_read(address, &peer))
        return false;
    for (size_t i = 0; i < config->n_proxies; i++)
        if (network_read(config->proxies[i], &network) && network_contains(&network, &peer))
            return true;
    return false;
}

static int check_proxies(const struct viewer_config *config, struct err *err)
{
    struct network network;

    if (config->auth != VIEWER_PROXY)
        return 0;
    if (!http_is_token(config->header))
        return err_set(err, EINVAL, "%s is no name of a header: say one as X-Remote-User",
                       quote(config->header).text);
    if (!config->n_proxies)
        return err_set(err, EINVAL,
                       "a proxy says who looks, but no address of a proxy is listed: whoever "
                       "reaches this port could say anything");
    for (size_t i = 0; i < config->n_proxies; i++)
        if (!network_read(config->proxies[i], &network))
            return err_set(err, EINVAL,
                           "%s is no address of a proxy: say one as 10.0.0.5, 10.0.0.0/8, ::1 or "
                           "unix",
                           quote(config->proxies[i]).text);
    return 0;
}

static struct str coordinator(struct str text, struct str *ret_account)
{
    struct str user = text;

    *ret_account = str_cut(&user, ':');
    return user;
}

int viewer_config_check(const struct viewer_config *config, struct err *err)
{
    for (size_t i = 0; i < config->n_coordinators; i++) {
        struct str account, user = coordinator(config->coordinators[i], &account);

        if (!account.n || !user.n)
            return err_set(err, EINVAL, "%s is no coordinator: say one as account:user",
                           quote(config->coordinators[i]).text);
    }
    return check_proxies(config, err);
}

static bool is_user_name(struct str name)
{
    if (!name.n || name.n > USER_BYTES)
        return false;
    for (size_t n; name.n; name = str_skip(name, n))
        if (!(n = str_printable_len(name)))
            return false;
    return true;
}

/* A second header might be the client's own, passed on. */
static int ask_proxy(const struct viewer_config *config, const struct http_exchange *x,
                     struct arena *arena, struct str *ret, struct err *err)
{
    const char *header = arena_str(arena, config->header).p;

    if (!is_listed(config, http_peer(x)))
        return err_set(err, EACCES,
                       "this is asked through the site's portal only: the address that you come "
                       "from is none of its proxies");
    if (http_header_count(x, header) > 1)
        return err_set(err, EACCES, "there is more than one header %s: the proxy must replace it",
                       header);
    *ret = str_trim(http_header(x, header));
    if (!is_user_name(*ret))
        return err_set(err, EACCES, "the proxy does not say who you are: it sets no header %s",
                       header);
    return 0;
}

static void find_accounts(const struct viewer_config *config, struct arena *arena,
                          struct viewer *viewer)
{
    struct str *word = ARENA_ARRAY(arena, struct str, config->n_coordinators);
    struct str account;
    size_t n = 0;

    for (size_t i = 0; i < config->n_coordinators; i++)
        if (str_eq(coordinator(config->coordinators[i], &account), viewer->user))
            word[n++] = account;
    viewer->accounts = (struct words){ word, n };
}

static bool is_among(const struct str *word, size_t n, struct str text)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(word[i], text))
            return true;
    return false;
}

int viewer_of(const struct viewer_config *config, const struct http_exchange *x,
              struct arena *arena, struct viewer *ret, struct err *err)
{
    struct viewer viewer = { .user = http_user(x) };
    int code = 0;

    if (config->auth == VIEWER_PROXY)
        code = ask_proxy(config, x, arena, &viewer.user, err);
    else if (config->auth == VIEWER_BASIC && !viewer.user.n)
        code = err_set(err, EACCES, "a name and a password are needed to look at this");
    if (code < 0)
        return code;
    /* Whoever had to prove a name is judged by it, also where users came by a reload. */
    viewer.is_staff = (config->auth == VIEWER_NONE && !viewer.user.n) ||
                      is_among(config->staff, config->n_staff, viewer.user);
    find_accounts(config, arena, &viewer);
    *ret = viewer;
    return 0;
}

bool viewer_may_see_user(const struct viewer *viewer, struct str user)
{
    return viewer->is_staff || (user.n && str_eq(viewer->user, user));
}

bool viewer_may_see_account(const struct viewer *viewer, struct str account)
{
    return viewer->is_staff ||
           (account.n && is_among(viewer->accounts.word, viewer->accounts.n, account));
}

bool viewer_may_see(const struct viewer *viewer, struct str user, struct str account)
{
    return viewer_may_see_user(viewer, user) || viewer_may_see_account(viewer, account);
}

bool viewer_is_denied(const struct viewer *viewer, const struct board_cluster *cluster,
                      enum private_data what)
{
    const struct section *config = cluster->section[KIND_CONFIG];

    return !viewer->is_staff && (!config || config->config.private >> what & 1);
}

struct str viewer_trouble(const struct viewer *viewer, const struct board_cluster *cluster)
{
    return viewer->is_staff ? cluster->trouble_in_full : cluster->trouble;
}
