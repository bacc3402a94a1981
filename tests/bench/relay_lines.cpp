// Writes MEGABYTES of 100-byte lines as fast as a pipe takes them.
// usage: bench_relay_lines [megabytes=256]
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
    const long megabytes = argc > 1 ? std::atol(argv[1]) : 256;
    const std::string line =
        "step 001234/100000 loss 2.7182 grad 0.577 lr 3.0e-04 " + std::string(46, '.') + "\n";
    std::string block;
    while (block.size() < 65'500) block += line;
    for (long long left = megabytes * 1'000'000; left > 0;) {
        const auto size = static_cast<long long>(block.size()) < left
                              ? block.size()
                              : static_cast<std::size_t>(left);
        const ssize_t n = ::write(1, block.data(), size);
        if (n <= 0) return 1;
        left -= n;
    }
    return 0;
}
