import { DeckError, errorCode, errorText, toError } from '../errors.js'
import { createDeferred } from '../system/deferred.js'

/** @typedef {ReturnType<typeof createJointUpgrade>} JointUpgrade */
/** @typedef {Extract<import('../lifecycle/state.js').OperatorInput, { type: 'upgrade' }>} Order */

/**
 * An app, as an upgrade of its host sees it.
 * @typedef {object} Upgradable
 * @property {(order: Order) => Order} check  returns it with the program itself; throws what this app has against it
 * @property {() => { isServing: boolean, readyTimeoutMs: number }} look  `isServing`: every slot has a worker that is ready
 * @property {(order: Order) => void} begin
 */

/**
 * An upgrade of a host: whoever asks for it, all apps change masters or none does. An app that does not serve at the moment
 * is in nobody's way: the next master starts it once it is the only one, as it would after a death.
 * @param {Pick<import('../keeper/link.js').KeeperLink, 'isKept' | 'send'>} keeper
 * @param {{ turnMs: number }} options  the workers of an app may have to wait this long for each of the others
 */
export function createJointUpgrade (keeper, { turnMs }) {
  /** @type {Map<string, Upgradable>} by name */
  const apps = new Map()

  return {
    /**
     * What an app has of it.
     * @param {string} name
     */
    of: (name) => ({
      /** @param {Upgradable} app @returns {() => void} leaves */
      join (app) {
        apps.set(name, app)
        return () => { if (apps.get(name) === app) apps.delete(name) }
      },

      /** @param {Order} order @throws {DeckError} as the host's */
      begin: (order) => beginUpgrade(order, name)
    }),

    /** @param {Order} order @throws {DeckError} what one of the apps has against it, with its name; then nothing has begun */
    begin: (order) => beginUpgrade(order, null)
  }

  /** @param {Order} wanted @param {string | null} asker  the app that it is asked of */
  function beginUpgrade (wanted, asker) {
    if (!keeper.isKept) throw new DeckError('not-possible', 'an upgrade in place needs the keeper, and this host runs without one: restart it instead')
    let order = wanted
    const taking = [...apps].filter(([name, app]) => {
      const checked = checkFor(name, app, { wanted, mayStandAside: name !== asker })
      order = checked ?? order
      return checked !== null && (name === asker || app.look().isServing)
    })
    const readyWithinMs = Math.max(0, ...taking.map(([, app]) => app.look().readyTimeoutMs)) + taking.length * turnMs
    for (const [, app] of taking) app.begin({ ...order, readyWithinMs })
    keeper.send({ type: 'upgrade', execPath: order.execPath, apps: taking.map(([name]) => name) })
  }
}

/** @param {string} name @param {Upgradable} app @param {{ wanted: Order, mayStandAside: boolean }} how @returns {Order | null} null: its workers are still starting */
function checkFor (name, app, { wanted, mayStandAside }) {
  try {
    return app.check(wanted)
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    if (error.code === 'starting' && mayStandAside) return null
    const hint = error.code === 'not-possible' ? `; stop ${name} first, or restart the host` : ''
    throw new DeckError(error.code, `${name}: ${error.message}${hint}`, { cause: error, details: { ...error.details, app: name } })
  }
}

/**
 * Opens the apps that take part, in the next master, and waits until it is the only one. Each fails all as long as the
 * other master can go on; one that fails later is alone in that.
 * @template App
 * @param {readonly string[]} names
 * @param {(name: string) => Promise<App>} open  its role is `next`
 * @param {{ links: Pick<import('../keeper/app-links.js').AppLinks, 'awaitServing'>, keeper: Pick<import('../keeper/link.js').KeeperLink, 'on' | 'onLost' | 'failUpgrade'> }} lines
 * @returns {Promise<{ opened: Map<string, App>, failed: Map<string, Error> }>}
 * @throws {DeckError} upgrade-failed, once no worker is left here
 */
export async function openTogether (names, open, { links, keeper }) {
  /** @type {{ opened: Map<string, App>, failed: Map<string, Error> }} */
  const apps = { opened: new Map(), failed: new Map() }
  /** @type {ReturnType<typeof createDeferred<string | null>>} null: it is the only one; else why it comes to nothing */
  const decided = createDeferred()
  keeper.on('take-over', () => decided.reach(null))
  keeper.on('upgrade-failed', ({ reason }) => decided.reach(reason))
  keeper.onLost(() => decided.reach('the keeper is gone'))
  const opening = names.map(async (name) => {
    try {
      apps.opened.set(name, await open(name))
    } catch (error) {
      apps.failed.set(name, toError(error))
      // What one has told already, the others only repeat.
      if (errorCode(error) !== 'upgrade-failed') keeper.failUpgrade(`${name}: ${errorText(error)}`)
    }
  })
  links.awaitServing(names)
  const reason = await decided.reached
  await Promise.all(opening)
  if (reason !== null) throw new DeckError('upgrade-failed', reason)
  return apps
}
