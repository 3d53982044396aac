/* Runs one kernel of the CPU target: `driver kernel.so image`.

   The image is all the memory of a launch, at addresses that it was made for. Its first words say
   where; it is mapped there, the kernel's entry runs every program, and the image is written back. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

struct launch {
  uint64_t base, size;
  void *arguments, *grid, *context;
  int64_t num_programs;
};

typedef void entry(void *arguments, void *grid, int64_t begin, int64_t end, void *context);

static int fail(const char *what) {
  fprintf(stderr, "driver: %s\n", what);
  return 1;
}

int main(int count, char **words) {
  struct launch launch;
  FILE *file = count == 3 ? fopen(words[2], "r+b") : NULL;
  if (!file || fread(&launch, sizeof launch, 1, file) != 1) return fail("no image");
  void *base = (void *)launch.base;
  if (mmap(base, launch.size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != base)
    return fail("the addresses of the image are taken");
  rewind(file);
  if (fread(base, 1, launch.size, file) != launch.size) return fail("the image is cut off");
  void *library = dlopen(words[1], RTLD_NOW);
  if (!library) return fail(dlerror());
  entry *run = (entry *)dlsym(library, "tilewright_kernel");
  if (!run) return fail(dlerror());
  run(launch.arguments, launch.grid, 0, launch.num_programs, launch.context);
  rewind(file);
  if (fwrite(base, 1, launch.size, file) != launch.size || fclose(file))
    return fail("the image cannot be written");
  return 0;
}
