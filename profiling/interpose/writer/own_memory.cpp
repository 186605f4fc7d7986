// This library's own versions of the functions of libc that copy and compare memory and strings. They are
// hidden, so all calls within this library lead here, also those that the compiler makes.
//
// The program's runtime may have replaced libc's functions. The thread sanitizer's check each access for data
// races, but the sanitizer does not see how this library's threads wait for each other. It would report races
// that do not exist, and end the program with exit code 66.
//
// Threads, signals, forks: no limits; they only read and write the given memory.
// Large copies go to libc's wmemcpy(), which is its memcpy() under a name that no sanitizer replaces.
// Built without the compiler's knowledge of these functions (CMakeLists.txt). Otherwise a loop that copies
// would become a call of memcpy(): of itself.
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define PENSTOCK_OWN extern "C" __attribute__((visibility("hidden"), used))

namespace {

// Values at any address, of any type of object.
template <typename T>
struct __attribute__((packed, may_alias)) AnyValue {
  T value;
};
struct Block {
  uint64_t low;
  uint64_t high;
};

template <typename T>
void copy_ends(char* to, const char* from, size_t bytes) noexcept {  // sizeof(T) <= bytes <= 2 * sizeof(T)
  const T first = reinterpret_cast<const AnyValue<T>*>(from)->value;
  const T last = reinterpret_cast<const AnyValue<T>*>(from + bytes - sizeof(T))->value;
  reinterpret_cast<AnyValue<T>*>(to)->value = first;
  reinterpret_cast<AnyValue<T>*>(to + bytes - sizeof(T))->value = last;
}

}  // namespace

PENSTOCK_OWN void* memcpy(void* to, const void* from, size_t bytes) noexcept {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (bytes < 4) {
    for (size_t i = 0; i < bytes; ++i) {
      target[i] = source[i];
    }
  } else if (bytes < 8) {
    copy_ends<uint32_t>(target, source, bytes);
  } else if (bytes < 16) {
    copy_ends<uint64_t>(target, source, bytes);
  } else if (bytes <= 32) {
    copy_ends<Block>(target, source, bytes);
  } else {
    // The last bytes first: they may be more than a whole number of wide characters.
    reinterpret_cast<AnyValue<uint32_t>*>(target + bytes - 4)->value =
        reinterpret_cast<const AnyValue<uint32_t>*>(source + bytes - 4)->value;
    wmemcpy(static_cast<wchar_t*>(to), static_cast<const wchar_t*>(from), bytes / sizeof(wchar_t));
  }
  return to;
}
PENSTOCK_OWN void* mempcpy(void* to, const void* from, size_t bytes) noexcept {
  return static_cast<char*>(memcpy(to, from, bytes)) + bytes;
}
PENSTOCK_OWN void* memmove(void* to, const void* from, size_t bytes) noexcept {
  if (to <= from) {
    for (size_t i = 0; i < bytes; ++i) {
      static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
    }
  } else {
    for (size_t i = bytes; i-- > 0;) {
      static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
    }
  }
  return to;
}
PENSTOCK_OWN void* memset(void* to, int value, size_t bytes) noexcept {
  auto* at = static_cast<char*>(to);
  const uint64_t word = 0x0101010101010101U * static_cast<unsigned char>(value);
  for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
    reinterpret_cast<AnyValue<uint64_t>*>(at)->value = word;
  }
  for (; bytes > 0; --bytes) {
    *at++ = static_cast<char>(value);
  }
  return to;
}
PENSTOCK_OWN int memcmp(const void* a, const void* b, size_t bytes) noexcept {
  const auto* first = static_cast<const unsigned char*>(a);
  const auto* second = static_cast<const unsigned char*>(b);
  size_t i = 0;
  while (i + sizeof(uint64_t) <= bytes &&
         reinterpret_cast<const AnyValue<uint64_t>*>(first + i)->value ==
             reinterpret_cast<const AnyValue<uint64_t>*>(second + i)->value) {
    i += sizeof(uint64_t);
  }
  for (; i < bytes; ++i) {
    if (first[i] != second[i]) {
      return first[i] < second[i] ? -1 : 1;
    }
  }
  return 0;
}
PENSTOCK_OWN void* memchr(const void* in, int value, size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(in);
  for (size_t i = 0; i < bytes; ++i) {
    if (at[i] == static_cast<unsigned char>(value)) {
      return const_cast<unsigned char*>(at + i);
    }
  }
  return nullptr;
}
PENSTOCK_OWN void* memmem(const void* in, size_t in_bytes, const void* wanted, size_t wanted_bytes) noexcept {
  const auto* at = static_cast<const char*>(in);
  for (size_t i = 0; i + wanted_bytes <= in_bytes; ++i) {
    if (memcmp(at + i, wanted, wanted_bytes) == 0) {
      return const_cast<char*>(at + i);
    }
  }
  return nullptr;
}
// Reads aligned words, also the bytes behind the text in its last word. These are in the same page, and
// valgrind allows such reads (--partial-loads-ok).
PENSTOCK_OWN size_t strnlen(const char* text, size_t most) noexcept {
  size_t length = 0;
  for (; (reinterpret_cast<uintptr_t>(text + length) & 7U) != 0; ++length) {
    if (length == most || text[length] == 0) {
      return length;
    }
  }
  for (; length < most; length += sizeof(uint64_t)) {
    const uint64_t word = reinterpret_cast<const AnyValue<uint64_t>*>(text + length)->value;
    if (((word - 0x0101010101010101U) & ~word & 0x8080808080808080U) != 0) {
      break;  // one of its bytes is 0
    }
  }
  while (length < most && text[length] != 0) {
    ++length;
  }
  return length < most ? length : most;
}
PENSTOCK_OWN size_t strlen(const char* text) noexcept {
  return strnlen(text, ~size_t{0});
}
PENSTOCK_OWN int strncmp(const char* a, const char* b, size_t most) noexcept {
  for (size_t i = 0; i < most; ++i) {
    if (a[i] != b[i] || a[i] == 0) {
      return static_cast<unsigned char>(a[i]) - static_cast<unsigned char>(b[i]);
    }
  }
  return 0;
}
PENSTOCK_OWN int strcmp(const char* a, const char* b) noexcept {
  return strncmp(a, b, ~size_t{0});
}
PENSTOCK_OWN char* stpcpy(char* to, const char* from) noexcept {
  const size_t length = strlen(from);
  memcpy(to, from, length + 1);
  return to + length;
}
PENSTOCK_OWN char* strcpy(char* to, const char* from) noexcept {
  stpcpy(to, from);
  return to;
}
PENSTOCK_OWN char* strncpy(char* to, const char* from, size_t bytes) noexcept {
  const size_t length = strnlen(from, bytes);
  memcpy(to, from, length);
  memset(to + length, 0, bytes - length);
  return to;
}
PENSTOCK_OWN char* strchrnul(const char* text, int value) noexcept {
  while (*text != static_cast<char>(value) && *text != 0) {
    ++text;
  }
  return const_cast<char*>(text);
}
PENSTOCK_OWN char* strchr(const char* text, int value) noexcept {
  char* const found = strchrnul(text, value);
  return *found == static_cast<char>(value) ? found : nullptr;
}
PENSTOCK_OWN char* strrchr(const char* text, int value) noexcept {
  for (size_t i = strlen(text) + 1; i-- > 0;) {
    if (text[i] == static_cast<char>(value)) {
      return const_cast<char*>(text + i);
    }
  }
  return nullptr;
}
PENSTOCK_OWN char* strstr(const char* text, const char* wanted) noexcept {
  return static_cast<char*>(memmem(text, strlen(text), wanted, strlen(wanted)));
}
PENSTOCK_OWN size_t strcspn(const char* text, const char* ends) noexcept {
  size_t length = 0;
  while (text[length] != 0 && strchr(ends, text[length]) == nullptr) {
    ++length;
  }
  return length;
}
PENSTOCK_OWN size_t strspn(const char* text, const char* of) noexcept {
  size_t length = 0;
  while (text[length] != 0 && strchr(of, text[length]) != nullptr) {
    ++length;
  }
  return length;
}
