#include "profiling/attach/loaded_elf.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

namespace penstock {
namespace {

// Reads the memory of this process in the way in which another process would.
bool read_self(uint64_t address, void* to, size_t bytes) {
  iovec here{to, bytes};
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == ssize_t(bytes);
}

uint64_t libc_base() {
  Dl_info about{};
  EXPECT_NE(::dladdr(reinterpret_cast<void*>(&::getppid), &about), 0);
  return reinterpret_cast<uint64_t>(about.dli_fbase);
}

TEST(LoadedElfTest, FindsTheFunctionsOfALibraryInMemory) {
  if (!read_self(libc_base(), std::vector<char>(4).data(), 4)) GTEST_SKIP() << "no process_vm_readv() here";
  const auto elf = LoadedElf::parse(read_self, libc_base());
  ASSERT_TRUE(elf);
  void* const libc = ::dlopen("libc.so.6", RTLD_NOLOAD | RTLD_NOW);
  ASSERT_NE(libc, nullptr);
  for (const char* const name : {"read", "getppid", "open64", "fopen", "getenv"}) {
    const auto found = elf->find(read_self, name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->address, reinterpret_cast<uint64_t>(::dlsym(libc, name))) << name;
    EXPECT_GT(found->bytes, 0U) << name;
  }
  EXPECT_FALSE(elf->find(read_self, "no_such_function_anywhere"));
  EXPECT_FALSE(elf->find(read_self, ""));
}

TEST(LoadedElfTest, IsNothingWhereNoObjectLies) {
  EXPECT_FALSE(LoadedElf::parse(read_self, 0));
  const std::vector<char> zeros(8192);
  EXPECT_FALSE(LoadedElf::parse(read_self, reinterpret_cast<uint64_t>(zeros.data())));
}

// The search must end within readable memory, whatever the other process has there.
TEST(LoadedElfTest, ComesToAnEndWithAnything) {
  std::vector<unsigned char> begin(1 << 16);
  if (!read_self(libc_base(), begin.data(), begin.size())) GTEST_SKIP() << "no process_vm_readv() here";
  std::mt19937 random(7);  // the same numbers in each run
  for (int round = 0; round < 300; ++round) {
    std::vector<unsigned char> bytes = begin;
    for (int i = 0; i < 40; ++i)
      bytes[random() % (round % 2 == 0 ? 1024 : bytes.size())] = static_cast<unsigned char>(random());
    const ReadMemory read = [&](uint64_t address, void* to, size_t count) {
      if (address > bytes.size() || count > bytes.size() - address) return false;
      std::memcpy(to, bytes.data() + address, count);
      return true;
    };
    const auto elf = LoadedElf::parse(read, 0);
    if (elf) static_cast<void>(elf->find(read, "read"));
  }
}

}  // namespace
}  // namespace penstock
