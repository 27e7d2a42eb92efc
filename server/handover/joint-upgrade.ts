import { DeckError, errorCode, toError } from '../errors.ts'
import type { OperatorInput } from '../lifecycle/state.ts'
import type { KeeperLink } from '../keeper/link.ts'
import type { Publisher } from '../events/stream.ts'
import type { Upgrade as Running } from './api.ts'
import type { AppLinks } from '../keeper/app-links.ts'

export type JointUpgrade = ReturnType<typeof createJointUpgrade>
type Order = Extract<OperatorInput, { type: 'upgrade' }>

/** A next master that has no app to wait for may take this long. */
const EMPTY_WITHIN_MS = 30_000

/** An app, as an upgrade of its host sees it. */
export type Upgradable = {
  /** returns it with the program itself; throws what this app has against it */
  check: (order: Order) => Order,
  /** `isServing`: every slot has a worker that is ready */
  look: () => { isServing: boolean, readyTimeoutMs: number },
  begin: (order: Order) => void
}

/**
 * An upgrade of a host: whoever asks for it, all apps change masters or none does. An app that does not serve at the
 * moment is in nobody's way: the next master starts it once it is the only one, as it would after a death.
 */
export function createJointUpgrade (keeper: Pick<KeeperLink, 'isKept' | 'send' | 'on' | 'onLost' | 'failNext'>,
  { turnMs, events, now = Date.now, timers = globalThis }: {
    /** the workers of an app may have to wait this long for each of the others */
    turnMs: number,
    /** of the host */
    events: Publisher,
    /** wall clock, ms */
    now?: () => number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
  })
{
  /** by id */
  const apps: Map<string, { name: string, app: Upgradable }> = new Map()
  let running: Running | null = null
  /** What has been told of it before the next master was gone. */
  let reason: string | null = null
  let failure: { at: string, message: string } | null = null
  let timer: NodeJS.Timeout | undefined
  keeper.on('relay', ({ failing }) => {
    reason ??= failing ?? null
  })
  keeper.on('upgrade-failed', (message) => endUpgrade(message.reason))
  keeper.onLost(() => endUpgrade('the keeper is gone'))

  return {
    get running () {
      return running
    },

    /** Why the last one of this master has failed. */
    get failure () {
      return failure
    },

    /** What an app has of it. */
    of: (id: string, name: string) => ({
      /** @returns leaves */
      join (app: Upgradable): () => void {
        apps.set(id, { name, app })
        return () => {
          if (apps.get(id)?.app === app) apps.delete(id)
        }
      },

      /** @throws {DeckError} as the host's */
      begin: (order: Order) => beginUpgrade(order, id)
    }),

    /** @throws {DeckError} what one of the apps has against it, with its name; then nothing has begun */
    begin: (order: Order): Running => beginUpgrade(order, null)
  }

  /** `asker`: the id of the app that it is asked of */
  function beginUpgrade (wanted: Order, asker: string | null) {
    if (!keeper.isKept)
      throw new DeckError('not-possible',
        'an upgrade in place needs the keeper, and this host runs without one: restart it instead')
    if (running) throw new DeckError('upgrade-running', 'an upgrade is running')
    let order = wanted
    const taking = [...apps].filter(([id, { name, app }]) => {
      const checked = id === asker ? app.check(wanted) : checkFor(name, app, wanted)
      order = checked ?? order
      return checked !== null && (id === asker || app.look().isServing)
    })
    const others = taking.filter(([id]) => id !== asker).length
    const readyWithinMs = Math.max(0, ...taking.map(([, { app }]) => app.look().readyTimeoutMs)) + others * turnMs
    const { execPath, note = null, actor } = order
    running = { startedAt: new Date(now()).toISOString(), actor, note }
    reason = null
    events.publish({ type: 'master.upgrading', actor, message: `the next master starts${note ? `: ${note}` : ''}`,
      detail: { execPath } })
    for (const [, { app }] of taking) app.begin({ ...order, readyWithinMs })
    // Else each app sees to it that it does not take too long.
    if (taking.length === 0) timer = timers.setTimeout(cancelEmpty, EMPTY_WITHIN_MS)
    keeper.send({ type: 'upgrade', execPath, apps: taking.map(([id]) => id) })
    return running
  }

  function cancelEmpty () {
    keeper.failNext(`the next master was not ready within ${EMPTY_WITHIN_MS} ms`)
    keeper.send({ type: 'cancel' })
  }

  /** `why`: the next master has ended */
  function endUpgrade (why: string) {
    if (!running) return
    const { actor } = running
    timers.clearTimeout(timer)
    failure = { at: new Date(now()).toISOString(),
      message: reason ?? `the next master ended before it was ready (${why})` }
    running = null
    events.publish({ type: 'master.upgrade-failed', actor, message: failure.message })
  }
}

/** Null: its workers are still starting, so it stands aside */
function checkFor (name: string, app: Upgradable, wanted: Order): Order | null {
  try {
    return app.check(wanted)
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    if (error.code === 'starting') return null
    const hint = error.code === 'not-possible' ? `; stop ${name} first, or restart the host` : ''
    throw new DeckError(error.code, `${name}: ${error.message}${hint}`, { cause: error,
      details: { ...error.details, app: name } })
  }
}

/**
 * Opens the apps that take part, in the next master, and waits until it is the only one. Each fails all as long as the
 * other master can go on; one that fails later is alone in that. `ids`: of the apps; `open`: its role is `next`;
 * `whyOf`: why an app could not be opened, in words.
 * @throws {DeckError} upgrade-failed, once no worker is left here
 */
export async function openTogether<App> (ids: readonly string[],
  { open, whyOf }: { open: (id: string) => Promise<App>, whyOf: (id: string, error: unknown) => string },
  { links, keeper }: { links: Pick<AppLinks, 'awaitServing'>,
    keeper: Pick<KeeperLink, 'on' | 'onLost' | 'failUpgrade'> }
): Promise<{ opened: Map<string, App>, failed: Map<string, Error> }> {
  const apps: { opened: Map<string, App>, failed: Map<string, Error> } = { opened: new Map(), failed: new Map() }
  /** null: it is the only one; else why it comes to nothing */
  const decided: PromiseWithResolvers<string | null> = Promise.withResolvers()
  keeper.on('take-over', () => decided.resolve(null))
  keeper.on('upgrade-failed', ({ reason }) => decided.resolve(reason))
  keeper.onLost(() => decided.resolve('the keeper is gone'))
  const opening = ids.map(async (id) => {
    try {
      apps.opened.set(id, await open(id))
    } catch (error) {
      apps.failed.set(id, toError(error))
      // What one has told already, the others only repeat.
      if (errorCode(error) !== 'upgrade-failed') keeper.failUpgrade(whyOf(id, error))
    }
  })
  links.awaitServing(ids)
  const reason = await decided.promise
  await Promise.all(opening)
  if (reason !== null) throw new DeckError('upgrade-failed', reason)
  return apps
}
