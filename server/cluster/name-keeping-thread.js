import { watch } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { nameAgain } from './socket-names.js'

// Who connects while a socket has lost its name is refused, and the master itself is busy for a while whenever it forks.
/** @type {Map<number, import('node:fs').FSWatcher>} */
const watchers = new Map()

parentPort?.on('message', (/** @type {{ id: number, socket?: import('./socket-names.js').SocketNames & { place: string } }} */ { id, socket }) => {
  watchers.get(id)?.close()
  watchers.delete(id)
  if (!socket) return
  const { place, ...names } = socket
  try {
    // The socket itself: it hears of a name less, and of nothing else that happens in that folder.
    watchers.set(id, watch(place, () => nameAgain(names)).on('error', () => {}))
  } catch {
    // ENOSPC: the limit of the user, see inotify(7). The name is looked at when a worker asks for it.
  }
  nameAgain(names)
})
