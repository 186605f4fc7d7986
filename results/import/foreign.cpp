#include "results/import/foreign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "io_backends/core/checksums/crc32c.hpp"
#include "results/import/import_parts.hpp"
#include "results/import/json_documents.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr const Importer* kImporters[] = {&importer_fio, &importer_google_benchmark, &importer_elbencho,
                                          &importer_ior, &importer_mdtest,           &importer_warp,
                                          &importer_dlio};

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of UTF-8; editors on Windows write it
// The root's mount point contains every path, so it says nothing about the tier.
constexpr std::string_view kRootMount = "/";

// An output that is not read, by a text that is at the beginning of one of its lines, and what to do about
// it.
struct UnreadForm {
  std::string_view begin;
  std::string_view then;  // also in the text; "" if the beginning is enough
  std::string_view advice;
};
constexpr UnreadForm kUnreadForms[] = {
    {"\x28\xb5\x2f\xfd", "",
     "it is compressed by zstd: unpack it with unzstd, or print warp's with warp analyze --json FILE"},
    {"\x1f\x8b", "", "it is compressed by gzip: unpack it with gunzip FILE"},
    {"\xff\xfe", "",
     "it is UTF-16 text, not UTF-8: convert it with iconv -f UTF-16 -t UTF-8 FILE > NEW.json"},
    {"\xfe\xff", "",
     "it is UTF-16 text, not UTF-8: convert it with iconv -f UTF-16 -t UTF-8 FILE > NEW.json"},
    {"IOR-", "MPI Coordinated Test", "it is IOR's text: run IOR with -O summaryFormat=JSON"},
    {"access,bw(MiB/s)", "", "it is IOR's CSV: run IOR with -O summaryFormat=JSON"},
    {"Run status group ", "(all jobs):", "it is fio's text: run fio with --output-format=json"},
    {"3;fio-", "", "it is fio's terse form: run fio with --output-format=json"},
    {"OPERATION ", "RESULT TYPE", "it is elbencho's text: run elbencho with --jsonfile NEW.json"},
    {"idx\tthread\top\t", "", "it is warp's list of requests: print a summary with warp analyze --json FILE"},
    {"[METRIC] ", "Simulated Accelerators", "it is DLIO's log: name the summary.json in the same folder"},
    {"name,iterations,real_time,", "",
     "it is Google Benchmark's CSV: run it with --benchmark_out_format=json"},
};

bool has_line(std::string_view text, std::string_view begin) {
  if (text.starts_with(begin)) return true;
  return text.find("\n" + std::string(begin)) != std::string_view::npos;
}

const Importer* importer_of(const Json& document) {
  for (const Importer* const importer : kImporters)
    if (importer->is_document != nullptr && importer->is_document(document)) return importer;
  return nullptr;
}

// Adds the results in `documents`. Returns how many of them are of a known program.
size_t import_documents(const std::vector<JsonDocument>& documents, Imported& imported) {
  std::vector<const Importer*> programs;
  for (const JsonDocument& document : documents) programs.push_back(importer_of(document.json));
  const bool are_in_array =
      documents.size() > 1 && documents.front().text.data() == documents.back().text.data();
  std::string first_unknown;
  for (size_t i = 0; i < documents.size(); ++i) {
    const Importer* const program = programs[i];
    if (program == nullptr) {
      if (first_unknown.empty()) first_unknown = fmt::format("JSON object {} of {}", i + 1, documents.size());
      continue;
    }
    const auto next = std::find(programs.begin() + ptrdiff_t(i) + 1, programs.end(), program);
    if (program->replaces != nullptr && next != programs.end() &&
        program->replaces(documents[i].json, documents[size_t(next - programs.begin())].json))
      continue;
    const std::string text = are_in_array ? one_line(documents[i].json) : std::string(documents[i].text);
    program->import_document(documents[i].json, fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text)))),
                             imported);
  }
  const auto unknown = size_t(std::count(programs.begin(), programs.end(), nullptr));
  if (unknown > 0 && unknown < documents.size())
    imported.problems.push_back(fmt::format("{} is of no program that is known here{}; the others are read",
                                            first_unknown,
                                            unknown == 1 ? "" : fmt::format(", and {} more", unknown - 1)));
  return documents.size() - unknown;
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  if (folder.empty() || path.empty()) return false;
  const std::filesystem::path relative =
      path.lexically_normal().lexically_relative(folder.lexically_normal());
  return !relative.empty() && *relative.begin() != "..";
}

using TierFolders = std::map<std::string, std::string>;  // folder -> name of the tier in it

// The name of the tier whose folder contains `path`. If several do, it is the one with the longest path; ""
// if none does.
std::string nearest_tier(const TierFolders& folders, const std::string& path) {
  std::string_view nearest;
  std::string name;
  for (const auto& [folder, tier] : folders)
    if (is_below(path, folder) && (name.empty() || folder.size() > nearest.size())) {
      nearest = folder;
      name = tier;
    }
  return name;
}

}  // namespace

std::span<const Importer* const> importers() {
  return kImporters;
}

const Importer* find_importer(std::string_view command) {
  for (const Importer* const importer : kImporters)
    if (importer->command == command) return importer;
  return nullptr;
}

std::optional<Imported> import_foreign(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Imported found;
  bool is_known = false;
  for (const Importer* const importer : kImporters) {
    if (importer->is_text == nullptr || !importer->is_text(text)) continue;
    is_known = true;
    importer->import_text(imported::valid_utf8(text),
                          fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text)))), found);
  }
  std::vector<std::string> faults;
  const std::vector<JsonDocument> documents = json_documents(text, faults);
  if (import_documents(documents, found) == 0 && !is_known) return std::nullopt;
  if (!faults.empty())
    found.problems.push_back(
        fmt::format("a JSON object is not complete ({}){}; the others are read", faults.front(),
                    faults.size() == 1 ? "" : fmt::format(", and {} more", faults.size() - 1)));
  return found;
}

std::string advice_on_foreign(std::string_view text, std::string_view file) {
  constexpr std::string_view kFile = "FILE";
  for (const UnreadForm& form : kUnreadForms) {
    if (!has_line(text, form.begin) || text.find(form.then) == std::string_view::npos) continue;
    std::string advice(form.advice);
    if (const size_t at = advice.rfind(kFile); at != std::string::npos)
      advice.replace(at, kFile.size(), file);
    return advice;
  }
  return "";
}

std::string importable_forms() {
  std::string forms;
  for (const Importer* const importer : kImporters)
    forms += fmt::format("{}{} ({})", forms.empty() ? "" : ", ", importer->program, importer->form);
  return forms;
}

void name_foreign_tiers(std::span<Record* const> records) {
  TierFolders roots;
  TierFolders mounts;
  for (const Record* record : records) {
    const Json& data = member_object(record->tiers, "data");
    const std::string root = member_text(data, "root");
    const std::string name = member_text(data, "name");
    if (find_importer(record->command) != nullptr || root.empty() || name.empty()) continue;
    roots.emplace(root, name);
    if (const std::string mount = member_text(data, "mount_point"); mount != kRootMount)
      mounts.emplace(mount, name);
  }
  for (Record* record : records) {
    const std::string path = member_text(member_object(record->tiers, "data"), "root");
    if (find_importer(record->command) == nullptr || path.empty()) continue;
    std::string name = nearest_tier(roots, path);
    if (name.empty()) name = nearest_tier(mounts, path);
    if (name.empty()) continue;
    record->tiers["data"]["name"] = name;
    record->parameters["tier"] = name;
  }
}

}  // namespace penstock
