import { watch } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { nameAgain } from './socket-names.js'

// While a socket has no name, connections are refused; the master is too busy to restore it whenever it forks.
/** @type {Map<number, import('node:fs').FSWatcher>} */
const watchers = new Map()

parentPort?.on('message', (/** @type {{ id: number, socket?: import('./socket-names.js').SocketNames & { place: string } }} */ { id, socket }) => {
  watchers.get(id)?.close()
  watchers.delete(id)
  if (!socket) return
  const { place, ...names } = socket
  try {
    // Watching the socket itself reports a removed name, and nothing else of its folder.
    watchers.set(id, watch(place, () => nameAgain(names)).on('error', () => {}))
  } catch {
    // ENOSPC: the limit of the user, see inotify(7). The name is then checked when a worker asks for it.
  }
  nameAgain(names)
})
