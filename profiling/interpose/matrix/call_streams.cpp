// Calls functions of stdio a known number of times: writes FILE by 100 fwrite() of 10 bytes, reads it by
// fscanf(), by fgets(), and by 5 pread() of 100 bytes. Exits with 0 if each returned what was written;
// otherwise with the number of the failed step.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int, char** argv) {
  FILE* file = fopen(argv[1], "w");
  for (int i = 0; i < 100; ++i) {
    char line[16];
    if (snprintf(line, sizeof(line), "%09d\n", i) != 10 || fwrite(line, 1, 10, file) != 10) {
      return 1;
    }
  }
  if (fclose(file) != 0) {
    return 2;
  }
  file = fopen(argv[1], "r");
  int number = -1;
  int count = 0;
  while (fscanf(file, "%d\n", &number) == 1) {
    if (number != count++) {
      return 3;
    }
  }
  if (count != 100 || fclose(file) != 0) {
    return 4;
  }
  file = fopen(argv[1], "r");
  char line[64];
  for (count = 0; fgets(line, sizeof(line), file) != nullptr; ++count) {
    if (strlen(line) != 10) {
      return 5;
    }
  }
  if (count != 100 || fclose(file) != 0) {
    return 6;
  }
  const int fd = open(argv[1], O_RDONLY);
  for (int i = 0; i < 5; ++i) {
    char bytes[100];
    if (pread(fd, bytes, sizeof(bytes), i * 100) != 100) {
      return 7;
    }
  }
  return close(fd) == 0 ? 0 : 8;
}
