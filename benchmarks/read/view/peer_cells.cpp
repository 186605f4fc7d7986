#include "benchmarks/read/view/peer_cells.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"
#include "results/import/foreign.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

void append_part(std::string& text, const std::string& part) {
  if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
}

// A record's block size as text. The record has it either as a number of bytes or already as text.
std::string size_text(const Record& record, std::string_view name) {
  const auto bytes = parameter_number(record, name);
  if (!bytes) return parameter_text(record, name);
  return *bytes >= 0 && *bytes < 1e18 ? format_size(uint64_t(*bytes)) : "";
}

bool is_direct(const Record& record) {
  const std::string direct = parameter_text(record, "direct");
  return direct == "1" || direct == "true";
}

// Whether the record names its tier. Without that, it cannot be compared with any tier.
bool names_tier(const Record& record) {
  return record.parameters.contains("tier") || record.tiers.contains("data");
}

// Whether the number of threads is that of the whole job.
bool is_one_process(const Record& record) {
  return parameter_number(record, "ranks").value_or(1) <= 1 &&
         parameter_number(record, "hosts").value_or(1) <= 1;
}

}  // namespace

bool is_peer(const Record& record) {
  if (find_importer(record.command) == nullptr || !is_usable(record)) return false;
  return throughput(record) != nullptr || find_metric(record, kOpRate) != nullptr;
}

std::string peer_program(const Record& record) {
  const auto label = record.label.find("peer");
  return label == record.label.end() || label->second.empty() ? record.command : label->second;
}

std::string peer_work(const Record& record) {
  std::string work = parameter_text(record, "rw");
  const std::string operation = parameter_text(record, "operation");
  const std::string phase = parameter_text(record, "phase");
  if (phase.starts_with("RWMIX")) work = phase;
  const bool reads_and_writes = work == "rw" || work == "readwrite" || work == "randrw";
  if (work.empty())
    work = operation;
  else if (!operation.empty() && (reads_and_writes || work.find(operation) == std::string::npos))
    work += " (" + operation + ")";
  // Work without bytes, such as the creation of folders, has no size, whatever the program's options were.
  if (const std::string size = size_text(record, "block"); !size.empty() && throughput(record) != nullptr)
    work += (work.empty() ? "" : " of ") + size;
  if (const auto depth = parameter_number(record, "depth"); depth && *depth > 1)
    append_part(work, "depth " + parameter_text(record, "depth"));
  for (const auto& [name, unit] :
       {std::pair("ranks", " ranks"), {"hosts", " hosts"}, {"accelerators", " accelerators"}})
    if (const auto count = parameter_number(record, name); count && *count > 1)
      append_part(work, parameter_text(record, name) + unit);
  append_part(work, parameter_text(record, "ioengine"));
  if (parameter_text(record, "random") == "true") append_part(work, "random");
  if (is_direct(record)) append_part(work, "direct");
  return work.empty() ? parameter_text(record, "benchmark") : work;
}

// Whether the record's rate is that of reads and not of writes. A fio job that reads and writes has one
// record for its reads and one for its writes.
bool is_read_rate(const Record& record) {
  const std::string operation = parameter_text(record, "operation");
  const std::string direction = operation.empty() ? parameter_text(record, "rw") : operation;
  return direction.empty() || direction.find("read") != std::string::npos;
}

std::vector<PeerCurve> peer_curves(std::span<const Record> records) {
  const std::vector<RecordList> groups = grouped(records, [](const Record& record) {
    // Jobs of fio that differ in nothing but the name and the number of threads are one curve.
    constexpr std::string_view kExcluded[] = {"threads", "job"};
    return is_peer(record) && throughput(record) != nullptr && names_tier(record) && is_one_process(record) &&
                   whole_number(record, "threads", 1)
               ? tier_name(record) + "|" + peer_program(record) + "|" + work_key(record, kExcluded)
               : "";
  });
  const auto program_and_tier = [](const Record& record) {
    return peer_program(record) + " on " + tier_name(record);
  };
  std::map<std::string, size_t> curves_of_name;
  for (const RecordList& one : groups) ++curves_of_name[program_and_tier(*one.front())];
  std::vector<PeerCurve> curves;
  for (const RecordList& one : groups) {
    const Record& first = *one.front();
    PeerCurve curve{tier_name(first), program_and_tier(first), is_direct(first), is_read_rate(first), {}};
    if (const std::string work = peer_work(first); curves_of_name[curve.name] > 1 && !work.empty())
      curve.name += ": " + work;
    for (const Record* const record : one)
      keep_newer(curve.by_count[*whole_number(*record, "threads", 1)], *record);
    curves.push_back(std::move(curve));
  }
  return curves;
}

bool is_comparable(const PeerCurve& peer, const ReadGroup& group) {
  const ReadCurve* const own_curve = group.find(peer.tier);
  if (!peer.rate_is_of_reads || own_curve == nullptr || group.open_loop ||
      (peer.uses_direct_io && group.cache == "warm"))
    return false;
  return parameter_number(*own_curve->by_count.begin()->second, "ranks").value_or(1) <= 1;
}

}  // namespace penstock
