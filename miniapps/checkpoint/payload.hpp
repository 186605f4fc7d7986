// What a checkpoint contains: the state of a training, of realistic size, with bytes that can be checked
// after a restore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// A file that one rank saves in a checkpoint.
struct PayloadFile {
  std::string name;
  uint64_t bytes = 0;

  friend bool operator==(const PayloadFile&, const PayloadFile&) = default;
};

// The name and the size of the made-up training state that is saved. find_payload() takes a name
// ("alexnet-adam", "resnet50", "unet3d", "llama3-8b", "alexnet-adam-tensorflow" ...), a fraction
// ("llama3-8b/8" is one eighth), or a size ("512MiB"). Anything else is invalid_argument, and the message
// lists the names.
struct Payload {
  std::string name;
  uint64_t bytes = 0;

  // The files that one rank of `ranks` ranks saves: "rank-3.bin", with sizes that differ by at most one byte
  // between ranks; or the three files that TensorFlow writes.
  std::vector<PayloadFile> shard(uint64_t rank, uint64_t ranks) const;
};
Result<Payload> find_payload(std::string_view text);

// The bytes that one rank saves, in place of real weights. They cannot be compressed or deduplicated, and
// every page of 4 KiB differs from step to step. They are calculated from the seed, the rank, the file's name
// and the step, so that a restore can check them. advance_to() writes only one cache line in each page. Only
// one thread at a time may use the object.
class PayloadState {
 public:
  // Allocates the memory and fills it, with several threads. exhausted if there is not enough memory.
  static Result<std::unique_ptr<PayloadState>> make(std::vector<PayloadFile> files, uint64_t rank,
                                                    uint64_t seed);

  void advance_to(uint64_t step);
  std::span<const PayloadFile> files() const { return files_; }
  std::span<const std::byte> file(size_t index) const;
  uint64_t seed() const { return seed_; }

 private:
  PayloadState(std::vector<PayloadFile> files, uint64_t rank, uint64_t seed);
  std::vector<PayloadFile> files_;
  uint64_t rank_ = 0;
  uint64_t seed_ = 0;
  struct Memory;
  std::unique_ptr<Memory, void (*)(Memory*)> memory_;
};

// Checks that `bytes`, which start at `offset` of the file, are those that the PayloadState of (`rank`,
// `seed`) has in this file at `step`. Else `corrupt`, and the message names the first byte that differs.
// `offset` must be a multiple of 4 KiB. `bytes` may be any part of the file; the rest is not needed. Any
// thread may call it.
Result<void> prove_state(std::span<const std::byte> bytes, uint64_t offset, std::string_view file,
                         uint64_t rank, uint64_t seed, uint64_t step);

}  // namespace penstock
