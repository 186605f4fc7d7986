#include "profiling/session/session_testing.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "profiling/session/counters_copy.hpp"

namespace penstock {
namespace {

constexpr uint64_t kBeginTicks = 1'000'000'000;

uint64_t rounded(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

uint64_t key_for_test(std::string_view text) {
  uint64_t key = 14695981039346656037ULL;  // FNV-1a
  for (const char c : text) key = (key ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return key == 0 ? 1 : key;
}

SessionBytes::SessionBytes(uint32_t pid, uint64_t block_bytes)
    : block_bytes_(block_bytes), bytes_(PENSTOCK_HEADER_BYTES) {
  penstock_session_header& h = header();
  std::memcpy(h.magic, PENSTOCK_SESSION_MAGIC, sizeof h.magic);
  h.version = PENSTOCK_SESSION_VERSION;
  h.byte_order = PENSTOCK_SESSION_BYTE_ORDER;
  h.header_bytes = PENSTOCK_HEADER_BYTES;
  h.granule = PENSTOCK_BLOCK_GRANULE;
  h.pid = pid;
  h.parent_pid = 1;
  h.state = PENSTOCK_ENDED;
  h.clock = PENSTOCK_CLOCK_MONOTONIC;
  h.process_start = 7;
  h.begin_realtime_ns = 1'001'000'000'000;
  h.begin = {kBeginTicks, 1'000'000'000};
  h.ticks_per_s = 1'000'000'000;
  h.end_monotonic_ns = 11'000'000'000;
  h.file_end = PENSTOCK_HEADER_BYTES;
  std::strcpy(h.host, "testhost");
  std::strcpy(h.executable, "/usr/bin/program");
  std::strcpy(h.directory, "/");
  set_command({"program", "word"});
}

penstock_session_header& SessionBytes::header() {
  return *reinterpret_cast<penstock_session_header*>(bytes_.data());
}

void SessionBytes::set_command(const std::vector<std::string>& arguments) {
  std::string all;
  for (const std::string& word : arguments) all += word + '\0';
  all.resize(std::min(all.size(), sizeof header().command));
  std::memcpy(header().command, all.data(), all.size());
  header().command_bytes = uint32_t(all.size());
}

void SessionBytes::set_kernel(uint64_t read_at_begin, uint64_t read_at_end) {
  header().kernel_begin.rchar = read_at_begin;
  header().kernel_end.rchar = read_at_end;
  header().kernel_end_known = 1;
}

uint64_t SessionBytes::append(penstock_block_kind kind, size_t entry_bytes, const void* entry, size_t bytes,
                              std::string_view text) {
  const uint64_t whole = bytes + rounded(text.size(), entry_bytes == 0 ? 8 : 1);
  auto at = open_blocks_.find({kind, entry_bytes});
  const auto head = [&](uint64_t offset) {
    return reinterpret_cast<penstock_block*>(bytes_.data() + offset);
  };
  if (at == open_blocks_.end() ||
      sizeof(penstock_block) + head(at->second)->used + whole > head(at->second)->bytes) {
    const uint64_t offset = bytes_.size();
    const uint64_t block =
        rounded(std::max(block_bytes_, sizeof(penstock_block) + whole), PENSTOCK_BLOCK_GRANULE);
    bytes_.resize(offset + block);
    *head(offset) = penstock_block{.magic = PENSTOCK_BLOCK_MAGIC,
                                   .kind = uint16_t(kind),
                                   .entry_bytes = uint16_t(entry_bytes),
                                   .bytes = block,
                                   .used = 0,
                                   .renewed = 0,
                                   .next = 0,
                                   .reserved = {}};
    header().file_end = bytes_.size();
    at = open_blocks_.insert_or_assign(std::pair(kind, entry_bytes), offset).first;
  }
  penstock_block* const block = head(at->second);
  const uint64_t place = at->second + sizeof(penstock_block) + block->used;
  std::memcpy(bytes_.data() + place, entry, bytes);
  if (!text.empty()) std::memcpy(bytes_.data() + place + bytes, text.data(), text.size());
  block->used += whole;
  return place;
}

uint64_t SessionBytes::add_name(std::string_view text, unsigned kind) {
  return add_name(key_for_test(text), text, kind);
}

uint64_t SessionBytes::add_name(uint64_t key, std::string_view text, unsigned kind) {
  const penstock_name name{key, uint32_t(text.size()), uint16_t(kind), 0};
  return append(PENSTOCK_BLOCK_NAMES, 0, &name, sizeof name, text);
}

namespace {
// Writes the counters to `brief`. True if that loses no value.
bool copy_to_brief(const penstock_counters& counters, penstock_brief& brief) {
  copy_counters(counters, brief);
  penstock_counters again{};
  copy_counters(brief, again);
  brief.form = PENSTOCK_BRIEF;
  return std::memcmp(&again, &counters, sizeof again) == 0;
}
}  // namespace

void SessionBytes::add(const penstock_counters& counters) {
  if (penstock_brief brief{}; copy_to_brief(counters, brief)) {
    add(brief);
    return;
  }
  penstock_counters entry = counters;
  if (entry.form != PENSTOCK_WHOLE_CONTINUATION) entry.form = PENSTOCK_WHOLE;
  append(PENSTOCK_BLOCK_COUNTERS, sizeof entry, &entry, sizeof entry);
}
void SessionBytes::add(const penstock_brief& counters) {
  append(PENSTOCK_BLOCK_COUNTERS, sizeof counters, &counters, sizeof counters);
}
void SessionBytes::add(const penstock_thread& thread) {
  append(PENSTOCK_BLOCK_THREADS, sizeof thread, &thread, sizeof thread);
}
void SessionBytes::add(const penstock_segment& segment) {
  append(PENSTOCK_BLOCK_SEGMENTS, sizeof segment, &segment, sizeof segment);
}
void SessionBytes::add(const penstock_span& span) {
  append(PENSTOCK_BLOCK_SPANS, sizeof span, &span, sizeof span);
}

void SessionBytes::add_older(const penstock_counters& counters, size_t entry_bytes) {
  append(PENSTOCK_BLOCK_COUNTERS, entry_bytes, &counters, entry_bytes);
}

void SessionBytes::add_event(penstock_event_kind kind, uint64_t ticks, uint32_t pid, std::string_view text) {
  const penstock_event event{ticks, pid, uint16_t(kind), uint16_t(text.size())};
  append(PENSTOCK_BLOCK_EVENTS, 0, &event, sizeof event, text);
}

penstock_counters SessionBytes::counters_of(std::string_view path, uint32_t thread, uint32_t reads,
                                            uint64_t bytes_each) {
  penstock_counters counters{};
  counters.file = key_for_test(path);
  uint64_t& name = names_[counters.file];
  if (name == 0) name = add_name(path);
  counters.name = name;
  counters.thread = thread;
  counters.layer = PENSTOCK_POSIX;
  counters.opens = counters.closes = 1;
  counters.reads = reads;
  counters.bytes_read = reads * bytes_each;
  counters.sequential_reads = counters.consecutive_reads = reads;
  counters.read_ticks = reads * uint64_t{1000};
  counters.meta_ticks = 500;
  counters.read_sizes[0] = reads;
  counters.size = counters.bytes_read;
  counters.first_ticks = counters.first_read_ticks = kBeginTicks + 1000;
  counters.last_ticks = counters.last_read_ticks = kBeginTicks + 2'000'000;
  return counters;
}

void SessionBytes::add_file(std::string_view path, uint32_t thread, uint32_t reads, uint64_t bytes_each,
                            unsigned layer) {
  penstock_counters counters = counters_of(path, thread, reads, bytes_each);
  counters.layer = uint16_t(layer);
  add(counters);
}

void SessionBytes::add_thread(uint32_t thread, uint64_t read, uint64_t written) {
  penstock_thread entry{};
  entry.thread = thread;
  entry.begin_ticks = kBeginTicks;
  entry.kernel_read = read;
  entry.kernel_written = written;
  add(entry);
}

std::filesystem::path SessionBytes::write(const std::filesystem::path& folder) {
  const std::filesystem::path path =
      folder / (std::to_string(header().pid) + "-" + std::to_string(header().begin.monotonic_ns) +
                PENSTOCK_SESSION_SUFFIX);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes_.data()), static_cast<std::streamsize>(bytes_.size()));
  return path;
}

}  // namespace penstock
