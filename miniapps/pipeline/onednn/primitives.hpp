// Hides the differences between versions 2 and 3 of oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace penstock::onednn {

using dnnl::engine;
using dnnl::memory;

#if DNNL_VERSION_MAJOR >= 3

using PoolForward = dnnl::pooling_forward;
using PoolBackward = dnnl::pooling_backward;

template <class Primitive, class... Words>
typename Primitive::primitive_desc described(const engine& where, const Words&... words) {
  return typename Primitive::primitive_desc(where, words...);
}
// The description of a backward pass; oneDNN needs the forward description for it.
template <class Primitive, class Forward, class... Words>
typename Primitive::primitive_desc described_after(const Forward& forward, const engine& where,
                                                   const Words&... words) {
  return typename Primitive::primitive_desc(where, words..., forward);
}

inline dnnl::eltwise_forward::primitive_desc relu_forward(const engine& where, const memory::desc& of) {
  return {where, dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu_use_dst_for_bwd, of, of};
}
inline dnnl::eltwise_backward::primitive_desc relu_backward(
    const dnnl::eltwise_forward::primitive_desc& forward, const engine& where, const memory::desc& of) {
  return {where, dnnl::algorithm::eltwise_relu_use_dst_for_bwd, of, of, of, 0.0F, 0.0F, forward};
}

// a + scale * b; both have the layout `of`.
inline dnnl::sum::primitive_desc added(const engine& where, const memory::desc& of, float scale) {
  return {where, of, {1.0F, scale}, {of, of}};
}

#else

using PoolForward = dnnl::pooling_v2_forward;
using PoolBackward = dnnl::pooling_v2_backward;

template <class Primitive, class... Words>
typename Primitive::primitive_desc described(const engine& where, const Words&... words) {
  return typename Primitive::primitive_desc(typename Primitive::desc(words...), where);
}
// The description of a backward pass; oneDNN needs the forward description for it.
template <class Primitive, class Forward, class... Words>
typename Primitive::primitive_desc described_after(const Forward& forward, const engine& where,
                                                   const Words&... words) {
  return typename Primitive::primitive_desc(typename Primitive::desc(words...), where, forward);
}

inline dnnl::eltwise_forward::primitive_desc relu_forward(const engine& where, const memory::desc& of) {
  return described<dnnl::eltwise_forward>(where, dnnl::prop_kind::forward_training,
                                          dnnl::algorithm::eltwise_relu_use_dst_for_bwd, of);
}
inline dnnl::eltwise_backward::primitive_desc relu_backward(
    const dnnl::eltwise_forward::primitive_desc& forward, const engine& where, const memory::desc& of) {
  return described_after<dnnl::eltwise_backward>(forward, where,
                                                 dnnl::algorithm::eltwise_relu_use_dst_for_bwd, of, of);
}

// a + scale * b; both have the layout `of`.
inline dnnl::sum::primitive_desc added(const engine& where, const memory::desc& of, float scale) {
  return {of, {1.0F, scale}, {of, of}, where};
}

#endif

}  // namespace penstock::onednn
