#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// The first 8 bytes that a client sends: peers that are not ours are recognised by their first
// byte. Inside TLS where there is TLS, but for an obituary, which is always sent in plain.
namespace ddrun::rendezvous {

constexpr std::size_t preface_bytes = 8;
// No text protocol begins with this byte, and a TLS client begins with 0x16.
constexpr char preface_first_byte = '\xdd';

enum class PrefaceKind : char {
    node = 'n',      // frames of FromNode follow, the first one is NodeHello
    obituary = 'o',  // one frame with an Obituary follows; nothing is answered
    munge = 'm',     // plain, a credential follows that gives the connection its key
};

[[nodiscard]] std::string preface(PrefaceKind kind);

struct PrefaceCheck {
    enum class Result {
        incomplete,  // right so far
        whole,       // `kind` says what follows
        foreign,     // close the connection; one wrong byte is enough
    };
    Result result = Result::incomplete;
    PrefaceKind kind = PrefaceKind::node;
    bool operator==(const PrefaceCheck&) const = default;
};
// `received`: what came so far, from the first byte on; bytes after the preface are not looked at.
[[nodiscard]] PrefaceCheck check_preface(std::string_view received);

}  // namespace ddrun::rendezvous
