#include "miniapps/checkpoint/store_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io_backends/files/posix_root.hpp"
#include "results/record/record_file.hpp"

namespace penstock {
namespace {

constexpr std::size_t kLongestWhat = 20;

}  // namespace

std::string below(std::string_view folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

Result<void> check_what(std::string_view what) {
  const bool good = !what.empty() && what.size() <= kLongestWhat &&
                    std::all_of(what.begin(), what.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (good) return success();
  return make_error(Errc::invalid_argument, fmt::format("'{}' is nothing to do for a run", what));
}

std::string new_making(std::string_view run, std::string_view what) {
  return fmt::format("{}.{}.{}", run, what, random_id(kUuidDigits));
}

bool is_making(std::string_view name, std::string_view run, std::string_view what) {
  const std::string front = fmt::format("{}.{}.", run, what);
  return name.size() == front.size() + kUuidDigits && name.starts_with(front) &&
         name.find_first_not_of("0123456789abcdef", front.size()) == std::string_view::npos;
}

Error StoreFiles::named(Error error) const {
  error.what = fmt::format("store '{}': {}", tier_->name, error.what);
  return error;
}

Error StoreFiles::error(Errc code, std::string_view what) const {
  return named(make_error(code, std::string(what)));
}

Result<std::string> StoreFiles::read_text(std::string_view name, std::uint64_t most) const {
  PENSTOCK_ASSIGN(const auto reader, named(backend().open(name)));
  PENSTOCK_ASSIGN(const std::uint64_t bytes, named(reader->size()));
  if (bytes > most) return error(Errc::corrupt, fmt::format("'{}' has {} bytes: none of ours", name, bytes));
  std::string text(bytes, '\0');
  PENSTOCK_TRY(named(reader->read_at(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

Result<void> StoreFiles::write_text(std::string_view name, std::string_view text, Durability wanted,
                                    IfExists if_exists) const {
  PENSTOCK_ASSIGN(const auto writer, named(backend().create(name, text.size())));
  PENSTOCK_TRY(named(writer->append(std::as_bytes(std::span(text)))));
  return named(writer->publish(wanted, if_exists));
}

Result<std::vector<Entry>> StoreFiles::list(std::string_view folder) const {
  std::vector<Entry> entries;
  PENSTOCK_TRY(named(backend().names().list(folder, [&](const Entry& entry) {
    entries.push_back(entry);
    return true;
  })));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

Result<std::vector<Entry>> StoreFiles::list_if_there(std::string_view folder) const {
  auto entries = list(folder);
  if (!entries && entries.error().code == Errc::not_found) return std::vector<Entry>();
  return entries;
}

Result<bool> StoreFiles::is_there(std::string_view name) const {
  const auto entry = named(backend().names().stat(name));
  if (!entry && entry.error().code != Errc::not_found) return entry.error();
  return entry.ok();
}

Result<void> StoreFiles::remove(std::string_view name) const {
  auto removed = named(backend().names().remove(name));
  if (!removed && removed.error().code == Errc::not_found) return success();
  return removed;
}

Result<void> StoreFiles::remove_tree(const Entry& entry) const {
  if (!entry.folder || entry.link) return remove(entry.name);
  PENSTOCK_ASSIGN(const std::vector<Entry> inside, list_if_there(entry.name));
  // A process that was killed may have left what lists do not show.
  sweep_temporaries(backend(), entry.name);
  for (const Entry& one : inside) PENSTOCK_TRY(remove_tree(one));
  return remove(entry.name);
}

// Only a list tells links from folders.
Result<void> StoreFiles::remove_tree(std::string_view name) const {
  PENSTOCK_ASSIGN(const std::vector<Entry> siblings, list_if_there(parent_of(name)));
  for (const Entry& entry : siblings)
    if (entry.name == name) return remove_tree(entry);
  return success();
}

}  // namespace penstock
