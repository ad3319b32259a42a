/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Slurm plugin says of itself, read from its file without loading it: elf(5), and what
 * src/common/plugin.c of Slurm looks up in it. */
#ifndef SONDE_SOURCE_PLUGIN_FILE_H
#define SONDE_SOURCE_PLUGIN_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/stat.h>

enum {
    PLUGIN_FILE_MAX = 64 << 20, /* bytes; larger files are refused */
    PLUGIN_TEXT = 128,
    PLUGIN_KEYS = 1024,
    PLUGIN_FUNCTIONS = 13,
};

/* Those that Slurm wants of an acct_gather_profile plugin, the same from 20.11 to 26.05. */
extern const char *const plugin_functions[PLUGIN_FUNCTIONS];

struct plugin_file {
    bool has_name, has_type, has_version, has_keys; /* it defines them */
    char name[PLUGIN_TEXT], type[PLUGIN_TEXT];      /* any bytes; longer ones are cut off */
    uint32_t version;                               /* 0x160508: 22.05.8 */
    char keys[PLUGIN_KEYS]; /* of acct_gather.conf, with spaces between: sonde_profile_keys, which
                             * sonde's plugin alone defines */
    bool has_init, has_fini;
    bool has_function[PLUGIN_FUNCTIONS];
};

/* Into *ret_content, which the caller frees; *ret_status is of what was read. */
int plugin_file_load(const char *path, struct buf *ret_content, struct stat *ret_status,
                     struct err *err);

/* -EBADMSG with a sentence if it is no shared library, is damaged, or is one for other machines. */
int plugin_file_parse(struct str content, struct plugin_file *ret, struct err *err);

/* "22.05.8" of 0x160508. */
struct plugin_version {
    char text[16];
} plugin_version_text(uint32_t version);

/* "22.05.8", "24.11.0-0rc1" as plugin_version has it. */
bool plugin_version_parse(struct str text, uint32_t *ret);

#endif
