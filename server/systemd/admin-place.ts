import { DeckError } from '../errors.ts'
import { ADMIN_NAME, describeInherited, listInherited } from './activated-sockets.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Config } from '../config/config.ts'

/** The keeper holds other sockets than the admin port's too. */
const KEEPER_PREFIX = 'admin '

/**
 * Where the admin port listens: on the service manager's socket for it, on that of the master before, or on one that is
 * still to be bound. Returns `hold`: call it with the socket that listens.
 * @throws {DeckError} invalid-config where what was inherited cannot be used as the configuration says
 */
export function adminPlace ({ host, port }: Pick<Config['admin'], 'host' | 'port'>,
  keeper: { held: Map<string, { handle: SocketHandle, data?: object }>,
    hold: (key: string, handle: SocketHandle) => void, dropOthers: (prefix: string, wanted: string) => void }
): { host: string, port: number, socket?: SocketHandle, hold: (socket: SocketHandle | null) => void } {
  const forAdmin = listInherited(keeper.held).find(({ data }) => data.name === ADMIN_NAME)
  if (forAdmin) {
    const { data } = forAdmin
    if (data.port === undefined) {
      throw new DeckError('invalid-config',
        `LISTEN_FDNAMES: expected a TCP socket under the name "${ADMIN_NAME}", received ${describeInherited(data)}`)
    }
    // The keeper, where there is one, has had it from the first.
    return { host: String(data.host), port: data.port, socket: forAdmin.handle, hold () {} }
  }
  const key = `${KEEPER_PREFIX}${host}:${port}`
  return { host, port, socket: keeper.held.get(key)?.handle, hold (socket) {
    if (socket) keeper.hold(key, socket)
    keeper.dropOthers(KEEPER_PREFIX, key)
  } }
}
