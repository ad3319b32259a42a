/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AMD's GPUs, from sysfs: Documentation/gpu/amdgpu/{driver-misc,thermal,ras}.rst of the kernel, and
 * Documentation/ABI/testing/sysfs-class-kfd for processes. What cannot be read is absent. */
#include "source/gpu_driver.h"

#include "base/arena.h"
#include "base/num.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sys/stat.h>

enum {
    DRM_MAJOR = 226,
    LONGEST_FILE = 4096,
    MOST_ENTRIES = 65536, /* of a directory */
};

/* A card on which amdgpu is the driver. */
struct card {
    unsigned number; /* of card0, card1, … */
    char minor[8];   /* of its renderD128 */
    uint64_t kfd_id; /* MODEL_UNKNOWN_U64: no compute on it */
};

struct amd {
    char *drm, *kfd; /* SYS/class/drm, SYS/class/kfd/kfd */
    struct card cards[GPUS_MAX];
    size_t n_cards;
};

/* What a small file holds, cut at the size; nothing if it cannot be read. */
static struct str read_file(int dir, const char *path, char *to, size_t size)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = -1;

    if (fd >= 0) {
        n = read(fd, to, size);
        close(fd);
    }
    return (struct str){ to, n < 0 ? 0 : (size_t)n };
}

static uint64_t read_number(int dir, const char *path)
{
    char text[32];
    uint64_t value;

    return num_get_u64(str_trim(read_file(dir, path, text, sizeof(text))), &value)
               ? value
               : MODEL_UNKNOWN_U64;
}

static void read_text(int dir, const char *path, const char *prefix, char *to, size_t size)
{
    char text[256];
    struct str value = str_trim(read_file(dir, path, text, sizeof(text)));

    if (value.n)
        snprintf(to, size, "%s%.*s", prefix, STR_ARG(value));
}

/* "card12" for the prefix "card": 12. */
static bool get_number(const char *name, struct str prefix, uint64_t *ret)
{
    struct str text = str_of(name);

    return str_starts(text, prefix) && num_get_u64(str_skip(text, prefix.n), ret);
}

static DIR *open_directory(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !directory)
        close(fd);
    return directory;
}

/* Calls `each` with the names in a directory, until it returns false. */
static void walk(int dir, const char *path, bool (*each)(int dir, const char *name, void *ctx),
                 void *ctx)
{
    DIR *directory = open_directory(dir, path);
    struct dirent *entry;

    if (!directory)
        return;
    for (int i = 0; i < MOST_ENTRIES && (entry = readdir(directory)); i++)
        if (entry->d_name[0] != '.' && !each(dirfd(directory), entry->d_name, ctx))
            break;
    closedir(directory);
}

static bool keep_minor(int dir, const char *name, void *ctx)
{
    struct card *card = ctx;
    uint64_t minor;

    (void)dir;
    if (!get_number(name, STR("renderD"), &minor) || minor >= 1 << 20)
        return true;
    snprintf(card->minor, sizeof(card->minor), "%u", (unsigned)minor);
    return false;
}

static bool keep_card(int dir, const char *name, void *ctx)
{
    struct amd *amd = ctx;
    struct card card = { .kfd_id = MODEL_UNKNOWN_U64 };
    uint64_t number;
    char path[64], vendor[16];

    if (!get_number(name, STR("card"), &number) || number > UINT16_MAX)
        return true;
    snprintf(path, sizeof(path), "card%u/device/vendor", (unsigned)number);
    if (!str_eq(str_trim(read_file(dir, path, vendor, sizeof(vendor))), STR("0x1002")))
        return true;
    card.number = (unsigned)number;
    snprintf(path, sizeof(path), "card%u/device/drm", (unsigned)number);
    walk(dir, path, keep_minor, &card);
    amd->cards[amd->n_cards++] = card;
    return amd->n_cards < COUNT(amd->cards);
}

static int by_number(const void *a, const void *b)
{
    const struct card *one = a, *other = b;

    return (one->number > other->number) - (one->number < other->number);
}

/* In the order of their card numbers, which is that of rocm-smi. */
static void find_cards(struct amd *amd)
{
    amd->n_cards = 0;
    walk(AT_FDCWD, amd->drm, keep_card, amd);
    qsort(amd->cards, amd->n_cards, sizeof(amd->cards[0]), by_number);
}

/* "ue: 0\nce: 3\n" of one block of the GPU. */
static bool add_errors(int dir, const char *name, void *ctx)
{
    struct gpu_use *use = ctx;
    const struct {
        struct str prefix;
        uint64_t *sum;
    } counts[] = {
        { STR("ue: "), &use->ecc_uncorrected },
        { STR("ce: "), &use->ecc_corrected },
    };
    char text[256];
    uint64_t value;

    if (!str_ends(str_of(name), STR("_err_count")))
        return true;
    for (struct str line, rest = read_file(dir, name, text, sizeof(text)); rest.p;) {
        line = str_cut(&rest, '\n');
        for (size_t i = 0; i < COUNT(counts); i++)
            if (str_starts(line, counts[i].prefix) &&
                num_get_u64(str_skip(line, counts[i].prefix.n), &value))
                *counts[i].sum =
                    *counts[i].sum == MODEL_UNKNOWN_U64 ? value : *counts[i].sum + value;
    }
    return true;
}

static uint64_t divided(uint64_t value, uint64_t by)
{
    return value == MODEL_UNKNOWN_U64 ? value : value / by;
}

static double ratio_of(uint64_t percent)
{
    return percent > 100 ? NAN : (double)percent / 100;
}

/* The first that there is. */
static uint64_t read_either(int dir, const char *path, const char *otherwise)
{
    uint64_t value = read_number(dir, path);

    return value == MODEL_UNKNOWN_U64 ? read_number(dir, otherwise) : value;
}

/* hwmon: microwatts, thousandths of a degree, hertz. */
static bool read_sensors(int dir, const char *name, void *ctx)
{
    struct gpu_use *use = ctx;
    uint64_t number;
    int at;

    if (!get_number(name, STR("hwmon"), &number))
        return true;
    at = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return true;
    use->power_mw = divided(read_either(at, "power1_average", "power1_input"), 1000);
    use->power_limit_mw = divided(read_number(at, "power1_cap"), 1000);
    use->temperature_celsius = divided(read_either(at, "temp1_input", "temp2_input"), 1000);
    use->sm_clock_mhz = divided(read_number(at, "freq1_input"), 1000000);
    use->memory_clock_mhz = divided(read_number(at, "freq2_input"), 1000000);
    close(at);
    return false;
}

static void read_identity(int dir, const struct card *card, struct gpu_use *use)
{
    /* As ROCm writes it. */
    read_text(dir, "unique_id", "GPU-", use->uuid, sizeof(use->uuid));
    read_text(dir, "product_name", "", use->model, sizeof(use->model));
    memcpy(use->minor, card->minor, sizeof(use->minor));
    use->major = DRM_MAJOR;
}

static void read_card(const struct amd *amd, const struct card *card, struct gpu_use *use)
{
    char path[PATH_MAX];
    int dir;

    snprintf(path, sizeof(path), "%s/card%u/device", amd->drm, card->number);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return;
    read_identity(dir, card, use);
    use->utilization = ratio_of(read_number(dir, "gpu_busy_percent"));
    use->memory_utilization = ratio_of(read_number(dir, "mem_busy_percent"));
    use->memory_used_bytes = read_number(dir, "mem_info_vram_used");
    use->memory_total_bytes = read_number(dir, "mem_info_vram_total");
    walk(dir, "hwmon", read_sensors, use);
    walk(dir, "ras", add_errors, use);
    close(dir);
}

/* The number behind a word in "simd_count 456\ndrm_render_minor 128\n". */
static bool get_property(struct str text, struct str word, struct str *ret)
{
    while (text.p) {
        struct str line = str_cut(&text, '\n');

        if (str_eq(str_cut(&line, ' '), word) && line.p) {
            *ret = str_trim(line);
            return true;
        }
    }
    return false;
}

/* Which of the cards a node of KFD's topology is: their render node tells. */
static bool match_node(int dir, const char *name, void *ctx)
{
    struct amd *amd = ctx;
    char path[300], text[LONGEST_FILE];
    struct str minor;
    uint64_t id;

    snprintf(path, sizeof(path), "%s/gpu_id", name);
    id = read_number(dir, path);
    if (id == 0 || id == MODEL_UNKNOWN_U64)
        return true; /* a CPU */
    snprintf(path, sizeof(path), "%s/properties", name);
    if (!get_property(read_file(dir, path, text, sizeof(text)), STR("drm_render_minor"), &minor))
        return true;
    for (size_t i = 0; i < amd->n_cards; i++)
        if (str_eq(str_of(amd->cards[i].minor), minor))
            amd->cards[i].kfd_id = id;
    return true;
}

struct process_walk {
    struct amd *amd;
    struct gpu_draft *draft;
    size_t first; /* place of the first card in the draft */
};

/* KFD lists a process for every GPU that it may use: it is on those where it has memory. */
static bool keep_process(int dir, const char *name, void *ctx)
{
    const struct process_walk *here = ctx;
    uint64_t pid;

    if (!get_number(name, STR(""), &pid) || pid == 0 || pid > INT_MAX)
        return true;
    for (size_t i = 0; i < here->amd->n_cards; i++) {
        const struct card *card = &here->amd->cards[i];
        char path[64];
        uint64_t bytes;

        if (card->kfd_id == MODEL_UNKNOWN_U64)
            continue;
        snprintf(path, sizeof(path), "%u/vram_%llu", (unsigned)pid,
                 (unsigned long long)card->kfd_id);
        bytes = read_number(dir, path);
        if (bytes == 0 || bytes == MODEL_UNKNOWN_U64)
            continue;
        if (gpu_draft_process(here->draft, (uint32_t)(here->first + i), (pid_t)pid, bytes) < 0)
            return false;
    }
    return true;
}

static void find_processes(struct amd *amd, struct gpu_draft *draft, size_t first)
{
    struct process_walk processes = { amd, draft, first };
    int kfd = open(amd->kfd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (kfd < 0)
        return;
    if (faccessat(kfd, "proc", R_OK | X_OK, 0) == 0) {
        walk(kfd, "topology/nodes", match_node, amd);
        walk(kfd, "proc", keep_process, &processes);
        for (size_t i = 0; i < amd->n_cards; i++)
            draft->look->gpus[first + i].tells_processes =
                amd->cards[i].kfd_id != MODEL_UNKNOWN_U64;
    }
    close(kfd);
}

static int look(void *opened, struct gpu_draft *draft, struct err *err)
{
    struct amd *amd = opened;
    size_t first = draft->look->n_gpus;

    find_cards(amd);
    if (amd->n_cards == 0)
        return err_set(err, ENODEV, "there is no GPU of AMD");
    for (size_t i = 0; i < amd->n_cards; i++) {
        int place = gpu_draft_gpu(draft, draft->n_whole++, -1);

        if (place < 0) {
            amd->n_cards = i;
            break;
        }
        read_card(amd, &amd->cards[i], &draft->look->gpus[place]);
    }
    find_processes(amd, draft, first);
    return 0;
}

static char *joined(const char *sys, const char *path)
{
    char text[PATH_MAX];

    snprintf(text, sizeof(text), "%s/%s", sys, path);
    return heap_str(str_of(text));
}

static void close_amd(void *opened)
{
    struct amd *amd = opened;

    free(amd->drm);
    free(amd->kfd);
    free(amd);
}

static int open_amd(const struct gpus_config *config, void **ret, struct err *err)
{
    struct amd *amd = heap_alloc(sizeof(*amd));

    amd->drm = joined(config->sys, "class/drm");
    amd->kfd = joined(config->sys, "class/kfd/kfd");
    find_cards(amd);
    if (amd->n_cards == 0) {
        close_amd(amd);
        return err_set(err, ENODEV, "there is no GPU of AMD");
    }
    *ret = amd;
    return 0;
}

/* Directories and ids of vendors are the kernel's, not the driver's. */
static bool is_present(const struct gpus_config *config)
{
    struct err err;
    void *opened;

    if (open_amd(config, &opened, &err) < 0)
        return false;
    close_amd(opened);
    return true;
}

const struct gpu_driver gpu_amd = { is_present, open_amd, look, close_amd };
