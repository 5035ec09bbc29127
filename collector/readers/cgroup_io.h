/* SPDX-License-Identifier: MIT */
/*
 * io.stat over time.  A device that goes away takes its line with it; what it
 * had done by then still counts, so each device's last numbers are kept.
 */
#ifndef READERS_CGROUP_IO_H
#define READERS_CGROUP_IO_H

#include <stddef.h>
#include <stdint.h>

#include "readers/kfile.h"

#define CGROUP_IO_KEYS 4

struct cgroup_io;

/* NULL: out of memory. */
struct cgroup_io *cgroup_io_open(void);

/* The sums over all devices that were ever there, at most CGROUP_IO_KEYS.  No allocation. */
void cgroup_io_add(struct cgroup_io *io, const char *text, size_t size,
	const struct kfile_key *keys, size_t count, uint64_t *ret_values);

/* Takes NULL, returns NULL. */
struct cgroup_io *cgroup_io_close(struct cgroup_io *io);

#endif
