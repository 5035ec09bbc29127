/* SPDX-License-Identifier: MIT */
/* Where the library has its probe site: one plain nop that every region passes. */
#ifndef COLLECTOR_SITE_H
#define COLLECTOR_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the library calls it, for administrators and their tools. */
#define SITE_SYMBOL "jphase_marker"

struct site {
	int file; /* that the process has mapped there, or -1 */
	uint64_t offset;
};

/*
 * The site at that address of a process, whatever file is mapped there and
 * whatever its path shows.  -ENOEXEC: there is no plain nop.
 */
int site_open(pid_t pid, uint64_t address, struct site *ret);
void site_close(struct site *site);

/* The offset of the site in a library's file.  -ENOENT: it has none. */
int site_offset(const char *library, uint64_t *ret);

/* True: no probe is at work there, as the process's memory still holds the nop. */
bool site_is_bare(pid_t pid, uint64_t address);

#endif
