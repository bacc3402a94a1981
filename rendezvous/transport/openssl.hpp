#pragma once

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <atomic>
#include <stdexcept>

// OpenSSL, loaded at the first call of one of its functions: loading it takes as long as starting a
// worker, and a job of one node never needs it. Inside this namespace these names hide the global
// ones, so OpenSSL's macros call them too; write them without "::".
namespace ddrun::rendezvous {

// libssl.so.3 is not there or not usable: words with what to do.
struct NoOpenSsl : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// Thread-safe. Throws NoOpenSsl.
[[nodiscard]] void* openssl_function(const char* name);

template <typename Function>
class Lazy;
template <typename Result, typename... Arguments>
class Lazy<Result(Arguments...)> {
  public:
    constexpr explicit Lazy(const char* name) : name_(name) {}

    Result operator()(Arguments... arguments) const {
        Function* function = function_.load(std::memory_order_relaxed);
        if (function == nullptr) {
            function = reinterpret_cast<Function*>(openssl_function(name_));
            function_.store(function, std::memory_order_relaxed);
        }
        return function(arguments...);
    }

  private:
    using Function = Result(Arguments...);

    const char* name_;
    mutable std::atomic<Function*> function_ = nullptr;
};

inline const Lazy<decltype(::BIO_get_data)> BIO_get_data("BIO_get_data");
inline const Lazy<decltype(::BIO_get_new_index)> BIO_get_new_index("BIO_get_new_index");
inline const Lazy<decltype(::BIO_meth_new)> BIO_meth_new("BIO_meth_new");
inline const Lazy<decltype(::BIO_meth_set_ctrl)> BIO_meth_set_ctrl("BIO_meth_set_ctrl");
inline const Lazy<decltype(::BIO_meth_set_read)> BIO_meth_set_read("BIO_meth_set_read");
inline const Lazy<decltype(::BIO_meth_set_write)> BIO_meth_set_write("BIO_meth_set_write");
inline const Lazy<decltype(::BIO_new)> BIO_new("BIO_new");
inline const Lazy<decltype(::BIO_set_data)> BIO_set_data("BIO_set_data");
inline const Lazy<decltype(::BIO_set_init)> BIO_set_init("BIO_set_init");
inline const Lazy<decltype(::BIO_set_flags)> BIO_set_flags("BIO_set_flags");
inline const Lazy<decltype(::BIO_clear_flags)> BIO_clear_flags("BIO_clear_flags");
inline const Lazy<decltype(::ERR_clear_error)> ERR_clear_error("ERR_clear_error");
inline const Lazy<decltype(::ERR_peek_error)> ERR_peek_error("ERR_peek_error");
inline const Lazy<decltype(::EVP_KDF_fetch)> EVP_KDF_fetch("EVP_KDF_fetch");
inline const Lazy<decltype(::EVP_KDF_free)> EVP_KDF_free("EVP_KDF_free");
inline const Lazy<decltype(::EVP_KDF_CTX_new)> EVP_KDF_CTX_new("EVP_KDF_CTX_new");
inline const Lazy<decltype(::EVP_KDF_CTX_free)> EVP_KDF_CTX_free("EVP_KDF_CTX_free");
inline const Lazy<decltype(::EVP_KDF_derive)> EVP_KDF_derive("EVP_KDF_derive");
inline const Lazy<decltype(::OSSL_PARAM_construct_end)> OSSL_PARAM_construct_end(
    "OSSL_PARAM_construct_end");
inline const Lazy<decltype(::OSSL_PARAM_construct_octet_string)> OSSL_PARAM_construct_octet_string(
    "OSSL_PARAM_construct_octet_string");
inline const Lazy<decltype(::OSSL_PARAM_construct_utf8_string)> OSSL_PARAM_construct_utf8_string(
    "OSSL_PARAM_construct_utf8_string");
inline const Lazy<decltype(::RAND_bytes)> RAND_bytes("RAND_bytes");
inline const Lazy<decltype(::SSL_CIPHER_find)> SSL_CIPHER_find("SSL_CIPHER_find");
inline const Lazy<decltype(::SSL_CTX_ctrl)> SSL_CTX_ctrl("SSL_CTX_ctrl");
inline const Lazy<decltype(::SSL_CTX_free)> SSL_CTX_free("SSL_CTX_free");
inline const Lazy<decltype(::SSL_CTX_new)> SSL_CTX_new("SSL_CTX_new");
inline const Lazy<decltype(::SSL_CTX_set_ciphersuites)> SSL_CTX_set_ciphersuites(
    "SSL_CTX_set_ciphersuites");
inline const Lazy<decltype(::SSL_CTX_set_num_tickets)> SSL_CTX_set_num_tickets(
    "SSL_CTX_set_num_tickets");
inline const Lazy<decltype(::SSL_CTX_set_options)> SSL_CTX_set_options("SSL_CTX_set_options");
inline const Lazy<decltype(::SSL_CTX_set_psk_find_session_callback)>
    SSL_CTX_set_psk_find_session_callback("SSL_CTX_set_psk_find_session_callback");
inline const Lazy<decltype(::SSL_CTX_set_psk_use_session_callback)>
    SSL_CTX_set_psk_use_session_callback("SSL_CTX_set_psk_use_session_callback");
inline const Lazy<decltype(::SSL_CTX_set_verify)> SSL_CTX_set_verify("SSL_CTX_set_verify");
inline const Lazy<decltype(::SSL_SESSION_free)> SSL_SESSION_free("SSL_SESSION_free");
inline const Lazy<decltype(::SSL_SESSION_new)> SSL_SESSION_new("SSL_SESSION_new");
inline const Lazy<decltype(::SSL_SESSION_set1_master_key)> SSL_SESSION_set1_master_key(
    "SSL_SESSION_set1_master_key");
inline const Lazy<decltype(::SSL_SESSION_set_cipher)> SSL_SESSION_set_cipher(
    "SSL_SESSION_set_cipher");
inline const Lazy<decltype(::SSL_SESSION_set_protocol_version)> SSL_SESSION_set_protocol_version(
    "SSL_SESSION_set_protocol_version");
inline const Lazy<decltype(::SSL_do_handshake)> SSL_do_handshake("SSL_do_handshake");
inline const Lazy<decltype(::SSL_free)> SSL_free("SSL_free");
inline const Lazy<decltype(::SSL_get_error)> SSL_get_error("SSL_get_error");
inline const Lazy<decltype(::SSL_get_ex_data)> SSL_get_ex_data("SSL_get_ex_data");
inline const Lazy<decltype(::SSL_is_init_finished)> SSL_is_init_finished("SSL_is_init_finished");
inline const Lazy<decltype(::SSL_new)> SSL_new("SSL_new");
inline const Lazy<decltype(::SSL_read)> SSL_read("SSL_read");
inline const Lazy<decltype(::SSL_session_reused)> SSL_session_reused("SSL_session_reused");
inline const Lazy<decltype(::SSL_set_accept_state)> SSL_set_accept_state("SSL_set_accept_state");
inline const Lazy<decltype(::SSL_set_bio)> SSL_set_bio("SSL_set_bio");
inline const Lazy<decltype(::SSL_set_connect_state)> SSL_set_connect_state("SSL_set_connect_state");
inline const Lazy<decltype(::SSL_set_ex_data)> SSL_set_ex_data("SSL_set_ex_data");
inline const Lazy<decltype(::SSL_write)> SSL_write("SSL_write");
inline const Lazy<decltype(::TLS_client_method)> TLS_client_method("TLS_client_method");
inline const Lazy<decltype(::TLS_server_method)> TLS_server_method("TLS_server_method");

}  // namespace ddrun::rendezvous
