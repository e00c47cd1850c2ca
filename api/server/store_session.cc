// Session and Txn: the statements of the store.
#include <set>
#include <utility>

#include "api/server/store.h"

namespace lockkeeper::apiserver {
namespace {

std::string Describe(const Key& key) {
  std::string text = key.resource + " ";
  if (!key.cluster.empty()) text += key.cluster + "|";
  if (!key.ns.empty()) text += key.ns + "/";
  return text + key.name;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ",";
    text += part;
  }
  return text;
}

sqlite::Stmt& BindKey(sqlite::Stmt& stmt, const Key& key) {
  return stmt.Bind(1, key.cluster).Bind(2, key.resource).Bind(3, key.ns).Bind(4, key.name);
}

// A statement that is reset when it goes out of scope, so that no read lock outlives its use.
class Use {
 public:
  explicit Use(sqlite::Stmt* stmt) : stmt_(stmt) {}
  ~Use() { stmt_->Reset(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  sqlite::Stmt* operator->() { return stmt_; }
  sqlite::Stmt& operator*() { return *stmt_; }

 private:
  sqlite::Stmt* stmt_;
};

#define LK_USE(name, sql)                                  \
  LK_ASSIGN_OR_RETURN(sqlite::Stmt* name##_, Cached(sql)); \
  Use name(name##_)

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(const std::string& path, const sqlite::OpenOptions& options) {
  auto session = std::make_unique<Session>();
  LK_ASSIGN_OR_RETURN(session->db_, sqlite::Db::Open(path, options));
  return session;
}

Result<sqlite::Stmt*> Session::Cached(const char* sql) {
  auto it = statements_.find(sql);
  if (it == statements_.end()) {
    LK_ASSIGN_OR_RETURN(sqlite::Stmt stmt, db_.Prepare(sql));
    it = statements_.emplace(sql, std::move(stmt)).first;
  }
  return &it->second;
}

Result<int64_t> Session::Revision() {
  LK_USE(stmt, "SELECT revision FROM counter");
  LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
  if (!row) return Status(Code::kCorrupt, "read the revision: the counter has no row");
  return stmt->Int(0);
}

Result<int64_t> Session::Compacted() {
  LK_USE(stmt, "SELECT compacted FROM counter");
  LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
  if (!row) return Status(Code::kCorrupt, "read the compacted revision: the counter has no row");
  return stmt->Int(0);
}

Result<int64_t> Session::DataVersion() {
  LK_USE(stmt, "PRAGMA data_version");
  LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
  return row ? stmt->Int(0) : 0;
}

Result<Record> Session::Get(const Key& key) {
  LK_USE(stmt,
         "SELECT uid, revision, value FROM objects WHERE cluster=?1 AND resource=?2 AND namespace=?3 AND name=?4");
  BindKey(*stmt, key);
  LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
  if (!row) return Status(Code::kNotFound, Describe(key) + " not found");
  return Record{key, stmt->Text(0), stmt->Int(1), stmt->Text(2)};
}

Result<std::vector<Key>> Session::ReadKeys(sqlite::Stmt& stmt) {
  std::vector<Key> keys;
  while (true) {
    LK_ASSIGN_OR_RETURN(bool row, stmt.Step());
    if (!row) return keys;
    keys.push_back({stmt.Text(0), stmt.Text(1), stmt.Text(2), stmt.Text(3)});
  }
}

Result<std::optional<Key>> Session::FindUid(const std::string& uid) {
  LK_USE(stmt, "SELECT cluster, resource, namespace, name FROM objects WHERE uid=?1");
  stmt->Bind(1, uid);
  LK_ASSIGN_OR_RETURN(const std::vector<Key> keys, ReadKeys(*stmt));
  return keys.empty() ? std::nullopt : std::optional<Key>(keys.front());
}

Result<std::vector<Key>> Session::BeingDeleted() {
  LK_USE(stmt,
         "SELECT cluster, resource, namespace, name FROM objects WHERE json_extract(value, "
         "'$.metadata.deletionTimestamp') IS NOT NULL");
  return ReadKeys(*stmt);
}

Result<std::vector<Key>> Session::InNamespace(const std::string& cluster, const std::string& ns) {
  LK_USE(stmt, "SELECT cluster, resource, namespace, name FROM objects WHERE cluster=?1 AND namespace=?2");
  stmt->Bind(1, cluster).Bind(2, ns);
  return ReadKeys(*stmt);
}

Status Session::List(const ListQuery& query, const std::function<bool(Record&&, std::string_view)>& each) {
  if (query.at != 0) {
    LK_ASSIGN_OR_RETURN(const int64_t now, Revision());
    if (query.at < now) return ListAt(query, each);
  }
  // Row values walk the primary key from the cursor on. The empty namespace and name sort before all others.
  const bool one_ns = !query.ns.empty();
  LK_USE(stmt,
         one_ns ? "SELECT namespace, name, uid, revision, value, labels FROM objects WHERE cluster=?1 AND resource=?2 "
                  "AND namespace=?3 AND name>?4 ORDER BY name"
                : "SELECT namespace, name, uid, revision, value, labels FROM objects WHERE cluster=?1 AND resource=?2 "
                  "AND (namespace, name)>(?3, ?4) ORDER BY namespace, name");
  stmt->Bind(1, query.cluster).Bind(2, query.resource);
  stmt->Bind(3, one_ns ? query.ns : query.after_ns).Bind(4, query.after_name);
  while (true) {
    LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
    if (!row) return Status::Ok();
    Record record{
        {query.cluster, query.resource, stmt->Text(0), stmt->Text(1)}, stmt->Text(2), stmt->Int(3), stmt->Text(4)};
    if (!each(std::move(record), stmt->TextView(5))) return Status::Ok();
  }
}

// The state at an earlier revision: what has not changed since comes from the objects, what has from the
// `prev` of its first later event.
Status Session::ListAt(const ListQuery& query, const std::function<bool(Record&&, std::string_view)>& each) {
  LK_ASSIGN_OR_RETURN(const int64_t compacted, Compacted());
  if (query.at < compacted) {
    return {Code::kExpired,
            "too old resource version: " + std::to_string(query.at) + " (" + std::to_string(compacted) + ")"};
  }
  std::map<std::pair<std::string, std::string>, Record> then;
  std::set<std::pair<std::string, std::string>> changed;
  {
    LK_USE(stmt,
           "SELECT namespace, name, prev_revision, prev FROM events WHERE revision>?1 AND cluster=?2 AND resource=?3 "
           "ORDER BY revision");
    stmt->Bind(1, query.at).Bind(2, query.cluster).Bind(3, query.resource);
    while (true) {
      LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
      if (!row) break;
      std::pair<std::string, std::string> id(stmt->Text(0), stmt->Text(1));
      if (!query.ns.empty() && id.first != query.ns) continue;
      if (!changed.insert(id).second || stmt->IsNull(2)) continue;
      Record record{{query.cluster, query.resource, id.first, id.second}, "", stmt->Int(2), stmt->Text(3)};
      then.emplace(std::move(id), std::move(record));
    }
  }
  auto next = then.begin();
  if (query.has_after) next = then.upper_bound({query.after_ns, query.after_name});
  bool more = true;
  // Labels of history are not kept apart; an empty text says "look into the object".
  auto emit_until = [&](const std::pair<std::string, std::string>* limit) {
    while (more && next != then.end() && (limit == nullptr || next->first < *limit)) {
      more = each(std::move(next->second), {});
      ++next;
    }
  };
  ListQuery now = query;
  now.at = 0;
  LK_RETURN_IF_ERROR(List(now, [&](Record&& record, std::string_view labels) {
    const std::pair<std::string, std::string> id(record.key.ns, record.key.name);
    emit_until(&id);
    if (more && changed.count(id) == 0) more = each(std::move(record), labels);
    return more;
  }));
  emit_until(nullptr);
  return Status::Ok();
}

Status Session::Events(int64_t after, int64_t upto, const std::string& cluster, const std::string& resource,
                       const std::function<bool(StoredEvent&&)>& each) {
  // An object version stands once: in `objects` while it is current, else in `prev` of the event that replaced it.
  LK_USE(stmt,
         "SELECT e.revision, e.type, e.cluster, e.resource, e.namespace, e.name, e.prev, "
         " CASE WHEN e.type=3 THEN e.prev ELSE coalesce("
         "  (SELECT o.value FROM objects o WHERE o.cluster=e.cluster AND o.resource=e.resource AND "
         "   o.namespace=e.namespace AND o.name=e.name AND o.revision=e.revision),"
         "  (SELECT n.prev FROM events n WHERE n.prev_revision=e.revision)) END "
         "FROM events e WHERE e.revision>?1 AND e.revision<=?2 AND (?4='' OR e.resource=?4) AND "
         "(?3='*' OR e.cluster=?3) ORDER BY e.revision");
  stmt->Bind(1, after).Bind(2, upto).Bind(3, cluster).Bind(4, resource);
  while (true) {
    LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
    if (!row) return Status::Ok();
    StoredEvent event;
    event.revision = stmt->Int(0);
    event.type = static_cast<EventType>(stmt->Int(1));
    event.key = {stmt->Text(2), stmt->Text(3), stmt->Text(4), stmt->Text(5)};
    event.prev = stmt->Text(6);
    event.value = stmt->Text(7);
    if (!each(std::move(event))) return Status::Ok();
  }
}

Result<std::vector<Key>> Session::OwnedBy(const std::string& uid) {
  LK_USE(stmt, "SELECT cluster, resource, namespace, name FROM owners WHERE owner=?1");
  stmt->Bind(1, uid);
  return ReadKeys(*stmt);
}

Result<std::vector<Key>> Session::Owned() {
  LK_USE(stmt, "SELECT DISTINCT cluster, resource, namespace, name FROM owners");
  return ReadKeys(*stmt);
}

Result<std::vector<Record>> Session::OlderThan(const std::string& resource, int64_t before_ms, int limit) {
  LK_USE(stmt,
         "SELECT cluster, namespace, name, uid, revision, value FROM objects WHERE resource=?1 AND updated_ms<?2 LIMIT "
         "?3");
  stmt->Bind(1, resource).Bind(2, before_ms).Bind(3, static_cast<int64_t>(limit));
  std::vector<Record> records;
  while (true) {
    LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
    if (!row) return records;
    records.push_back(
        {{stmt->Text(0), resource, stmt->Text(1), stmt->Text(2)}, stmt->Text(3), stmt->Int(4), stmt->Text(5)});
  }
}

Result<int64_t> Txn::NextRevision() {
  LK_USE(stmt, "UPDATE counter SET revision=revision+1 RETURNING revision");
  LK_ASSIGN_OR_RETURN(bool row, stmt->Step());
  if (!row) return Status(Code::kCorrupt, "raise the revision: the counter has no row");
  return stmt->Int(0);
}

Status Txn::AppendEvent(int64_t revision, EventType type, const Key& key, const Record* prev) {
  LK_USE(stmt,
         "INSERT INTO events(cluster, resource, namespace, name, revision, type, prev_revision, prev, at_ms) "
         "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
  BindKey(*stmt, key).Bind(5, revision).Bind(6, static_cast<int64_t>(type)).Bind(9, now_ms_);
  if (prev == nullptr) {
    stmt->BindNull(7).BindNull(8);
  } else {
    stmt->Bind(7, prev->revision).Bind(8, prev->value);
  }
  return stmt->Run();
}

Status Txn::ReplaceOwners(const Key& key, const std::vector<std::string>& owners) {
  LK_USE(drop, "DELETE FROM owners WHERE cluster=?1 AND resource=?2 AND namespace=?3 AND name=?4");
  LK_RETURN_IF_ERROR(BindKey(*drop, key).Run());
  LK_USE(add, "INSERT OR IGNORE INTO owners(cluster, resource, namespace, name, owner) VALUES(?1, ?2, ?3, ?4, ?5)");
  for (const std::string& owner : owners) {
    LK_RETURN_IF_ERROR(BindKey(*add, key).Bind(5, owner).Run());
  }
  return Status::Ok();
}

Result<int64_t> Txn::Put(const Key& key, int64_t expected, std::string_view value, const PutOptions& options) {
  Record old;
  std::string old_owners;
  bool exists = false;
  {
    LK_USE(stmt,
           "SELECT uid, revision, value, owners FROM objects WHERE cluster=?1 AND resource=?2 AND namespace=?3 AND "
           "name=?4");
    BindKey(*stmt, key);
    LK_ASSIGN_OR_RETURN(exists, stmt->Step());
    if (exists) {
      old = {key, stmt->Text(0), stmt->Int(1), stmt->Text(2)};
      old_owners = stmt->Text(3);
    }
  }
  if (expected == 0 && exists) return Status(Code::kAlreadyExists, Describe(key) + " already exists");
  if (expected != 0 && !exists) return Status(Code::kNotFound, Describe(key) + " not found");
  if (expected != 0 && old.revision != expected) {
    return Status(Code::kConflict, Describe(key) + " is at revision " + std::to_string(old.revision) + ", not " +
                                       std::to_string(expected));
  }
  LK_ASSIGN_OR_RETURN(const int64_t revision, NextRevision());
  const std::string owners = Join(options.owners);
  LK_USE(put,
         exists ? "UPDATE objects SET uid=?5, revision=?6, updated_ms=?7, labels=?8, owners=?9, value=?10 WHERE "
                  "cluster=?1 AND resource=?2 AND namespace=?3 AND name=?4"
                : "INSERT INTO objects(cluster, resource, namespace, name, uid, revision, updated_ms, labels, owners, "
                  "value) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  BindKey(*put, key).Bind(5, options.uid).Bind(6, revision).Bind(7, now_ms_).Bind(8, options.labels);
  put->Bind(9, owners).Bind(10, value);
  LK_RETURN_IF_ERROR(put->Run());
  if (owners != old_owners) LK_RETURN_IF_ERROR(ReplaceOwners(key, options.owners));
  LK_RETURN_IF_ERROR(
      AppendEvent(revision, exists ? EventType::kModified : EventType::kAdded, key, exists ? &old : nullptr));
  return revision;
}

Result<int64_t> Txn::Delete(const Key& key, int64_t expected) {
  LK_ASSIGN_OR_RETURN(const Record old, Get(key));
  if (expected != 0 && old.revision != expected) {
    return Status(Code::kConflict, Describe(key) + " is at revision " + std::to_string(old.revision) + ", not " +
                                       std::to_string(expected));
  }
  LK_ASSIGN_OR_RETURN(const int64_t revision, NextRevision());
  LK_USE(drop, "DELETE FROM objects WHERE cluster=?1 AND resource=?2 AND namespace=?3 AND name=?4");
  LK_RETURN_IF_ERROR(BindKey(*drop, key).Run());
  LK_RETURN_IF_ERROR(ReplaceOwners(key, {}));
  LK_RETURN_IF_ERROR(AppendEvent(revision, EventType::kDeleted, key, &old));
  return revision;
}

}  // namespace lockkeeper::apiserver
