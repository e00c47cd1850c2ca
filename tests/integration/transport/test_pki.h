// TestPki: a certificate authority made afresh for a test (EC P-256, valid for a day).
// Threads: one at a time. Failure: aborts.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace lockkeeper::testing {

struct KeyPair {
  std::string certificate_pem;
  std::string private_key_pem;
};

class TestPki {
 public:
  TestPki();
  ~TestPki();
  const std::string& ca_pem() const { return ca_.certificate_pem; }

  struct Subject {
    std::string common_name{};
    std::vector<std::string> dns_names{};
    std::vector<std::string> ip_addresses{};
    bool client = false;  // for client authentication instead of serving
    bool expired = false;
    bool both = false;           // for client authentication and serving
    std::string organization{};  // a Kubernetes group
  };
  KeyPair Issue(const Subject& subject);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  KeyPair ca_;
};

}  // namespace lockkeeper::testing
