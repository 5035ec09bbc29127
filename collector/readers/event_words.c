/* SPDX-License-Identifier: MIT */
#include "readers/event_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "readers/breakpoint.h"
#include "readers/reason.h"

#define BLANKS    " \t\n"
#define MODIFIERS "uk"

struct parser {
	const char *at;
	struct event_words words;
	int braces; /* opened so far */
	bool inside;
	char *reason;
};

static bool is_modifier(const char *text)
{
	return *text && text[strspn(text, MODIFIERS)] == '\0';
}

/* Where the modifier begins: behind the last slash, or the last colon.  NULL: none. */
static char *modifier_find(char *name)
{
	char *slash = breakpoint_is_meant(name) ? NULL : strrchr(name, '/');
	char *colon = strrchr(name, ':');

	if (slash)
		return slash[1] ? slash + 1 : NULL;
	return colon && colon > name && is_modifier(colon + 1) ? colon : NULL;
}

static int modifier_take(struct parser *p, struct event_word *word)
{
	char *modifier = modifier_find(word->name);
	const char *letters;

	if (!modifier)
		return 0;
	letters = modifier + (*modifier == ':');
	if (!is_modifier(letters)) {
		reason_set(p->reason,
			"cannot count \"%.80s\": \"%.40s\" is no modifier; u (user space) and k "
			"(kernel) are",
			word->text, letters);
		return -EINVAL;
	}
	word->user = strchr(letters, 'u');
	word->kernel = strchr(letters, 'k');
	if (word->user && word->kernel)
		word->user = word->kernel = false;
	*modifier = '\0';
	return 0;
}

static void word_clear(struct event_word *word)
{
	free(word->text);
	free(word->name);
}

/* The end of the event that begins here: commas between two slashes are its own. */
static const char *word_end(const char *at)
{
	bool pairs = !breakpoint_is_meant(at), slash = false;

	for (; *at; at++) {
		if (*at == '/' && pairs)
			slash = !slash;
		else if (!slash && strchr(",{}", *at))
			break;
	}
	return at;
}

static int word_check(struct parser *p, const char *text, size_t length)
{
	size_t slashes = 0;

	if (length == 0) {
		reason_set(p->reason, "an event is missing in the list before \"%.40s\"",
			*p->at ? p->at : "its end");
		return -EINVAL;
	}
	for (size_t i = 0; i < length; i++)
		slashes += text[i] == '/';
	if (slashes != 0 && slashes != 2 && !breakpoint_is_meant(text)) {
		reason_set(p->reason,
			"cannot count \"%.*s\": it is written PMU/EVENT,TERM=VALUE/ with two "
			"slashes",
			(int)(length < 80 ? length : 80), text);
		return -EINVAL;
	}
	return 0;
}

static int word_add(struct parser *p, const char *text, size_t length)
{
	struct event_word word = { .brace = p->inside ? p->braces - 1 : EVENT_NO_BRACE };
	struct event_word *grown;
	int err;

	grown = reallocarray(p->words.word, p->words.count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->words.word = grown;
	word.text = strndup(text, length);
	word.name = strndup(text, length);
	err = word.text && word.name ? modifier_take(p, &word) : -ENOMEM;
	if (err < 0) {
		word_clear(&word);
		return err;
	}
	grown[p->words.count++] = word;
	return 0;
}

static int parse_event(struct parser *p)
{
	const char *text = p->at;
	size_t length;
	int err;

	p->at = word_end(text);
	length = (size_t)(p->at - text);
	while (length && strchr(BLANKS, text[length - 1]))
		length--;
	err = word_check(p, text, length);
	return err < 0 ? err : word_add(p, text, length);
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, BLANKS);
}

static int parse_open(struct parser *p)
{
	skip_blanks(p);
	if (*p->at != '{')
		return 0;
	if (p->inside) {
		reason_set(p->reason, "a group of events cannot hold another: \"%.80s\"", p->at);
		return -EINVAL;
	}
	p->at++;
	p->inside = true;
	p->braces++;
	skip_blanks(p);
	return 0;
}

static int parse_close(struct parser *p)
{
	if (*p->at != '}')
		return 0;
	if (!p->inside) {
		reason_set(p->reason, "a \"}\" in the event list has no \"{\"");
		return -EINVAL;
	}
	p->at++;
	p->inside = false;
	skip_blanks(p);
	return 0;
}

static int parse_list(struct parser *p)
{
	int err;

	for (;;) {
		err = parse_open(p);
		if (err == 0)
			err = parse_event(p);
		if (err == 0)
			err = parse_close(p);
		if (err < 0)
			return err;
		if (*p->at == '\0')
			break;
		if (*p->at != ',') {
			reason_set(p->reason,
				"a comma is missing in the event list before \"%.80s\"", p->at);
			return -EINVAL;
		}
		p->at++;
	}
	if (p->inside) {
		reason_set(p->reason, "a \"{\" in the event list has no \"}\"");
		return -EINVAL;
	}
	return 0;
}

int events_parse(const char *text, struct event_words *ret, char ret_reason[READER_REASON_ROOM])
{
	struct parser p = { .at = text, .reason = ret_reason };
	int err;

	skip_blanks(&p);
	if (*p.at == '\0') {
		reason_set(ret_reason, "the event list is empty (jphase list shows the events)");
		return -EINVAL;
	}
	err = parse_list(&p);
	if (err == -ENOMEM)
		reason_set(ret_reason, "out of memory");
	if (err < 0) {
		event_words_clear(&p.words);
		return err;
	}
	*ret = p.words;
	return 0;
}

void event_words_clear(struct event_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		word_clear(&words->word[i]);
	free(words->word);
	*words = (struct event_words){ 0 };
}
