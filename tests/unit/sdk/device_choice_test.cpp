#include "worker_sdk/core/device_choice.hpp"

#include "tests/support/catch.hpp"

using namespace ddrun;
using namespace ddrun::detail;

namespace {

DriverFacts driver(int count, std::optional<std::string> visible = std::nullopt) {
    return {"", count, std::move(visible)};
}

}  // namespace

TEST_CASE("without a driver the CPU is used, and the words say why") {
    const Device device = choose_device({"no CUDA driver", 0, std::nullopt}, 1, 4);
    CHECK(device.kind == DeviceKind::cpu);
    CHECK(device.index == 0);
    CHECK(device.words == "no CUDA driver: using CPU");
}

TEST_CASE("where all devices are visible the local rank picks") {
    const Device device = choose_device(driver(4), 3, 4);
    CHECK(device.kind == DeviceKind::cuda);
    CHECK(device.index == 3);
    CHECK(device.words == "cuda:3 (4 visible)");
}

TEST_CASE("where the launcher shows each worker one device it is number 0") {
    CHECK(choose_device(driver(1, "2"), 2, 4).index == 0);
    CHECK(choose_device(driver(1, "2"), 2, 4).kind == DeviceKind::cuda);
}

TEST_CASE("too few devices for the workers of a node means the CPU for all of them") {
    CHECK(choose_device(driver(2), 0, 4).words ==
          "2 CUDA devices for 4 workers on this node: using CPU");
    CHECK(choose_device(driver(1), 0, 4).kind == DeviceKind::cpu);
    CHECK(choose_device(driver(0), 0, 1).words == "no CUDA device: using CPU");
    CHECK(choose_device(driver(1), 0, 1).kind == DeviceKind::cuda);
}
