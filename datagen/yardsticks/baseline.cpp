#include "datagen/yardsticks/baseline.hpp"

#include "io_backends/backend/buffer.hpp"

namespace penstock {
namespace {

using Sample = SampleList::Sample;

// Reads the samples of `plan` with system calls. If samples are whole objects, each read opens and closes its
// object. Otherwise, as many objects as max_open_objects() allows stay open.
Result<LoopDone> read_by_system_calls(const ReadPlan& plan, unsigned threads, LoopControl& control) {
  PENSTOCK_ASSIGN(const Fd root, open_root(plan));
  std::vector<Fd> objects;
  const uint64_t held_count = plan.whole_objects ? 0 : max_open_objects(plan.samples.objects());
  for (uint64_t i = 0; i < held_count; ++i) {
    PENSTOCK_ASSIGN(Fd fd, open_object(root.get(), plan.samples.name(uint32_t(i)).data()));
    objects.push_back(std::move(fd));
  }
  const uint64_t largest_bytes = plan.samples.largest_bytes();
  return control.run(threads, [&](LoopDone& done, unsigned) -> Result<void> {
    Buffer buffer(whole_huge_pages(largest_bytes));
    for (Sample sample; control.next(sample);) {
      const char* name = plan.samples.name(sample.object).data();
      if (sample.object < objects.size()) {
        PENSTOCK_TRY(read_whole(objects[sample.object].get(), sample, buffer.data(), name));
      } else {
        PENSTOCK_ASSIGN(const Fd fd, open_object(root.get(), name));
        PENSTOCK_TRY(read_whole(fd.get(), sample, buffer.data(), name));
      }
      ++done.samples;
      done.bytes += sample.length;
    }
    return success();
  });
}

Result<LoopDone> read_by_backend(const ReadPlan& plan, unsigned threads, LoopControl& control) {
  PENSTOCK_ASSIGN(const OpenObjects objects, open_objects(plan));
  const uint64_t largest_bytes = plan.samples.largest_bytes();
  return control.run(threads, [&](LoopDone& done, unsigned) -> Result<void> {
    Buffer buffer(whole_huge_pages(largest_bytes));
    std::unique_ptr<Reader> own_reader;
    for (Sample sample; control.next(sample);) {
      const auto out = buffer.first(sample.length);
      if (plan.whole_objects) {
        PENSTOCK_TRY(plan.backend.read_object(plan.samples.name(sample.object), sample.length, out));
      } else {
        PENSTOCK_ASSIGN(Reader* const reader, reader_of(plan, objects, sample.object, own_reader));
        PENSTOCK_TRY(reader->read_at(sample.offset, out));
      }
      ++done.samples;
      done.bytes += sample.length;
    }
    return success();
  });
}

}  // namespace

Result<LoopDone> baseline_read(const ReadPlan& plan, unsigned threads, const LoopEnd& end) {
  LoopControl control(plan, end);
  return can_use_system_calls(plan.backend) ? read_by_system_calls(plan, threads, control)
                                            : read_by_backend(plan, threads, control);
}

}  // namespace penstock
