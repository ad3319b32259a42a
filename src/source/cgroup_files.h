/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which file of which controller gives which number, and how each is read: the kernel's
 * Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/ and accounting/psi.rst. */
#ifndef SONDE_SOURCE_CGROUP_FILES_H
#define SONDE_SOURCE_CGROUP_FILES_H

#include "source/cgroup.h"

/* Who wants a file: bits. */
enum cgroup_want {
    CGROUP_WANT_BASIC = 1,
    CGROUP_WANT_DETAILS = 2,
    CGROUP_WANT_CORES = 4,
    CGROUP_WANT_EVENTS = 8,
};

/* What is kept of one cgroup between reads. */
struct cgroup_kept {
    const struct cgroup_mounts *mounts;
    uint64_t *core_ns; /* NULL until the first list of them was read */
    uint64_t *core_set;
    size_t n_cores;
    struct device_use *devices;
    struct device_number *numbers; /* of the devices */
    size_t n_devices, n_device_room;
};

void cgroup_kept_clear(struct cgroup_kept *kept);

struct cgroup_file;

/* How a kind of file is read. Writes nothing and returns false if there is no number in the text
 * that can be believed; a line of several that cannot is passed over. */
typedef bool cgroup_reader(const struct cgroup_file *file, struct str text,
                           struct cgroup_kept *kept, struct cgroup_use *use);

/* A number in a file: its key ("" where it stands alone) and its place in struct cgroup_use. */
struct cgroup_number {
    struct str key;
    size_t offset;
    uint64_t scale;
    bool is_part; /* its place gets the sum of all parts, unless a later row has the whole */
};

struct cgroup_file {
    const char *name;
    enum cgroup_controller controller; /* v1 */
    unsigned wanted;
    bool is_setting; /* seldom changes: not kept open */
    bool is_instead; /* only where the row before gave nothing */
    cgroup_reader *read;
    const struct cgroup_number *numbers; /* ended by scale = 0 */
};

/* Ended by name = NULL. */
extern const struct cgroup_file cgroup_files_v1[], cgroup_files_v2[];

/* "0-3,8,10-11" as bits; the number of them, or -1 if it is none of these. */
int cgroup_core_list(struct str text, uint64_t ret[CGROUP_CORES / 64]);

/* What devices.list says of a character device: as cgroup_allows_device. */
int cgroup_device_list(struct str text, unsigned major, unsigned minor);

#endif
