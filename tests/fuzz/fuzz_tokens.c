/* SPDX-License-Identifier: MIT */
/* Standard output that holds tokens: how it is cut into pieces makes no difference. */
#include "fuzz.h"

#include "internal/util.h"
#include "token.h"

/* All tokens in one number. */
struct sum {
	uint64_t count;
	uint64_t hash;
};

static void mix(struct sum *s, uint64_t value)
{
	s->hash = (s->hash ^ value) * UINT64_C(1099511628211);
}

static void found(void *data, const struct token *token)
{
	struct sum *s = data;

	CLAIM(token->length > 0);
	CLAIM(!memchr(token->text, '\n', token->length));
	for (size_t i = 0; i < token->length; i++)
		mix(s, (uint8_t)token->text[i]);
	mix(s, token->length);
	mix(s, token->line);
	s->count++;
}

static struct sum find(const uint8_t *data, size_t size, size_t piece)
{
	char error[TOKEN_ERROR_ROOM] = "";
	struct token_finder *f;
	struct sum s = { 0 };

	CLAIM(token_open(TOKEN_DEFAULT, &f, error) == 0);
	for (size_t at = 0; at < size; at += piece) {
		/* With a NUL, since the sanitizers' regexec() looks for one. */
		size_t length = MIN(piece, size - at);
		char *bytes = fuzz_text(data + at, length);

		token_feed(f, bytes, length, found, &s);
		free(bytes);
	}
	token_end(f, found, &s);
	token_close(f);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole = find(data, size, size + 1);
	struct sum pieces = find(data, size, 1 + size % 13);

	CLAIM(whole.count == pieces.count && whole.hash == pieces.hash);
	return 0;
}
