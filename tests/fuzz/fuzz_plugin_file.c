/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plugin's file; what is read of it ends within its room, whatever the bytes. */
#include "fuzz.h"

#include "source/plugin_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plugin_file plugin;
    struct err err = { 0 };
    int code = plugin_file_parse((struct str){ (const char *)data, size }, &plugin, &err);

    FUZZ_CHECK(code == 0 || (code == -EBADMSG && err.text[0]), "%d", code);
    if (code < 0)
        return 0;
    FUZZ_CHECK(memchr(plugin.name, '\0', sizeof(plugin.name)), "name");
    FUZZ_CHECK(memchr(plugin.type, '\0', sizeof(plugin.type)), "type");
    FUZZ_CHECK(memchr(plugin.keys, '\0', sizeof(plugin.keys)), "keys");
    FUZZ_CHECK(plugin.has_type || !plugin.type[0], "a type that is not there");
    FUZZ_CHECK(strlen(plugin_version_text(plugin.version).text) < sizeof(struct plugin_version),
               "version");
    return 0;
}
