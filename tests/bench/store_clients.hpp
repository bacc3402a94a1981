#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Many connections to one store from one thread: what a client library costs is left out, so that
// servers are compared.
namespace ddrun::bench {

enum class Operation { add, get };

// One store's bytes.
class Wire {
  public:
    virtual ~Wire() = default;
    virtual std::string request(Operation operation, std::uint64_t id) = 0;
    // How many bytes the first whole reply in `bytes` takes; 0: it is not there yet.
    virtual std::size_t reply_size(std::string_view bytes, Operation operation) = 0;
};
[[nodiscard]] std::unique_ptr<Wire> ddrun_wire();
[[nodiscard]] std::unique_ptr<Wire> torch_wire();

struct Load {
    Operation operation = Operation::add;
    int depth = 1;  // requests under way on each connection
    double seconds = 1;
};
struct Outcome {
    double operations_per_second = 0;
    double p50_us = 0;
    double p99_us = 0;
    double server_us_per_operation = 0;
};

// Keeps `depth` requests under way on every connection for a while.
[[nodiscard]] Outcome drive(const std::vector<int>& sockets, Wire& wire, const Load& load,
                            int server_pid);

// Middle and tail of a sample, in microseconds; sorts it.
void put_percentiles(std::vector<std::uint32_t>& nanoseconds, Outcome& outcome);

// User and system time of a process so far, in seconds.
[[nodiscard]] double cpu_seconds(int pid);

// Connections of a TCP port on this machine, and of the agent's socket, with the hello of one rank
// each sent and answered.
[[nodiscard]] std::vector<int> connect_tcp(int port, int count);
[[nodiscard]] std::vector<int> connect_agent(const std::string& address, int round, int count);
void close_all(const std::vector<int>& sockets);

// Blocking, for what is not measured.
void send_all(int socket, std::string_view bytes);

// Waits for one reply of `size` bytes on every socket, in whatever order they come.
void await_replies(const std::vector<int>& sockets,
                   const std::function<std::size_t(std::string_view)>& reply_size);

}  // namespace ddrun::bench
