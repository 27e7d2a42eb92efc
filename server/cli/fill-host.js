import { DeckError } from '../errors.js'
import { keptSecretsText } from './app-orders.js'
import { timeoutOf } from './duration.js'
import { decksTable } from './decks-table.js'
import { isWanted, lastingHost } from './host.js'
import { ensureHost } from './host-start.js'
import { jsonText } from './output.js'
import { createPrefixed } from './prefixed.js'
import { followApps, lastLines, toFollowed } from './ready-apps.js'
import { whyMissing } from './why-not-ready.js'

/** @typedef {import('./app-orders.js').AppOrder} AppOrder */
/** @typedef {import('./host.js').AppView} AppView */
/** @typedef {import('./ready-apps.js').Followed} Followed */

/** The states of those that are not ready, in the sentence at the end. @type {Readonly<Partial<Record<Followed['state'], string>>>} */
const TEXTS = Object.freeze({ starting: 'is not ready', waiting: 'waits', failed: 'failed', stopped: 'stopped', 'not started': 'was not started' })

/**
 * An app that the host is to run. `label`: what the user calls it; null: as the host does; `isIdle`: it is put on the list, and is not started.
 * @typedef {{ label: string | null, order: AppOrder, isIdle?: boolean }} Wanted
 *
 * What has become of the order. `isInHost`: the host has taken it; `ranBefore`: the app ran already; `isIdle`: it stays stopped.
 * @typedef {Followed & { isInHost: boolean, ranBefore: boolean, isIdle: boolean }} Ordered
 */

/**
 * Lets the host run apps, and starts the host where there is none.
 * @param {readonly Wanted[]} wanted each after those that it depends on
 * @param {{ command: string, waits: boolean, json?: boolean, timeout?: string, ofHost?: readonly string[] }} how `waits`: until they are ready
 * @param {import('./program.js').Terminal} terminal
 * @throws {DeckError} usage, start-failed: some are not ready
 */
export async function fillHost (wanted, { command, waits, json = false, timeout, ofHost = [] }, terminal) {
  const { stdout, stderr, env } = terminal
  const { timeoutMs } = timeoutOf({ timeout }, env)
  const { master } = await ensureHost({ ofHost, signal: AbortSignal.timeout(timeoutMs), timeoutMs, terminal })
  const host = lastingHost(master, env)
  const kept = keptSecretsText(wanted.map(({ order }) => order))
  if (kept !== null && stderr.isTTY) stderr.write(`clusterdeck: ${kept}\n`)
  const prefixed = createPrefixed(wanted.flatMap(({ label }) => label ?? []), terminal)
  const apps = await orderApps(wanted, { host, prefixed })
  const labels = labelsOf(apps)
  if (waits) await followApps([...apps.values()], { host, signal: AbortSignal.timeout(timeoutMs), tell: ({ name }, text) => prefixed.say(labels.get(name) ?? name, text) })
  await showOutcome()

  async function showOutcome () {
    const missing = [...apps].filter(([, { isIdle }]) => !isIdle).filter(([, { state }]) => waits ? state !== 'ready' : state === 'failed' || state === 'not started')
    for (const [label, { name, state }] of missing) if (state === 'starting') for (const line of await lastLines(host, name)) prefixed.say(label, line)
    const views = new Map((await host.get('/apps')).items.map((/** @type {AppView} */ view) => [view.name, view]))
    if (json) stdout.write(`${jsonText([...apps.values()].map(({ name }) => views.get(name) ?? null))}\n`)
    else stdout.write(`${decksTable([...apps].map(([label, app]) => rowOf(label, app, views.get(app.name))), { now: Date.now() })}\n`)
    checkNoneFailed(missing, command)
  }

  /** @param {string} label @param {Followed} app @param {AppView | undefined} view @returns {import('./decks-table.js').Row} */
  function rowOf (label, { state, reason, status }, view) {
    return {
      name: label,
      dataDir: view?.dataDir ?? null,
      adminUrl: view ? `${master.url}${view.path}` : null,
      answer: status && ['ready', 'starting'].includes(state) ? { status, problem: null } : null,
      state: waits || !view ? state : view.state,
      reason: state === 'starting' ? null : reason
    }
  }
}

/**
 * Gives the orders. One that is refused keeps none of the others back.
 * @param {readonly Wanted[]} wanted each after those that it depends on
 * @param {{ host: Pick<import('./api-client.js').ApiClient, 'get' | 'post'>, prefixed: import('./prefixed.js').Prefixed, stop?: AbortSignal }} how `stop`: no more orders
 * @returns {Promise<Map<string, Ordered>>} by label
 * @throws {DeckError} where the host does not answer, or refuses an app without a label
 */
export async function orderApps (wanted, { host, prefixed, stop }) {
  const before = new Map((await host.get('/apps')).items.map((/** @type {AppView} */ view) => [view.name, view]))
  /** @type {Map<string, Ordered>} */
  const apps = new Map()
  for (const { label, order, isIdle = false } of wanted) {
    if (stop?.aborted) break
    const app = await giveOrder(label, order, isIdle)
    apps.set(label ?? app.name, app)
  }
  return apps

  /** @param {string | null} label @param {AppOrder} order @param {boolean} isIdle @returns {Promise<Ordered>} */
  async function giveOrder (label, { dependsOn = [], ...order }, isIdle) {
    const others = dependsOn.flatMap((each) => apps.get(each) ?? [])
    const needs = others.map(({ name }) => name)
    const missing = others.find(({ state }) => state === 'failed' || state === 'not started')
    if (missing && label !== null && !isIdle) return leftOut(label, missing)
    try {
      const view = await host.post(`/apps${isIdle ? '?start=false' : ''}`, { ...order, ...(needs.length > 0 && { dependsOn: needs }) })
      const known = before.get(view.name)
      const app = { ...toFollowed(view, needs), isInHost: true, ranBefore: known !== undefined && isWanted(known), isIdle: isIdle && !isWanted(view) }
      if (app.isIdle) return staysStopped(label ?? view.name, app)
      if (app.ranBefore) prefixed.say(label ?? view.name, 'already runs')
      return view.state === 'failed' && !view.isRetried ? refused(label ?? view.name, app, view.reason) : app
    } catch (error) {
      if (label === null || !(error instanceof DeckError) || ['no-master', 'timed-out', 'unauthenticated', 'forbidden'].includes(error.code)) throw error
      return refused(label, notInHost(label, needs), error.message)
    }
  }

  /** @param {string} label @param {Ordered} app @returns {Ordered} */
  function staysStopped (label, app) {
    prefixed.say(label, `stays stopped (clusterdeck start ${app.name})`)
    return { ...app, state: 'stopped' }
  }

  /** @param {string} label @param {Ordered} app @param {string | null} reason @returns {Ordered} */
  function refused (label, app, reason) {
    prefixed.say(label, reason === null ? 'failed' : `failed: ${reason}`)
    return { ...app, state: 'failed', reason }
  }

  /** @param {string} label @param {Followed} missing that it depends on @returns {Ordered} */
  function leftOut (label, missing) {
    const reason = whyMissing(missing)
    prefixed.say(label, `is not started: ${reason}`)
    return { ...notInHost(label), state: 'not started', reason }
  }
}

/** @param {string} label @param {string[]} [dependsOn] @returns {Ordered} */
function notInHost (label, dependsOn) {
  return { ...toFollowed({ name: label }, dependsOn), isInHost: false, ranBefore: false, isIdle: false }
}

/** @param {[label: string, app: Pick<Followed, 'state'>][]} missing  that did not become what they were to @param {string} command @throws {DeckError} start-failed */
export function checkNoneFailed (missing, command) {
  if (missing.length > 0) throw new DeckError('start-failed', `${command}: ${missing.map(([label, { state }]) => `${label} ${TEXTS[state]}`).join(', ')}`)
}

/** @param {ReadonlyMap<string, Pick<Followed, 'name'>>} apps by label @returns {Map<string, string>} the labels by name */
function labelsOf (apps) {
  return new Map([...apps].map(([label, { name }]) => [name, label]))
}
