import { watch, type FSWatcher } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { nameAgain, type SocketNames } from './socket-names.ts'

// While a socket has no name, connections are refused; the master is too busy to restore it whenever it forks.
const watchers: Map<number, FSWatcher> = new Map()

parentPort?.on('message', ({ id, socket }: { id: number, socket?: SocketNames & { place: string } }) => {
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
