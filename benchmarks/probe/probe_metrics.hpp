// The metrics in a record of `tiers --probe`. In a name, `*` stands for a probe, such as
// "read.sequential.1m.1". For kMetadataRate it stands for an operation, such as "create".
#pragma once

#include "io_backends/core/metric.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::probe_metrics {

inline constexpr MetricInfo kMetadataRate{"metadata.*.ops_per_s", "1/s", Better::higher, "repeat", kHeadline};
inline constexpr MetricInfo kByteRate{"*.bytes_per_s", "B/s", Better::higher, "repeat", kHeadline};
inline constexpr MetricInfo kOpRate{"*.ops_per_s", "1/s", Better::higher, "repeat"};
inline constexpr MetricInfo kByteRateOfClient{"*.bytes_per_s_per_client", "B/s", Better::higher, "repeat"};
inline constexpr MetricInfo kOpRateOfClient{"*.ops_per_s_per_client", "1/s", Better::higher, "repeat"};
inline constexpr RankMetrics kRankRates{{"*.rank_min_bytes_per_s", "B/s", Better::higher, "repeat"},
                                        {"*.rank_median_bytes_per_s", "B/s", Better::higher, "repeat"},
                                        {"*.rank_max_bytes_per_s", "B/s", Better::higher, "repeat"}};
// If only one probe can be shown, it is this one: its rate says most about the difference between tiers.
inline constexpr MetricInfo kSequentialRead{"read.sequential.1m.1.bytes_per_s", "B/s", Better::higher,
                                            "repeat", kHeadline};

// These two are shown next to it.
inline constexpr MetricInfo kSequentialWrite{"write.sequential.1m.1.bytes_per_s", "B/s", Better::higher,
                                             "repeat", kHeadline};
inline constexpr MetricInfo kCreateRate{"metadata.create.ops_per_s", "1/s", Better::higher, "repeat",
                                        kHeadline};

inline constexpr MetricInfo kAll[] = {kSequentialRead,   kSequentialWrite, kCreateRate,
                                      kMetadataRate,     kByteRate,        kOpRate,
                                      kByteRateOfClient, kOpRateOfClient,  kRankRates.least,
                                      kRankRates.median, kRankRates.most,  shared_metrics::kTierBytesRead};

}  // namespace penstock::probe_metrics
