// The part of the contract about queues.
#include <map>

#include "io_backends/backend_contract_fixture.hpp"

namespace penstock {
namespace {

// All kinds of queue that a back end offers.
std::vector<std::pair<std::string, std::unique_ptr<Queue>>> all_queues(Backend& backend, size_t depth) {
  std::vector<std::pair<std::string, std::unique_ptr<Queue>>> queues;
  auto own = backend.queue(depth);
  EXPECT_OK(own);
  auto deep = deep_queue(backend, depth);
  EXPECT_OK(deep);
  if (own) queues.emplace_back("queue", *std::move(own));
  if (deep) queues.emplace_back("deep_queue", *std::move(deep));
  auto pool = thread_pool_queue(backend, depth);
  EXPECT_OK(pool);
  if (pool) queues.emplace_back("thread_pool_queue", *std::move(pool));
  return queues;
}

// Submits and reaps all operations, never with more in flight than the queue accepts.
std::map<uint64_t, Result<uint64_t>> perform_all(Queue& queue, size_t depth,
                                                 std::span<const Operation> operations) {
  std::map<uint64_t, Result<uint64_t>> done;
  std::vector<Completion> completions(depth);
  while (!operations.empty() || queue.in_flight() > 0) {
    const size_t before = queue.in_flight();
    const size_t accepted = queue.submit(operations);
    EXPECT_EQ(accepted, std::min(operations.size(), depth - before));
    EXPECT_EQ(queue.in_flight(), before + accepted);
    operations = operations.subspan(accepted);
    const size_t count = queue.reap(completions, 1);
    EXPECT_GE(count, 1U);
    EXPECT_EQ(queue.in_flight(), before + accepted - count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(done.emplace(completions[i].tag, std::move(completions[i].bytes)).second)
          << "completed twice";
    }
    if (count == 0) break;
  }
  return done;
}

TEST_P(Contract, QueuesReadAtAndReadObject) {
  constexpr size_t kObjects = 20;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Reader>> readers;
  for (size_t i = 0; i < kObjects; ++i) {
    names.push_back("objects/" + std::to_string(i));
    put(names.back(), pattern(1'000 + i * 500, unsigned(i)));
    auto reader = backend().open(names.back());
    ASSERT_OK(reader);
    readers.push_back(*std::move(reader));
  }
  for (const size_t depth : {size_t{1}, size_t{7}, size_t{8}}) {
    for (auto& [kind, queue] : all_queues(backend(), depth)) {
      std::vector<Bytes> outs;
      for (size_t i = 0; i < 3 * kObjects; ++i) outs.emplace_back(20'000);
      std::vector<Operation> operations;
      for (size_t i = 0; i < kObjects; ++i) {
        const uint64_t length = 1'000 + i * 500;
        operations.push_back({ReadObject{names[i], length, outs[3 * i]}, 3 * i});
        operations.push_back({ReadObject{names[i], 0, outs[3 * i + 1]}, 3 * i + 1});
        operations.push_back(
            {ReadAt{readers[i].get(), 10, std::span(outs[3 * i + 2]).first(900)}, 3 * i + 2});
      }
      const auto done = perform_all(*queue, depth, operations);
      ASSERT_EQ(done.size(), operations.size()) << kind;
      for (size_t i = 0; i < kObjects; ++i) {
        const Bytes bytes = pattern(1'000 + i * 500, unsigned(i));
        for (size_t k = 0; k < 3; ++k) ASSERT_OK(done.at(3 * i + k));
        EXPECT_EQ(*done.at(3 * i), bytes.size()) << kind;
        EXPECT_EQ(*done.at(3 * i + 1), bytes.size()) << kind;
        EXPECT_EQ(*done.at(3 * i + 2), 900U) << kind;
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), outs[3 * i].begin())) << kind;
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), outs[3 * i + 1].begin())) << kind;
        EXPECT_TRUE(std::equal(bytes.begin() + 10, bytes.begin() + 910, outs[3 * i + 2].begin())) << kind;
      }
    }
  }
}

TEST_P(Contract, QueuesGiveFailuresAsCompletions) {
  put("good", "water");
  const auto reader = backend().open("good");
  ASSERT_OK(reader);
  for (const size_t depth : {size_t{1}, size_t{8}}) {
    for (auto& [kind, queue] : all_queues(backend(), depth)) {
      std::vector<Bytes> outs(6, Bytes(8));
      const std::vector<Operation> operations{
          {ReadObject{"nothing", 5, outs[0]}, 0}, {ReadObject{"good", 6, outs[1]}, 1},
          {ReadObject{"../good", 5, outs[2]}, 2}, {ReadObject{"good", 0, std::span(outs[3]).first(4)}, 3},
          {ReadAt{reader->get(), 1, outs[4]}, 4}, {ReadObject{"good", 5, outs[5]}, 5},
      };
      const auto done = perform_all(*queue, depth, operations);
      ASSERT_EQ(done.size(), operations.size()) << kind;
      EXPECT_ERRC(Errc::not_found, done.at(0));
      EXPECT_ERRC(Errc::truncated, done.at(1));
      EXPECT_ERRC(Errc::invalid_argument, done.at(2));
      EXPECT_ERRC(Errc::invalid_argument, done.at(3));
      EXPECT_ERRC(Errc::truncated, done.at(4));
      EXPECT_OK(done.at(5));
    }
  }
}

TEST_P(Contract, QueuesPollAndTakeNoMoreThanAsked) {
  put("object", "water");
  for (auto& [kind, queue] : all_queues(backend(), 8)) {
    std::vector<Completion> completions(8);
    EXPECT_EQ(queue->reap(completions, 0), 0U) << kind;
    EXPECT_EQ(queue->reap(completions, 3), 0U) << kind << ": waits for what is not in flight";
    std::vector<Bytes> outs(4, Bytes(5));
    std::vector<Operation> operations;
    for (uint64_t i = 0; i < 4; ++i) operations.push_back({ReadObject{"object", 5, outs[i]}, i});
    ASSERT_EQ(queue->submit(operations), 4U) << kind;
    EXPECT_EQ(queue->reap(std::span(completions).first(2), 8), 2U) << kind;
    EXPECT_EQ(queue->reap(completions, 2), 2U) << kind;
    EXPECT_EQ(queue->in_flight(), 0U) << kind;
  }
}

TEST_P(Contract, QueuesWaitForWhatIsInFlightWhenDestroyed) {
  put("object", pattern(100'000));
  for (unsigned round = 0; round < 10; ++round) {
    // The buffers are destroyed after the queues, so the sanitizers find a late write into them.
    std::vector<Bytes> outs(24, Bytes(100'000));
    auto queues = all_queues(backend(), 8);
    size_t next = 0;
    for (auto& [kind, queue] : queues) {
      std::vector<Operation> operations;
      for (uint64_t i = 0; i < 8; ++i) operations.push_back({ReadObject{"object", 100'000, outs[next++]}, i});
      ASSERT_EQ(queue->submit(operations), 8U) << kind;
    }
  }
}

TEST_P(Contract, QueuesHaveASensibleDepth) {
  EXPECT_ERRC(Errc::invalid_argument, backend().queue(0));
  EXPECT_ERRC(Errc::invalid_argument, deep_queue(backend(), 0));
  EXPECT_ERRC(Errc::invalid_argument, deep_queue(backend(), 100'000'000));
  EXPECT_ERRC(Errc::invalid_argument, thread_pool_queue(backend(), 0));
}

}  // namespace
}  // namespace penstock
