#include "datagen/format/hdf5/hdf5_view.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "datagen/format/hdf5/hdf5_reader.hpp"

namespace penstock {
namespace {

bool is_float(Element element) {
  return element == Element::f32 || element == Element::f64;
}

Result<size_t> find_array(const Hdf5Reader& reader, std::string_view name) {
  for (size_t i = 0; i < reader.arrays().size(); ++i)
    if (reader.arrays()[i].name == name) return i;
  return make_error(Errc::not_found, "it has no dataset '{}'; its numeric datasets: {}", name,
                    list_arrays(reader.arrays()));
}

Result<Hdf5Rows> rows_of(std::span<const std::byte> file, const StoredArray& stored,
                         const ArrayExtent& extent) {
  Hdf5Rows rows{.shape = stored.shape, .row_bytes = extent.item_bytes, .chunks = {}};
  for (size_t i = 1; i < stored.shape.size(); ++i) rows.row_bytes *= stored.shape[i];
  const auto bytes_at = [&](uint64_t offset, uint64_t bytes) {
    return file.subspan(size_t(offset), size_t(bytes));
  };
  if (extent.unpacked) {
    PENSTOCK_ASSIGN(const auto bytes, extent.unpacked->at(0, size_t(stored.bytes)));
    rows.own = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    rows.chunks.emplace_back(*rows.own);
    return rows;
  }
  if (extent.chunks.empty()) {
    rows.chunks.push_back(bytes_at(extent.offset, stored.bytes));
    return rows;
  }
  rows.rows_per_chunk = extent.rows_per_chunk;
  for (size_t i = 0; i < extent.chunks.size(); ++i) {
    const uint64_t first = i * extent.rows_per_chunk;
    const uint64_t count = std::min(extent.rows_per_chunk, rows.rows() - std::min(first, rows.rows()));
    rows.chunks.push_back(bytes_at(extent.chunks[i], count * rows.row_bytes));
  }
  return rows;
}

}  // namespace

Result<std::vector<Hdf5Rows>> hdf5_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5ArrayRequest> requests) {
  MemoryWindow window(file);
  Hdf5Reader reader(window, file.size());
  PENSTOCK_TRY(reader.open());
  std::vector<Hdf5Rows> found;
  for (const Hdf5ArrayRequest& request : requests) {
    PENSTOCK_ASSIGN(const size_t index, find_array(reader, request.array));
    PENSTOCK_ASSIGN(const ArrayExtent extent, reader.locate(index, true));
    if (request.element && (extent.item_bytes != element_bytes(*request.element) ||
                            reader.arrays()[index].is_integer == is_float(*request.element)))
      return make_error(Errc::unsupported, "the dataset '{}' has {} of {} bytes, not {}", request.array,
                        reader.arrays()[index].is_integer ? "integers" : "floats", extent.item_bytes,
                        element_name(*request.element));
    if (extent.big_endian)
      return make_error(Errc::unsupported, "the dataset '{}' is big-endian", request.array);
    PENSTOCK_ASSIGN(Hdf5Rows rows, rows_of(file, reader.arrays()[index], extent));
    found.push_back(std::move(rows));
  }
  return found;
}

Result<std::vector<uint64_t>> hdf5_shape(Backend& backend, std::string_view object, std::string_view array) {
  PENSTOCK_ASSIGN(const std::unique_ptr<Reader> reader, backend.open(object));
  PENSTOCK_ASSIGN(const uint64_t bytes, reader->size());
  PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, {std::string(object), bytes}));
  Hdf5Reader parser(window);
  PENSTOCK_TRY(parser.open());
  const Result<size_t> at = find_array(parser, array);
  if (!at.ok()) return make_error(at.error().code, "'" + std::string(object) + "': " + at.error().what);
  return parser.arrays()[*at].shape;
}

}  // namespace penstock
