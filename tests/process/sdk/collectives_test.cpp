#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ddrun;
using namespace ddrun::testing;

namespace {

// Where a rank's buffers lie.
enum class Place { ordinary, heap, mixed };

const std::vector<std::size_t> small_sizes = {0, 1, 2, 3, 7, 63, 64, 65, 1000, 4097};
// Around the edges of a piece, and three pieces of float32.
const std::vector<std::size_t> large_sizes = {65536, 65537, 131075};

// Fractions whose sum depends on the order of adding.
template <typename T>
T value_of(int rank, std::size_t index) {
    const auto mixed = (index + 1) * 2654435761u + static_cast<std::size_t>(rank) * 40503u;
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(static_cast<double>(mixed % 100003) / 7.0 - 5000.0);
    else
        return static_cast<T>(mixed);
}

template <typename T>
T combined(ReduceOp op, int world, std::size_t index) {
    T result = value_of<T>(0, index);
    for (int rank = 1; rank < world; ++rank) {
        const T next = value_of<T>(rank, index);
        if (op == ReduceOp::min) result = std::min(result, next);
        if (op == ReduceOp::max) result = std::max(result, next);
        if (op == ReduceOp::sum || op == ReduceOp::avg) {
            if constexpr (std::is_floating_point_v<T>)
                result += next;
            else
                result = static_cast<T>(static_cast<std::make_unsigned_t<T>>(result) +
                                        static_cast<std::make_unsigned_t<T>>(next));
        }
    }
    if constexpr (std::is_floating_point_v<T>)
        if (op == ReduceOp::avg) result /= static_cast<T>(world);
    return result;
}

// Bit for bit.
template <typename T>
void demand_equal(std::span<const T> got, std::span<const T> expected, const std::string& what) {
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (std::memcmp(&got[i], &expected[i], sizeof(T)) != 0)
            throw std::runtime_error(what + " of " + std::to_string(expected.size()) +
                                     ": element " + std::to_string(i) + " is " +
                                     std::to_string(got[i]));
}

// One rank's part of the tests of one element type.
template <typename T>
class Tour {
  public:
    Tour(Worker& worker, Place place, const std::vector<std::size_t>& sizes)
        : worker_(worker),
          group_(worker.process_group()),
          world_(worker.world_size()),
          place_(place),
          sizes_(sizes) {}

    void run() {
        prepare();
        for (const std::size_t size : sizes_) {
            for (std::size_t op = 0; op < ops().size(); ++op) {
                all_reduce(size, op);
                reduce_scatter(size / ranks(), op);
            }
            all_gather(size / ranks());
            broadcast(size, size % ranks());
        }
    }

  private:
    static std::vector<ReduceOp> ops() {
        if constexpr (std::is_floating_point_v<T>)
            return {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::avg};
        return {ReduceOp::sum, ReduceOp::min, ReduceOp::max};
    }

    [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(world_); }
    [[nodiscard]] std::size_t self() const { return static_cast<std::size_t>(worker_.rank()); }

    // Buffers, every rank's values, and what they combine to.
    void prepare() {
        const bool in_heap = place_ == Place::heap || (place_ == Place::mixed && self() % 2 == 1);
        for (auto* buffer : {&first_, &second_}) {
            if (!in_heap) owned_.emplace_back(sizes_.back());
            *buffer =
                in_heap ? group_.template allocate<T>(sizes_.back()) : std::span<T>(owned_.back());
        }
        for (int rank = 0; rank < world_; ++rank) {
            auto& values = values_.emplace_back(sizes_.back());
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of<T>(rank, i);
        }
        for (const ReduceOp op : ops()) {
            auto& values = combined_.emplace_back(sizes_.back());
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = combined<T>(op, world_, i);
        }
    }

    [[nodiscard]] std::span<const T> mine(std::size_t size) const {
        return std::span<const T>(values_[self()]).first(size);
    }

    std::span<T> filled(std::span<T> buffer, std::size_t size) {
        std::ranges::copy(mine(size), buffer.begin());
        return buffer.first(size);
    }

    void all_reduce(std::size_t size, std::size_t op) {
        const auto data = filled(first_, size);
        group_.all_reduce(data, ops()[op]);
        demand_equal<T>(data, std::span(combined_[op]).first(size), "all_reduce");
    }

    void reduce_scatter(std::size_t each, std::size_t op) {
        const auto input = filled(first_, each * ranks());
        const auto output = second_.first(each);
        group_.reduce_scatter(input, output, ops()[op]);
        demand_equal<T>(output, std::span(combined_[op]).subspan(self() * each, each),
                        "reduce_scatter");
        demand_equal<T>(input, mine(input.size()), "reduce_scatter's input");
    }

    void all_gather(std::size_t each) {
        const auto input = filled(first_, each);
        const auto output = second_.first(each * ranks());
        group_.all_gather(input, output);
        for (std::size_t rank = 0; rank < ranks(); ++rank)
            demand_equal<T>(output.subspan(rank * each, each), std::span(values_[rank]).first(each),
                            "all_gather");
    }

    void broadcast(std::size_t size, std::size_t root) {
        const auto data = filled(first_, size);
        group_.broadcast(data, static_cast<int>(root));
        demand_equal<T>(data, std::span(values_[root]).first(size), "broadcast");
    }

    Worker& worker_;
    ProcessGroup& group_;
    int world_;
    Place place_;
    const std::vector<std::size_t>& sizes_;
    std::span<T> first_;
    std::span<T> second_;
    std::vector<std::vector<T>> owned_;
    std::vector<std::vector<T>> values_;    // by rank
    std::vector<std::vector<T>> combined_;  // by operation
};

void check_world(int world, Place place, const std::vector<std::size_t>& these) {
    CAPTURE(world, static_cast<int>(place), these.back());
    const auto ranks = run_ranks(world, [&](Worker& worker, std::ostream& say) {
        Tour<float>(worker, place, these).run();
        Tour<double>(worker, place, these).run();
        Tour<std::int32_t>(worker, place, these).run();
        Tour<std::int64_t>(worker, place, these).run();
        Tour<std::uint8_t>(worker, place, these).run();
        say << "fine";
    });
    for (const auto& rank : ranks) CHECK(rank.said == "fine");
}

}  // namespace

TEST_CASE("all collectives, types and odd sizes give the exact result on 1 to 8 ranks") {
    for (int world = 1; world <= 8; ++world)
        for (const Place place : {Place::ordinary, Place::heap, Place::mixed})
            check_world(world, place, small_sizes);
}

TEST_CASE("buffers longer than a window travel in pieces, with the same results") {
    for (const int world : {2, 3, 8}) check_world(world, Place::ordinary, large_sizes);
    check_world(3, Place::heap, large_sizes);
    check_world(3, Place::mixed, large_sizes);
}

TEST_CASE("in place: a rank's own part may be the other buffer") {
    const auto ranks = run_ranks(3, [](Worker& worker, std::ostream& say) {
        auto& group = worker.process_group();
        const auto self = static_cast<std::size_t>(worker.rank());
        std::vector<float> own_memory(30);
        for (const auto buffer : {group.allocate<float>(30), std::span<float>(own_memory)}) {
            const auto own = buffer.subspan(self * 10, 10);
            std::fill(own.begin(), own.end(), static_cast<float>(self + 1));
            group.all_gather(own, buffer);
            say << buffer[0] << buffer[10] << buffer[20] << ' ';
            group.reduce_scatter(buffer, own);
            say << own[0] << own[9] << ' ';
            group.barrier();
        }
    });
    CHECK(ranks[0].said == "123 33 123 33 ");
    CHECK(ranks[1].said == "123 66 123 66 ");
    CHECK(ranks[2].said == "123 99 123 99 ");
}

TEST_CASE("a NaN of any rank survives min and max, on every rank alike") {
    const auto ranks = run_ranks(3, [](Worker& worker, std::ostream& say) {
        for (int owner = 0; owner < 3; ++owner)
            for (const ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::sum}) {
                std::vector<float> data = {1.0f};
                if (worker.rank() == owner) data[0] = std::numeric_limits<float>::quiet_NaN();
                worker.process_group().all_reduce(data, op);
                say << std::isnan(data[0]);
            }
    });
    for (const auto& rank : ranks) CHECK(rank.said == "111111111");
}

TEST_CASE("integer sums wrap around") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream& say) {
        std::vector<std::int32_t> data = {std::numeric_limits<std::int32_t>::max()};
        worker.process_group().all_reduce(data);
        say << data[0];
    });
    CHECK(ranks[1].said == "-2");
}

TEST_CASE("calls that cannot be right are refused at once, and the group goes on") {
    for (const int world : {1, 3}) {
        const auto ranks = run_ranks(world, [](Worker& worker, std::ostream& say) {
            auto& group = worker.process_group();
            std::vector<std::int32_t> ints(6);
            std::vector<std::int32_t> other(7);
            const auto refused = [&](auto call) {
                try {
                    call();
                    say << "no ";
                } catch (const Error& error) {
                    say << (error.kind() == ErrorKind::invalid_use ? "refused " : error.what());
                }
            };
            refused([&] { group.all_reduce(ints, ReduceOp::avg); });
            refused([&] { group.broadcast(ints, worker.world_size()); });
            refused([&] { group.broadcast(ints, -1); });
            refused([&] { group.all_gather(ints, other); });
            refused([&] { group.reduce_scatter(other, ints); });
            refused([&] { (void)group.allocate<double>(std::size_t{1} << 60); });
            group.all_reduce(ints);
            say << "and on";
        });
        for (const auto& rank : ranks)
            CHECK(rank.said == "refused refused refused refused refused refused and on");
    }
}

TEST_CASE("allocate hands out zeroed, aligned memory up to its limit") {
    for (const int world : {1, 2}) {
        FakeAgent agent(world);
        WorkerOptions options;
        options.shared_bytes_per_rank = 4096;
        const auto ranks = run_ranks(
            agent,
            [](Worker& worker, std::ostream& say) {
                auto& group = worker.process_group();
                const auto a = group.allocate<float>(3);
                const auto b = group.allocate<double>(10);
                say << a.size() << b.size() << a[2] << b[9]
                    << reinterpret_cast<std::uintptr_t>(b.data()) % 64 << ' ';
                try {
                    (void)group.allocate<float>(1024);
                } catch (const Error& error) {
                    say << error.what();
                }
            },
            options);
        CHECK(ranks[0].said.find("310000 allocate(1024 elements of 4 bytes)") == 0);
        CHECK(ranks[0].said.find("shared_bytes_per_rank") != std::string::npos);
    }
}

TEST_CASE("ranks that ask for different amounts of shared memory are told") {
    FakeAgent agent(2);
    const auto ranks = agent.run([](std::ostream& say) {
        WorkerOptions options;
        options.shared_bytes_per_rank = std::getenv("RANK")[0] == '0' ? 4096 : 8192;
        Worker worker = Worker::from_environment(options);
        worker.process_group().barrier({.timeout = std::chrono::milliseconds(200)});
        say << "no";
    });
    CHECK((ranks[0].said + ranks[1].said).find("another rank asked for another size") !=
          std::string::npos);
}
