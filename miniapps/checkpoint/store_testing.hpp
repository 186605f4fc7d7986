// For tests only: makes a checkpoint store on a tier in memory or in a scratch folder, writes checkpoints to
// it, and damages them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/decorators/wrapper.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// A root for this test alone, which can be opened as several tiers with different options.
class TestPlace {
 public:
  explicit TestPlace(std::string backend = "mem") : backend_(std::move(backend)) {}

  const std::filesystem::path& path() const { return scratch_.path(); }
  // `options` are like "fail=sync:eio@#1".
  Tier tier(std::string_view name = "fast", std::string_view options = "") const {
    std::string text = std::string(name) + "=" + backend_ + ":" + (path() / "store").string();
    if (!options.empty()) text += "," + std::string(options);
    auto tier = open_tier(text, kNoNamedTiers);
    EXPECT_OK(tier);
    return *std::move(tier);
  }

 private:
  const ScratchFolder scratch_;
  const std::string backend_;
};

// A store on a TestPlace. To use it with faults, open place() as another tier with fault options.
class TestStore {
 public:
  explicit TestStore(StoreRole role = StoreRole::fast, const std::string& backend = "mem",
                     std::string_view options = "")
      : place_(backend), tier_(place_.tier(role_name(role), options)) {
    auto made = CheckpointStore::open_or_make(tier_, role);
    EXPECT_OK(made);
    store_ = *std::move(made);
  }

  CheckpointStore& operator*() { return *store_; }
  CheckpointStore* operator->() { return store_.get(); }
  const TestPlace& place() const { return place_; }
  Backend& backend() { return *tier_.backend; }

 private:
  const TestPlace place_;
  const Tier tier_;
  std::unique_ptr<CheckpointStore> store_;
};

// Calls `opening` before each open(), and `listed` after each listing of a folder, so that a test can change
// something at that moment.
class WatchedBackend final : public BackendWrapper {
 public:
  using Watch = std::function<void(std::string_view name)>;
  WatchedBackend(std::unique_ptr<Backend> backend, Watch opening, Watch listed)
      : BackendWrapper(std::move(backend)),
        opening_(std::move(opening)),
        names_(inner().names(), std::move(listed)) {}
  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    if (opening_) opening_(name);
    return inner().open(name);
  }
  Namespace& names() override { return names_; }

 private:
  class Names final : public NamespaceWrapper {
   public:
    Names(Namespace& names, Watch listed) : NamespaceWrapper(names), listed_(std::move(listed)) {}
    Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                          const std::function<void(std::string_view name)>& skipped) override {
      auto done = inner().list_all(folder, visit, skipped);
      if (listed_) listed_(folder);
      return done;
    }

   private:
    const Watch listed_;
  };
  const Watch opening_;
  Names names_;
};

using TestFiles = std::vector<std::pair<std::string, std::vector<std::byte>>>;

inline TestFiles two_files(unsigned seed = 1) {
  return {{"rank-0.bin", pattern(kCheckpointChunk + 77, seed)}, {"small", pattern(100, seed + 1)}};
}

inline CheckpointManifest manifest_of(std::string run, const CheckpointId& id) {
  CheckpointManifest manifest;
  manifest.run = std::move(run);
  manifest.id = id;
  return manifest;
}

// Saves the files as a checkpoint of a job with one rank.
inline Result<CheckpointManifest> try_save(CheckpointStore& store, const std::string& run,
                                           const CheckpointId& id, const TestFiles& files = two_files()) {
  uint64_t bytes = 0;
  for (const auto& file : files) bytes += file.second.size();
  PENSTOCK_ASSIGN(const auto staged, store.stage(run, "save", bytes, 0));
  CheckpointManifest manifest = manifest_of(run, id);
  for (const auto& [name, content] : files) {
    PENSTOCK_ASSIGN(CheckpointFile file, staged->write(name, 0, content));
    manifest.files.push_back(std::move(file));
  }
  return staged->commit(std::move(manifest));
}

inline CheckpointManifest save(CheckpointStore& store, const std::string& run, const CheckpointId& id,
                               const TestFiles& files = two_files()) {
  auto saved = try_save(store, run, id, files);
  EXPECT_OK(saved);
  return saved.ok() ? *std::move(saved) : CheckpointManifest{};
}

// The names in a folder, without the folder's path; empty if the folder does not exist.
inline std::set<std::string> names_in(Backend& backend, const std::string& folder) {
  std::set<std::string> names;
  static_cast<void>(backend.names().list(folder, [&](const Entry& entry) {
    names.insert(entry.name.substr(folder.empty() ? 0 : folder.size() + 1));
    return true;
  }));
  return names;
}

inline std::string text_in(Backend& backend, const std::string& name) {
  const auto reader = backend.open(name);
  if (!reader) return "";
  std::string text((*reader)->size().value_or(0), '\0');
  EXPECT_OK((*reader)->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

inline void put_text(Backend& backend, const std::string& name, std::string_view text) {
  const auto writer = backend.create(name);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of(text)));
  ASSERT_OK((*writer)->publish(Durability::visible));
}

inline void change(Backend& backend, const std::string& name, const std::function<void(std::string&)>& how) {
  std::string text = text_in(backend, name);
  how(text);
  put_text(backend, name, text);
}

// Flips one bit of a committed file.
inline void damage(Backend& backend, const CheckpointManifest& manifest, const std::string& file,
                   size_t at = 10) {
  change(backend, CheckpointStore::folder(manifest.run, manifest.id) + "/" + file,
         [&](std::string& text) { text.at(at) = char(text.at(at) ^ 1); });
}

}  // namespace penstock
