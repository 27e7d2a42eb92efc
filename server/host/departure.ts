import { DeckError, errorText } from '../errors.ts'
import { ANSWERS_WITHIN_MS, answerOf, openLine, passSockets, untilServing } from '../handover/host-line.ts'
import { kindOf } from '../handover/socket-passing.ts'
import { listInherited } from '../systemd/activated-sockets.ts'
import type { JsonLines } from '../handover/json-lines.ts'
import type { Move } from '../deck.ts'
import type { Exit } from '../keeper/link.ts'
import type { AppPart } from './app-part.ts'
import type { Host } from './host.ts'
import type { Shutdown } from './shutdown.ts'

type Departure = { join: (part: AppPart, parts: Omit<Parts, 'part'>) => void, begin: Move }
type Parts = { part: AppPart, host: Host, shutdown: Shutdown }

/** The keeper holds these for the app, see cluster/sockets.ts and cluster/slot-ports.ts; the admin port stays here. */
const OF_APP = /^of \S+ ((?:app|slot|port) .*)$/s
const OF_ADMIN = 'admin '

/**
 * The way of a deck into a host: the host gets the sockets while all goes on here. Then this master lets go of the data
 * folder and leaves the workers to themselves until the host has replaced them. Where anything fails, the next master
 * of the keeper goes on with them, as after a death.
 * @param order how this deck was started, as an order to a host; null: a program has started it
 */
export function createDeparture (order: (() => Promise<object>) | null): Departure {
  let master: Parts | null = null
  let isMoving = false

  return {
    /** From here on it is known what is to move. */
    join (part, { host, shutdown }) {
      master = { part, host, shutdown }
    },

    /**
     * Resolves once nothing is left but to let go.
     * @throws {DeckError} and nothing has changed
     */
    async begin ({ path, secret, actor }) {
      if (isMoving) throw new DeckError('stopping', 'this deck is moving into a host already')
      isMoving = true
      try {
        return await offer({ path, secret, actor })
      } catch (error) {
        isMoving = false
        throw error
      }
    }
  }

  async function offer ({ path, secret, actor }: { path: string, secret: string, actor: string }) {
    const { part, host, shutdown } = expectMaster()
    const { app } = part
    check({ part, host, shutdown, actor })
    const line = await openLine(path)
    try {
      line.send({ type: 'hello', secret, pid: process.pid, dataDir: app.config.dataDir, order: await order?.() })
      const { name, pid } = await answerOf(line, 'accepted')
      await passSockets(line, path, [...host.keeper.copies].flatMap(([named, { handle, data }]) => {
        const [, key] = OF_APP.exec(named) ?? []
        return key === undefined ? [] : { key, data, socket: handle, kind: kindOf(handle) }
      }))
      // Something may have begun meanwhile.
      check({ part, host, shutdown, actor })
      // Whoever has asked for it gets an answer from this master.
      setImmediate(() => shutdown.move(() => leave({ part, host, line, name: String(name), hostPid: Number(pid) })))
      return { name: String(name) }
    } catch (error) {
      line.close()
      throw error
    }
  }

  function expectMaster () {
    if (master === null || order === null || master.host.isGuest)
      throw new DeckError('not-possible',
        'only a deck that was started by "clusterdeck start" can move into a host, and a program has started this one')
    return master
  }
}

/** @throws {DeckError} why it cannot move now */
function check (
  { part: { app: { config, supervisor, deck } }, host: { keeper }, shutdown, actor }: Parts & { actor: string }
) {
  if (shutdown.hasBegun) throw new DeckError('stopping', 'this master is ending')
  if (!keeper.isKept)
    throw new DeckError('not-possible',
      'a deck can move into a host only with its keeper, which goes on where that fails, and this one runs without: stop it, and start it with --detach')
  const [inherited] = listInherited(keeper.held)
  if (inherited)
    throw new DeckError('not-possible',
      'a deck with sockets of the service manager cannot move into a host: that one would start it again at the next connection. Disable the socket unit, and restart the deck without it')
  if (config.fleet.servers.length > 0)
    throw new DeckError('not-possible',
      'a deck of a fleet cannot move into a host, whose own options say whether it is in a fleet: restart it without fleet.servers first')
  const { problem } = deck.snapshot().history
  if (problem !== null)
    throw new DeckError('not-possible',
      `the history of this deck cannot be written, so not all of it would move: ${problem}`)
  // It starts new workers beside the old ones, as an upgrade does.
  const refusal = supervisor.refusal({ type: 'upgrade', execPath: null, actor })
  if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
}

/**
 * @returns the exit code: 0: it lives in the host, and no worker is left here; 1: the keeper has to start the next
 * master
 */
async function leave (
  { part, host: { keeper, terminal, closers }, line, name, hostPid }: Pick<Parts, 'part' | 'host'> & { line: JsonLines,
    name: string, hostPid: number }
): Promise<number> {
  try {
    let exits: Promise<Exit>[] = []
    await part.move(`moves into the host as ${name}`, (left) => {
      exits = left
      for (const exit of exits) exit.then((how) => line.send({ type: 'exit', ...how }))
    })
    await closers.close({ handsOver: true })
    line.send({ type: 'released' })
    await untilServing(line, { onSilent: () => terminal.fail(silenceText(hostPid)) })
    for (const key of keeper.copies.keys()) if (key.startsWith(OF_ADMIN)) keeper.drop(key)
    terminal.line(`this app is in the host now: clusterdeck status ${name}`)
    await Promise.all(exits)
    line.close()
    return 0
  } catch (error) {
    terminal.fail(`the app did not move into the host, and goes on here: ${errorText(error)}`)
    return 1
  }
}

function silenceText (hostPid: number) {
  return `the host (pid ${hostPid}) has not answered for ${
    ANSWERS_WITHIN_MS / 1000
  } s: the workers serve on, and this deck goes on with them once that host has ended. Wait, or end it: kill -9 ${hostPid}`
}
