/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols are found as the dynamic loader finds them, by PT_DYNAMIC and a hash table: section
 * headers may have been stripped. */
#include "source/plugin_file.h"

#include "base/num.h"

#include <elf.h>
#include <fcntl.h>

#if defined(__x86_64__)
#define THIS_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define THIS_MACHINE EM_PPC64
#elif defined(__riscv)
#define THIS_MACHINE EM_RISCV
#else
#define THIS_MACHINE EM_NONE
#endif

enum { SEGMENTS_MAX = 64 }; /* a dozen is usual */

const char *const plugin_functions[PLUGIN_FUNCTIONS] = {
    "acct_gather_profile_p_child_forked",    "acct_gather_profile_p_conf_options",
    "acct_gather_profile_p_conf_set",        "acct_gather_profile_p_get",
    "acct_gather_profile_p_node_step_start", "acct_gather_profile_p_node_step_end",
    "acct_gather_profile_p_task_start",      "acct_gather_profile_p_task_end",
    "acct_gather_profile_p_create_group",    "acct_gather_profile_p_create_dataset",
    "acct_gather_profile_p_add_sample_data", "acct_gather_profile_p_conf_values",
    "acct_gather_profile_p_is_active",
};

static int read_all(int fd, struct buf *to)
{
    ssize_t n;

    do {
        char *room = buf_room(to, 64 * 1024);

        if (!room)
            return -EFBIG;
        n = read(fd, room, 64 * 1024);
        if (n > 0)
            to->n += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR));
    buf_end(to);
    return n < 0 ? -errno : 0;
}

int plugin_file_load(const char *path, struct buf *ret_content, struct stat *ret_status,
                     struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int code;

    buf_init(ret_content, PLUGIN_FILE_MAX + 64 * 1024);
    if (fd < 0 || fstat(fd, ret_status) < 0)
        code = -errno;
    else if (!S_ISREG(ret_status->st_mode))
        code = -EBADMSG;
    else
        code = ret_status->st_size > PLUGIN_FILE_MAX ? -EFBIG : read_all(fd, ret_content);
    if (fd >= 0)
        close(fd);
    if (code == 0)
        return 0;
    buf_free(ret_content);
    if (code == -EBADMSG)
        return err_set(err, EBADMSG, "%s is no regular file", path);
    if (code == -EFBIG)
        return err_set(err, EFBIG, "%s is larger than any plugin: %d MiB is the most that is read",
                       path, PLUGIN_FILE_MAX >> 20);
    return err_set(err, -code, "%s cannot be read: %s", path, err_words(-code));
}

/* What lies at an address when the file is loaded, as far as it comes from the file. */
struct image {
    struct str content;
    Elf64_Phdr segment[SEGMENTS_MAX];
    size_t n_segments;
    struct str strings, symbols, gnu_hash, sysv_hash; /* p = NULL: there is none */
};

static struct str part(struct str s, uint64_t offset, uint64_t n)
{
    if (offset > s.n || n > s.n - offset)
        return (struct str){ NULL, 0 };
    return (struct str){ s.p + offset, n };
}

static bool get(struct str s, uint64_t offset, void *to, size_t n)
{
    struct str bytes = part(s, offset, n);

    if (bytes.p)
        memcpy(to, bytes.p, n);
    return bytes.p;
}

/* An item of an array that begins at `offset`. */
static bool get_u32(struct str s, uint64_t offset, uint64_t i, uint32_t *ret)
{
    return i <= s.n / sizeof(*ret) && offset <= s.n && get(s, offset + i * sizeof(*ret), ret, 4);
}

static int damaged(struct err *err)
{
    return err_set(err, EBADMSG, "it is cut off or damaged: copy it again");
}

static int check_header(struct str content, Elf64_Ehdr *ret, struct err *err)
{
    if (content.n < EI_NIDENT || memcmp(content.p, ELFMAG, SELFMAG) != 0)
        return err_set(err, EBADMSG, "it is no shared library");
    if (content.p[EI_CLASS] != ELFCLASS64 || content.p[EI_DATA] != ELFDATA2LSB)
        return err_set(err, EBADMSG, "it is for other machines: not 64-bit, little-endian");
    if (!get(content, 0, ret, sizeof(*ret)))
        return damaged(err);
    if (ret->e_machine != THIS_MACHINE)
        return err_set(err, EBADMSG, "it is for other machines: ELF machine %u, and this is %u",
                       ret->e_machine, THIS_MACHINE);
    if (ret->e_type != ET_DYN)
        return err_set(err, EBADMSG, "it is no shared library");
    if (ret->e_phentsize != sizeof(Elf64_Phdr) || ret->e_phnum > SEGMENTS_MAX)
        return damaged(err);
    return 0;
}

/* The loader maps what is cut off all the same; whoever touches it then dies of SIGBUS. */
static int read_segments(struct image *image, const Elf64_Ehdr *header, struct err *err)
{
    size_t bytes = header->e_phnum * sizeof(Elf64_Phdr);

    if (!get(image->content, header->e_phoff, image->segment, bytes))
        return damaged(err);
    image->n_segments = header->e_phnum;
    for (size_t i = 0; i < image->n_segments; i++) {
        const Elf64_Phdr *segment = &image->segment[i];

        if ((segment->p_type == PT_LOAD || segment->p_type == PT_DYNAMIC) &&
            !part(image->content, segment->p_offset, segment->p_filesz).p)
            return damaged(err);
    }
    return 0;
}

/* From an address to the end of its segment. */
static struct str at(const struct image *image, uint64_t address)
{
    for (size_t i = 0; i < image->n_segments; i++) {
        const Elf64_Phdr *segment = &image->segment[i];
        uint64_t offset = address - segment->p_vaddr;

        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr && offset < segment->p_filesz)
            return part(image->content, segment->p_offset + offset, segment->p_filesz - offset);
    }
    return (struct str){ NULL, 0 };
}

static struct str dynamic_of(const struct image *image)
{
    for (size_t i = 0; i < image->n_segments; i++)
        if (image->segment[i].p_type == PT_DYNAMIC)
            return part(image->content, image->segment[i].p_offset, image->segment[i].p_filesz);
    return (struct str){ NULL, 0 };
}

static int read_dynamic(struct image *image, struct err *err)
{
    struct str dynamic = dynamic_of(image);
    uint64_t n_strings = 0;
    Elf64_Dyn entry;

    for (size_t i = 0; get(dynamic, i, &entry, sizeof(entry)) && entry.d_tag != DT_NULL;
         i += sizeof(entry)) {
        if (entry.d_tag == DT_STRTAB)
            image->strings = at(image, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_STRSZ)
            n_strings = entry.d_un.d_val;
        else if (entry.d_tag == DT_SYMTAB)
            image->symbols = at(image, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_GNU_HASH)
            image->gnu_hash = at(image, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_HASH)
            image->sysv_hash = at(image, entry.d_un.d_ptr);
    }
    image->strings = str_head(image->strings, n_strings);
    if (!image->strings.n || !image->symbols.n || !(image->gnu_hash.n || image->sysv_hash.n))
        return damaged(err);
    return 0;
}

/* Symbol number i, if it is defined here and has that name. */
static bool is_symbol(const struct image *image, uint64_t i, struct str name, Elf64_Sym *ret)
{
    struct str found;

    if (i > image->symbols.n / sizeof(*ret) ||
        !get(image->symbols, i * sizeof(*ret), ret, sizeof(*ret)))
        return false;
    found = part(image->strings, ret->st_name, name.n + 1);
    return ret->st_shndx != SHN_UNDEF && ELF64_ST_BIND(ret->st_info) != STB_LOCAL && found.p &&
           memcmp(found.p, name.p, name.n) == 0 && found.p[name.n] == '\0';
}

static uint32_t gnu_hash_of(struct str name)
{
    uint32_t hash = 5381;

    for (size_t i = 0; i < name.n; i++)
        hash = hash * 33 + (unsigned char)name.p[i];
    return hash;
}

/* Its head: how many buckets, the first symbol that is in it, words of a Bloom filter, a shift.
 * Then the filter, the buckets, and a hash for each symbol, odd for the last one of a bucket. */
static bool find_gnu(const struct image *image, struct str name, Elf64_Sym *ret)
{
    struct str table = image->gnu_hash;
    uint32_t head[4], hash = gnu_hash_of(name), i, other;
    uint64_t buckets, chains;

    if (!get(table, 0, head, sizeof(head)) || !head[0])
        return false;
    buckets = sizeof(head) + 8 * (uint64_t)head[2];
    chains = buckets + 4 * (uint64_t)head[0];
    if (!get_u32(table, buckets, hash % head[0], &i) || i < head[1])
        return false;
    do {
        if (!get_u32(table, chains, i - head[1], &other))
            return false;
        if ((other | 1) == (hash | 1) && is_symbol(image, i, name, ret))
            return true;
    } while (!(other & 1) && ++i);
    return false;
}

static uint32_t sysv_hash_of(struct str name)
{
    uint32_t hash = 0;

    for (size_t i = 0; i < name.n; i++) {
        hash = (hash << 4) + (unsigned char)name.p[i];
        hash ^= hash >> 24 & 0xf0;
        hash &= 0x0fffffff;
    }
    return hash;
}

/* How many buckets and symbols; the buckets; for each symbol the next one of its bucket, or 0. A
 * damaged one may go round in circles. */
static bool find_sysv(const struct image *image, struct str name, Elf64_Sym *ret)
{
    struct str table = image->sysv_hash;
    uint64_t buckets = 8, chains, most = table.n / 4;
    uint32_t head[2], i;

    if (!get(table, 0, head, sizeof(head)) || !head[0])
        return false;
    chains = buckets + 4 * (uint64_t)head[0];
    if (!get_u32(table, buckets, sysv_hash_of(name) % head[0], &i))
        return false;
    for (; i && most; most--) {
        if (is_symbol(image, i, name, ret))
            return true;
        if (!get_u32(table, chains, i, &i))
            return false;
    }
    return false;
}

static bool find(const struct image *image, const char *name, Elf64_Sym *ret)
{
    return image->gnu_hash.n ? find_gnu(image, str_of(name), ret)
                             : find_sysv(image, str_of(name), ret);
}

static bool is_defined(const struct image *image, const char *name)
{
    Elf64_Sym symbol;

    return find(image, name, &symbol);
}

/* An array of characters; what is not in the file would be 0. */
static bool read_text(const struct image *image, const char *name, char *to, size_t room)
{
    Elf64_Sym symbol;
    struct str bytes;

    if (!find(image, name, &symbol))
        return false;
    bytes = str_head(at(image, symbol.st_value), room - 1);
    snprintf(to, room, "%.*s", STR_ARG(str_head(bytes, str_find(bytes, '\0'))));
    return true;
}

static bool read_version(const struct image *image, uint32_t *ret)
{
    Elf64_Sym symbol;

    return find(image, "plugin_version", &symbol) &&
           get(at(image, symbol.st_value), 0, ret, sizeof(*ret));
}

int plugin_file_parse(struct str content, struct plugin_file *ret, struct err *err)
{
    struct image image = { .content = content };
    Elf64_Ehdr header;
    int code = check_header(content, &header, err);

    if (code == 0)
        code = read_segments(&image, &header, err);
    if (code == 0)
        code = read_dynamic(&image, err);
    if (code < 0)
        return code;
    *ret = (struct plugin_file){ 0 };
    ret->has_name = read_text(&image, "plugin_name", ret->name, sizeof(ret->name));
    ret->has_type = read_text(&image, "plugin_type", ret->type, sizeof(ret->type));
    ret->has_version = read_version(&image, &ret->version);
    ret->has_keys = read_text(&image, "sonde_profile_keys", ret->keys, sizeof(ret->keys));
    ret->has_init = is_defined(&image, "init");
    ret->has_fini = is_defined(&image, "fini");
    for (size_t i = 0; i < PLUGIN_FUNCTIONS; i++)
        ret->has_function[i] = is_defined(&image, plugin_functions[i]);
    return 0;
}

struct plugin_version plugin_version_text(uint32_t version)
{
    struct plugin_version ret;

    snprintf(ret.text, sizeof(ret.text), "%u.%02u.%u", version >> 16 & 0xffff, version >> 8 & 0xff,
             version & 0xff);
    return ret;
}

bool plugin_version_parse(struct str text, uint32_t *ret)
{
    uint64_t number[3];

    text = str_head(text, str_find(text, '-'));
    for (size_t i = 0; i < COUNT(number); i++)
        if (!num_get_u64(str_cut(&text, '.'), &number[i]) || number[i] > 0xff)
            return false;
    *ret = (uint32_t)(number[0] << 16 | number[1] << 8 | number[2]);
    return !text.p;
}
