// What is saved: the state of a training, of true size, and of bytes that can be proven when they come back.
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

// A file of a checkpoint, of one rank.
struct PayloadFile {
  std::string name;
  std::uint64_t bytes = 0;

  friend bool operator==(const PayloadFile&, const PayloadFile&) = default;
};

// By name ("alexnet-adam", "resnet50", "unet3d", "llama3-8b", "alexnet-adam-tensorflow" ...; "NAME/N" is an
// N-th of it) or by size ("512MiB"). invalid_argument lists the names.
struct Payload {
  std::string name;
  std::uint64_t bytes = 0;

  // What this rank of that many saves: "rank-3.bin", all parts within a byte equal; or TensorFlow's three
  // files.
  std::vector<PayloadFile> shard(std::uint64_t rank, std::uint64_t ranks) const;
};
Result<Payload> find_payload(std::string_view text);

// Bytes that stand for a rank's weights: no file system can shrink them or find a block of them twice, they
// differ from step to step in every page of 4 KiB, and anybody who knows seed, rank and step can say what
// each must be. Moving on to another step costs a cache line a page. One thread at a time.
class TrainedState {
 public:
  // exhausted where there is no memory. Filled with several threads.
  static Result<std::unique_ptr<TrainedState>> make(std::vector<PayloadFile> files, std::uint64_t rank,
                                                    std::uint64_t seed);

  void advance_to(std::uint64_t step);
  std::span<const PayloadFile> files() const { return files_; }
  std::span<const std::byte> file(std::size_t index) const;
  std::uint64_t seed() const { return seed_; }

 private:
  TrainedState(std::vector<PayloadFile> files, std::uint64_t rank, std::uint64_t seed);
  std::vector<PayloadFile> files_;
  std::uint64_t rank_ = 0;
  std::uint64_t seed_ = 0;
  struct Memory;
  std::unique_ptr<Memory, void (*)(Memory*)> memory_;
};

// The proof: whether `bytes`, from `offset` on (a multiple of 4 KiB), are those of that file's state at
// `step`. corrupt, naming the first byte that is not. Works on any part of a file, without memory for the
// rest.
Result<void> prove_state(std::span<const std::byte> bytes, std::uint64_t offset, std::string_view file,
                         std::uint64_t rank, std::uint64_t seed, std::uint64_t step);

}  // namespace penstock
