/* Puts the handler of faults before SIGSEGV's default, and loads from an address in the code of a
   kernel, or outside of any: `faults kernel|foreign bytes`. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
  struct entry *next;
  void *start;
  int64_t bytes;
  const char *name;
  int64_t name_bytes, help_bytes;
};

extern struct entry *fault_entries;
extern char fault_actions[16][ACTION_BYTES];
void on_fault(int, siginfo_t *, void *);
int64_t kernel(int64_t *);

__attribute__((noinline)) static int64_t foreign(volatile int64_t *from) { return *from; }

int main(int count, char **words) {
  static const char name[] = "kernel\n  k.py:3, in kernel\n";
  struct entry entry = {NULL, (void *)kernel, 0, name, sizeof name - 1, HELP_BYTES};
  struct sigaction action;
  if (count != 3) return 2;
  entry.bytes = atoi(words[2]);
  fault_entries = &entry;
  if (sigaction(SIGSEGV, NULL, (struct sigaction *)fault_actions[SIGSEGV])) return 3;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (sigaction(SIGSEGV, &action, NULL)) return 4;
  int64_t *far = (int64_t *)0x123456789a8;
  printf("%d\n", (int)(strcmp(words[1], "kernel") ? foreign(far) : kernel(far)));
  return 0;
}
