#include "proto/net/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
//
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>

#include "core/base/error.hpp"

namespace pipewright::net {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

namespace {

/// OpenSSL tells of a file that it cannot open no more than "asio.ssl error".
void expect_readable(const std::string& option, const std::string& file) {
  if (!std::ifstream(file)) {
    throw ConfigError(option + file + ": cannot be read: " + std::strerror(errno));
  }
}

}  // namespace

TlsContext::TlsContext() : native_(std::make_unique<ssl::context>(ssl::context::tls)) {
  SSL_CTX_set_min_proto_version(native_->native_handle(), TLS1_2_VERSION);
}
TlsContext::~TlsContext() = default;

std::shared_ptr<TlsContext> TlsContext::of_client(const std::string& ca_file) {
  const std::shared_ptr<TlsContext> context(new TlsContext);
  error_code fault;
  if (ca_file.empty()) {
    context->native().set_default_verify_paths(fault);
  } else {
    context->native().load_verify_file(ca_file, fault);
  }
  if (fault) {
    throw ConfigError((ca_file.empty() ? "the system's certificates" : "--tls-ca " + ca_file) +
                      ": cannot be read as certificates (PEM): " + fault.message());
  }
  context->native().set_verify_mode(ssl::verify_peer);
  return context;
}

std::shared_ptr<TlsContext> TlsContext::of_server(const std::string& certificate_file,
                                                  const std::string& key_file) {
  const std::shared_ptr<TlsContext> context(new TlsContext);
  error_code fault;
  expect_readable("--tls-certificate ", certificate_file);
  expect_readable("--tls-key ", key_file);
  context->native().use_certificate_chain_file(certificate_file, fault);
  if (fault) {
    throw ConfigError("--tls-certificate " + certificate_file +
                      ": cannot be read as a certificate (PEM): " + fault.message());
  }
  std::error_code none;
  const auto permissions = std::filesystem::status(key_file, none).permissions();
  if (!none && (permissions & std::filesystem::perms::others_all) != std::filesystem::perms::none) {
    throw ConfigError("--tls-key " + key_file + ": everybody may read it; chmod o= " + key_file);
  }
  context->native().use_private_key_file(key_file, ssl::context::pem, fault);
  if (fault) {
    const bool other =
        ERR_GET_REASON(static_cast<unsigned long>(fault.value())) == X509_R_KEY_VALUES_MISMATCH;
    throw ConfigError("--tls-key " + key_file +
                      (other ? ": is not the key of the certificate " + certificate_file
                             : ": cannot be read as a key (PEM): " + fault.message()));
  }
  return context;
}

void expect_host(SSL* connection, const std::string& host) {
  error_code not_an_address;
  boost::asio::ip::make_address(host, not_an_address);
  if (!not_an_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), host.c_str());
    return;
  }
  SSL_set_tlsext_host_name(connection, host.c_str());
  SSL_set_hostflags(connection, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  SSL_set1_host(connection, host.c_str());
}

std::string handshake_fault(SSL* connection, const error_code& fault, const std::string& host) {
  if (peer_is_plain(fault)) return "it does not speak TLS: is it http:// rather than https://?";
  const long verdict = SSL_get_verify_result(connection);
  if (verdict == X509_V_OK) return "TLS: " + fault.message();
  const std::string why = X509_verify_cert_error_string(verdict);
  switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "its certificate is not for '" + host + "' (" + why +
             "): use a name that it is for, or a certificate for this one";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid now (" + why +
             "): it has to be renewed, or a clock is wrong";
    default:
      return "its certificate is not trusted (" + why +
             "): give the CA's certificate with --tls-ca FILE or PIPEWRIGHT_TLS_CA";
  }
}

bool peer_is_plain(const error_code& fault) {
  if (fault.category() != boost::asio::error::get_ssl_category()) return false;
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(fault.value()));
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST;
}

}  // namespace pipewright::net
