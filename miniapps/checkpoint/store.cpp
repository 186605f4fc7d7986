// A store as a whole: making and opening it, and its locks.
#include "miniapps/checkpoint/store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "miniapps/checkpoint/store_files.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kStoreFormat = 1;
constexpr std::string_view kStoreKind = "checkpoint store";
constexpr std::uint64_t kMostSmallText = 64U << 10;  // of STORE.json
constexpr std::size_t kUuidDigits = 32;

constexpr StoreRole kRoles[] = {StoreRole::fast, StoreRole::slow};
constexpr StoreDurability kDurabilities[] = {StoreDurability::volatile_memory, StoreDurability::node,
                                             StoreDurability::shared};

StoreDurability durability_of(const Tier& tier) {
  if (tier.backend->caps().volatile_memory || tier.facts.memory) return StoreDurability::volatile_memory;
  if (tier.backend->caps().network || tier.facts.network) return StoreDurability::shared;
  return StoreDurability::node;
}

std::string text_of(const StoreFacts& facts) {
  return Json{{"penstock", kStoreKind},
              {"format", kStoreFormat},
              {"uuid", facts.uuid},
              {"role", role_name(facts.role)},
              {"durability", durability_name(facts.durability)}}
             .dump(2) +
         "\n";
}

template <class All, class Name>
bool find_named(const All& all, const Name& name_of, const std::string& word,
                std::remove_cvref_t<decltype(all[0])>& found) {
  const auto* const at =
      std::find_if(std::begin(all), std::end(all), [&](const auto one) { return name_of(one) == word; });
  if (at == std::end(all)) return false;
  found = *at;
  return true;
}

Result<StoreFacts> parse_facts(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  const auto no_store = [](std::string_view why) {
    return make_error(Errc::corrupt, fmt::format("'{}' is no checkpoint store's: {}", kStoreFile, why));
  };
  if (!json.is_object()) return no_store("no JSON object");
  try {
    if (json.at("penstock").get<std::string>() != kStoreKind) return no_store("something else of penstock");
    const Json& format = json.at("format");
    if (!format.is_number_unsigned()) return no_store("no format");
    if (format.get<std::uint64_t>() != kStoreFormat)
      return make_error(Errc::unsupported,
                        fmt::format("'{}' is of format {}, and this penstock reads {}: use the version that "
                                    "wrote it",
                                    kStoreFile, format.dump(), kStoreFormat));
    StoreFacts facts{.uuid = json.at("uuid").get<std::string>()};
    if (facts.uuid.size() != kUuidDigits) return no_store("no uuid");
    if (!find_named(kRoles, role_name, json.at("role").get<std::string>(), facts.role))
      return no_store("an unknown role");
    if (!find_named(kDurabilities, durability_name, json.at("durability").get<std::string>(),
                    facts.durability))
      return no_store("an unknown durability");
    return facts;
  } catch (const Json::exception& problem) {
    return no_store(problem.what());
  }
}

Result<StoreFacts> read_facts(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const std::string text, files.read_text(kStoreFile, kMostSmallText));
  return files.named(parse_facts(text));
}

Result<void> check_tier(const StoreFiles& files) {
  if (files.backend().caps().rename) return success();
  return files.error(Errc::unsupported,
                     fmt::format("the back end '{}' cannot rename folders, without which no checkpoint "
                                 "becomes whole all at once: take a folder of a file system",
                                 files.tier().backend_name));
}

// What has checkpoints and no STORE.json is neither a store nor the lack of one: corrupt.
Result<void> check_lost_facts(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const std::vector<Entry> committed, files.list_if_there(kStoreCommitted));
  if (committed.empty()) return success();
  return files.error(Errc::corrupt,
                     fmt::format("'{}' has checkpoints but no {}: put that back, or take another folder",
                                 files.tier().root, kStoreFile));
}

// Whether a store may be made at the root: nothing lies there but what making one left behind.
Result<void> check_empty(const StoreFiles& files) {
  PENSTOCK_TRY(check_lost_facts(files));
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list_if_there(""));
  for (const Entry& entry : entries) {
    const bool ours =
        entry.name == kCeilingFolder ||
        std::find(std::begin(kStoreFolders), std::end(kStoreFolders), entry.name) != std::end(kStoreFolders);
    if ((ours || entry.name == "lost+found") && entry.folder && !entry.link) continue;
    return files.error(Errc::invalid_argument,
                       fmt::format("'{}' has other things in it ('{}'): a store wants a folder of its own",
                                   files.tier().root, entry.name));
  }
  return success();
}

Result<void> make_store_folders(const StoreFiles& files) {
  for (const std::string_view folder : kStoreFolders) PENSTOCK_TRY(files.make_folders(folder));
  return success();
}

}  // namespace

std::string_view role_name(StoreRole role) {
  return role == StoreRole::fast ? "fast" : "slow";
}

std::string_view durability_name(StoreDurability durability) {
  switch (durability) {
    case StoreDurability::volatile_memory:
      return "volatile";
    case StoreDurability::node:
      return "node";
    case StoreDurability::shared:
      return "shared";
  }
  return "";
}

Result<std::unique_ptr<CheckpointStore>> CheckpointStore::open(const Tier& tier) {
  const StoreFiles files(tier);
  PENSTOCK_TRY(check_tier(files));
  auto facts = read_facts(files);
  if (!facts && facts.error().code == Errc::not_found) {
    PENSTOCK_TRY(check_lost_facts(files));
    return files.error(Errc::not_found, fmt::format("there is no checkpoint store in '{}': it has no {}",
                                                    tier.root, kStoreFile));
  }
  if (!facts) return std::move(facts).error();
  return std::unique_ptr<CheckpointStore>(new CheckpointStore(tier, *std::move(facts)));
}

Result<std::unique_ptr<CheckpointStore>> CheckpointStore::open_or_make(const Tier& tier, StoreRole role) {
  const StoreFiles files(tier);
  PENSTOCK_TRY(check_tier(files));
  PENSTOCK_ASSIGN(const bool there, files.is_there(kStoreFile));
  if (!there) {
    const auto empty = check_empty(files);
    if (!empty) {
      // What is there may be a store that somebody else has just made.
      PENSTOCK_ASSIGN(const bool made_meanwhile, files.is_there(kStoreFile));
      if (!made_meanwhile) return empty.error();
    }
    PENSTOCK_TRY(make_store_folders(files));
    const StoreFacts facts{random_id(kUuidDigits), role, durability_of(tier)};
    const auto made = files.write_text(kStoreFile, text_of(facts), Durability::file_and_name, IfExists::fail);
    // Somebody else may have made it meanwhile: then that is the store.
    if (!made && made.error().code != Errc::already_exists) return made.error();
  }
  PENSTOCK_ASSIGN(auto store, open(tier));
  if (store->facts().role != role)
    return files.error(Errc::invalid_argument,
                       fmt::format("'{}' is a {} store, not a {} one: take another folder", tier.root,
                                   role_name(store->facts().role), role_name(role)));
  // Who made it may have died before this was safe; who copied it here may have left out empty folders.
  PENSTOCK_TRY(make_store_folders(files));
  PENSTOCK_TRY(files.sync_dir(""));
  return store;
}

Result<void> CheckpointStore::still_there() const {
  const auto facts = read_facts(StoreFiles(tier_));
  if (facts && facts->uuid == facts_.uuid) return success();
  if (!facts && (facts.error().code == Errc::exhausted || facts.error().code == Errc::interrupted))
    return facts.error();
  const std::string why = facts ? "another store is there now" : facts.error().message();
  return make_error(Errc::io, fmt::format("store '{}' is gone from '{}' ({}): is it mounted?", tier_.name,
                                          tier_.root, why));
}

Result<std::unique_ptr<Lock>> CheckpointStore::lock_run(std::string_view run, std::string_view what) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(check_what(what));
  PENSTOCK_TRY(still_there());
  auto lock = tier_.backend->names().lock(below(kStoreLocks, fmt::format("{}.{}", run, what)));
  if (!lock && lock.error().code == Errc::busy)
    return make_error(Errc::busy, fmt::format("run '{}' has somebody else at its {} in store '{}': {}", run,
                                              what, tier_.name, lock.error().message()));
  return StoreFiles(tier_).named(std::move(lock));
}

}  // namespace penstock
