/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads stand-ins that tests/plugin_file makes, whole, cut off and damaged. */
#include "test.h"

#include "base/arena.h"
#include "files.h"
#include "source/plugin_file.h"

#include <elf.h>
#include <unistd.h>

static struct buf load(const char *name)
{
    struct buf content;
    struct stat status;
    struct err err = { 0 };
    char path[500];

    snprintf(path, sizeof(path), "%s/plugin_%s.so", PLUGIN_STANDINS, name);
    if (plugin_file_load(path, &content, &status, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(content.n, status.st_size);
    return content;
}

static struct plugin_file parse(const char *name)
{
    struct buf content = load(name);
    struct plugin_file plugin;
    struct err err = { 0 };

    if (plugin_file_parse(buf_str(&content), &plugin, &err) < 0)
        fail_msg("%s", err.text);
    buf_free(&content);
    return plugin;
}

static size_t count_functions(const struct plugin_file *plugin)
{
    size_t n = 0;

    for (size_t i = 0; i < PLUGIN_FUNCTIONS; i++)
        n += plugin->has_function[i];
    return n;
}

static void assert_right(const struct plugin_file *plugin)
{
    assert_true(plugin->has_name && plugin->has_type && plugin->has_version && plugin->has_keys);
    assert_string_equal(plugin->name, "a stand-in for tests");
    assert_string_equal(plugin->type, "acct_gather_profile/prometheus");
    assert_int_equal(plugin->version, 0x160508);
    assert_string_equal(plugin->keys, "ProfilePrometheusHost ProfilePrometheusDefault "
                                      "ProfilePrometheusAgent ProfilePrometheusFrequency");
    assert_true(plugin->has_init && plugin->has_fini);
    assert_int_equal(count_functions(plugin), PLUGIN_FUNCTIONS);
}

TEST(a_whole_plugin_tells_all)
{
    struct plugin_file plugin = parse("right");

    assert_right(&plugin);
}

TEST(one_that_is_stripped_and_has_the_old_hash_table_tells_all)
{
    struct plugin_file plugin = parse("sysv");

    assert_right(&plugin);
}

TEST(what_is_missing_is_told_one_by_one)
{
    struct plugin_file plugin = parse("partial");

    assert_int_equal(count_functions(&plugin), PLUGIN_FUNCTIONS - 2);
    for (size_t i = 0; i < PLUGIN_FUNCTIONS; i++)
        assert_int_equal(plugin.has_function[i],
                         strcmp(plugin_functions[i], "acct_gather_profile_p_add_sample_data") &&
                             strcmp(plugin_functions[i], "acct_gather_profile_p_create_dataset"));
    plugin = parse("original");
    assert_false(plugin.has_keys);
    plugin = parse("nameless");
    assert_true(plugin.has_name && !plugin.has_type);
}

TEST(any_plugin_of_slurm_can_be_read)
{
    struct plugin_file plugin = parse("jobcomp");

    assert_string_equal(plugin.type, "jobcomp/other");
    assert_int_equal(count_functions(&plugin), 0);
}

static void assert_refused(struct str content, const char *words)
{
    struct plugin_file plugin;
    struct err err = { 0 };

    assert_int_equal(plugin_file_parse(content, &plugin, &err), -EBADMSG);
    assert_contains(err.text, words);
}

TEST(what_is_for_other_machines_is_refused)
{
    struct buf content = load("right");
    Elf64_Ehdr *header = (Elf64_Ehdr *)content.p;

    header->e_ident[EI_CLASS] = ELFCLASS32;
    assert_refused(buf_str(&content), "not 64-bit, little-endian");
    header->e_ident[EI_CLASS] = ELFCLASS64;
    header->e_ident[EI_DATA] = ELFDATA2MSB;
    assert_refused(buf_str(&content), "not 64-bit, little-endian");
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_machine = EM_S390;
    assert_refused(buf_str(&content), "ELF machine 22");
    buf_free(&content);
}

TEST(what_is_no_shared_library_is_refused)
{
    struct buf content = load("right");

    ((Elf64_Ehdr *)content.p)->e_type = ET_EXEC;
    assert_refused(buf_str(&content), "no shared library");
    buf_free(&content);
    assert_refused(STR(""), "no shared library");
    assert_refused(STR("#!/bin/sh\necho a script that is long enough\n"), "no shared library");
}

/* In a block of just that size, so that the address sanitizer sees a read past the end. */
static int parse_head(struct str content, size_t n)
{
    char *head = heap_array(n, 1);
    struct plugin_file plugin;
    struct err err = { 0 };
    int code;

    memcpy(head, content.p, n);
    code = plugin_file_parse((struct str){ head, n }, &plugin, &err);
    free(head);
    return code;
}

TEST(one_that_is_cut_off_is_refused)
{
    struct buf content = load("right");
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)content.p;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(content.p + header->e_phoff);
    size_t end = 0;

    for (size_t i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_LOAD && segment[i].p_offset + segment[i].p_filesz > end)
            end = segment[i].p_offset + segment[i].p_filesz;
    assert_true(end > 0 && end <= content.n);
    for (size_t n = 0; n < end; n += n < 1000 || end - n < 100 ? 1 : 97)
        assert_int_equal(parse_head(buf_str(&content), n), -EBADMSG);
    assert_int_equal(parse_head(buf_str(&content), end), 0);
    buf_free(&content);
}

/* Every 32-bit word in turn is made as large as can be, and 0: offsets, counts, hashes. */
TEST(no_number_in_it_leads_out_of_the_file)
{
    static const char *const names[] = { "right", "sysv" };
    static const uint32_t values[] = { 0, 1, 0x7fffffff, 0xfffffff0, 0xffffffff };

    for (size_t i = 0; i < COUNT(names); i++) {
        struct buf content = load(names[i]);

        for (size_t at = 0; at + 4 <= content.n && at < 8192; at += 4) {
            uint32_t before;

            memcpy(&before, content.p + at, 4);
            for (size_t k = 0; k < COUNT(values); k++) {
                struct plugin_file plugin;

                memcpy(content.p + at, &values[k], 4);
                plugin_file_parse(buf_str(&content), &plugin, NULL);
            }
            memcpy(content.p + at, &before, 4);
        }
        buf_free(&content);
    }
}

TEST(only_regular_files_that_can_be_read_are_loaded)
{
    struct buf content;
    struct stat status;
    struct err err = { 0 };

    assert_int_equal(plugin_file_load("/nonexistent/x.so", &content, &status, &err), -ENOENT);
    assert_contains(err.text, "/nonexistent/x.so cannot be read: ");
    assert_int_equal(plugin_file_load("/dev/zero", &content, &status, &err), -EBADMSG);
    assert_contains(err.text, "is no regular file");
}

TEST(a_file_that_is_too_large_is_not_read)
{
    const char *path = write_file("large", "");
    struct buf content;
    struct stat status;
    struct err err = { 0 };

    assert_int_equal(truncate(path, (off_t)PLUGIN_FILE_MAX + 1), 0);
    assert_int_equal(plugin_file_load(path, &content, &status, &err), -EFBIG);
    assert_contains(err.text, "64 MiB is the most");
}

TEST(versions_are_written_and_read_as_slurm_has_them)
{
    static const char *const wrong[] = { "",          "22",      "22.05",     "22.05.",
                                         "22.05.8.1", "22.05.x", "22.05.256", "slurm 22.05.8" };
    uint32_t version;

    assert_string_equal(plugin_version_text(0x160508).text, "22.05.8");
    assert_string_equal(plugin_version_text(0x180b05).text, "24.11.5");
    assert_string_equal(plugin_version_text(0xffffffff).text, "65535.255.255");
    assert_true(plugin_version_parse(STR("22.05.8"), &version));
    assert_int_equal(version, 0x160508);
    assert_true(plugin_version_parse(STR("24.11.0-0rc1"), &version));
    assert_int_equal(version, 0x180b00);
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(plugin_version_parse(str_of(wrong[i]), &version));
}
