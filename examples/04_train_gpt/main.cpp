#include "examples/04_train_gpt/arguments.hpp"
#include "examples/04_train_gpt/model/matrix.hpp"
#include "examples/04_train_gpt/setup_error.hpp"
#include "examples/04_train_gpt/trainer.hpp"

#include <ddrun/worker.hpp>

#include <cstdio>
#include <exception>
#include <span>

namespace {

constexpr auto usage_exit_code = 2;

int fail(const std::exception& error, int exit_code) {
    std::fprintf(stderr, "train_gpt: %s\n", error.what());
    return exit_code;
}

// Wrong flags stay wrong: under ddrun, the agent is told not to start this again.
int refuse(const train_gpt::SetupError& error) {
    try {
        ddrun::Worker::from_environment().never_retry(error.what());
    } catch (const ddrun::Error&) {
        return fail(error, usage_exit_code);
    }
}

void train(const train_gpt::Arguments& arguments) {
    train_gpt::use_one_blas_thread();
    auto worker = ddrun::Worker::from_environment();
    try {
        train_gpt::Trainer(worker, arguments).run();
    } catch (const train_gpt::SetupError& error) {
        worker.never_retry(error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
    train_gpt::Arguments arguments;
    try {
        arguments = train_gpt::parse_arguments(std::span<const char* const>(argv, argc).subspan(1));
    } catch (const train_gpt::SetupError& error) {
        return refuse(error);
    }
    if (arguments.help) {
        std::fputs(train_gpt::usage_text().c_str(), stdout);
        return 0;
    }
    try {
        train(arguments);
        return 0;
    } catch (const ddrun::Error& error) {
        return fail(error, error.exit_code());
    } catch (const std::exception& error) {
        return fail(error, 1);
    }
}
