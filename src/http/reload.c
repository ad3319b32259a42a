/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading --web.config.file and the certificates again. The toolkit does so at each request; here
 * they are checked for changes once a second, on a worker, since a file may be on a disk that does
 * not answer. That worker is not confined: the files may be root's, readable by a capability. */
#include "http/internal.h"

static const int64_t look_every_ns = NS_PER_SEC;

/* Under reload_lock. */
static int load(struct http_server *server, struct err *err)
{
    struct webconfig *web;
    int r;

    webconfig_files_clear(&server->files);
    r = webconfig_load(server->web_config, &server->files, &web, err);
    if (r < 0)
        return r;
    if ((web->tls != NULL) != server->has_tls) {
        webconfig_unref(web);
        return err_set(err, EINVAL, "%s: TLS can't be switched %s while running: restart for that",
                       server->web_config, server->has_tls ? "off" : "on");
    }
    pthread_mutex_lock(&server->lock);
    webconfig_unref(server->new_web);
    server->new_web = web;
    pthread_mutex_unlock(&server->lock);
    atomic_store(&server->has_new_web, true);
    server_signal(server);
    return 0;
}

int http_reload(struct http_server *server, struct err *err)
{
    int r = 0;

    if (!server->web_config)
        return 0;
    pthread_mutex_lock(&server->reload_lock);
    r = load(server, err);
    pthread_mutex_unlock(&server->reload_lock);
    return r;
}

/* On the reload worker. What was wrong is said once: the next look is at what was read now. */
static void look(struct pool_job *job)
{
    struct http_server *server =
        (struct http_server *)((char *)job - offsetof(struct http_server, check_files));
    struct log *log = server->config.log;
    struct err err;

    pthread_mutex_lock(&server->reload_lock);
    if (webconfig_files_changed(&server->files)) {
        if (load(server, &err) < 0)
            LOG(log, LOG_ERROR, "web configuration not changed", LOG_STR("reason", err.text));
        else
            LOG(log, LOG_INFO, "web configuration read again", LOG_STR("file", server->web_config));
    }
    pthread_mutex_unlock(&server->reload_lock);
    atomic_store(&server->is_checking_files, false);
}

void reload_check(struct http_server *server)
{
    int64_t now = server_now(server);

    if (!server->web_config || now < server->checked_files_ns + look_every_ns)
        return;
    server->checked_files_ns = now;
    if (atomic_exchange(&server->is_checking_files, true))
        return;
    server->check_files.run = look;
    if (!pool_push(server->reload_worker, &server->check_files))
        atomic_store(&server->is_checking_files, false);
}

int64_t reload_next_check(const struct http_server *server)
{
    return server->web_config ? server->checked_files_ns + look_every_ns : INT64_MAX;
}

void reload_adopt(struct http_server *server)
{
    struct webconfig *web;

    if (!atomic_load(&server->has_new_web))
        return;
    atomic_store(&server->has_new_web, false);
    pthread_mutex_lock(&server->lock);
    web = server->new_web;
    server->new_web = NULL;
    pthread_mutex_unlock(&server->lock);
    if (!web)
        return;
    webconfig_unref(server->web);
    server->web = web;
    server->rate_tokens = (double)web->rate_burst;
    server->rate_at_ns = server_now(server);
    auth_forget(server->auth);
}
