#include "results/cells/peer_cells.hpp"

#include <algorithm>
#include <cstddef>

#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"

namespace penstock {
namespace {

void add(std::string& text, const std::string& words) {
  if (!words.empty()) text += (text.empty() ? "" : ", ") + words;
}

// Block sizes come as bytes or as they were written.
std::string size_text(const Record& record, std::string_view name) {
  const auto bytes = parameter_number(record, name);
  if (!bytes) return parameter_text(record, name);
  return *bytes >= 0 && *bytes < 1e18 ? format_size(static_cast<std::uint64_t>(*bytes)) : "";
}

bool is_direct(const Record& record) {
  const std::string direct = parameter_text(record, "direct");
  return direct == "1" || direct == "true";
}

// Without one it may not be next to any.
bool names_tier(const Record& record) {
  return record.parameters.contains("tier") || record.tiers.contains("data");
}

}  // namespace

bool is_peer(const Record& record) {
  if ((record.command != "fio" && record.command != "google_benchmark") || !is_usable(record)) return false;
  for (const char* rate : {"payload_bytes_per_s", "ops_per_s", "samples_per_s"})
    if (find_metric(record, rate) != nullptr) return true;
  return false;
}

std::string peer_program(const Record& record) {
  const auto label = record.label.find("peer");
  return label == record.label.end() || label->second.empty() ? record.command : label->second;
}

std::string peer_work(const Record& record) {
  std::string work = parameter_text(record, "rw");
  const std::string operation = parameter_text(record, "operation");
  const bool both = work == "rw" || work == "readwrite" || work == "randrw";
  if (!operation.empty() && (both || work.find(operation) == std::string::npos))
    work += " (" + operation + ")";
  if (const std::string size = size_text(record, "block"); !size.empty())
    work += (work.empty() ? "" : " of ") + size;
  if (const auto depth = parameter_number(record, "depth"); depth && *depth > 1)
    add(work, "depth " + parameter_text(record, "depth"));
  add(work, parameter_text(record, "ioengine"));
  if (is_direct(record)) add(work, "direct");
  return work.empty() ? parameter_text(record, "benchmark") : work;
}

// Of a job that reads and writes, fio tells either apart.
bool reads(const Record& record) {
  const std::string operation = parameter_text(record, "operation");
  const std::string way = operation.empty() ? parameter_text(record, "rw") : operation;
  return way.empty() || way.find("read") != std::string::npos;
}

std::vector<PeerCurve> peer_curves(std::span<const Record> records) {
  std::vector<PeerCurve> curves;
  std::vector<std::string> programs;
  std::vector<std::string> works;
  for (const Record& record : records) {
    const auto threads = parameter_number(record, "threads");
    if (!is_peer(record) || !names_tier(record) || !threads || *threads < 1 || *threads > 1e9) continue;
    const std::string tier = tier_name(record);
    const std::string program = peer_program(record);
    const std::string work = peer_work(record);
    std::size_t at = 0;
    while (at < curves.size() && (curves[at].tier != tier || programs[at] != program || works[at] != work))
      ++at;
    if (at == curves.size()) {
      curves.push_back({tier, "", is_direct(record), reads(record), {}});
      programs.push_back(program);
      works.push_back(work);
    }
    const Record*& there = curves[at].at[static_cast<std::uint64_t>(*threads)];
    if (there == nullptr || there->started <= record.started) there = &record;
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curves[i].name = programs[i] + " on " + curves[i].tier;
    for (std::size_t j = 0; j < curves.size(); ++j)
      if (i != j && programs[i] == programs[j] && curves[i].tier == curves[j].tier && !works[i].empty()) {
        curves[i].name += ": " + works[i];
        break;
      }
  }
  return curves;
}

bool is_comparable(const PeerCurve& peer, const ReadGroup& group) {
  const ReadCurve* const ours = group.find(peer.tier);
  if (!peer.reads || ours == nullptr || group.open_loop || (peer.direct && group.cache == "warm"))
    return false;
  return parameter_number(*ours->at.begin()->second, "ranks").value_or(1) <= 1;
}

}  // namespace penstock
