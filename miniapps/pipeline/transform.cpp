#include "miniapps/pipeline/transform.hpp"

namespace penstock {

void StageTimer::record_spans(SpanBuffer& spans, std::span<const std::string_view> stages) {
  spans_ = &spans;
  part_components_ = {PENSTOCK_READ};
  for (const std::string_view stage : stages)
    part_components_.push_back(stage == "decode" ? PENSTOCK_DECODE : PENSTOCK_TRANSFORM);
  thread_ = span_thread();
}

void StageTimer::add_part_span(size_t part, uint64_t bytes, Clock::time_point now) {
  spans_->add({.begin_ns = span_ns(last_end_),
               .end_ns = span_ns(now),
               .number = index_,
               .bytes = bytes,
               .epoch = uint32_t(epoch_),
               .thread = thread_,
               .component = part_components_[part],
               .detail = uint16_t(part < kFirstOwnPart ? 0 : part - kFirstOwnPart),
               .reserved = 0});
}

void StageTimer::add_other_span(penstock_component component, unsigned detail, Clock::time_point begin,
                                Clock::time_point end, bool belongs_to_sample) {
  spans_->add({.begin_ns = span_ns(begin),
               .end_ns = span_ns(end),
               .number = belongs_to_sample ? index_ : PENSTOCK_NO_NUMBER,
               .bytes = 0,
               .epoch = belongs_to_sample ? uint32_t(epoch_) : PENSTOCK_NO_EPOCH,
               .thread = thread_,
               .component = uint16_t(component),
               .detail = uint16_t(detail),
               .reserved = 0});
}

}  // namespace penstock
