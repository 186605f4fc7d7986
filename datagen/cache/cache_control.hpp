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
  evict,  // drops only the files of the corpus from the page cache, and no metadata
  // Drops the clean pages, dentries and inodes of the whole machine. Needs root, and slows other programs.
  drop,
};

// Cold means that at most kMostCachedIfCold of the corpus's bytes are in this machine's page cache before a
// repeat. Warm means at least kLeastCachedIfWarm.
inline constexpr double kMostCachedIfCold = 0.01;
inline constexpr double kLeastCachedIfWarm = 0.99;
inline constexpr int kMostCacheTries = 3;

// The functions that ask the kernel to do something. A test replaces them by functions that fail or have no
// effect.
struct PageCacheCalls {
  std::function<Result<Residency>(const std::filesystem::path&)> residency = penstock::residency;
  std::function<Result<void>(const std::filesystem::path&)> evict = penstock::evict;
  std::function<Result<void>()> drop = penstock::drop_caches;
  std::function<Result<void>(const std::filesystem::path&)> warm = penstock::warm;
};

struct CacheOutcome {
  CacheState state;
  // The verdict is not_cold or not_warm if the state was not reached after kMostCacheTries tries.
  Verdict verdict = Verdict::ok;
  std::string reason;
  bool stopped = false;  // prepare_together() sets it if one of the ranks received a signal
};

// Checks whether the tier can reach the requested state. Fails with invalid_argument if `cold` is requested
// on a tier of the back end mmap with keep=1, which keeps its files mapped. Mapped pages cannot be dropped
// from the page cache. So they stay warm, also for other tiers on the same files.
Result<void> check_cache_request(const Tier& tier, CacheRequest requested);

// Prepares the cache for one corpus on one tier. prepare() runs before every repeat and is never part of the
// measured time. Only one thread may call it; it starts helper threads.
//
// At its end prepare() proves what fraction of the corpus is in this machine's page cache, by asking the
// kernel about each file. If the kernel does not answer (for read-only files of other users), the state is
// `unverified`, and CacheState::method says what was tried. If the objects are not files, this machine does
// not cache them, and the state is `none`.
//
// The proof opens each file, so the files' metadata (names and inodes) are in the cache afterwards. With
// ColdMethod::drop, prepare() drops them again after the proof.
//
// Data of direct reads are not in the page cache, so there is nothing to evict or prove. But the metadata of
// these files are cached. Only a cold request with ColdMethod::drop makes them cold.
class CacheControl {
 public:
  // Borrows all arguments. `helpers`: number of threads that ask the kernel about files and evict them.
  CacheControl(const Tier& tier, const Manifest& manifest, const SampleList& samples, CacheRequest requested,
               ColdMethod method, unsigned helpers, PageCacheCalls calls = {});

  // Brings the cache into the requested state, and returns the state that was reached. Fails only if
  // interrupted. Missing files are skipped, because the reader reports them.
  Result<CacheOutcome> prepare();

  // Declares that each rank has files of its own. Then prepare_together() prepares on every rank, and not
  // only on one rank of each node.
  void set_prepares_on_each_rank() { prepares_on_each_rank_ = true; }
  bool prepares_on_each_rank() const { return prepares_on_each_rank_; }

  // Whether prepare() empties the cache for a cold request: false if no preparation can change the state.
  bool empties_cache() const;

  // How many payload bytes were read so far to warm the cache.
  uint64_t warmed_bytes() const { return warmed_bytes_; }

  // Why ColdMethod::drop was not possible; "" if it has not failed. After a failure, CacheControl evicts the
  // files of the corpus instead (ColdMethod::evict). On a tier with direct reads it evicts nothing, because
  // their data are not cached.
  const std::string& drop_error() const { return drop_error_; }

 private:
  bool state_is_fixed(CacheState& state) const;
  CacheState initial_state() const;
  // The bytes of all files together, and how many of them are in the page cache. With `warm_missing` it first
  // reads each file that is not known to be completely cached.
  Result<Residency> measure_residency(bool warm_missing);
  bool drop_all(CacheState& state);  // returns false if no drop is requested, or if the kernel refused it
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
  std::string evict_error_;  // why the first file could not be evicted; "" if all could
  bool prepares_on_each_rank_ = false;
};

// Prepares the cache for all ranks, and returns the worst result of all. Collective: all ranks must call it.
// It calls cache.prepare() on one rank of each node, or on every rank if set_prepares_on_each_rank() was
// called.
Result<CacheOutcome> prepare_together(Communicator& ranks, CacheControl& cache);

// Changes `state` to the combined state of two nodes, `state` and `other`. Where they differ, `client_data`
// becomes `unverified` or `unknown`, and `client_metadata` becomes `warm` or `unknown`. The fraction of
// cached bytes becomes the worse of the two fractions.
void combine_cache_states(CacheState& state, const CacheState& other);

std::string_view cache_request_name(CacheRequest requested);
// Finds a request by the name that cache_request_name() gives it. `asis` for any other text.
CacheRequest parse_cache_request(std::string_view name);

// How many bytes the kernel has fetched from devices and servers for this process (/proc/self/io). They
// include direct reads and all read-ahead, also of pages that this process never reads itself. Absent if the
// kernel does not count them.
std::optional<uint64_t> device_bytes_read();

}  // namespace penstock
