/* SPDX-License-Identifier: MIT */
/* Groups that collectors have made for their programs and were killed before they removed them. */
#ifndef READERS_CGROUP_STALE_H
#define READERS_CGROUP_STALE_H

/* Removes those in a folder that nobody lives in, and nobody can be about to. */
void cgroup_stale_remove(const char *folder);

#endif
