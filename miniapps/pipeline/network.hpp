// Describes a neural network as data, for an accelerator that really computes.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

struct Layer {
  enum class Kind : uint8_t { convolution, max_pool, dense };
  Kind kind = Kind::dense;
  // Channels or units of the output; unused for a pool, which keeps the input's channels.
  uint32_t outputs = 0;
  uint32_t kernel = 1;  // applies to height and width, like stride and padding; unused for dense layers
  uint32_t stride = 1;
  uint32_t padding = 0;  // zeros added at each side of the input
  bool relu = false;
};

// A network for square pictures in red, green and blue. The last layer is dense, has no ReLU and has one
// output per class.
struct Network {
  uint32_t side = 0;
  std::vector<Layer> layers;

  uint32_t classes() const { return layers.back().outputs; }
};
inline constexpr uint32_t kPictureChannels = 3;

// AlexNet of Krizhevsky, Sutskever and Hinton (NIPS 2012), without local response normalisation and dropout,
// and not divided between two GPUs. Input: pictures of 224x224. Layers: five convolutions (11x11 with stride
// 4 to 96 channels, 5x5 to 256, 3x3 to 384, 384 and 256), three pools, and dense layers of
// 9216-4096-4096-`classes`.
Network alexnet(uint32_t classes);

}  // namespace penstock
