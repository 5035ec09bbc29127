/* SPDX-License-Identifier: MIT */
/*
 * The memory that the targets map: ring, session page, presence page.  Made,
 * sized and sealed here, so that neither side can make the other fault.
 */
#ifndef COLLECTOR_SHARED_H
#define COLLECTOR_SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"

struct shared {
	int ring_fd;
	int page_fd;
	int presence_fd;
	uint32_t records;
	struct jphase_ring *ring;
	struct jphase_session_page *page;
	dev_t ring_device;
	ino_t ring_inode;
};

int shared_open(uint32_t records, uint32_t flags, struct shared *ret);
void shared_close(struct shared *s);

/*
 * The calling thread becomes the owner whose death the kernel tells the
 * targets.  It must not use robust mutexes.
 */
int shared_own(struct shared *s);

/*
 * True if no process maps the session any more.  Afterwards
 * shared_renew_presence() is needed before another can join.
 */
bool shared_is_deserted(struct shared *s);
int shared_renew_presence(struct shared *s);

#endif
