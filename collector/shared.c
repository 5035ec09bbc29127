/* SPDX-License-Identifier: MIT */
#include "shared.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "internal/ring.h"
#include "internal/sys.h"

/* The limit on the size of files is meant for disks; it stays where we may not lift it. */
static int resize(int fd, size_t bytes)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit before, most;
	int err;

	if (getrlimit(RLIMIT_FSIZE, &before) < 0)
		return -errno;
	most = (struct rlimit){ before.rlim_max, before.rlim_max };
	if (setrlimit(RLIMIT_FSIZE, &none) < 0)
		setrlimit(RLIMIT_FSIZE, &most);
	err = SYS_RESULT(ftruncate(fd, (off_t)bytes));
	setrlimit(RLIMIT_FSIZE, &before);
	return err;
}

static int make(const char *name, size_t bytes)
{
	int fd = sys_memfd(name);
	int err;

	if (fd < 0)
		return fd;
	err = resize(fd, bytes);
	if (err == 0)
		err = SYS_RESULT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

static int map(int fd, size_t bytes, void **ret)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	/* Touch it: the pages are charged to us, and full memory shows here. */
	memset(memory, 0, bytes);
	*ret = memory;
	return 0;
}

int shared_open(uint32_t records, uint32_t flags, struct shared *ret)
{
	struct shared s = { .ring_fd = -1, .page_fd = -1, .presence_fd = -1, .records = records };
	struct stat st;
	void *memory = NULL;
	int err;

	s.ring_fd = err = make("jphase-ring", ring_bytes(records));
	if (err < 0)
		goto fail;
	s.page_fd = err = make("jphase-session", JPHASE_PAGE_BYTES);
	if (err < 0)
		goto fail;
	err = shared_renew_presence(&s);
	if (err < 0)
		goto fail;
	err = map(s.ring_fd, ring_bytes(records), &memory);
	if (err < 0)
		goto fail;
	s.ring = memory;
	err = map(s.page_fd, JPHASE_PAGE_BYTES, &memory);
	if (err < 0)
		goto fail;
	s.page = memory;
	s.page->flags = flags;
	err = SYS_RESULT(fstat(s.ring_fd, &st));
	if (err < 0)
		goto fail;
	s.ring_device = st.st_dev;
	s.ring_inode = st.st_ino;
	*ret = s;
	return 0;

fail:
	shared_close(&s);
	return err;
}

void shared_close(struct shared *s)
{
	if (s->ring)
		munmap(s->ring, ring_bytes(s->records));
	/* As the kernel would: whoever lives on knows that nobody listens. */
	if (s->page)
		atomic_fetch_or(&s->page->owner, (uint32_t)FUTEX_OWNER_DIED);
	if (s->page)
		munmap(s->page, JPHASE_PAGE_BYTES);
	s->ring = NULL;
	s->page = NULL;
	s->ring_fd = sys_close(s->ring_fd);
	s->page_fd = sys_close(s->page_fd);
	s->presence_fd = sys_close(s->presence_fd);
}

int shared_own(struct shared *s)
{
	/*
	 * The list stays in memory of our own, out of the targets' reach; only
	 * the futex word, at an offset from the entry, is shared.
	 */
	static struct robust_list entry;
	static struct robust_list_head head;

	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (char *)&s->page->owner - (char *)&entry;
	head.list_op_pending = NULL;
	atomic_store(&s->page->owner, (uint32_t)sys_gettid());
	return (int)SYS_RESULT(syscall(SYS_set_robust_list, &head, sizeof(head)));
}

/* The kernel refuses the seal while anyone maps the page for writing. */
bool shared_is_deserted(struct shared *s)
{
	return fcntl(s->presence_fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
}

int shared_renew_presence(struct shared *s)
{
	int fd = make("jphase-presence", JPHASE_PRESENCE_BYTES);

	if (fd < 0)
		return fd;
	sys_close(s->presence_fd);
	s->presence_fd = fd;
	return 0;
}
