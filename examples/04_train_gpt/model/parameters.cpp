#include "examples/04_train_gpt/model/parameters.hpp"

#include "examples/04_train_gpt/data/counter_hash.hpp"

#include <cmath>
#include <numbers>

namespace train_gpt {
namespace {

constexpr auto normal_deviation = 0.02;

// Hands out the arena piece by piece, in the order of list_tensors.
template <typename Real>
class Slicer {
  public:
    Slicer(std::span<Real> arena, const std::vector<Tensor>& tensors)
        : arena_(arena), next_(tensors.begin()) {}

    Real* next() { return arena_.data() + (next_++)->offset; }

  private:
    std::span<Real> arena_;
    std::vector<Tensor>::const_iterator next_;
};

class TensorList {
  public:
    void add(std::string name, int rows, int columns, Start start) {
        const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
        tensors_.push_back({std::move(name), offset_, size, start, rows > 1});
        offset_ += size;
    }

    std::vector<Tensor> take() { return std::move(tensors_); }

  private:
    std::vector<Tensor> tensors_;
    std::size_t offset_ = 0;
};

void add_norm(TensorList& list, const std::string& name, int width) {
    list.add(name + ".gain", 1, width, Start::ones);
    list.add(name + ".shift", 1, width, Start::zeros);
}

void add_linear(TensorList& list, const std::string& name, int outputs, int inputs, Start start) {
    list.add(name + ".weight", outputs, inputs, start);
    list.add(name + ".bias", 1, outputs, Start::zeros);
}

void add_block(TensorList& list, const std::string& name, int width) {
    add_norm(list, name + ".norm1", width);
    add_linear(list, name + ".attention", 3 * width, width, Start::normal);
    add_linear(list, name + ".output", width, width, Start::residual);
    add_norm(list, name + ".norm2", width);
    add_linear(list, name + ".expand", 4 * width, width, Start::normal);
    add_linear(list, name + ".contract", width, 4 * width, Start::residual);
}

// Box-Muller, one value per pair of hashes.
double normal_value(std::uint64_t seed, std::size_t index) {
    const double radius_draw = to_unit_interval(counter_hash(seed, index, 0));
    const double angle_draw = to_unit_interval(counter_hash(seed, index, 1));
    return std::sqrt(-2.0 * std::log(radius_draw)) * std::cos(2.0 * std::numbers::pi * angle_draw);
}

double start_value(const ModelConfig& config, const Tensor& tensor, std::uint64_t seed,
                   std::size_t index) {
    switch (tensor.start) {
        case Start::zeros:
            return 0.0;
        case Start::ones:
            return 1.0;
        case Start::normal:
            return normal_deviation * normal_value(seed, index);
        case Start::residual:
            return normal_deviation / std::sqrt(2.0 * config.layers) * normal_value(seed, index);
    }
    return 0.0;
}

}  // namespace

std::vector<Tensor> list_tensors(const ModelConfig& config) {
    TensorList list;
    list.add("token_embedding", config.vocabulary, config.width, Start::normal);
    list.add("position_embedding", config.context, config.width, Start::normal);
    for (int layer = 0; layer < config.layers; ++layer) {
        add_block(list, "block" + std::to_string(layer), config.width);
    }
    add_norm(list, "final", config.width);
    return list.take();
}

std::size_t count_parameters(const ModelConfig& config) {
    const auto tensors = list_tensors(config);
    return tensors.back().offset + tensors.back().size;
}

template <typename Real>
ParameterView<Real> view_parameters(const ModelConfig& config, std::span<Real> arena) {
    const auto tensors = list_tensors(config);
    Slicer<Real> slicer(arena, tensors);
    ParameterView<Real> view{};
    view.token_embedding = slicer.next();
    view.position_embedding = slicer.next();
    for (int layer = 0; layer < config.layers; ++layer) {
        BlockView<Real> block{};
        for (auto member : {&BlockView<Real>::norm1_gain, &BlockView<Real>::norm1_shift,
                            &BlockView<Real>::attention_weight, &BlockView<Real>::attention_bias,
                            &BlockView<Real>::output_weight, &BlockView<Real>::output_bias,
                            &BlockView<Real>::norm2_gain, &BlockView<Real>::norm2_shift,
                            &BlockView<Real>::expand_weight, &BlockView<Real>::expand_bias,
                            &BlockView<Real>::contract_weight, &BlockView<Real>::contract_bias}) {
            block.*member = slicer.next();
        }
        view.blocks.push_back(block);
    }
    view.final_gain = slicer.next();
    view.final_shift = slicer.next();
    return view;
}

template <typename Real>
void initialise_parameters(const ModelConfig& config, std::uint64_t seed, std::span<Real> arena) {
    for (const Tensor& tensor : list_tensors(config)) {
        for (std::size_t index = tensor.offset; index < tensor.offset + tensor.size; ++index) {
            arena[index] = static_cast<Real>(start_value(config, tensor, seed, index));
        }
    }
}

template ParameterView<float> view_parameters(const ModelConfig&, std::span<float>);
template ParameterView<const float> view_parameters(const ModelConfig&, std::span<const float>);
template ParameterView<double> view_parameters(const ModelConfig&, std::span<double>);
template ParameterView<const double> view_parameters(const ModelConfig&, std::span<const double>);
template void initialise_parameters(const ModelConfig&, std::uint64_t, std::span<float>);
template void initialise_parameters(const ModelConfig&, std::uint64_t, std::span<double>);

}  // namespace train_gpt
