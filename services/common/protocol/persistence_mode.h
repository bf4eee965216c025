#pragma once

namespace adamant::protocol {

/// Choice of when a replica acknowledges a prepared entry, and of what is on disk.
enum class PersistenceMode {
  kDelayed,  ///< in memory; shards are written in the background
  kWal,      ///< logged: survives the process
  kWalSync,  ///< logged and synced: survives the loss of power
  kNone,     ///< in memory; only snapshots are written
};

/// Returns true if all entries are logged, not those of records alone.
inline bool IsLogged(PersistenceMode mode) {
  return mode == PersistenceMode::kWal || mode == PersistenceMode::kWalSync;
}

/// Returns true if nothing that is acknowledged waits for a flush.
inline bool IsDurableAtOnce(PersistenceMode mode) {
  return mode == PersistenceMode::kWalSync || mode == PersistenceMode::kNone;
}

}  // namespace adamant::protocol
