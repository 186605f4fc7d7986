#include "miniapps/checkpoint_subcommands/content.hpp"

#include <algorithm>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/limits.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

constexpr uint64_t kReadPieceBytes = uint64_t{16} << 20;  // bytes between two checks for a signal

Result<std::vector<Entry>> files_of(Tier& tier) {
  std::vector<Entry> all;
  std::vector<std::string> others;  // pipes, sockets, devices, and links to them
  PENSTOCK_TRY(tier.backend->names().list_all(
      "",
      [&](const Entry& entry) {
        all.push_back(entry);
        return true;
      },
      [&](std::string_view name) { others.emplace_back(name); }));
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  const auto refuse = [&](std::string_view name, std::string_view why) {
    return make_error(Errc::invalid_argument, "--from '{}': '{}' {}", tier.root, printable(name), why);
  };
  if (!others.empty())
    return refuse(
        *std::min_element(others.begin(), others.end()),
        "is a pipe, a socket, a device or a link to one, and a checkpoint contains only files: remove it");
  for (const Entry& entry : all) {
    if (entry.folder)
      return refuse(entry.name, "is a folder, and a checkpoint contains only files: remove it");
    if (entry.dangling) return refuse(entry.name, "is a broken link: remove it");
    if (entry.name == kRestartName)
      return refuse(entry.name, "is a file that restore writes next to the restored files: remove it first");
    if (const Result<void> named = check_checkpoint_file_name(entry.name); !named.ok())
      return make_error(named.error().code, "--from '{}': {}", tier.root, printable(named.error().what));
  }
  return all;
}

Result<void> read_whole(Tier& tier, const std::string& name, uint64_t bytes, Buffer& memory) {
  if (!memory.try_grow(bytes))
    return make_error(Errc::exhausted, "no memory for the {} of '{}'{}", format_size(bytes), name,
                      memory_limit_text());
  PENSTOCK_ASSIGN(const std::unique_ptr<Reader> reader, tier.backend->open(name));
  for (uint64_t at = 0; at < bytes; at += kReadPieceBytes) {
    PENSTOCK_TRY(check_interrupt());
    const uint64_t length = std::min(kReadPieceBytes, bytes - at);
    PENSTOCK_TRY(reader->read_at(at, std::span(memory.data() + at, length)));
  }
  return success();
}

}  // namespace

Result<SavedContent> SavedContent::of_payload(const std::string& payload, uint64_t rank, uint64_t ranks,
                                              uint64_t seed, uint64_t step) {
  PENSTOCK_ASSIGN(const Payload found, find_payload(payload));
  SavedContent content;
  content.payload_ = found.name;
  PENSTOCK_ASSIGN(content.state_, PayloadState::make(found.shard(rank, ranks), rank, seed));
  content.state_->advance_to(step);
  for (size_t i = 0; i < content.state_->files().size(); ++i)
    content.files_.push_back({content.state_->files()[i].name, content.state_->file(i)});
  return content;
}

Result<SavedContent> SavedContent::of_folder(const std::string& folder, NamedTiers named, uint64_t rank,
                                             uint64_t ranks) {
  PENSTOCK_ASSIGN(Tier tier, open_tier(folder, named));
  PENSTOCK_ASSIGN(const std::vector<Entry> all, files_of(tier));
  if (all.size() < ranks || all.empty())
    return make_error(
        Errc::invalid_argument,
        "--from '{}' has {} files, and each of {} ranks must save at least one: start fewer ranks", tier.root,
        all.size(), ranks);
  SavedContent content;
  for (uint64_t i = rank; i < all.size(); i += ranks) {
    Buffer& memory = content.memory_.emplace_back();
    PENSTOCK_TRY(read_whole(tier, all[i].name, all[i].bytes, memory));
    content.files_.push_back({all[i].name, memory.first(all[i].bytes)});
  }
  return content;
}

}  // namespace penstock
