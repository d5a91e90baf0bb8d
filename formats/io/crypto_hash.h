// The hashes that other tools ask for: SHA-256 for SHA256SUMS, MD5 for wids. Shardpack's own are in
// hash.h.
//
//   Sha256Stream stream;  stream.Update(block);  std::string hex = stream.FinishHex();
//
// Thread-safety: a stream has one caller at a time.
// Units: bytes in, lower-case hex out.
#ifndef SHARDPACK_FORMATS_IO_CRYPTO_HASH_H_
#define SHARDPACK_FORMATS_IO_CRYPTO_HASH_H_

#include <memory>
#include <string>

#include "formats/io/bytes.h"

namespace shardpack {

// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(const Sha256Stream&) = delete;
  Sha256Stream& operator=(const Sha256Stream&) = delete;

  void Update(Bytes bytes);
  std::string FinishHex();  // 64 digits; the stream cannot be used afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// MD5 (RFC 1321) of bytes that arrive in pieces, for third-party index files that require it. Never
// used as proof of integrity.
class Md5Stream {
 public:
  Md5Stream();
  ~Md5Stream();
  Md5Stream(const Md5Stream&) = delete;
  Md5Stream& operator=(const Md5Stream&) = delete;

  void Update(Bytes bytes);
  std::string FinishHex();  // 32 digits; the stream cannot be used afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_CRYPTO_HASH_H_
