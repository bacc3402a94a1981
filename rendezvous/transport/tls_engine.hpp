#pragma once

#include "rendezvous/transport/security.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_st;

namespace ddrun::rendezvous {

// What proves who we are; both ends have the same. `identity` is sent in plain.
struct PreSharedKey {
    std::string identity;
    Key key{};
};

// One end of a TLS 1.3 connection with a pre-shared key, as bytes in and bytes out: no socket, no
// clock, no waiting. Holds no buffer while nothing is under way. Not thread-safe; different engines
// may be used by different threads.
//
//   receive(bytes of the peer) -> handshake() until it says true -> read() / write()
//   and after each of them take_output() goes to the peer.
class TlsEngine {
  public:
    enum class Side { client, server };

    TlsEngine(Side side, PreSharedKey secret);
    ~TlsEngine();
    TlsEngine(const TlsEngine&) = delete;
    TlsEngine& operator=(const TlsEngine&) = delete;

    void receive(std::string_view bytes);
    [[nodiscard]] std::string take_output();

    // True: done, both ends have proved that they know the key. Throws NotAuthorised or Foreign;
    // the output then holds what tells the peer, and nothing else may be called any more.
    [[nodiscard]] bool handshake();
    // What was received, decrypted; 0: more bytes are needed. Throws Foreign when it was tampered
    // with or the peer gave up.
    [[nodiscard]] std::size_t read(std::span<char> into);
    void write(std::string_view bytes);

  private:
    friend struct TlsCallbacks;
    struct Free {
        void operator()(ssl_st* ssl) const;
    };
    // What `result` of an OpenSSL call means: false: it needs more bytes.
    bool check(int result);
    [[noreturn]] void fail();

    Side side_;
    PreSharedKey secret_;
    std::string input_;
    std::size_t consumed_ = 0;
    std::string output_;
    std::unique_ptr<ssl_st, Free> ssl_;
};

// An alert of TLS that tells the peer why there will be no handshake, as the record to send.
enum class Alert : unsigned char {
    access_denied = 49,          // the munge credential is not good here
    insufficient_security = 71,  // we are plain
    unknown_identity = 115,      // we use the other kind of secret
};
[[nodiscard]] std::string alert_record(Alert alert);

}  // namespace ddrun::rendezvous
