// Micro-benchmark: what a queue costs in addition to the reads. Keeps 16 reads of one byte in flight, in
// every back end's own queue and in a thread pool. The baseline does the same reads one after another without
// a queue.
#include <string>

#include "benchmarks/self/micro/bench_folder.hpp"
#include "benchmarks/self/micro/in_turns.hpp"
#include "benchmarks/self/micro/microbench.hpp"
#include "io_backends/backend/backend_info.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_queue_hand_over;

namespace {

constexpr size_t kDepth = 16;
constexpr size_t kBatch = 256;

using MakeQueue = Result<std::unique_ptr<Queue>> (*)(Backend& backend, size_t depth);

// `bytes`: the buffer for the bytes that are read. It must outlive the queue.
Result<void> measure(benchmark::State& state, Reader& reader, Queue& queue, std::span<std::byte> bytes,
                     bool smoke) {
  std::vector<Completion> completions(kDepth);
  for (size_t i = 0; i < kDepth; ++i) {
    const Operation operation{ReadAt{&reader, i, bytes.subspan(i, 1)}, i};
    queue.submit({&operation, 1});
  }
  const auto reap_and_submit = [&]() -> Result<void> {  // reaps one read and submits one
    queue.reap(std::span(completions).first(1), 1);
    PENSTOCK_TRY(std::move(completions.front().bytes));
    const uint64_t i = completions.front().tag;
    const Operation operation{ReadAt{&reader, i, bytes.subspan(i, 1)}, i};
    queue.submit({&operation, 1}, Start::with_reap);
    return success();
  };
  std::byte single_byte{};
  uint64_t at = 0;
  PENSTOCK_TRY(by_turns(state, {.batch = smoke ? 1 : kBatch}, reap_and_submit, [&] {
    return reader.read_at(at++ % kDepth, {&single_byte, 1});
  }));
  while (queue.in_flight() > 0) queue.reap(completions, 1);
  return success();
}

void add(Microbench& to) {
  const auto add_one = [&to](const BackendInfo* info, const std::string& name, MakeQueue make) {
    to.add(name, [info, make, smoke = to.smoke()](benchmark::State& state) {
        const auto folder = BenchFolder::make(*info, 4096);
        if (!folder.ok()) return give_up(state, folder.error());
        const auto reader = (*folder)->backend().open(BenchFolder::kObject);
        if (!reader.ok()) return give_up(state, reader.error());
        std::vector<std::byte> bytes(kDepth);
        const auto queue = make((*folder)->backend(), kDepth);
        if (!queue.ok()) return give_up(state, queue.error());
        const Result<void> done = measure(state, **reader, **queue, bytes, smoke);
        if (!done.ok()) give_up(state, done.error());
      })->UseManualTime();
  };
  for (const BackendInfo* const info : benchable_backends()) {
    add_one(info, std::string(info->name) + "/own",
            [](Backend& backend, size_t depth) { return backend.queue(depth); });
    if (info->name == "posix") add_one(info, "posix/threads", &thread_pool_queue);
  }
}

}  // namespace

const MicrobenchInfo microbench_queue_hand_over{
    .name = "queue_hand_over", .summary = "a read handed to a queue and taken back", .add = add};

}  // namespace penstock
