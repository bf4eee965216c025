#pragma once

namespace adamant::kube {

/// Makes the kernel find out within 20 s (probes included) that the peer of a connected TCP socket
/// is gone without a word: whatever waits for it then gets an error. Quiet is not gone: a peer that
/// answers probes may be silent for as long as it likes.
void WatchConnection(int socket);

/// Returns whether a connection over which nothing should come has been closed by the peer, or has
/// brought something all the same.
bool IsStale(int socket);

}  // namespace adamant::kube
