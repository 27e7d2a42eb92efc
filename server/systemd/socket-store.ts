import { createHash } from 'node:crypto'
import { loadPosix } from '../system/posix.ts'
import { placeText } from '../system/place-text.ts'
import { isStoredName, placeOfSocket, STORED_PREFIX } from './activated-sockets.ts'
import { createNotifier } from './notify.ts'
import type { DatagramHandle, SocketHandle } from '../../workers/node-internals.d.ts'

/** `name`: FDNAME; `address`: as getsockname(2) tells it */
export type StoredAs = { name: string, address: string }
/** what is held of sockets; one that has been stored under a name keeps it */
type Held = Iterable<{ data?: object }>

const NAME_CHARS = 32

/**
 * The sockets that a service manager keeps for the next start of this service, where keeper and master have died
 * together: FDSTORE of sd_pid_notify_with_fds(3).
 * @param path NOTIFY_SOCKET; without it nothing is stored
 */
export function createSocketStore (path: string | undefined) {
  // The master says once what is wrong with the path. A message that is left out would leave a port open.
  const notify = createNotifier(path, { maxQueued: Infinity, say () {} })
  const isUsable = () => path !== undefined && loadPosix() !== null

  return {
    /** `key`: of the keeper. Returns null: it is no socket that can be stored. */
    describe (key: string, handle: SocketHandle | DatagramHandle): StoredAs | null {
      const { path: file, ...place } = (isUsable() && !('recvStart' in handle) && placeOfSocket(handle)) ||
        { path: null }
      return file === null ? null : { name: storedName(key), address: placeText({ path: file, ...place }) }
    },

    add (data: object | undefined, handle: SocketHandle | DatagramHandle) {
      const name = nameIn(data)
      // One that does not listen yet would be taken for one that is closed, and dropped.
      if (name !== null) notify(`FDSTORE=1\nFDNAME=${name}\nFDPOLL=0`, handle as SocketHandle)
    },

    /** `left`: what is still held: the same socket may be known by another key, too */
    remove (data: object | undefined, left: Held) {
      const name = nameIn(data)
      if (name === null || [...left].some((other) => nameIn(other.data) === name)) return
      notify(`FDSTOREREMOVE=1\nFDNAME=${name}`)
    }
  }
}

/** `key`: of the keeper. Returns the name that no other one has: it may be long, and have colons in it. */
export function storedName (key: string): string {
  return STORED_PREFIX + createHash('sha256').update(key).digest('hex').slice(0, NAME_CHARS)
}

function nameIn (data: object | undefined): string | null {
  const { name, stored } = Object(data)
  return stored?.name ?? (isStoredName(name) ? name : null)
}
