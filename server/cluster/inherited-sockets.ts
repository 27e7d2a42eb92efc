import { realpathSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { isUdp, type SocketQuery } from '../../workers/protocol.ts'
import { ADMIN_NAME, describeInherited, listInherited, type InheritedSocket } from '../systemd/activated-sockets.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Keeper } from './sockets.ts'

const ANY_ADDRESS = ['::', '0.0.0.0']

/**
 * The app's sockets that the service manager opened. Each is found by the address that the app asks for. In a host they
 * are there for all apps: the first one that asks gets it, none closes it, and none is told of those that it does not
 * use.
 */
export function createInherited ({ held, claim }: Pick<Keeper, 'held' | 'claim'>) {
  const sockets = listInherited(held).filter(({ data }) => data.name !== ADMIN_NAME)

  return {
    match (query: SocketQuery): Inherited | null {
      // A second server of a worker on the same address uses the same socket.
      if (query.index > 0) return null
      const best = fittingSockets(query, sockets, ({ data }) => data).find(({ data }) => claim?.(data.fd) ?? true)
      return best ? { handle: best.handle, inherited: best.data.fd, ...(claim && { isLent: true }) } : null
    },

    /** `query`: could not be bound. Returns a hint at the cause, or nothing. */
    hint (query: SocketQuery): string {
      const [others] = fittingSockets(query, sockets, ({ data }) => data)
      if (others)
        return `; the service manager has ${describeInherited(others.data)}, and another app of this host listens there`
      const near = sockets.find(({ data }) => data.port !== undefined && data.port === query.port)
      return near
        ? `; the service manager has ${
          describeInherited(near.data)
        }, and that is not the address that the app listens on`
        : ''
    },

    /** @returns the other ones, in words */
    unused: (used: Set<number | undefined>): string[] =>
      claim ? [] : sockets.filter(({ data }) => !used.has(data.fd)).map(({ data }) => describeInherited(data)),

    close () {
      if (!claim) { for (const { handle } of sockets) handle.close() }
    }
  }
}

/** @returns those on the address that an app asks for, the best one first */
export function fittingSockets<T> (query: SocketQuery, sockets: readonly T[], placeOf: (socket: T) => Place): T[] {
  if (isUdp(query)) return []
  const exact = sockets.filter((socket) => isExactly(query, placeOf(socket)))
  return [...exact, ...sockets.filter((socket) => !exact.includes(socket) && isAlike(query, placeOf(socket)))]
}

/** `inherited`: which one it is; `isLent`: it is not to be closed */
type Inherited = { handle: SocketHandle, inherited: number, isLent?: boolean, errno?: undefined }
type Place = Pick<InheritedSocket, 'host' | 'port' | 'path'> & { fd?: number }

function isExactly ({ address, port, fd }: SocketQuery, socket: Place) {
  if (fd !== undefined && fd !== null) return fd === socket.fd
  if (socket.port === undefined) return port === -1 && address === socket.path
  return port === socket.port && address === socket.host
}

/** `::` and `0.0.0.0` both mean any address, and a link to a folder leads to the same Unix socket. */
function isAlike ({ address, port, fd }: SocketQuery, socket: Place) {
  if (fd !== undefined && fd !== null) return false
  if (socket.port === undefined)
    return port === -1 && Boolean(address && socket.path) && realName(String(address)) === realName(String(socket.path))
  return port === socket.port && ANY_ADDRESS.includes(String(socket.host)) &&
    (!address || ANY_ADDRESS.includes(address))
}

function realName (file: string) {
  // ENOENT: there is no such folder.
  return attempt(() => path.join(realpathSync(path.dirname(file)), path.basename(file)), file)
}
