#include "examples/04_train_gpt/training/checkpoint_format.hpp"

#include "examples/04_train_gpt/data/digest.hpp"
#include "examples/04_train_gpt/model/parameters.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace train_gpt {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr auto magic = std::string_view("ddrunGPT");
constexpr auto format_version = std::uint32_t{1};
constexpr auto digest_bytes = sizeof(std::uint64_t);

class Writer {
  public:
    explicit Writer(std::string& bytes) : bytes_(bytes) {}

    template <typename T>
    void operator()(const T& value) {
        static_assert(std::is_arithmetic_v<T>);
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    void operator()(const AlignedVector<float>& values) {
        bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }

  private:
    std::string& bytes_;
};

class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    template <typename T>
    void operator()(T& value) {
        static_assert(std::is_arithmetic_v<T>);
        copy(&value, sizeof(value));
    }
    void operator()(AlignedVector<float>& values) {
        copy(values.data(), values.size() * sizeof(float));
    }
    std::size_t left() const { return rest_.size(); }

  private:
    void copy(void* to, std::size_t size) {
        if (size > rest_.size()) throw DamagedCheckpoint("it ends too early");
        std::memcpy(to, rest_.data(), size);
        rest_.remove_prefix(size);
    }

    std::string_view rest_;
};

// The order of the fields, once for both directions.
template <typename Visit, typename Run, typename State>
void visit_header(Visit& visit, Run& run, State& state) {
    visit(run.model.vocabulary);
    visit(run.model.context);
    visit(run.model.layers);
    visit(run.model.heads);
    visit(run.model.width);
    visit(run.seed);
    visit(run.global_batch);
    visit(run.text_digest);
    visit(state.step);
    visit(state.opening_loss);
}

template <typename Visit, typename State>
void visit_arrays(Visit& visit, State& state) {
    visit(state.parameters);
    visit(state.moments.first);
    visit(state.moments.second);
}

// The part between magic and digest, once both are known to be right.
std::string_view open_envelope(std::string_view bytes) {
    if (bytes.substr(0, magic.size()) != magic) throw DamagedCheckpoint("it is no checkpoint");
    if (bytes.size() < magic.size() + digest_bytes) throw DamagedCheckpoint("it ends too early");
    std::uint64_t digest = 0;
    std::memcpy(&digest, bytes.data() + bytes.size() - digest_bytes, digest_bytes);
    bytes.remove_suffix(digest_bytes);
    if (digest_of(bytes) != digest) throw DamagedCheckpoint("its checksum does not match");
    return bytes.substr(magic.size());
}

}  // namespace

std::string encode_checkpoint(const RunIdentity& run, const TrainingState& state) {
    std::string bytes;
    bytes.reserve(256 + 3 * state.parameters.size() * sizeof(float));
    bytes += magic;
    Writer write(bytes);
    write(format_version);
    visit_header(write, run, state);
    visit_arrays(write, state);
    write(digest_of(bytes));
    return bytes;
}

Checkpoint decode_checkpoint(std::string_view bytes) {
    Reader read(open_envelope(bytes));
    std::uint32_t version = 0;
    read(version);
    if (version != format_version) {
        throw DamagedCheckpoint("its format " + std::to_string(version) + " is not " +
                                std::to_string(format_version));
    }
    Checkpoint checkpoint;
    visit_header(read, checkpoint.run, checkpoint.state);
    const std::size_t count = count_parameters(checkpoint.run.model);
    if (read.left() != 3 * count * sizeof(float)) throw DamagedCheckpoint("its size is wrong");
    checkpoint.state.parameters.resize(count);
    checkpoint.state.moments = {AlignedVector<float>(count), AlignedVector<float>(count)};
    visit_arrays(read, checkpoint.state);
    return checkpoint;
}

}  // namespace train_gpt
