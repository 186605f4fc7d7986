#include "datagen/reading/physical_places.hpp"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr size_t kExtentsAtOnce = 64;
constexpr uint64_t kNoDeviceOffset =
    std::numeric_limits<uint64_t>::max();  // returned if the byte is not on the device yet, or is in a hole

struct Extent {
  uint64_t begin = 0;  // byte offset in the file
  uint64_t end = 0;
  uint64_t device_offset = 0;  // byte offset on the device
};

// Where the bytes of one object are on the device: its extents. If the file system does not report extents,
// only its inode number is known.
class ObjectLayout {
 public:
  // Loads the layout of the object `name`. `folder` is a descriptor of the root. Returns false if the file
  // system does not report extents.
  Result<bool> load_extents(int folder, const char* name, uint64_t bytes) {
    extents_.clear();
    const Fd fd(retry_eintr([&] { return ::openat(folder, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
    if (!fd) return errno_error(errno, "cannot open", name);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot inspect", name);
    inode_ = status.st_ino;
    return query_extents(fd.get(), bytes);
  }
  uint64_t inode() const { return inode_; }

  uint64_t device_offset_of(uint64_t offset) const {
    const auto next = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                       [](uint64_t at, const Extent& extent) { return at < extent.end; });
    if (next == extents_.end() || offset < next->begin) return kNoDeviceOffset;
    return next->device_offset + (offset - next->begin);
  }

 private:
  bool query_extents(int fd, uint64_t bytes) {
    alignas(fiemap) std::array<std::byte, sizeof(fiemap) + kExtentsAtOnce * sizeof(fiemap_extent)> memory;
    for (uint64_t file_offset = 0; file_offset < bytes;) {
      // Not initialised with {}: some compilers would also initialise the array of extents at its end, which
      // has no elements in this object.
      fiemap request;
      std::memset(&request, 0, sizeof request);
      request.fm_start = file_offset;
      request.fm_length = bytes - file_offset;
      request.fm_extent_count = kExtentsAtOnce;
      std::memcpy(memory.data(), &request, sizeof request);
      if (::ioctl(fd, FS_IOC_FIEMAP, memory.data()) != 0) return false;
      std::memcpy(&request, memory.data(), sizeof request);
      if (request.fm_mapped_extents == 0) return true;
      for (size_t i = 0; i < request.fm_mapped_extents; ++i) {
        fiemap_extent found{};
        std::memcpy(&found, memory.data() + sizeof request + i * sizeof found, sizeof found);
        file_offset = found.fe_logical + found.fe_length;
        if ((found.fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC)) == 0)
          extents_.push_back({found.fe_logical, file_offset, found.fe_physical});
        if ((found.fe_flags & FIEMAP_EXTENT_LAST) != 0) return true;
      }
    }
    return true;
  }

  uint64_t inode_ = 0;
  std::vector<Extent> extents_;
};

}  // namespace

Result<DeviceOrder> device_order(const SampleList& samples, const Backend& backend) {
  const auto path = backend.native_path("");
  if (!path)
    return make_error(Errc::unsupported, "the physical order of objects is known only for local files");
  const Fd folder(::open(path->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return errno_error(errno, "cannot open folder", path->string());
  // For each object, the end of the last sample in it. Extents after that are not needed.
  std::vector<uint64_t> read_ends(samples.objects());
  for (uint64_t i = 0; i < samples.size(); ++i)
    read_ends[samples[i].object] =
        std::max(read_ends[samples[i].object], samples[i].offset + samples[i].length);

  DeviceOrder order{std::vector<uint64_t>(samples.size()), "extent"};
  std::vector<uint64_t> inodes(samples.objects());
  ObjectLayout layout;
  constexpr uint32_t kNoObject = std::numeric_limits<uint32_t>::max();
  uint32_t loaded_object = kNoObject;
  for (uint64_t i = 0; i < samples.size(); ++i) {
    const uint32_t object = samples[i].object;
    if (object != loaded_object) {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_ASSIGN(const bool has_extents,
                      layout.load_extents(folder.get(), samples.name(object).data(), read_ends[object]));
      inodes[object] = layout.inode();
      if (!has_extents) order.key_kind = "inode";
      loaded_object = object;
    }
    order.sample_keys[i] = layout.device_offset_of(samples[i].offset);
  }
  // All samples must have the same kind of key, because offsets and inode numbers cannot be compared.
  if (order.key_kind == "inode")
    for (uint64_t i = 0; i < samples.size(); ++i) order.sample_keys[i] = inodes[samples[i].object];
  return order;
}

}  // namespace penstock
