/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of sysfs that hold anything: parts of the input, between NULs, are what files of a card and
 * of KFD hold. Whatever that is, there is one card, and what is told is within its bounds. */
#include "base/arena.h"
#include "source/gpu_driver.h"

#include "fuzz.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#define CARD "class/drm/card0/device/"
#define NODE "class/kfd/kfd/topology/nodes/1/"
#define PROC "class/kfd/kfd/proc/17/"

static const char *const files[] = {
    NODE "properties",
    CARD "ras/umc_err_count",
    CARD "gpu_busy_percent",
    CARD "mem_info_vram_used",
    CARD "hwmon/hwmon0/power1_average",
    CARD "hwmon/hwmon0/temp1_input",
    CARD "unique_id",
    CARD "product_name",
    PROC "vram_5",
};

static char root[] = "/dev/shm/sonde-fuzz-XXXXXX";

static void put(const char *path, struct str text)
{
    char full[128];
    int fd;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = full + sizeof(root); (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, text.p, text.n) == (ssize_t)text.n);
    close(fd);
}

/* A directory goes with the last file in it. */
static void remove_tree(void)
{
    static const char *const more[] = { CARD "vendor", CARD "drm/renderD128/dev", NODE "gpu_id" };
    char full[128];

    for (size_t i = 0; i < COUNT(files) + COUNT(more); i++) {
        snprintf(full, sizeof(full), "%s/%s", root,
                 i < COUNT(files) ? files[i] : more[i - COUNT(files)]);
        unlink(full);
        for (char *slash; (slash = strrchr(full, '/')) >= full + sizeof(root) - 1;) {
            *slash = '\0';
            if (rmdir(full) < 0)
                break;
        }
    }
}

static void make_tree(void)
{
    static bool is_made;

    if (is_made)
        return;
    FUZZ_CHECK(mkdtemp(root));
    put(CARD "vendor", STR("0x1002\n"));
    put(CARD "drm/renderD128/dev", STR("226:128\n"));
    put(NODE "gpu_id", STR("5\n"));
    atexit(remove_tree);
    is_made = true;
}

static void check_look(const struct gpu_look *look)
{
    const struct gpu_use *gpu = look->gpus;

    FUZZ_CHECK(look->n_gpus == 1 && look->errors == 0);
    FUZZ_CHECK(isnan(gpu->utilization) || (gpu->utilization >= 0 && gpu->utilization <= 1));
    FUZZ_CHECK(gpu->power_mw == MODEL_UNKNOWN_U64 || gpu->power_mw <= UINT64_MAX / 1000);
    FUZZ_CHECK(memchr(gpu->uuid, '\0', sizeof(gpu->uuid)));
    FUZZ_CHECK(memchr(gpu->model, '\0', sizeof(gpu->model)));
    FUZZ_CHECK(look->n_processes <= 1);
    FUZZ_CHECK(look->n_processes == 0 || (look->processes[0].pid == 17 &&
                                          look->processes[0].memory_bytes != MODEL_UNKNOWN_U64));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct gpus_config config = { .sys = root };
    struct gpu_look *look = heap_alloc(sizeof(*look));
    struct gpu_draft draft = { .look = look };
    struct str rest = { (const char *)data, size };
    void *opened;

    make_tree();
    for (size_t i = 0; i < COUNT(files); i++)
        put(files[i], rest.p ? str_cut(&rest, '\0') : STR(""));
    FUZZ_CHECK(gpu_amd.open(&config, &opened, NULL) == 0);
    FUZZ_CHECK(gpu_amd.look(opened, &draft, NULL) == 0);
    check_look(look);
    gpu_amd.close(opened);
    atomic_store(&look->refs, 1);
    gpu_look_unref(look);
    return 0;
}
