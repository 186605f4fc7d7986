// Hides the differences between versions 2 and 3 of oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace penstock::onednn {

using dnnl::engine;
using dnnl::memory;

#if DNNL_VERSION_MAJOR >= 3

using PoolForward = dnnl::pooling_forward;
using PoolBackward = dnnl::pooling_backward;

template <class Primitive, class... Args>
typename Primitive::primitive_desc forward_desc(const engine& cpu, const Args&... args) {
  return typename Primitive::primitive_desc(cpu, args...);
}
// Describes a backward pass. oneDNN needs the description of the forward pass for it.
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc backward_desc(const Forward& forward, const engine& cpu,
                                                 const Args&... args) {
  return typename Primitive::primitive_desc(cpu, args..., forward);
}

inline dnnl::eltwise_forward::primitive_desc relu_forward(const engine& cpu, const memory::desc& layout) {
  return {cpu, dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu_use_dst_for_bwd, layout,
          layout};
}
inline dnnl::eltwise_backward::primitive_desc relu_backward(
    const dnnl::eltwise_forward::primitive_desc& forward, const engine& cpu, const memory::desc& layout) {
  return {cpu, dnnl::algorithm::eltwise_relu_use_dst_for_bwd, layout, layout, layout, 0.0F, 0.0F, forward};
}

// Describes the sum a + scale * b of two arrays with this layout.
inline dnnl::sum::primitive_desc scaled_sum(const engine& cpu, const memory::desc& layout, float scale) {
  return {cpu, layout, {1.0F, scale}, {layout, layout}};
}

#else

using PoolForward = dnnl::pooling_v2_forward;
using PoolBackward = dnnl::pooling_v2_backward;

template <class Primitive, class... Args>
typename Primitive::primitive_desc forward_desc(const engine& cpu, const Args&... args) {
  return typename Primitive::primitive_desc(typename Primitive::desc(args...), cpu);
}
// Describes a backward pass. oneDNN needs the description of the forward pass for it.
template <class Primitive, class Forward, class... Args>
typename Primitive::primitive_desc backward_desc(const Forward& forward, const engine& cpu,
                                                 const Args&... args) {
  return typename Primitive::primitive_desc(typename Primitive::desc(args...), cpu, forward);
}

inline dnnl::eltwise_forward::primitive_desc relu_forward(const engine& cpu, const memory::desc& layout) {
  return forward_desc<dnnl::eltwise_forward>(cpu, dnnl::prop_kind::forward_training,
                                             dnnl::algorithm::eltwise_relu_use_dst_for_bwd, layout);
}
inline dnnl::eltwise_backward::primitive_desc relu_backward(
    const dnnl::eltwise_forward::primitive_desc& forward, const engine& cpu, const memory::desc& layout) {
  return backward_desc<dnnl::eltwise_backward>(forward, cpu, dnnl::algorithm::eltwise_relu_use_dst_for_bwd,
                                               layout, layout);
}

// Describes the sum a + scale * b of two arrays with this layout.
inline dnnl::sum::primitive_desc scaled_sum(const engine& cpu, const memory::desc& layout, float scale) {
  return {layout, {1.0F, scale}, {layout, layout}, cpu};
}

#endif

}  // namespace penstock::onednn
