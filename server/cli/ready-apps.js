import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { isReady } from '../health.js'
import { isOpen } from './host.js'
import { whyMissing, whyNotReady } from './why-not-ready.js'

/** @typedef {import('./api-client.js').ApiClient} ApiClient */
/** @typedef {import('./host.js').AppView} AppView */

/** @typedef {import('./why-not-ready.js').Needed & { dependsOn: readonly string[] }} Followed an app of the host whose start is followed; `dependsOn`: names of the others */

const POLL_MS = 100
/** How often apps that are ready are looked at. */
const LOOK_EVERY_MS = 250
/** After this time, the user is told what an app waits for. */
const EXPLAIN_AFTER_MS = 5000
/** How many lines are shown of an app that does not get ready. */
const SHOWN_LINES = 20
/** @type {readonly Followed['state'][]} */
const OVER = ['failed', 'stopped', 'not started', 'left']

/**
 * @param {Pick<AppView, 'name'>} app @param {readonly string[]} [dependsOn]
 * @returns {Followed}
 */
export function toFollowed ({ name }, dependsOn = []) {
  return { name, dependsOn, state: 'starting', reason: null, status: null }
}

/** @param {Pick<Followed, 'state'>} app @returns {boolean} whether there is nothing more to follow */
export function isOver ({ state }) {
  return OVER.includes(state)
}

/**
 * Follows apps of the host until each is ready, or it is clear that it will not be, or the time is up. They go on in any case.
 * @param {readonly Followed[]} apps are changed
 * @param {object} how
 * @param {Pick<ApiClient, 'get'>} how.host
 * @param {AbortSignal} [how.signal]  the time is up
 * @param {(app: Followed, text: string) => void} how.tell
 * @param {() => Pick<Followed, 'state' | 'reason'> | null} [how.howHostEnded]  null: it runs
 * @param {boolean} [how.toTheEnd]  also those that are ready, until they have ended
 * @param {number} [how.explainAfterMs]
 */
export async function followApps (apps, { host, signal, tell, howHostEnded = () => null, toTheEnd = false, explainAfterMs = EXPLAIN_AFTER_MS }) {
  const isSettled = (/** @type {Followed} */ app) => isOver(app) || (!toTheEnd && app.state === 'ready')
  let explainAt = performance.now() + explainAfterMs
  /** @type {Map<string, string>} */
  const told = new Map()
  for (;;) {
    await lookAtApps(apps.filter((app) => !isSettled(app)), apps, { host, tell: tellOnce, howHostEnded })
    if (apps.every(isSettled) || signal?.aborted) break
    if (performance.now() >= explainAt) {
      explainAt += explainAfterMs
      for (const app of apps) if (app.state === 'waiting') tellOnce(app, `still waits for ${needsOf(app, apps).filter(({ state }) => state !== 'ready').map((need) => `${need.name} (${howItIs(need)})`).join(', ')}`)
    }
    await wait(apps.some(({ state }) => state === 'starting') ? POLL_MS : LOOK_EVERY_MS, undefined, { signal }).catch(() => {})
  }
  for (const app of apps) if (!isSettled(app)) leaveOut(app, apps, { tell: tellOnce })

  /** @param {Followed} app @param {string} text */
  function tellOnce (app, text) {
    if (told.get(app.name) !== text) tell(app, text)
    told.set(app.name, text)
  }
}

/** @typedef {(app: Followed, text: string) => void} Tell */

/**
 * @param {readonly Followed[]} apps that are looked at @param {readonly Followed[]} all
 * @param {{ host: Pick<ApiClient, 'get'>, tell: Tell, howHostEnded: () => Pick<Followed, 'state' | 'reason'> | null }} how
 */
async function lookAtApps (apps, all, { host, tell, howHostEnded }) {
  const views = await answerOf(host, '/apps')
  const end = views === null ? howHostEnded() : null
  if (end) for (const app of apps) endWith(app, end.state, end.reason, { tell })
  if (views === null) return
  /** @type {Map<string, AppView>} */
  const byName = new Map(views.items.map((/** @type {AppView} */ view) => [view.name, view]))
  await Promise.all(apps.map((app) => lookAt(app, byName, { host, tell })))
  // Only now is it known what has become of those that they wait for.
  for (const app of apps) if (app.state === 'waiting') waitOrGiveUp(app, all, { tell })
}

/** @param {Followed} app @param {Map<string, AppView>} views by name @param {{ host: Pick<ApiClient, 'get'>, tell: Tell }} how */
async function lookAt (app, views, { host, tell }) {
  if (isOver(app)) return
  const view = views.get(app.name)
  if (view === undefined || view.state === 'stopped') return endWith(app, 'stopped', view?.reason ?? null, { tell })
  if (view.isRetried) return
  // The host lets it fail where one that it waits for does not get ready.
  const hasWaited = app.state !== 'ready' && app.dependsOn.some((name) => ['failed', 'stopped'].includes(String(views.get(name)?.state)))
  if (view.state === 'failed' && !hasWaited) return endWith(app, 'failed', view.reason, { tell })
  if (app.state === 'ready') return
  app.state = view.state === 'waiting' || view.state === 'failed' ? 'waiting' : 'starting'
  app.reason = view.reason
  if (!isOpen(view) || view.state === 'stopping') return
  app.status = await answerOf(host, `/apps/${app.name}/status`) ?? app.status
  // Meanwhile somebody may want to follow it no more.
  if (!isOver(app) && app.status !== null && isReady(app.status)) endWith(app, 'ready', null, { tell })
}

/** @param {Followed} app @param {Followed['state']} state @param {string | null} reason @param {{ tell: Tell }} how */
function endWith (app, state, reason, { tell }) {
  Object.assign(app, { state, reason })
  const text = ['ready', 'not started'].includes(state) ? `is ${state}` : state
  tell(app, reason === null ? text : `${text}: ${reason}`)
}

/** @param {Followed} app @param {readonly Followed[]} apps @param {{ tell: Tell }} how */
function waitOrGiveUp (app, apps, { tell }) {
  const needs = needsOf(app, apps)
  const missing = needs.find(({ state }) => ['failed', 'stopped', 'not started'].includes(state))
  if (missing) endWith(app, 'not started', whyMissing(missing), { tell })
  else if (needs.length > 0) tell(app, `waits for ${needs.map(({ name }) => name).join(', ')}`)
}

/** Gives an app that is not ready once the time is up a reason. @param {Followed} app @param {readonly Followed[]} apps @param {{ tell: Tell }} how */
function leaveOut (app, apps, { tell }) {
  if (app.state !== 'waiting') {
    app.reason = textOf(app)
    return
  }
  const missing = needsOf(app, apps).find(({ state }) => state !== 'ready')
  app.reason = missing ? whyMissing(missing) : app.reason
  tell(app, `still waits: ${app.reason ?? 'the host has not started it yet'}`)
}

/** @param {Followed} app @param {readonly Followed[]} apps */
function needsOf ({ dependsOn }, apps) {
  return dependsOn.flatMap((name) => apps.find((each) => each.name === name) ?? [])
}

/** @param {Followed} app */
function howItIs (app) {
  return app.state === 'starting' ? textOf(app) : app.state
}

/** @param {Followed} app @returns {string} why it is not ready */
function textOf ({ status, reason }) {
  return whyNotReady(status, reason ?? undefined)
}

/** @param {Pick<ApiClient, 'get'>} host @param {string} name @returns {Promise<string[]>} the last lines that its workers have written */
export async function lastLines (host, name) {
  const answer = await answerOf(host, `/apps/${name}/logs?lines=${SHOWN_LINES}`)
  return (answer?.items ?? []).slice(-SHOWN_LINES).map((/** @type {{ text: string }} */ { text }) => text)
}

/** @param {Pick<ApiClient, 'get'>} host @param {string} path @returns {Promise<any>} null: it cannot say that at the moment */
async function answerOf (host, path) {
  try {
    return await host.get(path)
  } catch (error) {
    if (error instanceof DeckError) return null
    throw error
  }
}
