// TLS as all programs of this project use it: 1.2 or newer, and a client that checks the server's
// certificate and its name, always.
#pragma once

#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}
namespace boost::system {
class error_code;
}
struct ssl_st;

namespace pipewright::net {

class TlsContext {
 public:
  /// What a client trusts: the certificates in a file (PEM), or those of the system for an empty
  /// name. Throws ConfigError when the file cannot be read.
  static std::shared_ptr<TlsContext> of_client(const std::string& ca_file);
  /// A server's certificate (PEM, with those between it and its CA behind it) and key. Throws
  /// ConfigError when one cannot be read, the key may be read by everybody, or they do not belong
  /// together.
  static std::shared_ptr<TlsContext> of_server(const std::string& certificate_file,
                                               const std::string& key_file);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  boost::asio::ssl::context& native() { return *native_; }

 private:
  TlsContext();

  std::unique_ptr<boost::asio::ssl::context> native_;
};

/// Of a client, before the handshake: the name (or IP address) that the certificate must be for.
void expect_host(ssl_st* connection, const std::string& host);

/// Why a client's handshake failed, and what would help.
std::string handshake_fault(ssl_st* connection, const boost::system::error_code& fault,
                            const std::string& host);

/// A server's port was spoken to in plain HTTP, or a client's server answers so.
bool peer_is_plain(const boost::system::error_code& fault);

}  // namespace pipewright::net
