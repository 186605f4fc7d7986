// Threads: one thread at a time uses a PayloadState. make() starts threads that fill its memory, and joins
// them. They share only the atomic `next_page`. Any thread may call the functions outside PayloadState.
// Lock: none.
// Memory: make() maps all memory of the state. advance_to() and file() allocate nothing. Errors and names
// allocate.
// Ctrl-C: not checked in this file.
// Crash: this file writes no files.
#include "miniapps/checkpoint/payload.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/limits.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

// Bytes for each weight. Adam keeps two moments in addition to the weight, each of 4 bytes.
constexpr uint64_t kAdamWeightBytes = 3 * 4;
// Mixed precision: the weight in 2 bytes, and a copy of it and Adam's two moments in 4 bytes each.
constexpr uint64_t kMixedAdamWeightBytes = 2 + 3 * 4;

constexpr uint64_t layer_weights(uint64_t inputs, uint64_t outputs) {
  return inputs * outputs + outputs;  // with a bias for each output
}

// The number of weights of AlexNet (Krizhevsky et al.), without the split over two GPUs and with 102 outputs,
// one for each folder of Caltech-101.
constexpr uint64_t kAlexnetWeights =
    layer_weights(uint64_t{11} * 11 * 3, 96) + layer_weights(uint64_t{5} * 5 * 96, 256) +
    layer_weights(uint64_t{3} * 3 * 256, 384) + layer_weights(uint64_t{3} * 3 * 384, 384) +
    layer_weights(uint64_t{3} * 3 * 384, 256) + layer_weights(9216, 4096) + layer_weights(4096, 4096) +
    layer_weights(4096, 102);
static_assert(kAlexnetWeights * kAdamWeightBytes == 704'390'856);

// The files that tf.train.Saver of TensorFlow 2.21 writes for the same network
// (ci/tensorflow_checkpoint_sizes). Data: the tensors, and 8 bytes for Adam's two powers of beta. Index: the
// positions of the 50 tensors. Meta: the graph.
constexpr uint64_t kTensorflowDataBytes = kAlexnetWeights * kAdamWeightBytes + 8;
constexpr uint64_t kTensorflowIndexBytes = 1'876;
constexpr uint64_t kTensorflowMetaBytes = 153'226;
constexpr uint64_t kTensorflowBytes = kTensorflowDataBytes + kTensorflowIndexBytes + kTensorflowMetaBytes;
constexpr std::string_view kTensorflowName = "alexnet-adam-tensorflow";

// ResNet-50 (He et al.) for 1000 classes, as torchvision counts it: 25,557,032 weights, each with its
// momentum; the mean and the variance of 26,560 normalised channels; and 53 batch counters.
constexpr uint64_t kResnet50Bytes = uint64_t{25'557'032} * 2 * 4 + uint64_t{26'560} * 2 * 4 + 53 * 8;

// The checkpoint size that the UNet3D workloads of MLPerf Storage give. (A misspelt key in these workloads
// keeps DLIO from writing the checkpoint.)
constexpr uint64_t kUnet3dBytes = 499'153'191;

// The number of weights of a transformer like Llama 3. Each layer has a gated feed-forward part and two
// norms. The input embedding and the output layer share no weights. `kv_width` is the width of the keys and
// of the values.
constexpr uint64_t transformer_weights(uint64_t layers, uint64_t hidden, uint64_t inner, uint64_t kv_width) {
  const uint64_t attention = 2 * hidden * hidden + 2 * hidden * kv_width;
  return layers * (attention + 3 * hidden * inner + 2 * hidden) + 2 * 128'256 * hidden + hidden;
}
constexpr uint64_t kLlama8bWeights = transformer_weights(32, 4'096, 14'336, 1'024);
constexpr uint64_t kLlama70bWeights = transformer_weights(80, 8'192, 28'672, 1'024);
constexpr uint64_t kLlama405bWeights = transformer_weights(126, 16'384, 53'248, 1'024);
constexpr uint64_t kLlama1tWeights = transformer_weights(128, 25'872, 98'304, 25'872);
static_assert(kLlama8bWeights == 8'030'261'248 && kLlama70bWeights == 70'553'706'496 &&
              kLlama405bWeights == 405'853'388'800);

struct PayloadInfo {
  std::string_view name;
  uint64_t bytes = 0;  // of the whole model, over all ranks
};
constexpr std::array kPayloads = {
    PayloadInfo{"resnet50", kResnet50Bytes},
    PayloadInfo{"unet3d", kUnet3dBytes},
    PayloadInfo{"alexnet-adam", kAlexnetWeights* kAdamWeightBytes},
    PayloadInfo{kTensorflowName, kTensorflowBytes},
    PayloadInfo{"llama3-8b", kLlama8bWeights* kMixedAdamWeightBytes},
    PayloadInfo{"llama3-70b", kLlama70bWeights* kMixedAdamWeightBytes},
    PayloadInfo{"llama3-405b", kLlama405bWeights* kMixedAdamWeightBytes},
    PayloadInfo{"llama3-1t", kLlama1tWeights* kMixedAdamWeightBytes},  // DLIO's llama_1t, with 1.3e12 weights
};
static_assert(std::is_sorted(kPayloads.begin(), kPayloads.end(),
                             [](const auto& a, const auto& b) { return a.bytes < b.bytes; }));

constexpr uint64_t bytes_of_rank(uint64_t bytes, uint64_t rank, uint64_t ranks) {
  return bytes / ranks + (rank < bytes % ranks ? 1 : 0);
}

Error no_such_payload(std::string_view text) {
  std::vector<std::string_view> names;
  for (const PayloadInfo& info : kPayloads) names.push_back(info.name);
  Error error = unknown_name("payload", text, names);
  error.what += "; NAME/N: one N-th of a model; or a size such as \"512MiB\"";
  return error;
}

constexpr uint64_t kPage = 4096;
constexpr uint64_t kNumbersPerPage = kPage / sizeof(uint64_t);
using Page = std::array<uint64_t, kNumbersPerPage>;

void draw(RandomStream stream, uint64_t first, uint64_t* words) {
  for (uint64_t i = 0; i < kNumbersPerPage; ++i) words[i] = stream.bits(first + i);
}

// The content of a file: random bits that do not change, and at the front of each page a stamp that changes
// with the step. A page never has the same stamp at two steps: its stamp is bits(step) of a random stream of
// the page, and bits() returns a different number for each argument.
class Content {
 public:
  Content(uint64_t seed, uint64_t rank, std::string_view file)
      : bits_(RandomStream(seed, file).substream(rank).substream(0)),
        stamps_(RandomStream(seed, file).substream(rank).substream(1)) {}

  void fill(uint64_t page, uint64_t step, uint64_t* words) const {
    draw(bits_, page * kNumbersPerPage, words);
    words[0] = stamp(page, step);
  }
  uint64_t stamp(uint64_t page, uint64_t step) const { return stamps_.substream(page).bits(step); }

 private:
  RandomStream bits_;
  RandomStream stamps_;
};

}  // namespace

std::vector<PayloadFile> Payload::shard(uint64_t rank, uint64_t ranks) const {
  const std::string stem = fmt::format("rank-{}", rank);
  if (!name.starts_with(kTensorflowName)) return {{stem + ".bin", bytes_of_rank(bytes, rank, ranks)}};
  const uint64_t index = bytes * kTensorflowIndexBytes / kTensorflowBytes;
  const uint64_t meta = bytes * kTensorflowMetaBytes / kTensorflowBytes;
  return {{stem + ".data-00000-of-00001", bytes_of_rank(bytes - index - meta, rank, ranks)},
          {stem + ".index", bytes_of_rank(index, rank, ranks)},
          {stem + ".meta", bytes_of_rank(meta, rank, ranks)}};
}

Result<Payload> find_payload(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view word = text.substr(0, slash);
  const auto* const found = std::find_if(kPayloads.begin(), kPayloads.end(),
                                         [&](const PayloadInfo& info) { return info.name == word; });
  if (found == kPayloads.end()) {
    const Result<uint64_t> size = parse_size(text);
    if (!size.ok() || *size == 0) return no_such_payload(text);
    return Payload{std::string(text), *size};
  }
  if (slash == std::string_view::npos) return Payload{std::string(word), found->bytes};
  const Result<uint64_t> divisor = parse_count(text.substr(slash + 1));
  if (!divisor.ok() || *divisor == 0 || *divisor > found->bytes)
    return make_error(Errc::invalid_argument,
                      "payload '{}': a number from 1 to {} must follow '/', as in '{}/8'", text, found->bytes,
                      word);
  return Payload{std::string(text), found->bytes / *divisor};
}

// The files follow each other in memory, each from the start of a page.
struct PayloadState::Memory {
  struct Part {
    Content content;
    std::byte* begin;
    uint64_t pages;
  };

  static Result<Memory*> map(uint64_t bytes);
  ~Memory() { ::munmap(mapped, size_t(length)); }

  void* mapped = nullptr;
  uint64_t length = 0;
  std::vector<Part> parts;
  uint64_t step = 0;
};

Result<PayloadState::Memory*> PayloadState::Memory::map(uint64_t bytes) {
  const auto no_memory = [&](std::string_view why) {
    return make_error(Errc::exhausted,
                      "no memory for {} of model state{}: start more ranks, or save less (--payload SIZE, or "
                      "NAME/8 for one eighth of a model)",
                      format_size(bytes), why);
  };
  const uint64_t left = available_memory();
  if (bytes > uint64_t(PTRDIFF_MAX) - kHugePageBytes || (left != 0 && bytes > left))
    return no_memory(left == 0 ? "" : fmt::format(" ({} are available)", format_size(left)));
  const uint64_t length = bytes + kHugePageBytes;
  void* const mapped =
      ::mmap(nullptr, size_t(length), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return no_memory(memory_limit_text());
  // Huge pages mean fewer page faults and TLB misses. If the kernel gives none, small pages work as well.
  static_cast<void>(::madvise(mapped, size_t(length), MADV_HUGEPAGE));
  auto* const memory = new (std::nothrow) Memory;
  if (memory == nullptr) {
    ::munmap(mapped, size_t(length));
    return no_memory(memory_limit_text());
  }
  memory->mapped = mapped;
  memory->length = length;
  return memory;
}

PayloadState::PayloadState(std::vector<PayloadFile> files, uint64_t rank, uint64_t seed)
    : files_(std::move(files)), rank_(rank), seed_(seed), memory_(nullptr, [](Memory* it) { delete it; }) {}

Result<std::unique_ptr<PayloadState>> PayloadState::make(std::vector<PayloadFile> files, uint64_t rank,
                                                         uint64_t seed) {
  std::unique_ptr<PayloadState> state(new PayloadState(std::move(files), rank, seed));
  uint64_t bytes = 0;
  for (const PayloadFile& file : state->files_) bytes += whole_blocks(file.bytes);
  PENSTOCK_ASSIGN(Memory* const memory, Memory::map(bytes));
  state->memory_.reset(memory);
  // NOLINTNEXTLINE(*-reinterpret-cast)
  const uint64_t misaligned = reinterpret_cast<uintptr_t>(memory->mapped) % kHugePageBytes;
  std::byte* begin =
      static_cast<std::byte*>(memory->mapped) + (misaligned == 0 ? 0 : kHugePageBytes - misaligned);
  for (const PayloadFile& file : state->files_) {
    const uint64_t pages = whole_blocks(file.bytes) / kPage;
    memory->parts.push_back({Content(state->seed_, state->rank_, file.name), begin, pages});
    begin += pages * kPage;
  }
  // Each thread fills one huge page at a time.
  constexpr uint64_t kPagesAtOnce = kHugePageBytes / kPage;
  for (const Memory::Part& part : memory->parts) {
    std::atomic<uint64_t> next_page{0};
    const uint64_t threads = std::min<uint64_t>(usable_cpus(), part.pages / kPagesAtOnce + 1);
    PENSTOCK_TRY(on_threads(unsigned(threads), [&](unsigned) {
      for (uint64_t first = 0; (first = next_page.fetch_add(kPagesAtOnce)) < part.pages;) {
        const uint64_t end = std::min(first + kPagesAtOnce, part.pages);
        for (uint64_t page = first; page < end; ++page) {
          // NOLINTNEXTLINE(*-reinterpret-cast)
          part.content.fill(page, 0, reinterpret_cast<uint64_t*>(part.begin + page * kPage));
        }
      }
      return success();
    }));
  }
  return state;
}

void PayloadState::advance_to(uint64_t step) {
  if (step == memory_->step) return;
  for (const Memory::Part& part : memory_->parts)
    for (uint64_t page = 0; page < part.pages; ++page) {
      const uint64_t stamp = part.content.stamp(page, step);
      std::memcpy(part.begin + page * kPage, &stamp, sizeof stamp);
    }
  memory_->step = step;
}

std::span<const std::byte> PayloadState::file(size_t index) const {
  return {memory_->parts[index].begin, size_t(files_[index].bytes)};
}

Result<void> prove_state(std::span<const std::byte> bytes, uint64_t offset, std::string_view file,
                         uint64_t rank, uint64_t seed, uint64_t step) {
  if (offset % kPage != 0)
    return make_error(Errc::internal, "'{}' is compared from byte {} on, which is not the start of a page",
                      file, offset);
  const Content content(seed, rank, file);
  Page page;
  for (uint64_t at = 0; at < bytes.size(); at += kPage) {
    const auto piece = bytes.subspan(at, std::min<size_t>(kPage, bytes.size() - at));
    content.fill((offset + at) / kPage, step, page.data());
    if (std::memcmp(piece.data(), page.data(), piece.size()) == 0) continue;
    const auto expected = std::as_bytes(std::span(page));
    const auto wrong_at = std::mismatch(piece.begin(), piece.end(), expected.begin()).first - piece.begin();
    return make_error(Errc::corrupt, "'{}' differs from the state of rank {} at step {} (seed {}) at byte {}",
                      file, rank, step, seed, offset + at + uint64_t(wrong_at));
  }
  return success();
}

}  // namespace penstock
