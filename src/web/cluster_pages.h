/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pages of clusters, and of sonde itself. */
#ifndef SONDE_WEB_CLUSTER_PAGES_H
#define SONDE_WEB_CLUSTER_PAGES_H

#include "web/site.h"

extern const struct site_page show_overview, show_nodes, show_node, show_partitions,
    show_reservations, show_clusters, show_allocations, show_health;

/* Numbers over time, as images and as JSON. */
extern const struct site_page show_trend_chart, show_trend_data;

#endif
