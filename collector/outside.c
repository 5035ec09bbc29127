/* SPDX-License-Identifier: MIT */
#include "outside.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "internal/name.h"
#include "internal/sys.h"
#include "internal/util.h"

#define PREFIX         "jphase-"
#define ADDRESS_LENGTH (sizeof(PREFIX) - 1 + 16)
#define ADDRESS_ROOM   (ADDRESS_LENGTH + 1)
#define ANSWER_WAIT_MS 5000
#define SEARCH_WAIT_MS 500
#define TOKEN_WAIT_MS  50
#define LISTENS        0x10000 /* of the flags in /proc/net/unix */

/* As jphase sends it: no part has grown yet. */
struct message {
	struct jphase_hello hello;
	struct jphase_mark mark;
};

struct session_at {
	char address[ADDRESS_ROOM];
	uint8_t token[JPHASE_TOKEN_BYTES];
};

struct found {
	struct session_at at;
	struct jphase_answer answer;
};

struct search {
	struct found *found;
	size_t count;
	bool silent; /* one did not answer */
};

__attribute__((format(printf, 2, 3))) static void explain(
	char error[OUTSIDE_ERROR_ROOM], const char *format, ...)
{
	size_t used = strlen(error);
	va_list ap;

	va_start(ap, format);
	vsnprintf(error + used, OUTSIDE_ERROR_ROOM - used, format, ap);
	va_end(ap);
}

/* --- messages --- */

static struct message message_of(
	const struct session_at *at, pid_t pid, const struct outside_mark *mark)
{
	struct message m = {
		.hello = {
			.length = sizeof(m.hello),
			.abi_major = JPHASE_ABI_MAJOR,
			.abi_minor = JPHASE_ABI_MINOR,
			.clock_ns = mark->clock_ns,
			.record_bytes = JPHASE_RECORD_BYTES,
			.flags = JPHASE_HELLO_MARK,
			.pid = (uint32_t)pid,
		},
		.mark = { .length = sizeof(m.mark), .kind = (uint8_t)mark->kind },
	};

	if (at)
		memcpy(m.hello.token, at->token, sizeof(m.hello.token));
	name_copy(m.mark.name, mark->name && mark->name[0] ? mark->name : "(unnamed)");
	return m;
}

static struct message token_message(const struct token *token, uint64_t clock_ns)
{
	char name[TOKEN_LONG_MAX + 1];
	size_t length = MIN(token->length, sizeof(name) - 1);
	struct message m;

	memcpy(name, token->text, length);
	name[length] = '\0';
	m = message_of(NULL, 0, &(struct outside_mark){ JPHASE_PHASE, name, clock_ns });
	m.mark.flags = JPHASE_FLAG_TOKEN;
	m.mark.id = token->line;
	return m;
}

static int send_message(int socket, const struct message *m)
{
	return send(socket, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void outside_send_token(void *sender, const struct token *token, uint64_t clock_ns)
{
	struct outside_sender *s = sender;
	struct pollfd p = { .fd = s->socket, .events = POLLOUT };
	struct message m = token_message(token, clock_ns);
	int err = send_message(s->socket, &m);

	if (err == -EAGAIN && !s->stalled && poll(&p, 1, TOKEN_WAIT_MS) > 0)
		err = send_message(s->socket, &m);
	s->stalled = err < 0;
	s->lost += err < 0;
}

/* Anybody may have taken such an address; what we say is for a session of ours. */
static bool is_trusted(int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid() || geteuid() == 0);
}

static int connect_to(const struct session_at *at)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, err;

	fd = (int)SYS_RESULT(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return fd;
	memcpy(to.sun_path + 1, at->address, ADDRESS_LENGTH);
	err = SYS_RESULT(connect(fd, (const struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + ADDRESS_LENGTH)));
	if (err == 0 && !is_trusted(fd))
		err = -EPERM;
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

/* -EPERM: it is not ours.  -ETIMEDOUT.  Else the answer's status. */
static int ask(const struct session_at *at, pid_t pid, const struct outside_mark *mark, int wait_ms,
	struct jphase_answer *ret)
{
	struct message m = message_of(at, pid, mark);
	struct pollfd p = { .events = POLLIN };
	ssize_t n;
	int fd;

	fd = connect_to(at);
	if (fd < 0)
		return fd;
	p.fd = fd;
	n = send(fd, &m, sizeof(m), MSG_NOSIGNAL);
	if (n > 0 && poll(&p, 1, wait_ms) <= 0) {
		close(fd);
		return -ETIMEDOUT;
	}
	if (n > 0)
		n = recv(fd, ret, sizeof(*ret), 0);
	close(fd);
	/* It has closed without a word. */
	if (n < (ssize_t)sizeof(*ret))
		return -EPERM;
	ret->message[sizeof(ret->message) - 1] = '\0';
	return ret->status;
}

/* --- finding the session --- */

static bool is_address(const char *text)
{
	return str_starts(text, PREFIX) && strlen(text) == ADDRESS_LENGTH &&
	       strspn(text + sizeof(PREFIX) - 1, "0123456789abcdef") == 16;
}

/* "ADDRESS:TOKEN" */
static bool parse_own(const char *text, struct session_at *ret)
{
	const char *colon = text ? strchr(text, ':') : NULL;

	if (!colon || (size_t)(colon - text) != ADDRESS_LENGTH)
		return false;
	memcpy(ret->address, text, ADDRESS_LENGTH);
	ret->address[ADDRESS_LENGTH] = '\0';
	for (size_t i = 0; i < sizeof(ret->token); i++)
		if (sscanf(colon + 1 + 2 * i, "%2" SCNx8, &ret->token[i]) != 1)
			return false;
	return is_address(ret->address);
}

/* Has the user this one in mind? */
static bool is_chosen(const struct outside_choice *choice, const char *address)
{
	const char *name = choice->session;

	if (!name)
		return true;
	return strncmp(address, name, strcspn(name, ":")) == 0 ||
	       strncmp(address + sizeof(PREFIX) - 1, name, strcspn(name, ":")) == 0;
}

static int add_if_ours(struct search *search, const struct session_at *at, pid_t pid)
{
	const struct outside_mark question = { .kind = JPHASE_NONE };
	struct jphase_answer answer = { .pid = 0 };
	struct found *grown;
	int err = ask(at, pid, &question, SEARCH_WAIT_MS, &answer);

	search->silent |= err == -ETIMEDOUT;
	/* Without a process of the user's choice it is not the one. */
	if (err < 0 && (pid || err != -ESRCH))
		return 0;
	grown = reallocarray(search->found, search->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	search->found = grown;
	search->found[search->count++] = (struct found){ *at, answer };
	return 0;
}

/* The token is known of one's own session alone, and needed where that is another user's. */
static struct session_at session_at(const char *address, const struct outside_choice *choice)
{
	struct session_at at;

	if (parse_own(choice->session, &at) && str_eq(at.address, address))
		return at;
	if (parse_own(choice->own, &at) && str_eq(at.address, address))
		return at;
	memset(at.token, 0, sizeof(at.token));
	memcpy(at.address, address, ADDRESS_ROOM);
	return at;
}

static int search_all(const struct outside_choice *choice, struct search *ret)
{
	char line[256], path[112];
	unsigned flags;
	int err = 0;
	FILE *f;

	f = fopen("/proc/net/unix", "re");
	if (!f)
		return -errno;
	while (err == 0 && fgets(line, sizeof(line), f)) {
		struct session_at at;

		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %111s", &flags, path) != 2 ||
			!(flags & LISTENS) || path[0] != '@' || !is_address(path + 1) ||
			!is_chosen(choice, path + 1))
			continue;
		at = session_at(path + 1, choice);
		err = add_if_ours(ret, &at, choice->pid);
	}
	fclose(f);
	return err;
}

static void explain_none(const struct outside_choice *choice, const struct search *search,
	char error[OUTSIDE_ERROR_ROOM])
{
	if (choice->pid && SYS_RESULT(kill(choice->pid, 0)) == -ESRCH)
		explain(error, "there is no process %d", (int)choice->pid);
	else if (choice->session)
		explain(error, "no session of yours is called \"%.60s\"", choice->session);
	else if (choice->pid)
		explain(error,
			"no session of yours has process %d; begin one with: jphase attach %d",
			(int)choice->pid, (int)choice->pid);
	else
		explain(error,
			"no session of yours is under way; jphase run or jphase attach begin one");
	if (choice->session && choice->pid)
		explain(error, " and has process %d", (int)choice->pid);
	if (search->silent)
		explain(error, "; one session does not answer");
}

/* Of one whose program has ended, no process is left to be named. */
static void explain_one(const struct found *found, char error[OUTSIDE_ERROR_ROOM])
{
	explain(error, "\n  --session %s: ", found->at.address);
	if (found->answer.pid)
		explain(error, "process %" PRIu32 " %.60s", found->answer.pid,
			found->answer.message);
	else
		explain(error, "its program has ended");
}

static void explain_several(const struct search *search, char error[OUTSIDE_ERROR_ROOM])
{
	explain(error, "there are %zu sessions; choose one by --session or --pid:", search->count);
	for (size_t i = 0; i < search->count; i++)
		explain_one(&search->found[i], error);
}

static int find_session(
	const struct outside_choice *choice, struct session_at *ret, char error[OUTSIDE_ERROR_ROOM])
{
	struct search search = { .count = 0 };
	int err;

	if (!choice->session && !choice->pid && parse_own(choice->own, ret))
		return 0;
	err = search_all(choice, &search);
	if (err < 0) {
		explain(error, "cannot look for sessions: %s", strerror(-err));
	} else if (search.count == 1) {
		*ret = search.found[0].at;
	} else {
		err = search.count ? -ENOTUNIQ : -ESRCH;
		if (search.count)
			explain_several(&search, error);
		else
			explain_none(choice, &search, error);
	}
	free(search.found);
	return err;
}

int outside_mark(const struct outside_choice *choice, const struct outside_mark *mark,
	char ret_error[OUTSIDE_ERROR_ROOM])
{
	struct jphase_answer answer = { .pid = 0 };
	struct session_at at;
	int err;

	ret_error[0] = '\0';
	err = find_session(choice, &at, ret_error);
	if (err < 0)
		return err;
	err = ask(&at, choice->pid, mark, ANSWER_WAIT_MS, &answer);
	if (err == -ETIMEDOUT)
		explain(ret_error, "the session does not answer");
	else if (err < 0)
		explain(ret_error, "%s",
			answer.message[0] ? answer.message : "the session has ended");
	return err;
}
