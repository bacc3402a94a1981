#include "examples/04_train_gpt/model/gpt.hpp"
#include "examples/04_train_gpt/training/adamw.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace train_gpt;

// The expected numbers come from golden_values.py, which computes them in another way.
namespace {

const ModelConfig config{.vocabulary = 7, .context = 4, .layers = 2, .heads = 2, .width = 6};
constexpr auto shape = BatchShape{2, 4};
constexpr auto clip = 0.6;

template <typename Real>
struct Run {
    AlignedVector<Real> parameters = AlignedVector<Real>(count_parameters(config));
    AlignedVector<Real> gradients = AlignedVector<Real>(parameters.size());
    AdamMoments<Real> moments{AlignedVector<Real>(parameters.size()),
                              AlignedVector<Real>(parameters.size())};
    std::vector<Token> tokens;
    std::vector<Token> targets;
    Gpt<Real> model{config, shape.batch};
    std::uint64_t step = 0;
    double loss = 0.0;
    double norm = 0.0;

    Run() {
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            parameters[i] = static_cast<Real>(0.5 * std::sin(0.7 * static_cast<double>(i) + 0.3));
        }
        for (int i = 0; i < shape.rows(); ++i) {
            tokens.push_back(static_cast<Token>((3 * i + 1) % config.vocabulary));
            targets.push_back(static_cast<Token>((5 * i + 2) % config.vocabulary));
        }
        differentiate();
    }

    void differentiate() {
        std::fill(gradients.begin(), gradients.end(), Real{0});
        model.forward(parameters, tokens, shape);
        loss = model.loss(targets) / shape.rows();
        model.backward(parameters, targets, Real{1} / static_cast<Real>(shape.rows()), gradients);
        norm = gradient_norm(std::span<const Real>(gradients));
    }

    void advance() {
        const auto scale = static_cast<Real>(std::min(1.0, clip / norm));
        apply_adamw(AdamSettings{}, list_tensors(config), step++, 0.01, scale,
                    std::span<const Real>(gradients), moments, std::span<Real>(parameters));
        differentiate();
    }
};

struct FirstElement {
    std::string tensor;
    double gradient;
};

const std::vector<FirstElement> first_gradients{
    {"token_embedding", 0.0122824420495254},
    {"position_embedding", -0.00270559593136449},
    {"block0.norm1.gain", -0.00160586262227235},
    {"block0.norm1.shift", 0.00517316965243396},
    {"block0.attention.weight", 6.81206703630974e-06},
    {"block0.attention.bias", -0.000155449420885361},
    {"block0.output.weight", 0.00060794165927844},
    {"block0.output.bias", -0.00292660786132205},
    {"block0.norm2.gain", -0.000181629167766937},
    {"block0.norm2.shift", 0.000497532030058029},
    {"block0.expand.weight", 6.21455699446318e-05},
    {"block0.expand.bias", 0.000401092423843897},
    {"block0.contract.weight", 0.000361284445794883},
    {"block0.contract.bias", -0.0026314438823132},
    {"block1.norm1.gain", 0.000664906157676375},
    {"block1.norm1.shift", -0.000831107173087445},
    {"block1.attention.weight", -2.18093451350196e-06},
    {"block1.attention.bias", 4.63455222143225e-06},
    {"block1.output.weight", 0.000787700090731879},
    {"block1.output.bias", -0.00246865598662597},
    {"block1.norm2.gain", -0.000515182522720221},
    {"block1.norm2.shift", 0.000619790176982507},
    {"block1.expand.weight", -0.000273143467197689},
    {"block1.expand.bias", 0.000492586558290423},
    {"block1.contract.weight", 0.000385418924527242},
    {"block1.contract.bias", -0.00249220177921235},
    {"final.gain", 0.144519815728318},
    {"final.shift", -0.234824084605903},
};

}  // namespace

TEST_CASE("loss and gradient of the first step are those of an independent implementation") {
    Run<double> run;
    CHECK(run.loss == Approx(2.16155776234413).epsilon(1e-12));
    CHECK(run.norm == Approx(0.737041318878656).epsilon(1e-12));
    const auto tensors = list_tensors(config);
    REQUIRE(tensors.size() == first_gradients.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        CAPTURE(tensors[i].name);
        CHECK(tensors[i].name == first_gradients[i].tensor);
        CHECK(run.gradients[tensors[i].offset] ==
              Approx(first_gradients[i].gradient).epsilon(1e-9));
    }
}

TEST_CASE("three clipped AdamW steps lead to the losses of an independent implementation") {
    Run<double> run;
    for (const double expected : {2.10902655091087, 2.06603719569951, 2.03111949197681}) {
        run.advance();
        CHECK(run.loss == Approx(expected).epsilon(1e-12));
    }
}

TEST_CASE("float follows double within its precision") {
    Run<float> run;
    CHECK(run.loss == Approx(2.16155776234413).epsilon(1e-6));
    CHECK(run.norm == Approx(0.737041318878656).epsilon(1e-5));
    for (int step = 0; step < 3; ++step) run.advance();
    CHECK(run.loss == Approx(2.03111949197681).epsilon(1e-5));
}
