// For tests only: the ways to read an object that all back ends have.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// An object is read as a whole or through a Reader, either by a blocking call or through a queue.
enum class Way : uint8_t { object, reader, queued_object, queued_reader };
inline constexpr Way kWays[] = {Way::object, Way::reader, Way::queued_object, Way::queued_reader};
inline std::string way_name(Way way) {
  constexpr std::string_view kNames[] = {"object", "reader", "queued object", "queued reader"};
  return std::string(kNames[size_t(way)]);
}
inline bool opens(Way way) {
  return way == Way::reader || way == Way::queued_reader;
}

// A back end with its own queue, for one thread. After a fork, the child must make its own Subject.
struct Subject {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Queue> queue;

  static Result<Subject> make(std::string_view tier_text) {
    PENSTOCK_ASSIGN(auto tier, open_tier(tier_text, kNoNamedTiers));
    PENSTOCK_ASSIGN(auto queue, tier.backend->queue(4));
    return Subject{std::move(tier.backend), std::move(queue)};
  }

  Result<void> put(std::string_view name, std::span<const std::byte> bytes) const {
    PENSTOCK_ASSIGN(const auto writer, backend->create(name, 0));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(Durability::visible);
  }

  // Fills `out` with the first bytes of the object.
  Result<uint64_t> read(Way way, std::string_view name, std::span<std::byte> out) const {
    if (way == Way::object) return backend->read_object(name, out.size(), out);
    if (way == Way::queued_object) return by_queue({ReadObject{name, out.size(), out}, 1});
    PENSTOCK_ASSIGN(const auto reader, backend->open(name));
    return read(way, *reader, 0, out);
  }
  Result<uint64_t> read(Way way, Reader& reader, uint64_t offset, std::span<std::byte> out) const {
    const Operation operation{ReadAt{&reader, offset, out}, 1};
    return way == Way::reader ? perform(*backend, operation) : by_queue(operation);
  }
  Result<uint64_t> by_queue(const Operation& operation) const {
    EXPECT_EQ(queue->submit({&operation, 1}), 1U);
    Completion completion;
    EXPECT_EQ(queue->reap({&completion, 1}, 1), 1U);
    return std::move(completion.bytes);
  }
};

}  // namespace penstock
