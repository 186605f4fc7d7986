#include "profiling/spans/span_log.hpp"

#include <unistd.h>

#include <array>
#include <new>
#include <numeric>
#include <stdexcept>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::array<std::string_view, PENSTOCK_COMPONENTS> kComponentNames{
    "read",      "load",       "decode",  "transform", "train",
    "iteration", "checkpoint", "shuffle", "wait",      "validation"};

}  // namespace

std::string_view component_name(unsigned component) {
  return component < kComponentNames.size() ? kComponentNames[component] : "";
}

uint32_t span_thread() {
  return uint32_t(::gettid());
}

Result<std::unique_ptr<SpanLog>> SpanLog::make(const std::vector<size_t>& capacities) {
  try {
    std::unique_ptr<SpanLog> log(new SpanLog);
    for (const size_t capacity : capacities) log->buffers_.push_back(std::make_unique<SpanBuffer>(capacity));
    return log;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  const size_t total_spans = std::accumulate(capacities.begin(), capacities.end(), size_t{0});
  return make_error(Errc::exhausted, "no memory for " + format_count(total_spans) + " spans of " +
                                         std::to_string(sizeof(penstock_span)) + " bytes");
}

uint64_t SpanLog::recorded() const {
  uint64_t sum = 0;
  for (const auto& buffer : buffers_) sum += buffer->spans().size();
  return sum;
}

uint64_t SpanLog::dropped() const {
  uint64_t sum = 0;
  for (const auto& buffer : buffers_) sum += buffer->dropped();
  return sum;
}

}  // namespace penstock
