/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm looks up in an acct_gather_profile plugin; meson.build says what is left out. */
#include <stdint.h>

#ifndef TYPE
#define TYPE "acct_gather_profile/prometheus"
#endif
#ifndef VERSION
#define VERSION 0x160508
#endif

extern const char plugin_name[], plugin_type[], sonde_profile_keys[];
extern const uint32_t plugin_version;

const char plugin_name[] = "a stand-in for tests";
const uint32_t plugin_version = VERSION;

#ifndef WITHOUT_TYPE
const char plugin_type[] = TYPE;
#endif

#ifndef WITHOUT_KEYS
const char sonde_profile_keys[] = "ProfilePrometheusHost ProfilePrometheusDefault "
                                  "ProfilePrometheusAgent ProfilePrometheusFrequency";
#endif

#define FUNCTION(name)                                                                             \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return 0;                                                                                  \
    }

FUNCTION(init)
FUNCTION(fini)

#ifndef WITHOUT_FUNCTIONS
FUNCTION(acct_gather_profile_p_child_forked)
FUNCTION(acct_gather_profile_p_conf_options)
FUNCTION(acct_gather_profile_p_conf_set)
FUNCTION(acct_gather_profile_p_get)
FUNCTION(acct_gather_profile_p_node_step_start)
FUNCTION(acct_gather_profile_p_node_step_end)
FUNCTION(acct_gather_profile_p_task_start)
FUNCTION(acct_gather_profile_p_task_end)
FUNCTION(acct_gather_profile_p_create_group)
FUNCTION(acct_gather_profile_p_conf_values)
FUNCTION(acct_gather_profile_p_is_active)
#ifndef WITHOUT_SAMPLES
FUNCTION(acct_gather_profile_p_create_dataset)
FUNCTION(acct_gather_profile_p_add_sample_data)
#endif
#endif
