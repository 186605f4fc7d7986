// penstock_hdf5_filters: undoes the filters of chunks with HDF5's own library, for LibraryFilters
// (library_filters.hpp), which starts it. If a damaged chunk crashes the library, only this process ends.
//
// HDF5 has no function that undoes filters of given bytes. So each chunk becomes a file of its own, in
// memory: a dataset of bytes with this one chunk and these filters. H5Dread() then undoes them. Source of the
// headers: "HDF5 File Format Specification", version 3.
#include <fmt/format.h>
#include <hdf5.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/codec/filter_exchange.hpp"
#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5/hdf5_checksum.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

constexpr uint64_t kNoAddress = UINT64_MAX;
constexpr uint64_t kSuperblockBytes = 48;

constexpr H5Z_filter_t kTakeChunk = 511;  // a number that HDF5 leaves to tests
std::span<std::byte> chunk_to_take;       // where the chunk is to be
std::optional<std::string> taken;         // "" once it is there, or why it is not

// The filter kTakeChunk.
size_t take_chunk(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void** buffer) {
  taken = "";
  if (bytes != chunk_to_take.size()) {
    const auto signed_bytes = static_cast<ptrdiff_t>(bytes);
    if (signed_bytes < 0)
      taken = fmt::format("a filter returns {}", signed_bytes);
    else
      taken = fmt::format("the filters make {} bytes of it, not {}", bytes, chunk_to_take.size());
    return 0;
  }
  std::memcpy(chunk_to_take.data(), *buffer, bytes);
  return bytes;
}

// A group with a dataset "d" whose header is at `address`.
std::vector<std::byte> root_group(uint64_t address) {
  HeaderBytes messages;
  put_hdf5_message(messages, 0x02,
                   HeaderBytes().u8(0).u8(0).u64(kNoAddress).u64(kNoAddress));  // no heap of links
  put_hdf5_message(messages, 0x06, HeaderBytes().u8(1).u8(0).u8(1).text("d").u64(address));
  return hdf5_object_header(messages);
}

// A dataset of `chunk_bytes` bytes, in one filtered chunk.
std::vector<std::byte> dataset(const FilterQuestion& question, uint64_t chunk_address) {
  HeaderBytes messages;
  put_hdf5_message(messages, 0x01, HeaderBytes().u8(2).u8(1).u8(0).u8(1).u64(question.chunk_bytes));
  put_hdf5_message(messages, 0x03, HeaderBytes().u8(0x10).zeros(3).u32(1).u16(0).u16(8));  // unsigned bytes
  put_hdf5_message(messages, 0x05, HeaderBytes().u8(3).u8(0x0b));                          // no fill value
  HeaderBytes filters;
  const size_t count = std::min<size_t>(question.filter_count, question.filters.size());
  filters.u8(2).u8(count + 1);
  filters.u16(kTakeChunk).u16(0).u16(0).u16(0);
  for (const FilterQuestion::Filter& filter : std::span(question.filters).first(count)) {
    constexpr uint16_t kFirstWithName = 256;
    filters.u16(filter.number);
    if (filter.number >= kFirstWithName) filters.u16(0);
    const size_t parameters = std::min<size_t>(filter.parameter_count, filter.parameters.size());
    filters.u16(0).u16(parameters);
    for (size_t i = 0; i < parameters; ++i) filters.u32(filter.parameters[i]);
  }
  put_hdf5_message(messages, 0x0b, filters);
  constexpr uint8_t kChunked = 2;
  constexpr uint8_t kSingleFilteredChunk = 2;
  constexpr uint8_t kSingleChunkIndex = 1;
  HeaderBytes layout;
  layout.u8(4).u8(kChunked).u8(kSingleFilteredChunk).u8(2).u8(8).u64(question.chunk_bytes).u64(1);
  layout.u8(kSingleChunkIndex).u64(question.stored_bytes).u32(0).u64(chunk_address);
  put_hdf5_message(messages, 0x08, layout);
  return hdf5_object_header(messages);
}

// Writes the headers of the file in `memory`, whose chunk is there already, and returns the file.
std::span<std::byte> make_file(const FilterQuestion& question, std::span<std::byte> memory) {
  constexpr uint64_t kChunkAddress = kFilterStoredOffset - kFilterFileOffset;
  const uint64_t file_bytes = kChunkAddress + question.stored_bytes;
  const uint64_t group_bytes = root_group(0).size();
  HeaderBytes file;
  file.text(std::string_view("\x89HDF\r\n\x1a\n", 8)).u8(2).u8(8).u8(8).u8(0).u64(0).u64(kNoAddress);
  file.u64(file_bytes).u64(kSuperblockBytes);
  file.u32(hdf5_checksum(file.view()));
  file.append(root_group(kSuperblockBytes + group_bytes));
  file.append(dataset(question, kChunkAddress));
  static_assert(sizeof question.filters < kChunkAddress / 2);  // so the headers fit before the chunk
  const std::span<std::byte> made = memory.subspan(kFilterFileOffset, size_t(file_bytes));
  std::copy(file.view().begin(), file.view().end(), made.begin());
  return made;
}

// Whether the memory of this program is limited to less than chunks may need (limit_memory()).
bool needs_more_memory = false;

// Why the library could not undo the filters.
struct Reason {
  std::string text;  // "": it could
  bool lacks_memory = false;
};

// HDF5's description of the first error of the last call.
Reason reason_of_library() {
  Reason reason;
  const auto take = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& found = *static_cast<Reason*>(out);
    if (error->maj_num == H5E_RESOURCE && (error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC))
      found.lacks_memory = needs_more_memory;
    if (found.text.empty() && error->desc != nullptr) found.text = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &reason);
  if (reason.text.empty()) reason.text = "it reports no reason";
  return reason;
}

// Undoes the filters of the file's chunk.
Reason read_chunk(std::span<std::byte> file, std::span<std::byte> result) {
  chunk_to_take = result;
  taken.reset();
  // HDF5 fails if there is a file of this name. It takes two open files of one name for the same file.
  static uint64_t number = 0;
  const std::string name = fmt::format("/dev/null/{}", ++number);
  constexpr size_t kIncrement = size_t{1} << 20U;
  constexpr hsize_t kFirstByte = 0;
  constexpr hsize_t kOneByte = 1;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  const hid_t one_byte = H5Screate_simple(1, &kOneByte, nullptr);
  hid_t opened = -1;
  hid_t set = -1;
  hid_t space = -1;
  unsigned char first_byte = 0;
  const bool done = access >= 0 && H5Pset_fapl_core(access, kIncrement, 0) >= 0 &&
                    H5Pset_file_image(access, file.data(), file.size()) >= 0 &&
                    (opened = H5Fopen(name.c_str(), H5F_ACC_RDONLY, access)) >= 0 &&
                    (set = H5Dopen2(opened, "d", H5P_DEFAULT)) >= 0 && (space = H5Dget_space(set)) >= 0 &&
                    H5Sselect_elements(space, H5S_SELECT_SET, 1, &kFirstByte) >= 0 &&
                    H5Dread(set, H5T_NATIVE_UINT8, one_byte, space, H5P_DEFAULT, &first_byte) >= 0;
  Reason reason{.text = taken.value_or("")};
  if (reason.text.empty() && !(done && taken)) reason = reason_of_library();
  if (space >= 0) H5Sclose(space);
  if (set >= 0) H5Dclose(set);
  if (opened >= 0) H5Fclose(opened);
  H5Sclose(one_byte);
  H5Pclose(access);
  return reason;
}

bool can_undo(uint16_t number) {
  unsigned flags = 0;
  return H5Zfilter_avail(H5Z_filter_t(number)) > 0 && H5Zget_filter_info(H5Z_filter_t(number), &flags) >= 0 &&
         (flags & H5Z_FILTER_CONFIG_DECODE_ENABLED) != 0;
}

// A chunk may make a filter ask for any amount of memory. It gets what this program has from the beginning (a
// preloaded profiler or a sanitizer reserve much), and a few times the bytes of a chunk: no filter needs more
// for an intact one.
void limit_memory(size_t shared_bytes) {
  static const uint64_t first_bytes = [] {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * uint64_t(::sysconf(_SC_PAGESIZE));
  }();
  static const rlimit first_limit = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    return limit;
  }();
  constexpr uint64_t kForLibraries = uint64_t{512} << 20U;
  const rlim_t enough = first_bytes == 0 ? RLIM_INFINITY : first_bytes + kForLibraries + 9 * shared_bytes;
  needs_more_memory = first_limit.rlim_cur < enough;
  rlimit limit = first_limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, enough);
  ::setrlimit(RLIMIT_AS, &limit);
}

// The memory of filter_exchange.hpp. Mapped again when it has become longer.
class SharedMemory {
 public:
  std::span<std::byte> get() {
    struct stat info {};
    if (::fstat(kFilterMemoryFd, &info) != 0) return {};
    const auto bytes = size_t(info.st_size);
    if (bytes == mapped_.size()) return mapped_;
    if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
    mapped_ = {};
    limit_memory(bytes);
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kFilterMemoryFd, 0);
    if (at != MAP_FAILED) mapped_ = {static_cast<std::byte*>(at), bytes};
    return mapped_;
  }

 private:
  std::span<std::byte> mapped_;
};

FilterAnswer answer_to(const FilterQuestion& question, std::span<std::byte> memory) {
  Reason reason;
  if (question.stored_bytes == 0) {
    if (!can_undo(question.filters[0].number)) reason.text = "this filter is unknown";
  } else {
    const size_t result = filter_result_offset(question.stored_bytes);
    reason = read_chunk(make_file(question, memory), memory.subspan(result, size_t(question.chunk_bytes)));
  }
  FilterAnswer answer{.is_done = reason.text.empty(), .lacks_memory = reason.lacks_memory};
  reason.text.resize(std::min(reason.text.size(), answer.reason.size() - 1));
  std::copy(reason.text.begin(), reason.text.end(), answer.reason.begin());
  return answer;
}

int serve() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::unsetenv("HDF5_VOL_CONNECTOR");  // it may name one that cannot read files in memory
#ifdef __GLIBC__
  // Keeps the memory of one chunk for the next: new pages for each would take a third of the time.
  constexpr int kMostOfOldVersions = 32 << 20;
  if (::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0) ::mallopt(M_MMAP_THRESHOLD, kMostOfOldVersions);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const H5Z_class2_t take{H5Z_CLASS_T_VERS, kTakeChunk, 1, 1, "read the chunk", nullptr, nullptr, take_chunk};
  if (H5Zregister(&take) < 0) return kFilterNoMemory;
  SharedMemory shared;
  char byte = 0;
  while (retry_eintr([&] { return ::read(STDIN_FILENO, &byte, 1); }) == 1) {
    const std::span<std::byte> memory = shared.get();
    if (memory.size() < kFilterStoredOffset) return kFilterNoMemory;
    FilterQuestion question;
    std::memcpy(&question, memory.data(), sizeof question);
    ::alarm(question.timeout_s);
    const FilterAnswer answer = answer_to(question, memory);
    ::alarm(0);
    std::memcpy(memory.data() + kFilterAnswerOffset, &answer, sizeof answer);
    if (retry_eintr([&] { return ::write(STDIN_FILENO, &byte, 1); }) != 1) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main() {
  struct stat info {};
  if (::fstat(penstock::kFilterMemoryFd, &info) != 0 || !S_ISREG(info.st_mode)) {
    static constexpr char kHelp[] =
        "Penstock starts this program to decode HDF5 chunks. Do not start it yourself.\n";
    static_cast<void>(::write(STDERR_FILENO, kHelp, sizeof kHelp - 1));
    return 2;
  }
  return penstock::serve();
}
