#include "datagen/generate/generate_share.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

namespace penstock {
namespace {

// The most bytes that rank 0 receives in one call, from all ranks together.
constexpr size_t kMostGatheredBytes = size_t{64} << 20U;

// A function that receives the rows of all ranks, piece by piece. Rank 0 calls it. `first_row` is the index
// of the piece's first row among the rows of its rank.
template <class Row>
using RowVisitor = std::function<void(int rank, uint64_t first_row, std::span<const Row> rows)>;

template <class Row>
Result<void> gather_rows(Communicator& ranks, std::span<const Row> mine, const RowVisitor<Row>& visit) {
  static_assert(std::is_trivially_copyable_v<Row>);
  const uint64_t rows_per_rank =
      std::max<uint64_t>(kMostGatheredBytes / sizeof(Row) / uint64_t(ranks.size()), 1);
  PENSTOCK_ASSIGN(const std::vector<uint64_t> lengths, gather<uint64_t>(ranks, mine.size()));
  const uint64_t most_rows = *std::max_element(lengths.begin(), lengths.end());
  std::vector<Row> rows;
  for (uint64_t first_row = 0; first_row < most_rows; first_row += rows_per_rank) {
    const auto piece = mine.subspan(std::min<uint64_t>(first_row, mine.size()));
    PENSTOCK_ASSIGN(
        const auto all,
        ranks.gather(std::as_bytes(piece.first(std::min<uint64_t>(piece.size(), rows_per_rank)))));
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty()) continue;
      rows.resize(all[rank].size() / sizeof(Row));
      std::memcpy(rows.data(), all[rank].data(), rows.size() * sizeof(Row));
      visit(int(rank), first_row, rows);
    }
  }
  return success();
}

}  // namespace

GenerateShare share_of(const Generation& generation, int rank, int ranks) {
  const auto object_at = [&](int n) { return generation.objects * uint64_t(n) / uint64_t(ranks); };
  const auto first_of = [&](uint64_t object) {
    return object >= generation.objects ? generation.state.samples : generation.first_sample(object);
  };
  GenerateShare share{.first_object = object_at(rank), .end_object = object_at(rank + 1)};
  share.first_sample = first_of(share.first_object);
  share.end_sample = first_of(share.end_object);
  return share;
}

Result<void> sum_over_ranks(Communicator& ranks, const GeneratedCounts& mine, GenerateResult& out) {
  PENSTOCK_ASSIGN(const std::vector<GeneratedCounts> each, gather<GeneratedCounts>(ranks, mine));
  static_cast<GeneratedCounts&>(out) = {};
  for (const GeneratedCounts& one : each) {
    out.add(one);
    out.seconds = std::max(out.seconds, one.seconds);
    if (each.size() > 1 && ranks.root())
      out.rank_figures.push_back({.bytes = one.bytes_made, .wall_s = one.seconds});
  }
  return success();
}

ObjectResults::ObjectResults(const Generation& generation, Communicator& ranks, ManifestBuilder& manifest)
    : generation_(generation),
      ranks_(ranks),
      manifest_(manifest),
      share_(share_of(generation, ranks.rank(), ranks.size())),
      objects_(ranks.root() ? 0 : share_.objects()),
      samples_(ranks.root() ? 0 : share_.samples()) {}

void ObjectResults::set_object(uint64_t object, PublishedObject published) {
  manifest_.set_object_bytes(uint32_t(object), published.bytes);
  manifest_.set_object_crc32c(uint32_t(object), published.crc32c);
}

void ObjectResults::record(uint64_t object, PublishedObject published, std::span<const JournalSample> samples,
                           std::span<const uint32_t> labels) {
  if (ranks_.root())
    set_object(object, published);
  else
    objects_[object - share_.first_object] = published;
  for (size_t i = 0; i < samples.size(); ++i) {
    const JournalSample& sample = samples[i];
    const SampleEntry entry{.offset = sample.offset,
                            .length = sample.length,
                            .object = uint32_t(object),
                            .label = labels[i],
                            .crc32c = sample.crc32c};
    if (ranks_.root())
      manifest_.set_sample(sample.index, entry);
    else
      samples_[sample.index - share_.first_sample] = entry;
  }
}

Result<void> ObjectResults::send_to_root() {
  if (ranks_.size() == 1) return success();
  PENSTOCK_TRY(gather_rows<PublishedObject>(
      ranks_, objects_, [&](int rank, uint64_t first_row, std::span<const PublishedObject> rows) {
        const GenerateShare rank_share = share_of(generation_, rank, ranks_.size());
        for (size_t i = 0; i < rows.size(); ++i) set_object(rank_share.first_object + first_row + i, rows[i]);
      }));
  return gather_rows<SampleEntry>(
      ranks_, samples_, [&](int rank, uint64_t first_row, std::span<const SampleEntry> rows) {
        uint64_t index = share_of(generation_, rank, ranks_.size()).first_sample + first_row;
        for (const SampleEntry& entry : rows) manifest_.set_sample(index++, entry);
      });
}

}  // namespace penstock
