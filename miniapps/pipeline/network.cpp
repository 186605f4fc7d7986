#include "miniapps/pipeline/network.hpp"

namespace penstock {

Network alexnet(uint32_t classes) {
  using Kind = Layer::Kind;
  const Layer pool{.kind = Kind::max_pool, .kernel = 3, .stride = 2};
  const Layer conv_384{.kind = Kind::convolution, .outputs = 384, .kernel = 3, .padding = 1, .relu = true};
  return {
      .side = 224,
      .layers = {
          {.kind = Kind::convolution, .outputs = 96, .kernel = 11, .stride = 4, .padding = 2, .relu = true},
          pool,
          {.kind = Kind::convolution, .outputs = 256, .kernel = 5, .padding = 2, .relu = true},
          pool,
          conv_384,
          conv_384,
          {.kind = Kind::convolution, .outputs = 256, .kernel = 3, .padding = 1, .relu = true},
          pool,
          {.kind = Kind::dense, .outputs = 4096, .relu = true},
          {.kind = Kind::dense, .outputs = 4096, .relu = true},
          {.kind = Kind::dense, .outputs = classes}}};
}

}  // namespace penstock
