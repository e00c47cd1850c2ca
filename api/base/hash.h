// Sha256: hashes of texts, pure.
//
// Ownership: a Sha256 owns its state; it may be moved. Threads: one at a time per object.
// Failure:   the library refusing the algorithm aborts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockkeeper {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::string_view data);
  // Lower-case hexadecimal, 64 characters. Nothing may be added after it.
  std::string Hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of the whole text at once.
std::string Sha256Hex(std::string_view data);

}  // namespace lockkeeper
