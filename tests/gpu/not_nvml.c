/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library that is not NVML, in spite of one function that has such a name. */
const char *nvmlErrorString(unsigned code);
const char *nvmlErrorString(unsigned code)
{
    (void)code;
    return "not NVML";
}
