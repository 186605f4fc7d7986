#include "miniapps/pipeline/onednn/trainer.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/onednn/primitives.hpp"

namespace penstock {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;
using Tag = memory::format_tag;

struct Job {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

// The values between two layers, and in training their gradients in the same layout. There is no gradient if
// no earlier layer has weights to learn.
struct Tensor {
  Dims dims;
  memory value;
  memory gradient;

  bool has_gradient() const { return gradient.get(true) != nullptr; }
};

struct LayerJobs {
  std::vector<Job> forward;
  std::vector<Job> backward;  // the backward pass, and the update of the layer's weights
};

memory::desc layout(const Dims& dims, Tag tag) {
  return {dims, memory::data_type::f32, tag};
}
memory::desc any_desc(const Dims& dims) {
  return layout(dims, Tag::any);
}

// Returns the width or height of the output of a sliding window, in pixels, for an input with this `side`.
memory::dim window_output_side(memory::dim side, const Layer& layer) {
  return (side + 2 * static_cast<memory::dim>(layer.padding) - static_cast<memory::dim>(layer.kernel)) /
             static_cast<memory::dim>(layer.stride) +
         1;
}

memory::dim product(const Dims& dims, size_t from) {
  memory::dim result = 1;
  for (size_t i = from; i < dims.size(); ++i) result *= dims[i];
  return result;
}

std::span<float> floats_of(const memory& of) {
  return {static_cast<float*>(of.get_data_handle()), of.get_desc().get_size() / sizeof(float)};
}

class OneDnnTrainer final : public NetworkTrainer {
 public:
  explicit OneDnnTrainer(const TrainerRequest& request);
  Result<double> step(std::span<const float> pictures, std::span<const uint32_t> labels) override;

 private:
  void add_convolution(const Layer& layer);
  void add_max_pool(const Layer& layer);
  void add_dense(const Layer& layer);
  void flatten();
  template <class Forward, class BackData, class BackWeights>
  void add_weighted(const Layer& layer, const Dims& weight_dims, const Dims& dims,
                    const typename Forward::primitive_desc& forward,
                    const typename BackData::primitive_desc& back_data,
                    const typename BackWeights::primitive_desc& back_weights);

  memory zeroed(const memory::desc& desc);
  memory random_weights(const Dims& dims, const memory::desc& desc);
  memory in_layout(std::vector<Job>& jobs, const memory& from, const memory::desc& wanted);
  void add_weight_update(std::vector<Job>& jobs, const memory& weights, const memory& gradient);
  Result<void> run(const std::vector<Job>& jobs);
  double loss_and_gradient(std::span<const uint32_t> labels);

  const TrainerRequest request_;
  const RandomStream random_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory input_;             // the current batch, in the memory of step()'s caller
  Tensor output_;            // the output of the last of layers_
  size_t layer_number_ = 0;  // number of the layer that is being made now
  std::vector<LayerJobs> layers_;
};

OneDnnTrainer::OneDnnTrainer(const TrainerRequest& request)
    : request_(request), random_(request.seed, "train.network") {
  const auto side = static_cast<memory::dim>(request.network.side);
  output_.dims = {static_cast<memory::dim>(request.samples), kPictureChannels, side, side};
  input_ = memory(layout(output_.dims, request.axes == Axes::nhwc ? Tag::nhwc : Tag::nchw), engine_,
                  DNNL_MEMORY_NONE);
  output_.value = input_;
  for (layer_number_ = 0; layer_number_ < request.network.layers.size(); ++layer_number_) {
    const Layer& layer = request.network.layers[layer_number_];
    switch (layer.kind) {
      case Layer::Kind::convolution:
        add_convolution(layer);
        break;
      case Layer::Kind::max_pool:
        add_max_pool(layer);
        break;
      case Layer::Kind::dense:
        add_dense(layer);
        break;
    }
  }
  stream_.wait();
}

// Allocates memory with the layout `desc` and fills it with zeros. Writing the zeros also maps the pages of
// this memory, so that no training step has page faults there.
memory OneDnnTrainer::zeroed(const memory::desc& desc) {
  memory result(desc, engine_);
  std::memset(result.get_data_handle(), 0, desc.get_size());
  return result;
}

memory OneDnnTrainer::random_weights(const Dims& dims, const memory::desc& desc) {
  memory plain_weights(layout(dims, dims.size() == 4 ? Tag::oihw : Tag::oi), engine_);
  const auto bound = std::sqrt(3.0F / float(product(dims, 1)));
  const RandomStream stream = random_.substream(layer_number_);
  uint64_t n = 0;
  for (float& weight : floats_of(plain_weights)) weight = bound * (2 * float(stream.uniform(n++)) - 1);
  memory weights = zeroed(desc);
  dnnl::reorder(plain_weights, weights).execute(stream_, plain_weights, weights);
  stream_.wait();
  return weights;
}

// Returns `from` itself if it has the wanted layout. Otherwise returns new memory in that layout, and adds to
// `jobs` the job that copies `from` into this memory.
memory OneDnnTrainer::in_layout(std::vector<Job>& jobs, const memory& from, const memory::desc& wanted) {
  if (from.get_desc() == wanted) return from;
  memory copy = zeroed(wanted);
  jobs.push_back({dnnl::reorder(from, copy), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, copy}}});
  return copy;
}

void OneDnnTrainer::add_weight_update(std::vector<Job>& jobs, const memory& weights, const memory& gradient) {
  const memory aligned_gradient = in_layout(jobs, gradient, weights.get_desc());
  jobs.push_back({dnnl::sum(onednn::scaled_sum(engine_, weights.get_desc(), -request_.rate)),
                  {{DNNL_ARG_MULTIPLE_SRC, weights},
                   {DNNL_ARG_MULTIPLE_SRC + 1, aligned_gradient},
                   {DNNL_ARG_DST, weights}}});
}

// Adds a layer with weights, whose output has the dimensions `dims`.
template <class Forward, class BackData, class BackWeights>
void OneDnnTrainer::add_weighted(const Layer& layer, const Dims& weight_dims, const Dims& dims,
                                 const typename Forward::primitive_desc& forward,
                                 const typename BackData::primitive_desc& back_data,
                                 const typename BackWeights::primitive_desc& back_weights) {
  const Tensor in = output_;
  LayerJobs jobs;
  const memory weights = random_weights(weight_dims, forward.weights_desc());
  const memory bias = zeroed(forward.bias_desc());
  const Tensor out{dims, zeroed(forward.dst_desc()), zeroed(forward.dst_desc())};

  const memory source = in_layout(jobs.forward, in.value, forward.src_desc());
  jobs.forward.push_back({Forward(forward),
                          {{DNNL_ARG_SRC, source},
                           {DNNL_ARG_WEIGHTS, weights},
                           {DNNL_ARG_BIAS, bias},
                           {DNNL_ARG_DST, out.value}}});
  std::vector<Job>& backward = jobs.backward;
  if (layer.relu) {
    const auto relu = onednn::relu_forward(engine_, forward.dst_desc());
    jobs.forward.push_back(
        {dnnl::eltwise_forward(relu), {{DNNL_ARG_SRC, out.value}, {DNNL_ARG_DST, out.value}}});
    backward.push_back(
        {dnnl::eltwise_backward(onednn::relu_backward(relu, engine_, forward.dst_desc())),
         {{DNNL_ARG_DST, out.value}, {DNNL_ARG_DIFF_DST, out.gradient}, {DNNL_ARG_DIFF_SRC, out.gradient}}});
  }
  if (in.has_gradient()) {
    const bool same_layout = in.gradient.get_desc() == back_data.diff_src_desc();
    const memory target_gradient = same_layout ? in.gradient : zeroed(back_data.diff_src_desc());
    const memory source_gradient = in_layout(backward, out.gradient, back_data.diff_dst_desc());
    const memory weights_copy = in_layout(backward, weights, back_data.weights_desc());
    backward.push_back({BackData(back_data),
                        {{DNNL_ARG_DIFF_DST, source_gradient},
                         {DNNL_ARG_WEIGHTS, weights_copy},
                         {DNNL_ARG_DIFF_SRC, target_gradient}}});
    if (!same_layout)
      backward.push_back({dnnl::reorder(target_gradient, in.gradient),
                          {{DNNL_ARG_FROM, target_gradient}, {DNNL_ARG_TO, in.gradient}}});
  }
  const memory weights_gradient = zeroed(back_weights.diff_weights_desc());
  const memory bias_gradient = zeroed(back_weights.diff_bias_desc());
  const memory input = in_layout(backward, in.value, back_weights.src_desc());
  const memory output_gradient = in_layout(backward, out.gradient, back_weights.diff_dst_desc());
  backward.push_back({BackWeights(back_weights),
                      {{DNNL_ARG_SRC, input},
                       {DNNL_ARG_DIFF_DST, output_gradient},
                       {DNNL_ARG_DIFF_WEIGHTS, weights_gradient},
                       {DNNL_ARG_DIFF_BIAS, bias_gradient}}});
  add_weight_update(backward, weights, weights_gradient);
  add_weight_update(backward, bias, bias_gradient);
  output_ = out;
  layers_.push_back(std::move(jobs));
}

void OneDnnTrainer::add_convolution(const Layer& layer) {
  const auto outputs = static_cast<memory::dim>(layer.outputs);
  const auto kernel = static_cast<memory::dim>(layer.kernel);
  const Dims stride(2, static_cast<memory::dim>(layer.stride));
  const Dims padding(2, static_cast<memory::dim>(layer.padding));
  const Dims& in = output_.dims;
  const Dims out{in[0], outputs, window_output_side(in[2], layer), window_output_side(in[3], layer)};
  const Dims weights{outputs, in[1], kernel, kernel};
  const memory::desc bias = layout({outputs}, Tag::x);

  const auto forward = onednn::forward_desc<dnnl::convolution_forward>(
      engine_, prop_kind::forward_training, algorithm::convolution_auto, any_desc(in), any_desc(weights),
      bias, any_desc(out), stride, padding, padding);
  const auto back_data = onednn::backward_desc<dnnl::convolution_backward_data>(
      forward, engine_, algorithm::convolution_auto, any_desc(in), any_desc(weights), any_desc(out), stride,
      padding, padding);
  const auto back_weights = onednn::backward_desc<dnnl::convolution_backward_weights>(
      forward, engine_, algorithm::convolution_auto, any_desc(in), any_desc(weights), bias, any_desc(out),
      stride, padding, padding);
  add_weighted<dnnl::convolution_forward, dnnl::convolution_backward_data,
               dnnl::convolution_backward_weights>(layer, weights, out, forward, back_data, back_weights);
}

void OneDnnTrainer::add_max_pool(const Layer& layer) {
  const Dims kernel(2, static_cast<memory::dim>(layer.kernel));
  const Dims stride(2, static_cast<memory::dim>(layer.stride));
  const Dims padding(2, static_cast<memory::dim>(layer.padding));
  const Dims dense(2, 0);
  const Dims& in = output_.dims;
  const Dims dims{in[0], in[1], window_output_side(in[2], layer), window_output_side(in[3], layer)};
  const memory::desc from = output_.value.get_desc();
  const auto forward = onednn::forward_desc<onednn::PoolForward>(engine_, prop_kind::forward_training,
                                                                 algorithm::pooling_max, from, any_desc(dims),
                                                                 stride, kernel, dense, padding, padding);
  const Tensor out{dims, zeroed(forward.dst_desc()), zeroed(forward.dst_desc())};
  const memory workspace = zeroed(forward.workspace_desc());
  LayerJobs jobs;
  jobs.forward.push_back(
      {onednn::PoolForward(forward),
       {{DNNL_ARG_SRC, output_.value}, {DNNL_ARG_DST, out.value}, {DNNL_ARG_WORKSPACE, workspace}}});
  if (output_.has_gradient()) {
    const auto backward = onednn::backward_desc<onednn::PoolBackward>(
        forward, engine_, algorithm::pooling_max, from, forward.dst_desc(), stride, kernel, dense, padding,
        padding);
    jobs.backward.push_back({onednn::PoolBackward(backward),
                             {{DNNL_ARG_DIFF_DST, out.gradient},
                              {DNNL_ARG_DIFF_SRC, output_.gradient},
                              {DNNL_ARG_WORKSPACE, workspace}}});
  }
  output_ = out;
  layers_.push_back(std::move(jobs));
}

// Turns the output so far into one row of numbers for each sample, in the order channel, height, width.
void OneDnnTrainer::flatten() {
  const Dims rows{output_.dims[0], product(output_.dims, 1)};
  const memory value = zeroed(layout(output_.dims, Tag::nchw));
  const auto as_rows = [&](const memory& of) {
    return memory(layout(rows, Tag::nc), engine_, of.get_data_handle());
  };
  LayerJobs jobs;
  jobs.forward.push_back(
      {dnnl::reorder(output_.value, value), {{DNNL_ARG_FROM, output_.value}, {DNNL_ARG_TO, value}}});
  Tensor out{rows, as_rows(value), {}};
  if (output_.has_gradient()) {
    const memory gradient = zeroed(value.get_desc());
    jobs.backward.push_back({dnnl::reorder(gradient, output_.gradient),
                             {{DNNL_ARG_FROM, gradient}, {DNNL_ARG_TO, output_.gradient}}});
    out.gradient = as_rows(gradient);
  }
  output_ = out;
  layers_.push_back(std::move(jobs));
}

void OneDnnTrainer::add_dense(const Layer& layer) {
  if (output_.dims.size() != 2) flatten();
  const auto outputs = static_cast<memory::dim>(layer.outputs);
  const memory::desc in = layout(output_.dims, Tag::nc);
  const Dims dims{output_.dims[0], outputs};
  const memory::desc out = layout(dims, Tag::nc);
  const Dims weight_dims{outputs, output_.dims[1]};
  const memory::desc weights = layout(weight_dims, Tag::oi);
  const memory::desc bias = layout({outputs}, Tag::x);

  const auto forward = onednn::forward_desc<dnnl::inner_product_forward>(engine_, prop_kind::forward_training,
                                                                         in, weights, bias, out);
  const auto back_data =
      onednn::backward_desc<dnnl::inner_product_backward_data>(forward, engine_, in, weights, out);
  const auto back_weights =
      onednn::backward_desc<dnnl::inner_product_backward_weights>(forward, engine_, in, weights, bias, out);
  add_weighted<dnnl::inner_product_forward, dnnl::inner_product_backward_data,
               dnnl::inner_product_backward_weights>(layer, weight_dims, dims, forward, back_data,
                                                     back_weights);
}

// Computes softmax and cross entropy: returns the mean loss over the samples, and sets the gradient of the
// last layer's output.
double OneDnnTrainer::loss_and_gradient(std::span<const uint32_t> labels) {
  const size_t classes = request_.network.classes();
  const auto samples = double(labels.size());
  double loss = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> outputs = floats_of(output_.value).subspan(i * classes, classes);
    const std::span<float> gradient = floats_of(output_.gradient).subspan(i * classes, classes);
    const double largest = *std::ranges::max_element(outputs);
    double sum = 0;
    for (const float output : outputs) sum += std::exp(output - largest);
    loss += std::log(sum) + largest - outputs[labels[i]];
    for (size_t c = 0; c < classes; ++c)
      gradient[c] = float((std::exp(outputs[c] - largest) / sum - (c == labels[i] ? 1.0 : 0.0)) / samples);
  }
  return loss / samples;
}

Result<void> OneDnnTrainer::run(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    if (request_.may_go_on != nullptr) PENSTOCK_TRY(request_.may_go_on());
    job.primitive.execute(stream_, job.arguments);
    stream_.wait();
  }
  return success();
}

// Calls `action` and turns exceptions of oneDNN into errors of Penstock.
template <class Action>
auto catch_dnnl_errors(Action action) -> decltype(action()) {
  try {
    return action();
  } catch (const dnnl::error& error) {
    const std::string what = std::string("training with oneDNN: ") + error.what();
    if (error.status == dnnl_out_of_memory) return make_error(Errc::exhausted, what);
    return make_error(error.status == dnnl_unimplemented ? Errc::unsupported : Errc::internal, what);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "training needs more memory than available: choose a smaller --batch");
  }
}

Result<double> OneDnnTrainer::step(std::span<const float> pictures, std::span<const uint32_t> labels) {
  return catch_dnnl_errors([&]() -> Result<double> {
    input_.set_data_handle(const_cast<float*>(pictures.data()));  // the primitives only read the pictures
    for (const LayerJobs& layer : layers_) PENSTOCK_TRY(run(layer.forward));
    const double loss = loss_and_gradient(labels);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) PENSTOCK_TRY(run(layer->backward));
    return loss;
  });
}

// Sets how many threads oneDNN uses. oneDNN usually computes with OpenMP threads, and every OpenMP library
// has the function omp_set_num_threads().
Result<void> set_threads(unsigned threads) {
  void* const set_num_threads = ::dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (set_num_threads == nullptr)
    return make_error(Errc::unsupported,
                      "this oneDNN does not allow setting the number of threads: leave out threads=");
  reinterpret_cast<void (*)(int)>(set_num_threads)(int(threads));
  return success();
}

}  // namespace

Result<std::unique_ptr<NetworkTrainer>> make_onednn_trainer(const TrainerRequest& request) {
  if (request.threads != 0) PENSTOCK_TRY(set_threads(request.threads));
  return catch_dnnl_errors([&]() -> Result<std::unique_ptr<NetworkTrainer>> {
    return std::unique_ptr<NetworkTrainer>(std::make_unique<OneDnnTrainer>(request));
  });
}

}  // namespace penstock
