// Collective calls of the ranks of a job. Each has one of three forms: on_root (only rank 0 works, for all
// ranks), all_ok (all ranks must succeed), or gather (each rank gives a value, and all ranks get all values).
// Every rank makes the same calls in the same order, from one thread. No call returns on any rank before all
// ranks have called it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Calls `work` and returns its outcome. Turns an exception into an error (error_of). If an exception ended
// this rank, it would make no more collective calls, and the other ranks would wait for ever.
template <class Work>
std::invoke_result_t<Work> guarded(Work work) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

// Converts a value to bytes and back. The value is trivially copyable, or a string or vector of such values.
template <class T>
std::vector<std::byte> bytes_of_value(const T& value) {
  std::span<const std::byte> bytes;
  if constexpr (std::is_trivially_copyable_v<T>)
    bytes = std::as_bytes(std::span(&value, 1));
  else
    bytes = std::as_bytes(std::span(value));
  return {bytes.begin(), bytes.end()};
}
template <class T>
T value_from_bytes(std::span<const std::byte> bytes) {
  T value{};
  std::byte* target = nullptr;
  if constexpr (std::is_trivially_copyable_v<T>) {
    target = std::as_writable_bytes(std::span(&value, 1)).data();
  } else {
    value.resize(bytes.size() / sizeof(typename T::value_type));
    target = std::as_writable_bytes(std::span(value)).data();
  }
  if (!bytes.empty()) std::memcpy(target, bytes.data(), bytes.size());
  return value;
}

// Returns rank 0's bytes, or its error, on every rank.
Result<std::vector<std::byte>> bytes_of_root(Communicator& ranks, Result<std::vector<std::byte>> root_bytes);

// Only rank 0 calls `work`. Every rank returns rank 0's outcome, with the value that `work` returned there.
template <class Work>
std::invoke_result_t<Work> on_root(Communicator& ranks, Work work) {
  using Outcome = std::invoke_result_t<Work>;
  if (ranks.size() == 1) return guarded(work);
  Result<std::vector<std::byte>> root_bytes = std::vector<std::byte>();
  if (ranks.root()) {
    const Outcome outcome = guarded(work);
    if (!outcome.ok()) root_bytes = outcome.error();
    if constexpr (!std::is_void_v<typename Outcome::value_type>)
      if (outcome.ok()) root_bytes = bytes_of_value(*outcome);
  }
  PENSTOCK_ASSIGN(const std::vector<std::byte> bytes, bytes_of_root(ranks, std::move(root_bytes)));
  if constexpr (std::is_void_v<typename Outcome::value_type>)
    return success();
  else
    return value_from_bytes<typename Outcome::value_type>(bytes);
}

// Returns the same outcome on every rank: success if all ranks succeeded, else the error of the lowest rank
// that failed. If only some ranks failed, its text starts with "on rank 2 of 4: ".
Result<void> all_ok(Communicator& ranks, const Result<void>& own_result);
template <class T>
Result<void> all_ok(Communicator& ranks, const Result<T>& own_result) {
  return all_ok(ranks, outcome_of(own_result));
}
// Calls `work` on every rank, and then all_ok() with its outcome.
template <class Work>
requires std::is_invocable_v<Work> Result<void> all_ok(Communicator& ranks, Work work) {
  return all_ok(ranks, outcome_of(guarded(work)));
}
// Does the same as all_ok(ranks, work), for long work that makes no collective calls. On each rank `work`
// runs on its own thread (with only one rank: on the calling thread). About ten times a second the ranks
// exchange their state. When `work` has failed on one rank, every rank calls `stop` on the thread that called
// all_ok(), perhaps more than once. Then `work` must soon return success. A signal at one rank reaches all
// ranks.
Result<void> all_ok(Communicator& ranks, const std::function<Result<void>()>& work,
                    const std::function<void()>& stop);

// Returns the values of all ranks in rank order, on every rank.
template <class T>
Result<std::vector<T>> gather(Communicator& ranks, const std::type_identity_t<T>& own_value) {
  static_assert(std::is_trivially_copyable_v<T>);
  PENSTOCK_ASSIGN(const auto all, ranks.gather(std::as_bytes(std::span(&own_value, 1))));
  std::vector<std::byte> all_bytes;
  for (const std::vector<std::byte>& one : all) all_bytes.insert(all_bytes.end(), one.begin(), one.end());
  PENSTOCK_TRY(ranks.broadcast(all_bytes));
  return value_from_bytes<std::vector<T>>(all_bytes);
}

}  // namespace penstock
