// Brings a corpus into the cache state that a measurement asks for, and says what of it is proven.
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

enum class CacheRequest : std::uint8_t { cold, warm, asis };

enum class ColdMethod : std::uint8_t {
  evict,  // asks the kernel to forget each of the corpus's files; leaves others and the metadata alone
  drop,   // drops the clean pages, dentries and inodes of the whole machine: needs root, and hurts others
};

// Client-cold: at most this fraction of the corpus is in the page cache before a repeat. Warm: at least
// that.
inline constexpr double kColdAtMost = 0.01;
inline constexpr double kWarmAtLeast = 0.99;
inline constexpr int kCacheTries = 3;

// The calls to the kernel, so that a test can replace it by one that refuses, or that evicts nothing.
struct PageCacheCalls {
  std::function<Result<Residency>(const std::filesystem::path&)> residency = penstock::residency;
  std::function<Result<void>(const std::filesystem::path&)> evict = penstock::evict;
  std::function<Result<void>()> drop = penstock::drop_caches;
  std::function<Result<void>(const std::filesystem::path&)> warm = penstock::warm;
};

struct CacheOutcome {
  CacheState state;
  Verdict verdict = Verdict::ok;  // not_cold or not_warm when three tries were not enough
  std::string reason;
  bool stopped = false;  // prepare_together(): a signal came to one of the ranks meanwhile
};

// One corpus on one tier. prepare() before every repeat; it is never timed. One thread (it starts helpers of
// its own).
//
// invalid_argument where the tier can never reach the state: what it keeps mapped (`keep=1`) stays in
// memory, for the other tiers too.
Result<void> check_cache_request(const Tier& tier, CacheRequest requested);

// What is proven: the share of the corpus's files that is in this machine's page cache, asked of the kernel
// file by file, at the end of prepare(). Where it will not say (somebody else's read-only files) the state is
// `unverified`, with what was tried as the method. Asking opens every file, so that the client's metadata is
// warm after it, except with ColdMethod::drop, which drops once more after the proof. Of objects that are no
// files this machine keeps nothing: `none`.
//
// Reads that bypass the page cache have nothing there to evict or to prove. Their metadata are cached as
// those of all others: cold with ColdMethod::drop makes these cold, and is the only thing that is done for
// them.
class CacheControl {
 public:
  // Borrows everything. `helpers`: how many threads ask and evict.
  CacheControl(const Tier& tier, const Manifest& manifest, const SampleList& samples, CacheRequest requested,
               ColdMethod method, unsigned helpers, PageCacheCalls calls = {});

  // An Error only when interrupted. Files that are not there are the reader's business and left out here.
  Result<CacheOutcome> prepare();

  // The files are of this rank alone, so that prepare_together() prepares them on every rank, not once a
  // node.
  void set_of_each_rank() { of_each_rank_ = true; }
  bool of_each_rank() const { return of_each_rank_; }

  // Payload bytes that warming read so far.
  std::uint64_t warmed_bytes() const { return warmed_bytes_; }

  // Why `drop` fell back to `evict` (of reads that bypass the page cache: to nothing), once it has; ""
  // otherwise.
  const std::string& fallback() const { return fallback_; }

 private:
  bool fixed(CacheState& state) const;
  CacheState layers() const;
  Result<Residency> ask(bool warm_what_is_not);  // of all files
  bool drop_all(CacheState& state);              // false where that is not asked for, or not permitted
  Result<void> make_cold(CacheState& state);

  const Tier& tier_;
  const Manifest& manifest_;
  const SampleList& samples_;
  const CacheRequest requested_;
  ColdMethod method_;
  const unsigned helpers_;
  const PageCacheCalls calls_;
  const std::string host_;
  std::uint64_t warmed_bytes_ = 0;
  std::string fallback_;
  bool of_each_rank_ = false;
};

// Collective: prepare() on one rank of each node, or on all ranks (of_each_rank()). Returns the same on all:
// the least flattering of those who prepared. With one rank: cache.prepare().
Result<CacheOutcome> prepare_together(Communicator& ranks, CacheControl& cache);

// The less flattering of both, layer by layer.
void blend(CacheState& state, const CacheState& other);

std::string_view cache_request_name(CacheRequest requested);
CacheRequest parse_cache_request(std::string_view name);  // the way back; asis for any other word

// Bytes that the kernel fetched from devices and servers for this process so far (/proc/self/io, which counts
// read-ahead, direct reads and what another process later finds cached). Absent where the kernel does not
// count.
std::optional<std::uint64_t> device_bytes_read();

}  // namespace penstock
