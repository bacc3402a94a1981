#pragma once

#include <filesystem>
#include <string_view>

namespace train_gpt {

// An open file, closed with the object. Errors are std::system_error naming the path.
class FileDescriptor {
  public:
    FileDescriptor(const std::filesystem::path& path, int flags);
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor();

    int get() const { return descriptor_; }
    void write_all(std::string_view bytes);
    void sync();

  private:
    std::filesystem::path path_;
    int descriptor_;
};

// errno as an exception: "cannot VERB PATH: reason".
[[noreturn]] void throw_system_error(const char* verb, const std::filesystem::path& path);

}  // namespace train_gpt
