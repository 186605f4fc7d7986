// The metrics that an accelerator adds to the record (Accelerator::record()).
#pragma once

#include "io_backends/core/metric.hpp"

namespace penstock::accelerator_metrics {

inline constexpr MetricInfo kBurnRate{"burn_rounds_per_s", "1/s"};
inline constexpr MetricInfo kBurnSpread{"burn_calibration_spread", "1"};
inline constexpr MetricInfo kLossFirst{"loss_first", "1"};
inline constexpr MetricInfo kLossLast{"loss_last", "1"};

inline constexpr MetricInfo kAll[] = {kBurnRate, kBurnSpread, kLossFirst, kLossLast};

}  // namespace penstock::accelerator_metrics
