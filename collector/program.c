/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "internal/sys.h"
#include "internal/util.h"

/* Enough for an ELF header, its program headers and the interpreter's name. */
#define HEAD_BYTES 4096

/* An interpreter may itself be a script; the kernel follows a few. */
#define SCRIPT_DEPTH 4

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#endif

static bool is_executable(const char *path, int *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode) && access(path, X_OK) == 0)
		return true;
	*err = -EACCES;
	return false;
}

static int search(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	int err = -ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return is_executable(path, &err) ? 0 : err;
	}
	for (const char *dir = list ? list : "/bin:/usr/bin"; *name;) {
		size_t n = strcspn(dir, ":");

		snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, dir, n ? "/" : "./", name);
		if (is_executable(path, &err))
			return 0;
		if (!dir[n])
			break;
		dir += n + 1;
	}
	return err;
}

static enum program_kind kind_of_interpreter(const char *head, size_t size, const Elf64_Phdr *ph)
{
	if (ph->p_offset >= size || ph->p_filesz > size - ph->p_offset || ph->p_filesz == 0)
		return PROGRAM_PRELOADABLE;
	return memmem(head + ph->p_offset, ph->p_filesz, "ld-musl", 7) ? PROGRAM_MUSL
								       : PROGRAM_PRELOADABLE;
}

static enum program_kind kind_of_elf(const char *head, size_t size)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (size < sizeof(eh))
		return PROGRAM_UNKNOWN;
	memcpy(&eh, head, sizeof(eh));
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != OWN_MACHINE)
		return PROGRAM_FOREIGN;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		size_t at = eh.e_phoff + i * sizeof(ph);

		if (at >= size || size - at < sizeof(ph))
			break;
		memcpy(&ph, head + at, sizeof(ph));
		if (ph.p_type == PT_INTERP)
			return kind_of_interpreter(head, size, &ph);
	}
	return PROGRAM_STATIC;
}

static enum program_kind kind_of(const char *path, int depth)
{
	char head[HEAD_BYTES + 1], *name;
	ssize_t n;
	int fd;

	fd = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return PROGRAM_UNKNOWN;
	n = sys_read(fd, head, HEAD_BYTES);
	close(fd);
	if (n < 4)
		return PROGRAM_UNKNOWN;
	if (memcmp(head, ELFMAG, SELFMAG) == 0)
		return kind_of_elf(head, (size_t)n);
	head[n] = '\0';
	if (!str_starts(head, "#!"))
		return PROGRAM_PRELOADABLE; /* execvp gives it to /bin/sh */
	name = strtok(head + 2, " \t\n");
	return name && depth < SCRIPT_DEPTH ? kind_of(name, depth + 1) : PROGRAM_UNKNOWN;
}

static bool may_read(const struct stat *st, uid_t uid, gid_t gid)
{
	if (uid == 0)
		return true;
	if (st->st_uid == uid)
		return st->st_mode & S_IRUSR;
	if (st->st_gid == gid)
		return st->st_mode & S_IRGRP;
	return st->st_mode & S_IROTH;
}

/* The kernel takes the counters away where an exec changes who the process is. */
static bool is_privileged(const char *path, uid_t uid, gid_t gid)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (!may_read(&st, uid, gid))
		return true;
	if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != uid) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != gid);
}

int program_find(const char *name, uid_t uid, gid_t gid, struct program *ret)
{
	int err;

	err = search(name, ret->path);
	if (err < 0)
		return err;
	ret->kind = kind_of(ret->path, 0);
	ret->privileged = is_privileged(ret->path, uid, gid);
	return 0;
}

const char *program_obstacle(enum program_kind kind)
{
	static const char *const obstacles[] = {
		[PROGRAM_STATIC] = "is statically linked",
		[PROGRAM_MUSL] = "uses another C library (musl)",
		[PROGRAM_FOREIGN] = "is for another architecture",
	};

	return (size_t)kind < ARRAY_SIZE(obstacles) ? obstacles[kind] : NULL;
}
