/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of checks: what is read of any bytes keeps within docs/report.md; a refusal names the
 * file. */
#include "report/checks.h"

#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_setting(const struct check *check, const struct check_setting *setting)
{
    double most = check->unit && strcmp(check->unit, "%") == 0 ? 100 : 1e9;

    if (isnan(check->threshold))
        FUZZ_CHECK(isnan(setting->threshold));
    else
        FUZZ_CHECK(setting->threshold >= 0 && setting->threshold <= most);
    FUZZ_CHECK(setting->severity < SEVERITIES);
    FUZZ_CHECK(!setting->link.n || str_starts(setting->link, STR("http")));
    for (size_t i = 0; i < setting->link.n; i++)
        FUZZ_CHECK(setting->link.p[i] > ' ' && setting->link.p[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct check_settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char path[64];
    int fd, code;

    if (size > 1 << 20)
        return 0;
    fd = memfd_create("checks", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    code = check_settings_read(path, &arena, &settings, &err);
    close(fd);
    if (code < 0) {
        FUZZ_CHECK(code == -EINVAL, "%d", code);
        FUZZ_CHECK(err.code == EINVAL && !settings.check);
        FUZZ_CHECK(str_starts(str_of(err.text), str_of(path)), "%s", err.text);
    } else {
        FUZZ_CHECK(settings.least_seconds >= 0 && settings.least_seconds <= 30 * 86400);
        for (size_t i = 0; i < n_checks; i++)
            check_setting(&checks[i], &settings.check[i]);
    }
    arena_clear(&arena);
    return 0;
}
