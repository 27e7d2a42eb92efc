import { setTimeout as wait } from 'node:timers/promises'
import { startOrder } from '../config/app-order.js'
import { isObject } from '../config/is-object.js'
import { DeckError } from '../errors.js'
import { createAppGroup } from './app-group.js'
import { orderOfApp } from './app-orders.js'
import { startApp } from './app-process.js'
import { checkedApps, findApps } from './apps.js'
import { stopDeck } from './down.js'
import { timeoutOf } from './duration.js'
import { isRunning, readDeckStatus } from './deck-status.js'
import { fillHost } from './fill-host.js'
import { createPrefixed } from './prefixed.js'

/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('./app-group.js').Member} Member */
/** @typedef {ReturnType<typeof createAppGroup>} AppGroup */

/** @type {Readonly<Partial<Record<import('./app-group.js').State, string>>>} */
const TEXTS = Object.freeze({ failed: 'failed', 'not started': 'was not started' })
/** @type {readonly NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
/** Output of another process that holds the pipe open may never end. */
const SHOWN_WITHIN_MS = 1000

/**
 * Starts each app of a config file as its own deck, for as long as this runs, or in the host.
 * @param {string[]} names none: all @param {{ config?: string, detach?: true, wait?: boolean, timeout?: string }} options @param {Terminal} terminal
 * @throws {DeckError} usage, invalid-config: nothing was started; start-failed: some are not ready, or failed
 */
export async function upCommand (names, options, terminal) {
  const { env, cwd, script } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const found = await findApps('up', options, terminal)
  const apps = startOrder(found.apps, checkedApps('up', names, found)).flatMap((name) => found.apps.get(name) ?? [])
  if (options.detach) {
    const wanted = apps.map((app) => ({ label: app.name, order: orderOfApp(app, found.file, terminal) }))
    return await fillHost(wanted, { command: 'up', waits: options.wait !== false, timeout: options.timeout }, terminal)
  }
  if (options.wait === false) throw new DeckError('usage', '--no-wait: expected with --detach, received alone')
  const prefixed = createPrefixed(apps.map(({ name }) => name), terminal)
  const place = { env, cwd }
  /** @type {Promise<unknown>[]} */
  const passing = []
  const group = createAppGroup(apps, {
    start (name) {
      const process = startApp(name, { script, file: found.file, cwd, env, mirrors: !saysMirror(name, found, env) })
      passing.push(prefixed.pass(name, process.stdout, 'stdout'), prefixed.pass(name, process.stderr, 'stderr'))
      return process
    },
    readStatus: (dataDir) => readDeckStatus(dataDir, place),
    isRunning: (dataDir) => isRunning(dataDir, place),
    stop: (dataDir) => stopDeck(dataDir, place, AbortSignal.timeout(timeoutMs)),
    tell: prefixed.say
  })
  await runAttached(group, () => Promise.all(passing))
}

/**
 * Runs as long as any of them. A first signal stops them, a second one kills what is left.
 * @param {AppGroup} group @param {() => Promise<unknown>} shown resolves once all of their output is shown
 */
async function runAttached (group, shown) {
  let isAgain = false
  const stopOrKill = () => {
    if (isAgain) return group.kill()
    isAgain = true
    group.stop()
  }
  for (const signal of SIGNALS) process.on(signal, stopOrKill)
  try {
    await group.over
    await Promise.race([shown(), wait(SHOWN_WITHIN_MS)])
  } finally {
    for (const signal of SIGNALS) process.off(signal, stopOrKill)
  }
  checkNoneMissing(group.members.filter(({ state, reason }) => state === 'failed' || (state === 'not started' && reason !== null)))
}

/** The reasons have been printed before. @param {Member[]} members @throws {DeckError} start-failed */
function checkNoneMissing (members) {
  if (members.length > 0) throw new DeckError('start-failed', `up: ${members.map(({ name, state }) => `${name} ${TEXTS[state]}`).join(', ')}`)
}

/** Tells whether logs.mirror is set. @param {string} name @param {import('./apps.js').Apps} found @param {Record<string, string | undefined>} env */
function saysMirror (name, { values }, env) {
  const ofApps = isObject(values.apps) ? values.apps[name] : undefined
  return Boolean(env.CLUSTERDECK_LOGS_MIRROR) || [ofApps, values].some((each) => isObject(each) && isObject(each.logs) && each.logs.mirror !== undefined)
}
