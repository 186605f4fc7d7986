#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <fstream>

#include "profiling/interpose/matrix/matrix.hpp"

namespace penstock::matrix {

namespace {

template <typename Move>
bool with_stream(std::FILE* file, Move move) {
  MATRIX_CHECK(file != nullptr);
  move(file);
  MATRIX_CHECK(std::fclose(file) == 0);
  return true;
}

#define READ(body)                                                                                     \
  [](const std::string& path) {                                                                        \
    return with_stream(std::fopen(path.c_str(), "r"), []([[maybe_unused]] std::FILE* file) { body; }); \
  }
#define WRITE(body)                                                                                    \
  [](const std::string& path) {                                                                        \
    return with_stream(std::fopen(path.c_str(), "w"), []([[maybe_unused]] std::FILE* file) { body; }); \
  }

// Reads kBytes bytes with `get`, which returns one byte, and then the end of the file.
template <typename Get>
void get_all(Get get) {
  for (size_t i = 0; i < kBytes; ++i) MATRIX_CHECK(get() == block[i]);
  MATRIX_CHECK(get() == EOF);
}
template <typename Put>
void put_all(Put put) {
  for (const char byte : block) MATRIX_CHECK(put(byte) == byte);
}
constexpr size_t kLine = 64;
constexpr size_t kLines = kBytes / kLine;

void scan_all(std::FILE* file) {
  char word[kLine];
  for (size_t i = 0; i < kLines; ++i) MATRIX_CHECK(std::fscanf(file, "%63s ", word) == 1);
}
void get_lines(std::FILE* file, int delimiter) {
  char* line = nullptr;
  size_t room = 0;
  size_t bytes = 0;
  for (ssize_t n = 0; n >= 0; bytes += size_t(n < 0 ? 0 : n))
    n = delimiter == '\n' ? ::getline(&line, &room, file) : ::getdelim(&line, &room, delimiter, file);
  std::free(line);
  MATRIX_CHECK(bytes == kBytes);
}
void print_lines(std::FILE* file) {
  for (size_t i = 0; i < kLines; ++i)
    MATRIX_CHECK(std::fprintf(file, "%.63s\n", block + i * kLine) == int(kLine));
}
const char* line_of_block() {
  static char line[kLine + 1] = {};
  for (size_t i = 0; i < kLine; ++i) line[i] = block[i];
  return line;
}

bool transfer_by_fdopen(const std::string& path, bool writes) {
  const int fd = ::open(path.c_str(), writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
  return with_stream(::fdopen(fd, writes ? "w" : "r"), [&](std::FILE* file) {
    MATRIX_CHECK((writes ? std::fwrite(block, 1, kBytes, file) : std::fread(block, 1, kBytes, file)) ==
                 kBytes);
  });
}

bool read_without_close(const std::string& path) {  // bytes that were read before the process ended count too
  std::FILE* file = std::fopen(path.c_str(), "r");
  MATRIX_CHECK(file != nullptr);
  get_all([&] { return getc_unlocked(file); });
  return true;
}

// Opens the file as stdin or stdout, moves its bytes, and gives the stream another file.
template <typename Move>
bool with_own_stream(const std::string& path, std::FILE* file, Move move) {
  MATRIX_CHECK(std::freopen(path.c_str(), file == stdin ? "r" : "w", file) == file);
  move();
  return std::freopen("/dev/null", file == stdin ? "r" : "w", file) == file;
}
#define FROM_STDIN(body) [](const std::string& path) { return with_own_stream(path, stdin, [] { body; }); }
#define TO_STDOUT(body) [](const std::string& path) { return with_own_stream(path, stdout, [] { body; }); }

// A function of libc that the headers do not declare, or declare as one that should not be used.
template <typename Function>
Function* function_of(const char* name) {
  auto* const function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  MATRIX_CHECK(function != nullptr);
  return function;
}
int scan_by_list(std::FILE* file, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int result = function_of<int(std::FILE*, const char*, va_list)>("__vfscanf")(file, format, values);
  va_end(values);
  return result;
}
int print_wide_by_list(const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  const int result = std::vwprintf(format, values);
  va_end(values);
  return result;
}
int scan_wide_by_list(const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  const int result = std::vwscanf(format, values);
  va_end(values);
  return result;
}
// Reads the lines of stdin as words of 63 characters.
template <typename Scan>
void scan_wide(Scan scan) {
  wchar_t word[kLine];
  for (size_t i = 0; i < kLines; ++i) MATRIX_CHECK(scan(L"%63ls ", word) == 1);
}
template <typename Print>
void print_wide(Print print) {
  for (size_t i = 0; i < kLines; ++i) MATRIX_CHECK(print(L"%.63s\n", block + i * kLine) == int(kLine));
}
void get_integers(std::FILE* file) {
  for (size_t at = 0; at < kBytes; at += sizeof(int)) {
    int word = 0;
    __builtin_memcpy(&word, block + at, sizeof(word));
    MATRIX_CHECK(::getw(file) == word);
  }
  MATRIX_CHECK(::getw(file) == EOF && std::feof(file) != 0);
}
void put_integers(std::FILE* file) {
  for (size_t at = 0; at < kBytes; at += sizeof(int)) {
    int word = 0;
    __builtin_memcpy(&word, block + at, sizeof(word));
    MATRIX_CHECK(::putw(word, file) == 0);
  }
}
void get_stdin_lines() {
  char line[100];
  for (size_t i = 0; i < kLines; ++i)
    MATRIX_CHECK(function_of<char*(char*)>("gets")(line) == line && line[0] == block[i * kLine]);
  MATRIX_CHECK(function_of<char*(char*)>("gets")(line) == nullptr);
}

constexpr Row kRows[] = {
    {"stdio", "fread", READ(MATRIX_CHECK(std::fread(block, 1, kBytes, file) == kBytes))},
    {"stdio", "fread_write", WRITE(MATRIX_CHECK(std::fwrite(block, 1, kBytes, file) == kBytes))},
    {"stdio", "fread_small", READ(for (size_t i = 0; i < kLines;
                                       ++i) MATRIX_CHECK(std::fread(block + i * kLine, kLine, 1, file) == 1))},
    {"stdio", "fread_small_write",
     WRITE(for (size_t i = 0; i < kLines;
                ++i) MATRIX_CHECK(std::fwrite(block + i * kLine, kLine, 1, file) == 1))},
    {"stdio", "fread_part", READ(char more[kBytes + 100]; MATRIX_CHECK(std::fread(more, sizeof(more), 1, file) == 0))},
    {"stdio", "fread_unlocked", READ(MATRIX_CHECK(::fread_unlocked(block, 1, kBytes, file) == kBytes))},
    {"stdio", "fread_unlocked_write",
     WRITE(MATRIX_CHECK(::fwrite_unlocked(block, 1, kBytes, file) == kBytes))},
    {"stdio", "fgets", READ(char line[100]; while (std::fgets(line, sizeof(line), file) != nullptr) {})},
    {"stdio", "fgets_write",
     WRITE(for (size_t i = 0; i < kLines; ++i) MATRIX_CHECK(std::fputs(line_of_block(), file) >= 0))},
    {"stdio", "getline", READ(get_lines(file, '\n'))},
    {"stdio", "getdelim", READ(get_lines(file, 'q'))},
    {"stdio", "getc", READ(get_all([&] { return std::getc(file); }))},
    {"stdio", "getc_write", WRITE(put_all([&](char byte) { return std::putc(byte, file); }))},
    {"stdio", "getc_unlocked", READ(get_all([&] { return getc_unlocked(file); }))},
    {"stdio", "getc_unlocked_write", WRITE(put_all([&](char byte) { return putc_unlocked(byte, file); }))},
    {"stdio", "getc_not_closed", read_without_close},
    {"stdio", "fgetc", READ(get_all([&] { return std::fgetc(file); }))},
    {"stdio", "fgetc_write", WRITE(put_all([&](char byte) { return std::fputc(byte, file); }))},
    {"stdio", "ungetc", READ(get_all([&] {
       const int byte = std::getc(file);
       if (byte == EOF) return EOF;
       MATRIX_CHECK(std::ungetc(byte, file) == byte);
       return std::getc(file);
     }))},
    {"stdio", "fscanf", READ(scan_all(file))},
    {"stdio", "fscanf_write", WRITE(print_lines(file))},
    {"stdio", "fflush_write", WRITE(MATRIX_CHECK(std::fwrite(block, 1, 96, file) == 96);
                                    MATRIX_CHECK(std::fflush(nullptr) == 0);
                                    MATRIX_CHECK(std::fwrite(block, 1, kBytes - 96, file) == kBytes - 96);
                                    MATRIX_CHECK(std::fflush(file) == 0))},
    {"stdio", "fseek", READ(MATRIX_CHECK(std::fseek(file, 96, SEEK_SET) == 0);
                            MATRIX_CHECK(std::fread(block + 96, 1, kBytes - 96, file) == kBytes - 96);
                            std::rewind(file); MATRIX_CHECK(std::fread(block, 1, 96, file) == 96))},
    {"stdio", "vfscanf", READ(char word[kLine]; for (size_t i = 0; i < kLines; ++i) MATRIX_CHECK(scan_by_list(file, "%63s ", word) == 1))},
    {"stdio", "fgetpos", READ(std::fpos_t begin; MATRIX_CHECK(std::fgetpos(file, &begin) == 0);
                              MATRIX_CHECK(std::fread(block, 1, kBytes, file) == kBytes))},
    {"stdio", "getw", READ(get_integers(file))},
    {"stdio", "putw_write", WRITE(put_integers(file))},
    {"stdio", "gets", FROM_STDIN(get_stdin_lines())},
    {"stdio", "wscanf", FROM_STDIN(scan_wide(std::wscanf))},
    {"stdio", "vwscanf", FROM_STDIN(scan_wide(scan_wide_by_list))},
    {"stdio", "wprintf_write", TO_STDOUT(print_wide(std::wprintf))},
    {"stdio", "vwprintf_write", TO_STDOUT(print_wide(print_wide_by_list))},
    {"stdio", "getwchar_unlocked", FROM_STDIN(for (const char byte : block) MATRIX_CHECK(::getwchar_unlocked() == wint_t(byte)); MATRIX_CHECK(::getwchar_unlocked() == WEOF))},
    {"stdio", "putwchar_unlocked_write", TO_STDOUT(for (const char byte : block) MATRIX_CHECK(::putwchar_unlocked(wchar_t(byte)) == wint_t(byte)))},
    {"stdio", "fdopen", [](const std::string& path) { return transfer_by_fdopen(path, false); }},
    {"stdio", "fdopen_write", [](const std::string& path) { return transfer_by_fdopen(path, true); }},
    {"stdio", "iostream",
     [](const std::string& path) {
       std::ifstream file(path);
       std::string line;
       size_t bytes = 0;
       while (std::getline(file, line)) bytes += line.size() + 1;
       MATRIX_CHECK(bytes == kBytes);
       return true;
     }},
    {"stdio", "iostream_write",
     [](const std::string& path) {
       std::ofstream file(path);
       file.write(block, kBytes);
       file.close();
       MATRIX_CHECK(file.good());
       return true;
     }},
};

}  // namespace

std::span<const Row> stdio_rows() {
  return kRows;
}

}  // namespace penstock::matrix
