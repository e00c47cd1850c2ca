// Worker: one kept-alive connection of a load run, and the objects that only it writes.
// Threads: Run on its own thread; journal() after that has ended.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/load/journal.h"
#include "tests/load/shared.h"

namespace lockkeeper::load {

class Worker {
 public:
  Worker(Shared& shared, int number);

  // Until the run stops.
  void Run();
  const Journal& journal() const { return journal_; }

 private:
  struct Object {
    std::string name;
    int64_t sequence = 0;  // of the last accepted write
    std::string resource_version;
    bool in_doubt = false;  // a write ended without an answer: read before the next
  };

  void Read(uint64_t dice, Instant due);
  void Get(Object& object, Instant due);
  void List(Instant due);
  void Create(Instant due);
  void Update(Object& object, Instant due);
  // Sends a write and settles it: accepted, or failed.
  void Write(const ClientRequest& request, Object& object, int64_t sequence, Instant due);
  // After a retried write met a conflict: whether it had been carried out the first time.
  bool FoundWritten(Object& object, int64_t sequence);
  Json Body(const Object& object, int64_t sequence) const;

  Shared& shared_;
  const int number_;
  HttpClient client_;
  std::vector<Object> objects_;
  Journal journal_;
  int64_t created_ = 0;
};

}  // namespace lockkeeper::load
