/* SPDX-License-Identifier: MIT */
#include "welcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int send_welcome(int socket, struct jphase_welcome *welcome, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(JPHASE_WELCOME_FDS * sizeof(int))];
	} control = { .buf = "" };
	struct iovec iov = { .iov_base = welcome, .iov_len = sizeof(*welcome) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = count ? control.buf : NULL,
		.msg_controllen = count ? CMSG_SPACE(count * sizeof(int)) : 0,
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	if (c) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int welcome_send(struct session *s, int socket, bool first)
{
	const int fds[JPHASE_WELCOME_FDS] = { s->shared.ring_fd, s->shared.page_fd,
		s->shared.presence_fd };
	struct jphase_welcome welcome = s->welcome;

	welcome.first = first;
	return send_welcome(socket, &welcome, fds, JPHASE_WELCOME_FDS);
}

int welcome_offer_group(const struct session *s, int socket)
{
	struct jphase_welcome welcome = s->welcome;
	const char *text;
	size_t used = 0;
	int fd = cgroup_own_fd(s->group);

	for (size_t i = 0; (text = cgroup_own_note(s->group, i)); i++)
		if (used + strlen(text) + 2 < sizeof(welcome.message))
			used += (size_t)sprintf(
				welcome.message + used, "%s%s", used ? "\n" : "", text);
	/* A group that is only looked at is not entered. */
	return send_welcome(socket, &welcome, &fd, cgroup_own_takes(s->group));
}

void welcome_refuse(int socket, int status, const char *message)
{
	struct jphase_welcome welcome = {
		.length = sizeof(welcome),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.status = status,
	};

	snprintf(welcome.message, sizeof(welcome.message), "%s", message);
	/* Nobody else can be told if this fails. */
	send(socket, &welcome, sizeof(welcome), MSG_NOSIGNAL | MSG_DONTWAIT);
}
