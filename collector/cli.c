/* SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal/sys.h"
#include "internal/util.h"

#define FILE_BYTES_MAX (64u << 10)
#define SPACES         " \t\r"

__attribute__((format(printf, 2, 3))) static int fail(
	char ret_error[CLI_ERROR_ROOM], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(ret_error, CLI_ERROR_ROOM, format, ap);
	va_end(ap);
	return -EINVAL;
}

static int set_flag(const struct opt *o, const char *value)
{
	static const char *const yes[] = { "1", "yes", "true", "on", NULL };
	static const char *const no[] = { "0", "no", "false", "off", "", NULL };

	for (size_t i = 0; yes[i]; i++)
		if (strcasecmp(value, yes[i]) == 0) {
			*o->dst.flag = true;
			return 0;
		}
	for (size_t i = 0; no[i]; i++)
		if (strcasecmp(value, no[i]) == 0) {
			*o->dst.flag = false;
			return 0;
		}
	return -EINVAL;
}

static int set_str(const struct opt *o, const char *value)
{
	*o->dst.str = value;
	return 0;
}

/* Another part of the same list. */
static int add_str(const struct opt *o, const char *value)
{
	size_t used = strlen(*o->dst.str);

	if (used + strlen(value) + 2 > CLI_LIST_ROOM)
		return -ERANGE;
	if (*o->dst.str != o->list)
		memcpy(o->list, *o->dst.str, used);
	o->list[used] = ',';
	strcpy(o->list + used + 1, value);
	*o->dst.str = o->list;
	return 0;
}

static int set_optional(const struct opt *o, const char *value)
{
	*o->dst.str = *value ? value : o->usual;
	return 0;
}

static int set_time(const struct opt *o, const char *value)
{
	return parse_time(value, o->dst.time_ns);
}

static int set_count(const struct opt *o, const char *value)
{
	return parse_count(value, o->dst.count);
}

static int set_choice(const struct opt *o, const char *value)
{
	for (int i = 0; o->choices[i]; i++)
		if (str_eq(o->choices[i], value)) {
			*o->dst.choice = i;
			return 0;
		}
	return -EINVAL;
}

static const struct {
	int (*set)(const struct opt *o, const char *value);
	const char *expects;
} types[] = {
	[OPT_TYPE_FLAG] = { set_flag, "yes or no" },
	[OPT_TYPE_STR] = { set_str, "a text" },
	[OPT_TYPE_TIME] = { set_time, "a time such as 10ms, 1.5s, 250us or 0" },
	[OPT_TYPE_COUNT] = { set_count, "a number (k is 1024)" },
	[OPT_TYPE_CHOICE] = { set_choice, NULL },
	[OPT_TYPE_OPTIONAL] = { set_optional, "a text" },
};

static int fail_choice(
	const struct opt *o, const char *value, const char *where, char ret_error[CLI_ERROR_ROOM])
{
	const char *like = cli_suggest(value, o->choices);
	char list[96] = "";
	size_t used = 0;

	for (size_t i = 0; o->choices[i] && used < sizeof(list); i++)
		used += (size_t)snprintf(
			list + used, sizeof(list) - used, "%s%s", i ? ", " : "", o->choices[i]);
	return fail(ret_error, "%s: \"%.50s\" is not one of %s%s%s%s", where, value, list,
		like ? "; did you mean \"" : "", like ? like : "", like ? "\"?" : "");
}

/* where: how a message names the option; again: it was given before. */
static int opt_set(const struct opt *o, const char *value, bool again, const char *where,
	char ret_error[CLI_ERROR_ROOM])
{
	int err = again && o->list ? add_str(o, value) : types[o->type].set(o, value);

	if (err == 0)
		return 0;
	if (err == -ERANGE)
		return fail(ret_error, "%s: \"%.50s\" is too large", where, value);
	if (o->type == OPT_TYPE_CHOICE)
		return fail_choice(o, value, where, ret_error);
	return fail(ret_error, "%s: \"%.50s\" is not %s", where, value, types[o->type].expects);
}

static const struct opt *find_name(const struct opt *opts, const char *name, size_t length)
{
	for (const struct opt *o = opts; o->name; o++)
		if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
			return o;
	return NULL;
}

static const struct opt *find_letter(const struct opt *opts, char letter)
{
	for (const struct opt *o = opts; o->name; o++)
		if (o->letter && o->letter == letter)
			return o;
	return NULL;
}

/* dashes: "--" on a command line, "" in a file. */
static int fail_unknown(const struct opt *opts, const char *where, const char *dashes,
	const char *word, char ret_error[CLI_ERROR_ROOM])
{
	const char *names[CLI_OPTIONS_MAX + 1];
	const char *like;
	size_t count = 0;

	for (const struct opt *o = opts; o->name && count < CLI_OPTIONS_MAX; o++)
		names[count++] = o->name;
	names[count] = NULL;
	like = cli_suggest(word, names);
	if (!like)
		return fail(ret_error, "%sunknown option \"%s%.50s\"; --help shows all", where,
			dashes, word);
	return fail(ret_error, "%sunknown option \"%s%.50s\"; did you mean \"%s%s\"?", where,
		dashes, word, dashes, like);
}

/* A walk over the words of a command line. */
struct walk {
	const struct opt *opts;
	int argc;
	char **argv;
	int next;            /* the word to look at */
	const char *letters; /* what is left of a word like -qo */
};

struct found {
	const struct opt *opt;
	const char *value; /* NULL: there is none */
};

static int walk_argument(struct walk *w, const struct opt *o, const char *attached,
	const char **ret_value, char ret_error[CLI_ERROR_ROOM])
{
	if (attached || o->type == OPT_TYPE_FLAG) {
		*ret_value = attached;
		return 0;
	}
	if (o->type == OPT_TYPE_OPTIONAL &&
		(w->next + 1 >= w->argc || w->argv[w->next][0] == '-')) {
		*ret_value = "";
		return 0;
	}
	if (w->next >= w->argc)
		return fail(ret_error, "option \"--%s\" needs an argument: %s", o->name,
			o->arg ? o->arg : "TEXT");
	*ret_value = w->argv[w->next++];
	return 0;
}

static int walk_name(
	struct walk *w, const char *word, struct found *ret, char ret_error[CLI_ERROR_ROOM])
{
	size_t length = strcspn(word, "=");
	char name[64];

	ret->opt = find_name(w->opts, word, length);
	if (!ret->opt) {
		snprintf(name, sizeof(name), "%.*s", (int)MIN(length, sizeof(name)), word);
		return fail_unknown(w->opts, "", "--", name, ret_error);
	}
	return walk_argument(
		w, ret->opt, word[length] ? word + length + 1 : NULL, &ret->value, ret_error);
}

static int walk_letter(struct walk *w, struct found *ret, char ret_error[CLI_ERROR_ROOM])
{
	char letter = *w->letters++;
	const char *attached = NULL;

	ret->opt = find_letter(w->opts, letter);
	if (!ret->opt)
		return fail(ret_error, "unknown option \"-%c\"; --help shows all", letter);
	if (ret->opt->type != OPT_TYPE_FLAG) {
		attached = *w->letters ? w->letters : NULL;
		w->letters = "";
	}
	return walk_argument(w, ret->opt, attached, &ret->value, ret_error);
}

/* 1: an option was found; 0: the options have ended at w->next. */
static int walk_step(struct walk *w, struct found *ret, char ret_error[CLI_ERROR_ROOM])
{
	const char *word;
	int err;

	if (*w->letters) {
		err = walk_letter(w, ret, ret_error);
		return err < 0 ? err : 1;
	}
	if (w->next >= w->argc)
		return 0;
	word = w->argv[w->next];
	if (word[0] != '-' || !word[1])
		return 0;
	w->next++;
	if (str_eq(word, "--"))
		return 0;
	if (word[1] == '-') {
		err = walk_name(w, word + 2, ret, ret_error);
	} else {
		w->letters = word + 1;
		err = walk_letter(w, ret, ret_error);
	}
	return err < 0 ? err : 1;
}

int cli_parse(const struct opt *opts, int argc, char **argv, char ret_error[CLI_ERROR_ROOM])
{
	struct walk w = { .opts = opts, .argc = argc, .argv = argv, .next = 1, .letters = "" };
	bool given[CLI_OPTIONS_MAX] = { false };
	struct found f;
	char where[64];
	int step;

	while ((step = walk_step(&w, &f, ret_error)) > 0) {
		bool *again = &given[f.opt - opts];

		snprintf(where, sizeof(where), "option \"--%s\"", f.opt->name);
		step = opt_set(f.opt, f.value ? f.value : "1", *again, where, ret_error);
		if (step < 0)
			return step;
		*again = true;
	}
	return step < 0 ? step : w.next;
}

bool cli_asks_help(const struct opt *opts, int argc, char **argv)
{
	static const struct opt none[] = { OPT_END };
	struct walk w = {
		.opts = opts ? opts : none, .argc = argc, .argv = argv, .next = 1, .letters = ""
	};
	char error[CLI_ERROR_ROOM];
	struct found f;
	int step;

	do {
		const char *word = *w.letters || w.next >= argc ? "" : argv[w.next];

		if (str_eq(word, "--help") || (str_eq(word, "-h") && !find_letter(w.opts, 'h')))
			return true;
		step = walk_step(&w, &f, error);
		if (step > 0 && str_eq(f.opt->name, "help"))
			return true;
	} while (step > 0);
	return false;
}

int cli_parse_env(const struct opt *opts, char ret_error[CLI_ERROR_ROOM])
{
	for (const struct opt *o = opts; o->name; o++) {
		const char *value = o->env ? getenv(o->env) : NULL;
		int err;

		if (!value || !*value)
			continue;
		err = opt_set(o, value, false, o->env, ret_error);
		if (err < 0)
			return err;
	}
	return 0;
}

static char *trim(char *s)
{
	size_t length;

	s += strspn(s, SPACES);
	length = strlen(s);
	while (length && strchr(SPACES, s[length - 1]))
		length--;
	s[length] = '\0';
	return s;
}

/* Takes off a comment and quotes, in place.  NULL: the quotes do not match. */
static char *file_value(char *s)
{
	char *end;

	s += strspn(s, SPACES);
	if (*s == '"' || *s == '\'') {
		end = strchr(s + 1, *s);
		if (!end)
			return NULL;
		*end++ = '\0';
		end += strspn(end, SPACES);
		return *end && *end != '#' ? NULL : s + 1;
	}
	for (end = s; *end; end++)
		if (*end == '#' && (end == s || strchr(SPACES, end[-1])))
			break;
	*end = '\0';
	return trim(s);
}

static int file_line(
	const struct opt *opts, char *line, const char *place, char ret_error[CLI_ERROR_ROOM])
{
	const struct opt *o;
	char *equals, *name, *value;
	char where[CLI_ERROR_ROOM];

	line += strspn(line, SPACES);
	if (!*line || *line == '#')
		return 0;
	equals = strchr(line, '=');
	if (!equals)
		return fail(ret_error, "%s\"%.50s\" is not of the form option = value", place,
			trim(line));
	*equals = '\0';
	name = trim(line);
	o = find_name(opts, name, strlen(name));
	if (!o)
		return fail_unknown(opts, place, "", name, ret_error);
	value = file_value(equals + 1);
	if (!value)
		return fail(ret_error, "%s%s: the quotes do not match", place, o->name);
	snprintf(where, sizeof(where), "%s%s", place, o->name);
	return opt_set(o, value, false, where, ret_error);
}

int cli_parse_text(
	const struct opt *opts, const char *name, char *text, char ret_error[CLI_ERROR_ROOM])
{
	char place[128];
	unsigned int number = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		int err;

		snprintf(place, sizeof(place), "%.100s:%u: ", name, ++number);
		err = file_line(opts, line, place, ret_error);
		if (err < 0)
			return err;
	}
	return 0;
}

/* The text of a file, kept because options point into it. */
struct text {
	struct text *next;
	char bytes[FILE_BYTES_MAX + 2];
};

static struct text *texts;

/* Reads until the end or until the room is full. */
static ssize_t read_all(int fd, char *buf, size_t room)
{
	size_t used = 0;
	ssize_t n;

	do {
		n = sys_read(fd, buf + used, room - used);
		if (n < 0 && n != -EINTR)
			return n;
		used += n > 0 ? (size_t)n : 0;
	} while (n != 0 && used < room);
	return (ssize_t)used;
}

int cli_parse_file(const struct opt *opts, const char *path, char ret_error[CLI_ERROR_ROOM])
{
	struct text *t;
	ssize_t size;
	int fd;

	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fail(ret_error, "cannot read \"%.100s\": %s", path, strerror(-fd));
	t = malloc(sizeof(*t));
	if (!t) {
		sys_close(fd);
		return fail(ret_error, "cannot read \"%.100s\": %s", path, strerror(ENOMEM));
	}
	t->next = texts;
	texts = t;

	size = read_all(fd, t->bytes, sizeof(t->bytes) - 1);
	sys_close(fd);
	if (size < 0)
		return fail(ret_error, "cannot read \"%.100s\": %s", path, strerror((int)-size));
	if (size > (ssize_t)FILE_BYTES_MAX)
		return fail(ret_error, "\"%.100s\" is too large for an options file", path);
	t->bytes[size] = '\0';
	if (strlen(t->bytes) != (size_t)size)
		return fail(
			ret_error, "\"%.100s\" is not an options file: it holds a NUL byte", path);
	return cli_parse_text(opts, path, t->bytes, ret_error);
}
