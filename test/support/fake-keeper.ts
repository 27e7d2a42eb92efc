import type { Keeper } from '../../server/cluster/sockets.ts'
import type { HeldSocket } from '../../server/keeper/link.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/** A keeper without a process. `held`: what the master before has left with it */
export function fakeKeeper (held: Keeper['held'] = new Map()) {
  const told: string[] = []
  const kept: Map<string, HeldSocket> = new Map()
  return { held, kept, told, send () {}, hold (key: string, handle: unknown, data?: HeldSocket['data']) {
    told.push(`hold ${key}`)
    kept.set(key, { handle: handle as SocketHandle, data })
  }, drop (key: string) {
    told.push(`drop ${key}`)
    kept.delete(key)
  } }
}
