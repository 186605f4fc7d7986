// Threads: one reader for each thread.
// Memory: buffers grow to the largest sample or chunk. A failure to allocate becomes the error `exhausted`.
#include "datagen/format/form_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

// The most bytes of rows that are kept although they were not asked for.
constexpr uint64_t kMostKeptBytes = uint64_t{64} << 20U;
// The most bytes of a sample of which no byte may be in the file.
constexpr uint64_t kMostFilledBytes = uint64_t{1} << 30U;

Result<void> grow(Buffer& buffer, uint64_t bytes) {
  if (buffer.try_grow(size_t(std::max<uint64_t>(bytes, 1)))) return success();
  return make_error(Errc::exhausted, "no memory for {} bytes of samples", bytes);
}

// The stored bytes at `offset`. If the window cannot return as many at once, they are put together in
// `buffer`.
Result<std::span<const std::byte>> fetch(ByteWindow& stored, uint64_t offset, uint64_t bytes,
                                         Buffer& buffer) {
  const size_t most_bytes = stored.most_bytes();
  if (bytes <= most_bytes) return stored.at(offset, size_t(bytes));
  // The last byte is read first: if it is missing, no memory is taken for the others.
  PENSTOCK_TRY(stored.at(offset + bytes - 1, 1));
  PENSTOCK_TRY(grow(buffer, bytes));
  const std::span<std::byte> whole = buffer.first(size_t(bytes));
  for (size_t done = 0; done < whole.size();) {
    const size_t length = std::min(most_bytes, whole.size() - done);
    PENSTOCK_ASSIGN(const auto piece, stored.at(offset + done, length));
    std::copy(piece.begin(), piece.end(), whole.begin() + ptrdiff_t(done));
    done += length;
  }
  return std::span<const std::byte>(whole);
}

// The chunks that have these bytes of the array, and parts of the rows that the bytes are in.
IndexRun chunks_of(const ChunkedArray& array, const SampleExtent& extent) {
  if (extent.bytes == 0) return {0, 0};
  const uint64_t row_bytes = array.bytes() / array.shape.front();
  uint64_t chunks_per_row = 1;
  for (size_t d = 1; d < array.shape.size(); ++d) chunks_per_row *= array.grid(d);
  const auto run_of = [&](uint64_t offset) { return offset / row_bytes / array.chunk_shape.front(); };
  return {run_of(extent.offset) * chunks_per_row,
          (run_of(extent.offset + extent.bytes - 1) + 1) * chunks_per_row};
}

}  // namespace

Extent stored_range(const ChunkedArray& array, const SampleExtent& extent) {
  const IndexRun range = chunks_of(array, extent);
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (array.chunks[i].bytes() == 0) continue;
    begin = std::min(begin, array.chunks[i].offset);
    end = std::max(end, array.chunks[i].offset + array.chunks[i].bytes());
  }
  return end == 0 ? Extent{} : Extent{begin, end - begin};
}

// An array in chunks. A "row" has all elements with the same first index, so rows follow one another in the
// bytes of the array. Chunks with the same first index in the grid hold the same rows, and parts of each.
class FormReader::Chunks {
 public:
  Result<void> use(ChunkedArray array) {
    if (array.bytes() == 0) return make_error(Errc::unsupported, "it has more than 2^63 bytes");
    if (array.chunk_bytes() == 0) return make_error(Errc::unsupported, "its chunks have more than 4 GiB");
    forget();
    PENSTOCK_TRY(opener_.use(array.filters, array.chunk_bytes()));
    array_ = std::move(array);
    row_bytes_ = array_.bytes() / array_.shape.front();
    chunk_rows_ = array_.chunk_shape.front();
    most_inflation_ = 1;
    // A file may have several compressing filters. lzf makes fewer bytes from one than deflate. The library's
    // filters make any number: scale-offset stores any chunk of equal numbers in about 20 bytes.
    for (const ChunkFilter& filter : array_.filters) {
      const bool compresses = filter.number == ChunkFilter::kDeflate || filter.number == ChunkFilter::kLzf;
      const uint64_t inflation = filter.needs_library() ? UINT32_MAX : compresses ? kMostGzipInflation : 1;
      most_inflation_ = std::min<uint64_t>(most_inflation_ * inflation, UINT32_MAX);
    }
    return success();
  }

  void forget() {
    loaded_ = {};
    opened_ = {};
  }

  Result<std::span<const std::byte>> read(ByteWindow& stored, const SampleExtent& extent) {
    if (extent.bytes == 0) return std::span<const std::byte>();
    const uint64_t end = extent.offset + extent.bytes;
    if (extent.offset < loaded_.offset || end > loaded_.offset + loaded_.bytes)
      PENSTOCK_TRY(read_rows(stored, extent.offset / row_bytes_, (end + row_bytes_ - 1) / row_bytes_));
    return std::span<const std::byte>(rows_.first(size_t(loaded_.bytes)))
        .subspan(size_t(extent.offset - loaded_.offset), size_t(extent.bytes));
  }

 private:
  // Makes loaded_ the rows from `first` to `end` - 1, or more.
  Result<void> read_rows(ByteWindow& stored, uint64_t first, uint64_t end) {
    loaded_ = {};
    const uint64_t whole_first = first / chunk_rows_ * chunk_rows_;
    const uint64_t whole_end = std::min(array_.shape.front(), ((end - 1) / chunk_rows_ + 1) * chunk_rows_);
    const uint64_t most_rows = kMostKeptBytes / row_bytes_;
    if (whole_end - whole_first <= most_rows) {
      first = whole_first;
      end = whole_end;
    } else {
      end = std::max(end, std::min(whole_end, first + most_rows));
    }
    const SampleExtent rows{first * row_bytes_, (end - first) * row_bytes_};
    const IndexRun range = chunks_of(array_, rows);
    uint64_t stored_bytes = 0;
    bool are_all_written = true;
    for (size_t i = range.begin; i < range.end; ++i) {
      stored_bytes += array_.chunks[i].bytes();
      are_all_written = are_all_written && array_.chunks[i].bytes() > 0;
    }
    if (!are_all_written && rows.bytes > kMostFilledBytes)
      return stored.error(Errc::unsupported, array_.chunks[range.begin].offset,
                          fmt::format("{} bytes of rows, some never written; the limit for one read is {}",
                                      rows.bytes, kMostFilledBytes));
    if (are_all_written && rows.bytes / most_inflation_ > stored_bytes)
      return stored.error(Errc::corrupt, array_.chunks[range.begin].offset,
                          fmt::format("chunks of {} bytes cannot hold {}", stored_bytes, rows.bytes));
    PENSTOCK_TRY(grow(rows_, rows.bytes));
    if (!are_all_written) fill(rows_.first(size_t(rows.bytes)));
    for (size_t i = range.begin; i < range.end; ++i) {
      const ChunkedArray::Chunk& chunk = array_.chunks[i];
      if (chunk.bytes() == 0) continue;
      if (array_.chunk_bytes() / most_inflation_ > chunk.bytes())
        return stored.error(
            Errc::corrupt, chunk.offset,
            fmt::format("a chunk of {} bytes cannot hold {}", chunk.bytes(), array_.chunk_bytes()));
      if (opened_.empty() || opened_number_ != i) PENSTOCK_TRY(open_chunk(stored, chunk));
      opened_number_ = i;
      copy_chunk(opened_.empty() ? plain_ : opened_, i, first, end);
    }
    loaded_ = rows;
    return success();
  }

  // Makes opened_ the bytes of a chunk, or plain_ if no filter changes its bytes: those are valid only until
  // the next bytes are fetched.
  Result<void> open_chunk(ByteWindow& stored, const ChunkedArray::Chunk& chunk) {
    opened_ = {};
    PENSTOCK_ASSIGN(const auto packed, fetch(stored, chunk.offset, chunk.bytes(), packed_));
    const auto opened = opener_.open(packed, chunk.not_applied());
    if (!opened.ok()) return stored.error(opened.error().code, chunk.offset, opened.error().what);
    const bool is_part = opened->data() >= packed.data() && opened->data() < packed.data() + packed.size();
    (is_part ? plain_ : opened_) = *opened;
    return success();
  }

  void fill(std::span<std::byte> rows) const {
    const auto value = std::as_bytes(std::span(&array_.fill_value, 1));
    size_t done = size_t(std::min<uint64_t>(array_.item_bytes, rows.size()));
    for (size_t i = 0; i < done; ++i) rows[i] = value[i % value.size()];
    while (done < rows.size()) {  // doubles the elements that are there
      const size_t more = std::min(done, rows.size() - done);
      std::copy_n(rows.begin(), more, rows.begin() + ptrdiff_t(done));
      done += more;
    }
  }

  // Copies those elements of chunk number `number` to rows_ that are in rows `first` to `end` - 1.
  void copy_chunk(std::span<const std::byte> chunk, size_t number, uint64_t first, uint64_t end) {
    using PerDimension = std::array<uint64_t, kMostDimensions>;
    const size_t dimensions = array_.shape.size();
    PerDimension begins{};  // index of the chunk's first element, by dimension
    PerDimension sides{};   // number of its elements that are in the array
    uint64_t rest = number;
    for (size_t d = dimensions; d-- > 0;) {
      begins[d] = rest % array_.grid(d) * array_.chunk_shape[d];
      rest /= array_.grid(d);
      sides[d] = std::min(array_.chunk_shape[d], array_.shape[d] - begins[d]);
    }
    const uint64_t first_row = std::max(begins[0], first);
    const uint64_t end_row = std::min(begins[0] + sides[0], end);
    if (first_row >= end_row) return;
    // Bytes between elements whose index differs by 1 in a dimension: in the array, and in the chunk.
    PerDimension array_steps{};
    PerDimension chunk_steps{};
    uint64_t array_step = array_.item_bytes;
    uint64_t chunk_step = array_.item_bytes;
    for (size_t d = dimensions; d-- > 0;) {
      array_steps[d] = array_step;
      chunk_steps[d] = chunk_step;
      array_step *= array_.shape[d];
      chunk_step *= array_.chunk_shape[d];
    }
    // A run of bytes is contiguous in both: the last dimensions as long as the chunk takes them whole, and
    // one more.
    size_t run_dimension = dimensions - 1;
    while (run_dimension > 0 && sides[run_dimension] == array_.shape[run_dimension] &&
           array_.chunk_shape[run_dimension] == array_.shape[run_dimension])
      --run_dimension;
    uint64_t from = (first_row - begins[0]) * chunk_steps[0];
    uint64_t to = (first_row - first) * array_steps[0];
    for (size_t d = 1; d < dimensions; ++d) to += begins[d] * array_steps[d];
    sides[0] = end_row - first_row;
    const auto run_bytes = size_t(sides[run_dimension] * array_steps[run_dimension]);
    std::byte* const out = rows_.data();
    PerDimension index{};
    while (true) {
      std::copy_n(chunk.begin() + ptrdiff_t(from), run_bytes, out + to);
      size_t d = run_dimension;
      for (; d-- > 0;) {
        from += chunk_steps[d];
        to += array_steps[d];
        if (++index[d] < sides[d]) break;
        from -= sides[d] * chunk_steps[d];
        to -= sides[d] * array_steps[d];
        index[d] = 0;
      }
      if (d == SIZE_MAX) return;
    }
  }

  ChunkedArray array_;
  ChunkOpener opener_;
  uint64_t row_bytes_ = 1;
  uint64_t chunk_rows_ = 1;
  uint64_t most_inflation_ = 1;  // the most bytes that the filters can make from one stored byte
  Buffer packed_;
  Buffer rows_;
  SampleExtent loaded_;                // the bytes of the array that are in rows_
  std::span<const std::byte> opened_;  // the chunk that was unpacked last; see open_chunk()
  std::span<const std::byte> plain_;
  size_t opened_number_ = 0;
};

// Compressed streams that follow one another. It inflates from the last point before the bytes, or goes on
// where it stopped, if that is nearer.
class FormReader::Stream {
 public:
  Result<void> use(CompressedStream stream) {
    if (!inflater_ || stream.format != stream_.format) {
      PENSTOCK_ASSIGN(inflater_, StreamInflater::start(stream.format));
    }
    stream_ = std::move(stream);
    can_go_on_ = false;
    return success();
  }

  void forget() { can_go_on_ = false; }

  Result<std::span<const std::byte>> read(ByteWindow& stored, const SampleExtent& extent) {
    if (extent.bytes == 0) return std::span<const std::byte>();
    if (extent.bytes / kMostGzipInflation > stream_.stored_bytes)
      return stored.error(
          Errc::corrupt, stream_.begin,
          fmt::format("a stream of {} bytes cannot hold {}", stream_.stored_bytes, extent.bytes));
    PENSTOCK_TRY(move_to(stored, extent.offset));
    PENSTOCK_TRY(grow(bytes_, extent.bytes));
    const std::span<std::byte> out = bytes_.first(size_t(extent.bytes));
    PENSTOCK_TRY(inflate(stored, out));
    return std::span<const std::byte>(out);
  }

 private:
  const AccessPoint* point_before(uint64_t offset) const {
    const auto after =
        std::upper_bound(stream_.points.begin(), stream_.points.end(), offset,
                         [](uint64_t wanted, const AccessPoint& point) { return wanted < point.offset; });
    return after == stream_.points.begin() ? nullptr : &*std::prev(after);
  }

  Result<void> move_to(ByteWindow& stored, uint64_t offset) {
    const AccessPoint* const point = point_before(offset);
    const uint64_t begin = point == nullptr ? 0 : point->offset;
    if (!can_go_on_ || offset_ > offset || offset_ < begin) {
      can_go_on_ = false;
      inflater_->begin();
      offset_ = stored_offset_ = 0;
      if (point != nullptr) {
        std::byte byte_before{};
        if (point->bits != 0) {
          PENSTOCK_ASSIGN(const auto before, stored.at(stream_.begin + point->stored_offset - 1, 1));
          byte_before = before.front();
        }
        PENSTOCK_TRY(inflater_->begin_at(*point, byte_before));
        offset_ = point->offset;
        stored_offset_ = point->stored_offset;
      }
      can_go_on_ = true;
    }
    constexpr uint64_t kSkippedAtOnce = uint64_t{64} << 10U;
    if (offset_ < offset) PENSTOCK_TRY(grow(bytes_, kSkippedAtOnce));
    while (offset_ < offset)
      PENSTOCK_TRY(inflate(stored, bytes_.first(size_t(std::min(kSkippedAtOnce, offset - offset_)))));
    return success();
  }

  // Fills `out` with the next inflated bytes.
  Result<void> inflate(ByteWindow& stored, std::span<std::byte> out) {
    constexpr uint64_t kStepBytes = uint64_t{64} << 10U;
    can_go_on_ = false;
    while (!out.empty()) {
      const uint64_t at = stream_.begin + stored_offset_;
      const uint64_t end = std::min(stored.end(), stream_.begin + stream_.stored_bytes);
      const uint64_t left = end - std::min(end, at);
      PENSTOCK_ASSIGN(const auto in, stored.at(at, size_t(std::min(left, kStepBytes))));
      const auto step = inflater_->step(in, out);
      if (!step.ok()) return stored.error(step.error().code, at, step.error().what);
      if (step->in_bytes == 0 && step->out_bytes == 0 && !step->ended)
        return stored.error(Errc::truncated, at, "the compressed bytes of a sample are truncated");
      stored_offset_ += step->in_bytes;
      offset_ += step->out_bytes;
      out = out.subspan(step->out_bytes);
      if (step->ended && !out.empty()) {
        if (stream_.format != DeflateFormat::gzip)
          return stored.error(Errc::truncated, at, "a compressed stream is truncated");
        inflater_->begin();
      }
    }
    can_go_on_ = true;
    return success();
  }

  CompressedStream stream_;
  std::optional<StreamInflater> inflater_;
  Buffer bytes_;
  uint64_t offset_ = 0;         // how many bytes have been inflated, from the beginning of the stream on
  uint64_t stored_offset_ = 0;  // how many of the stored bytes were used for that
  bool can_go_on_ = false;      // whether inflater_ is at that place
};

FormReader::FormReader() = default;
FormReader::FormReader(FormReader&&) noexcept = default;
FormReader& FormReader::operator=(FormReader&&) noexcept = default;
FormReader::~FormReader() = default;

Result<void> FormReader::use(StoredForm form) {
  is_stream_ = std::holds_alternative<CompressedStream>(form);
  if (is_stream_) {
    if (!stream_) stream_ = std::make_unique<Stream>();
    return stream_->use(std::get<CompressedStream>(std::move(form)));
  }
  if (!chunks_) chunks_ = std::make_unique<Chunks>();
  return chunks_->use(std::get<ChunkedArray>(std::move(form)));
}

void FormReader::forget() {
  if (chunks_) chunks_->forget();
  if (stream_) stream_->forget();
}

Result<std::span<const std::byte>> FormReader::read(ByteWindow& stored, const SampleExtent& extent) {
  return is_stream_ ? stream_->read(stored, extent) : chunks_->read(stored, extent);
}

Result<void> SampleUnpacker::use_form(uint32_t form) {
  if (form == form_in_use_) return success();
  form_in_use_ = 0;
  std::optional<StoredForm> decoded = decode_form(manifest_->form(form - 1));
  if (!decoded)
    return make_error(Errc::corrupt, "the manifest is damaged: form {} contradicts itself", form - 1);
  PENSTOCK_TRY(reader_.use(*std::move(decoded)));
  form_in_use_ = form;
  return success();
}

Result<std::span<const std::byte>> SampleUnpacker::open_form(uint64_t sample,
                                                             std::span<const std::byte> stored) {
  const SampleEntry& entry = manifest_->sample(sample);
  const SampleExtent extent = manifest_->extent(sample);
  if (extent.bytes > most_bytes_)
    return make_error(Errc::unsupported, "a sample of {} bytes, and the limit is {}", extent.bytes,
                      most_bytes_);
  PENSTOCK_TRY(use_form(entry.form));
  MemoryWindow window(stored, entry.offset);
  return reader_.read(window, extent);
}

Result<uint32_t> SampleUnpacker::crc32c_of(uint64_t sample, std::span<const std::byte> stored) {
  reader_.forget();
  PENSTOCK_ASSIGN(const auto bytes, open(sample, stored));
  return crc32c(bytes);
}

Result<uint32_t> SampleUnpacker::crc32c_of(uint64_t sample, ByteWindow& object) {
  SampleExtent rest = manifest_->extent(sample);
  PENSTOCK_TRY(use_form(manifest_->sample(sample).form));
  uint32_t crc = 0;
  while (rest.bytes > 0) {
    PENSTOCK_TRY(check_interrupt());
    const SampleExtent piece{rest.offset, std::min(rest.bytes, kMostKeptBytes)};
    PENSTOCK_ASSIGN(const auto bytes, reader_.read(object, piece));
    crc = crc32c(bytes, crc);
    rest = {rest.offset + piece.bytes, rest.bytes - piece.bytes};
  }
  return crc;
}

}  // namespace penstock
