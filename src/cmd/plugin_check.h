/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of sonde admin plugin-check: what its checks learn, in the order in which they run. */
#ifndef SONDE_CMD_PLUGIN_CHECK_H
#define SONDE_CMD_PLUGIN_CHECK_H

#include "base/spawn.h"
#include "cmd/doctor_page.h"
#include "source/plugin_file.h"

enum { PLUGIN_PATH = 512 };

struct plugin_copy {
    char path[PLUGIN_PATH];
    struct buf content;
    struct stat status;
    struct plugin_file plugin;
};

struct plugin_check {
    const char *path;                               /* of the plugin */
    struct str slurm_version, plugin_dir, conf_dir; /* empty: found out */
    const char *root;                               /* before the usual places; "" */
    const atomic_bool *cancelled;
    struct page *page;

    struct plugin_copy file;
    char file_name[PLUGIN_TEXT + sizeof(".so")]; /* under which Slurm looks for it */
    bool is_profile;                             /* an acct_gather_profile plugin */

    uint32_t refused_by; /* the last version of which that was told; 0: none */

    char conf[PLUGIN_PATH]; /* the directory of slurm.conf */
    const char *told_by;    /* who told the next three; NULL: nobody */
    char told_dir[PLUGIN_PATH], told_type[PLUGIN_TEXT];
    uint32_t told_version;    /* of the slurmctld that runs; 0: not told */
    char places[PLUGIN_PATH]; /* PluginDir, directories with colons between; empty: not known */
    bool is_installed;        /* it is the file that Slurm loads now */
    bool has_installed;       /* that is another: */
    struct plugin_copy installed;
};

/* False: there is nothing to be checked further. */
bool plugin_check_file(struct plugin_check *check);
void plugin_check_functions(struct plugin_check *check);
void plugin_check_name(struct plugin_check *check);
void plugin_check_version(struct plugin_check *check);
void plugin_check_slurmctld(struct plugin_check *check);
void plugin_check_places(struct plugin_check *check);
void plugin_check_installed(struct plugin_check *check);
void plugin_check_use(struct plugin_check *check);
void plugin_check_conf(struct plugin_check *check);

/* How to install it, and in which order. */
void plugin_check_advise(const struct plugin_check *check);

/* Whether a Slurm of that version loads the plugin. */
bool plugin_check_fits(const struct plugin_check *check, uint32_t version);

/* What a command prints goes to *ret, which the caller frees in any case. */
int plugin_check_ask(const struct plugin_check *check, const char *const *argv, int seconds,
                     size_t max, struct buf *ret, struct err *err);

/* The file of a directory, up to 4 MiB, into *ret; -errno if it cannot be had. */
int plugin_check_read(const char *directory, const char *name, struct buf *ret);

#endif
