/* SPDX-License-Identifier: MIT */
/* The target's environment: what it says to us, and what its children need. */
#include "shim.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal/util.h"

#define LIBRARY_NAME "libjphase.so"

struct own_name {
	uintptr_t address;
	const char *name;
};

/* Stops at the loaded object that holds the address. */
static int find_own_name(struct dl_phdr_info *info, size_t size, void *data)
{
	struct own_name *own = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && own->address - start < ph->p_memsz) {
			own->name = info->dlpi_name;
			return 1;
		}
	}
	return 0;
}

static bool own_path(char path[SHIM_PATH_ROOM])
{
	struct own_name own = { .address = (uintptr_t)&shim };
	struct text t = { .buf = path, .room = SHIM_PATH_ROOM };

	if (!dl_iterate_phdr(find_own_name, &own) || !own.name || !own.name[0])
		return false;
	if (own.name[0] != '/') {
		if (!getcwd(path, SHIM_PATH_ROOM))
			return false;
		t.used = strlen(path);
		text_add(&t, "/");
	}
	text_add(&t, own.name);
	return t.used + 1 < t.room;
}

/* The next entry of a list separated by colons or blanks; *ret_length 0: the end. */
static const char *next_entry(const char *list, size_t *ret_length)
{
	list += strspn(list, ": ");
	*ret_length = strcspn(list, ": ");
	return list;
}

static bool is_library(const char *entry, size_t length)
{
	const size_t want = strlen(LIBRARY_NAME);

	if (length < want || memcmp(entry + length - want, LIBRARY_NAME, want) != 0)
		return false;
	return length == want || entry[length - want - 1] == '/';
}

static bool names_library(const char *list)
{
	size_t length;

	for (const char *e = next_entry(list, &length); length; e = next_entry(e + length, &length))
		if (is_library(e, length))
			return true;
	return false;
}

/* Constructor only. */
bool config_read(struct shim_config *config)
{
	const char *choice;

	if (getauxval(AT_SECURE))
		return false;
	choice = getenv("JPHASE_REGISTER");
	if (choice && str_eq(choice, "never"))
		return false;

	config->session = getenv("JPHASE_SESSION");
	config->collector = getenv("JPHASE_COLLECTOR");
	config->preload = getenv("LD_PRELOAD");
	config->preloaded = config->preload && names_library(config->preload);
	return own_path(config->path);
}

static void add_preload(struct text *t, const struct shim_config *config)
{
	size_t length;

	text_add(t, "LD_PRELOAD=");
	for (const char *e = next_entry(config->preload, &length); length;
		e = next_entry(e + length, &length)) {
		struct text entry;

		if (t->buf[t->used - 1] != '=')
			text_add(t, ":");
		if (is_library(e, length)) {
			text_add(t, config->path);
			continue;
		}
		/* Room for this entry alone cuts the rest of the list off. */
		entry = (struct text){
			.buf = t->buf, .used = t->used, .room = MIN(t->room, t->used + length + 1)
		};
		text_add(&entry, e);
		t->used = entry.used;
	}
}

static bool is_variable(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* Constructor only. */
bool config_told(void)
{
	static char told[] = "JPHASE_TOLD=1";
	size_t count = 0;
	char **list;

	if (getenv("JPHASE_TOLD"))
		return true;
	while (environ && environ[count])
		count++;
	list = mmap(NULL, (count + 2) * sizeof(*list), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (list == MAP_FAILED)
		return false;
	memcpy(list, environ, count * sizeof(*list));
	list[count] = told;
	environ = list;
	return false;
}

/*
 * Constructor only.  The new array is a mapping of our own: a later setenv
 * copies it as it would copy the original.
 */
int config_pass_on(const struct shim_config *config, const char *session)
{
	bool with_preload = config->preloaded;
	size_t count = 0, kept = 0, strings, bytes;
	struct text t;
	char **list;

	while (environ && environ[count])
		count++;
	strings = strlen(session) + (with_preload ? strlen(config->preload) : 0) + SHIM_PATH_ROOM +
		  64;
	bytes = (count + 3) * sizeof(*list) + strings;
	list = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (list == MAP_FAILED)
		return -errno;

	for (size_t i = 0; i < count; i++) {
		if (is_variable(environ[i], "JPHASE_SESSION") ||
			(with_preload && is_variable(environ[i], "LD_PRELOAD")))
			continue;
		list[kept++] = environ[i];
	}
	t = (struct text){ .buf = (char *)(list + count + 3), .room = strings };
	list[kept++] = t.buf;
	text_add(&t, "JPHASE_SESSION=");
	text_add(&t, session);
	if (with_preload) {
		t = (struct text){ .buf = t.buf + t.used + 1, .room = t.room - t.used - 1 };
		list[kept++] = t.buf;
		add_preload(&t, config);
	}
	environ = list;
	return 0;
}
