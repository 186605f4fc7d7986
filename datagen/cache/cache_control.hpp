// Brings a corpus into the cache state that a measurement requests, and reports what is proven about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/files/page_cache.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"

namespace penstock {

enum class CacheRequest : uint8_t { cold, warm, asis };

enum class ColdMethod : uint8_t {
  evict,  // evicts only the files of the corpus from the page cache, and no metadata
  // Drops the clean pages, dentries and inodes of the whole machine. Needs root, and slows other programs.
  drop,
};

// Cold: at most kMostCachedIfCold of the corpus is in this machine's page cache before a repeat. Warm: at
// least kLeastCachedIfWarm.
inline constexpr double kMostCachedIfCold = 0.01;
inline constexpr double kLeastCachedIfWarm = 0.99;
inline constexpr int kMostCacheTries = 3;

// The functions that call the kernel. A test replaces them by functions that fail or have no effect.
struct PageCacheCalls {
  std::function<Result<Residency>(const std::filesystem::path&)> residency = penstock::residency;
  std::function<Result<void>(const std::filesystem::path&)> evict = penstock::evict;
  std::function<Result<void>()> drop = penstock::drop_caches;
  std::function<Result<void>(const std::filesystem::path&)> warm = penstock::warm;
};

struct CacheOutcome {
  CacheState state;
  // not_cold or not_warm if the state was not reached after kMostCacheTries tries.
  Verdict verdict = Verdict::ok;
  std::string reason;
  bool stopped = false;  // set by prepare_together(): one of the ranks received a signal
};

// Checks whether the tier can reach the requested state. invalid_argument for `cold` on a tier of the back
// end mmap with keep=1: mapped pages cannot be dropped from the page cache. They stay warm for other tiers on
// the same files, too.
Result<void> check_cache_request(const Tier& tier, CacheRequest requested);

// Prepares the cache for one corpus on one tier. prepare() runs before every repeat and is never part of the
// measured time. Called by one thread; it starts helper threads.
//
// At the end of prepare() it proves what fraction of the corpus is in this machine's page cache. It asks the
// kernel about each file. If the kernel does not answer (for read-only files of other users), the state is
// `unverified`, and the method tells what was tried. Each question opens the file, so the client's metadata
// are warm afterwards. Only ColdMethod::drop drops once more after the proof. If the objects are not files,
// this machine does not cache them, and the state is `none`.
//
// Data of direct reads are not in the page cache, so there is nothing to evict or prove. Their metadata are
// cached like all others. Only a cold request with ColdMethod::drop makes them cold.
class CacheControl {
 public:
  // Borrows all arguments. `helpers`: number of threads that ask the kernel about files and evict them.
  CacheControl(const Tier& tier, const Manifest& manifest, const SampleList& samples, CacheRequest requested,
               ColdMethod method, unsigned helpers, PageCacheCalls calls = {});

  // Fails only if interrupted. Missing files are skipped, because the reader reports them.
  Result<CacheOutcome> prepare();

  // Declares that each rank has its own files. Then prepare_together() runs on every rank, not once for each
  // node.
  void set_prepares_on_each_rank() { prepares_on_each_rank_ = true; }
  bool prepares_on_each_rank() const { return prepares_on_each_rank_; }

  // Payload bytes that were read to warm the cache so far.
  uint64_t warmed_bytes() const { return warmed_bytes_; }

  // The reason why ColdMethod::drop was not possible. Then ColdMethod::evict is used instead, or for direct
  // reads none of them. "" if `drop` has not failed.
  const std::string& drop_error() const { return drop_error_; }

 private:
  bool state_is_fixed(CacheState& state) const;
  CacheState initial_state() const;
  Result<Residency> measure_residency(bool warm_missing);  // residency of all files together
  bool drop_all(CacheState& state);  // false if no drop is requested, or the kernel refused it
  Result<void> make_cold(CacheState& state);

  const Tier& tier_;
  const Manifest& manifest_;
  const SampleList& samples_;
  const CacheRequest requested_;
  ColdMethod cold_method_;
  const unsigned helper_threads_;
  const PageCacheCalls calls_;
  const std::string host_cache_;
  uint64_t warmed_bytes_ = 0;
  std::string drop_error_;
  bool prepares_on_each_rank_ = false;
};

// Collective. Calls prepare() on one rank of each node, or on all ranks (prepares_on_each_rank()). Returns
// the worst of their results on all ranks. With one rank it is cache.prepare().
Result<CacheOutcome> prepare_together(Communicator& ranks, CacheControl& cache);

// Combines the caches of two nodes into `state`. If they differ, `client_data` becomes `unverified` or
// `unknown`, and `client_metadata` `warm` or `unknown`. Keeps the worse fraction of cached bytes.
void keep_worse(CacheState& state, const CacheState& other);

std::string_view cache_request_name(CacheRequest requested);
// The request that cache_request_name() calls `name`; `asis` for any other text.
CacheRequest parse_cache_request(std::string_view name);

// Bytes that the kernel has fetched from devices and servers for this process (/proc/self/io). They include
// read-ahead, direct reads, and pages that another process later finds in the cache. Absent if the kernel
// does not count them.
std::optional<uint64_t> device_bytes_read();

}  // namespace penstock
