/* SPDX-License-Identifier: MIT */
#include "site.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "internal/sys.h"
#include "internal/util.h"

#if defined(__aarch64__)
static const uint8_t nop[] = { 0x1f, 0x20, 0x03, 0xd5 };
#else
static const uint8_t nop[] = { 0x90 };
#endif

struct mapping {
	uint64_t start, end, offset, inode;
	unsigned major, minor;
	char path[PATH_MAX];
};

static bool parse_mapping(const char *line, struct mapping *m)
{
	char rights[8];

	m->path[0] = '\0';
	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %4095[^\n]",
		       &m->start, &m->end, rights, &m->offset, &m->major, &m->minor, &m->inode,
		       m->path) >= 7 &&
	       rights[2] == 'x' && m->inode != 0;
}

static int find_mapping(pid_t pid, uint64_t address, struct mapping *ret)
{
	char path[64], *line = NULL;
	size_t room = 0;
	int err = -ENOENT;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (err < 0 && getline(&line, &room, f) > 0)
		if (parse_mapping(line, ret) && address >= ret->start && address < ret->end)
			err = 0;
	free(line);
	fclose(f);
	return err;
}

/* The path may have been given to another file since. */
static int open_by_path(pid_t pid, const struct mapping *m)
{
	char path[PATH_MAX + 32];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
	/* What is there now may be anything. */
	fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_ino == m->inode && major(st.st_dev) == m->major &&
		minor(st.st_dev) == m->minor)
		return fd;
	close(fd);
	return -ESTALE;
}

/* The mapping itself leads to the file for the privileged. */
static int open_mapped(pid_t pid, const struct mapping *m)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, m->start,
		m->end);
	fd = sys_open(path, O_RDONLY, 0);
	return fd == -EPERM || fd == -EACCES ? open_by_path(pid, m) : fd;
}

int site_open(pid_t pid, uint64_t address, struct site *ret)
{
	uint8_t found[sizeof(nop)];
	struct mapping m;
	struct site site;
	int err = find_mapping(pid, address, &m);

	if (err < 0)
		return err;
	site = (struct site){ open_mapped(pid, &m), address - m.start + m.offset };
	if (site.file < 0)
		return site.file;
	/* The address is the target's word: only a plain nop may become a trap. */
	if (sys_pread(site.file, found, sizeof(found), (off_t)site.offset) !=
			(ssize_t)sizeof(nop) ||
		memcmp(found, nop, sizeof(nop)) != 0) {
		site_close(&site);
		return -ENOEXEC;
	}
	*ret = site;
	return 0;
}

void site_close(struct site *site)
{
	site->file = sys_close(site->file);
}

bool site_is_bare(pid_t pid, uint64_t address)
{
	uint8_t found[sizeof(nop)];
	struct iovec here = { found, sizeof(found) };
	struct iovec there = { (void *)(uintptr_t)address, sizeof(found) };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(found) &&
	       memcmp(found, nop, sizeof(nop)) == 0;
}

/* A file in memory, whose parts may lie wherever it says. */
struct image {
	const uint8_t *data;
	size_t size;
};

static const void *part(const struct image *image, uint64_t offset, uint64_t size)
{
	if (offset > image->size || size > image->size - offset)
		return NULL;
	return image->data + offset;
}

static int file_offset(
	const struct image *image, const Elf64_Ehdr *head, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < head->e_phnum; i++) {
		const Elf64_Phdr *load =
			part(image, head->e_phoff + i * sizeof(*load), sizeof(*load));

		if (!load)
			return -ENOEXEC;
		if (load->p_type != PT_LOAD || address < load->p_vaddr ||
			address - load->p_vaddr >= load->p_filesz)
			continue;
		*ret = address - load->p_vaddr + load->p_offset;
		return 0;
	}
	return -ENOENT;
}

static bool has_name(const struct image *image, const Elf64_Shdr *names, uint32_t at)
{
	const char *name = part(image, names->sh_offset + at, sizeof(SITE_SYMBOL));

	return at < names->sh_size && name && memcmp(name, SITE_SYMBOL, sizeof(SITE_SYMBOL)) == 0;
}

static int find_symbol(
	const struct image *image, const Elf64_Ehdr *head, const Elf64_Shdr *table, uint64_t *ret)
{
	const Elf64_Shdr *names =
		part(image, head->e_shoff + table->sh_link * sizeof(*names), sizeof(*names));
	const Elf64_Sym *symbols = part(image, table->sh_offset, table->sh_size);

	if (!names || !symbols)
		return -ENOEXEC;
	for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++)
		if (symbols[i].st_shndx != SHN_UNDEF && has_name(image, names, symbols[i].st_name))
			return file_offset(image, head, symbols[i].st_value, ret);
	return -ENOENT;
}

static int find_in_image(const struct image *image, uint64_t *ret)
{
	const Elf64_Ehdr *head = part(image, 0, sizeof(*head));

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
		head->e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	for (size_t i = 0; i < head->e_shnum; i++) {
		const Elf64_Shdr *table =
			part(image, head->e_shoff + i * sizeof(*table), sizeof(*table));

		if (!table)
			return -ENOEXEC;
		if (table->sh_type == SHT_DYNSYM)
			return find_symbol(image, head, table, ret);
	}
	return -ENOENT;
}

int site_offset(const char *library, uint64_t *ret)
{
	int fd = sys_open(library, O_RDONLY, 0), err;
	struct image image;
	struct stat st;
	void *data;

	if (fd < 0)
		return fd;
	err = (int)SYS_RESULT(fstat(fd, &st));
	data = err < 0 ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (err == 0 && data == MAP_FAILED)
		err = -errno;
	close(fd);
	if (err < 0)
		return err;
	image = (struct image){ data, (size_t)st.st_size };
	err = find_in_image(&image, ret);
	munmap(data, image.size);
	return err;
}
