#include "formats/io/crypto_hash.h"

// Not EVP: the linker then takes six objects of the static libcrypto, 30 kB, and not all of it.
// These functions choose the processor's code at run time as EVP does; for new programs OpenSSL
// recommends EVP, because it honours what an administrator has configured.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

#include <array>
#include <span>

namespace shardpack {
namespace {

std::string Hex(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

}  // namespace

struct Sha256Stream::State {
  SHA256_CTX context;
};
Sha256Stream::Sha256Stream() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256Stream::~Sha256Stream() = default;
void Sha256Stream::Update(Bytes bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}
std::string Sha256Stream::FinishHex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_Final(digest.data(), &state_->context);
  return Hex(digest);
}

struct Md5Stream::State {
  MD5_CTX context;
};
Md5Stream::Md5Stream() : state_(std::make_unique<State>()) { MD5_Init(&state_->context); }
Md5Stream::~Md5Stream() = default;
void Md5Stream::Update(Bytes bytes) { MD5_Update(&state_->context, bytes.data(), bytes.size()); }
std::string Md5Stream::FinishHex() {
  std::array<unsigned char, MD5_DIGEST_LENGTH> digest;
  MD5_Final(digest.data(), &state_->context);
  return Hex(digest);
}

}  // namespace shardpack
