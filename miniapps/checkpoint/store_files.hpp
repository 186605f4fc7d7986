// The operations of a store on the files and folders of its tier: each error names the store. And the names
// of its folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

inline constexpr std::string_view kStoreFile = "STORE.json";
inline constexpr std::string_view kStoreLock = "lock";
inline constexpr std::string_view kStoreLatest = "LATEST";
inline constexpr std::string_view kStoreLocks = "locks";
inline constexpr std::string_view kStoreReserved = "reserved";
inline constexpr std::string_view kStoreTaken = "taken";
inline constexpr std::string_view kStoreTmp = "tmp";
inline constexpr std::string_view kStoreCommitted = "ckpt";
inline constexpr std::string_view kStoreTrash = "trash";
inline constexpr std::string_view kStoreQuarantine = "quarantine";
// Next to them, while `penstock checkpoint bench` measures the tier's ceiling.
inline constexpr std::string_view kCeilingFolder = "penstock-ceiling";
inline constexpr std::string_view kStoreFolders[] = {
    kStoreLocks, kStoreReserved, kStoreTaken, kStoreTmp, kStoreCommitted, kStoreTrash, kStoreQuarantine};

inline constexpr std::size_t kUuidDigits = 32;
inline constexpr std::uint64_t kMostSmallText = 64U << 10;  // bytes of STORE.json, a promise or a note

// "a/b".
std::string below(std::string_view folder, std::string_view name);
// "b" of "a/b".
std::string_view last_part(std::string_view name);

// invalid_argument unless `what` is 1 to 20 small letters: so that "<run>.<what>" is never two things.
Result<void> check_what(std::string_view what);
// "<run>.<what>.<uuid>", of a new uuid; and whether a name is one of those of run and what.
std::string new_making(std::string_view run, std::string_view what);
bool is_making(std::string_view name, std::string_view run, std::string_view what);

// Any thread, as the Backend. The tier outlives it.
class StoreFiles {
 public:
  explicit StoreFiles(const Tier& tier) : tier_(&tier) {}

  // "store 'fast': ..." in front of what went wrong.
  Error named(Error error) const;
  Error error(Errc code, std::string_view what) const;
  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result.ok()) return named(std::move(result).error());
    return result;
  }

  Backend& backend() const { return *tier_->backend; }
  const Tier& tier() const { return *tier_; }

  // Of at most `most` bytes: larger is corrupt.
  Result<std::string> read_text(std::string_view name, std::uint64_t most) const;
  Result<void> write_text(std::string_view name, std::string_view text, Durability wanted,
                          IfExists if_exists) const;

  // All at once, by name.
  Result<std::vector<Entry>> list(std::string_view folder) const;
  // As list(); nothing where the folder is not there.
  Result<std::vector<Entry>> list_if_there(std::string_view folder) const;
  Result<bool> is_there(std::string_view name) const;

  Result<void> make_folders(std::string_view folder) const {
    return named(backend().names().make_folders(folder));
  }
  Result<void> rename(std::string_view from, std::string_view to) const {
    return named(backend().names().rename_noreplace(from, to));
  }
  Result<void> sync_dir(std::string_view folder) const { return named(backend().names().sync_dir(folder)); }
  // An object or an empty folder; gone already is fine.
  Result<void> remove(std::string_view name) const;
  // With all that it holds. Other processes may remove it at the same time, and none may write to it. What
  // links lead to stays. Gone already is fine.
  Result<void> remove_tree(const Entry& entry) const;
  Result<void> remove_tree(std::string_view name) const;

 private:
  const Tier* tier_;
};

}  // namespace penstock
