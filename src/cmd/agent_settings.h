/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde agent` can be told, and what follows from it. */
#ifndef SONDE_CMD_AGENT_SETTINGS_H
#define SONDE_CMD_AGENT_SETTINGS_H

#include "agent/sampler.h"
#include "cmd/agent_users.h"
#include "cmd/serve.h"
#include "http/bulletins.h"

struct agent_settings {
    struct serve_options serve;
    int64_t tick_ns, linger_ns;
    uint64_t max_names, max_jobs, max_processes, max_lustre_ids;
    struct str scratch, blacklist, slurmd_user, node, nvml, procfs, sysfs, user;
    struct str profile_socket, profile_gateway, profile_password_file, lctl;
    struct option_list layouts;
    struct {
        struct str url, job, password_file, ca_file;
        int64_t timeout_ns;
    } push;
    struct {
        struct str url, token_file, munge_socket, ca_file, cluster, spool;
        int64_t timeout_ns;
        uint64_t max_bytes;
    } ingest;
    bool has_no_defaults; /* only collectors that are asked for are on */
    bool collectors[USAGE_COLLECTORS_MAX];

    /* made from the above */
    struct bulletin_config publish;
    family_set excluded_self;
    struct blacklist skipped;
    uint32_t slurmd_uid;
    char node_name[USAGE_NODE];
};

/* Reads flags, environment and files; an option_outcome, or -EINVAL with a sentence. By the name of
 * jobs_exporter in argv[0], it pushes where that does. */
int agent_settings_parse(int argc, char **argv, struct arena *arena,
                         struct agent_settings *settings, struct err *err);

/* -EINVAL with a sentence if something differs that cannot be changed under way. */
int agent_settings_check_reload(const struct agent_settings *old, const struct agent_settings *new,
                                struct err *err);

struct sampler_tuning agent_settings_tuning(const struct agent_settings *settings);
struct bulletins_tuning agent_settings_serving(const struct agent_settings *settings);

#endif
