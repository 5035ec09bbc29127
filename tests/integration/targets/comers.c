/* SPDX-License-Identifier: MIT */
/* comers COUNT: phases "come" in which four threads begin and end, some still in the next one. */
#include <pthread.h>
#include <stdlib.h>

#include <jphase/jphase.h>

#define THREADS 4

static void *end_at_once(void *data)
{
	return data;
}

int main(int argc, char **argv)
{
	long count = argc == 2 ? atol(argv[1]) : 0;
	pthread_t thread[THREADS];

	if (count < 1)
		return 2;
	for (long round = 0; round < count; round++) {
		joule_phase("come");
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&thread[i], NULL, end_at_once, NULL) != 0)
				return 1;
		joule_phase("go");
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	return 0;
}
