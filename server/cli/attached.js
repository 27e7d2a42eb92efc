import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { createAttachment } from './attachment.js'
import { timeoutOf } from './duration.js'
import { checkNoneFailed, orderApps } from './fill-host.js'
import { hasHostStopped, isWanted, lastingHost, untilStopped } from './host.js'
import { ensureHost, killHost } from './host-start.js'
import { createInterruption } from './interruption.js'
import { createPrefixed } from './prefixed.js'

/** @typedef {import('./fill-host.js').Ordered} Ordered */
/** @typedef {import('./fill-host.js').Wanted & { label: string, dataDir: string }} Wanted */
/** @typedef {import('./host.js').AppView} AppView */
/** @typedef {import('./host.js').LastingHost} LastingHost */
/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

const POLL_MS = 100
/** How long a host may take to end apps at once. */
const KILLED_WITHIN_MS = 3000

/**
 * Has the host run apps for as long as this runs, and shows what they write. A first signal stops those that were started here, and
 * another one ends them at once. A host that was started here ends with them.
 * @param {readonly Wanted[]} wanted each after those that it depends on
 * @param {{ apps: import('../config/app-order.js').Apps, timeout?: string }} how `apps`: all of the config file @param {Terminal} terminal
 * @throws {DeckError} start-failed: some have failed, or were ended at once
 */
export async function runAttached (wanted, { apps, timeout }, terminal) {
  const { env } = terminal
  const { timeoutMs } = timeoutOf({ timeout }, env)
  const { stop, kill, leave } = createInterruption()
  try {
    const { master, child } = await ensureHost({ ofHost: [], signal: AbortSignal.timeout(timeoutMs), timeoutMs, terminal, killed: kill })
    if (!child) terminal.stderr.write(`clusterdeck: the page of the host: ${master.url}\n`)
    const host = lastingHost(master, env)
    const prefixed = createPrefixed(wanted.map(({ label }) => label), terminal)
    if (child) await stopBroughtBack(wanted, { host, env, timeoutMs })
    const before = await wantedApps(host)
    const ordered = await orderApps(wanted, { host, prefixed, stop })
    const attachment = createAttachment(ordered, { host, prefixed, howHostEnded: () => howHostEnded(env) })
    onAbort(stop, () => attachment.stop(apps))
    onAbort(kill, async () => {
      attachment.kill()
      await waitAtMost(attachment.over, KILLED_WITHIN_MS)
      if (child) killHost(child)
      else attachment.leave('is still stopping')
    })
    await attachment.over
    if (child) await endHost(child, { host, ours: [...before, ...[...ordered.values()].map(({ name }) => name)], kill, terminal })
    checkNoneMissing(ordered, kill)
  } finally {
    leave()
  }
}

/**
 * Stops those that a new host has brought back, as they are to run as they are ordered now.
 * @param {readonly Wanted[]} wanted @param {{ host: LastingHost, env: Terminal['env'], timeoutMs: number }} how
 */
async function stopBroughtBack (wanted, { host, env, timeoutMs }) {
  const folders = wanted.map(({ dataDir }) => dataDir)
  /** @type {AppView[]} */
  const views = (await host.get('/apps')).items
  await Promise.all(views.filter((view) => view.dataDir !== null && folders.includes(view.dataDir) && isWanted(view)).map(async ({ name }) => {
    await host.post(`/apps/${name}/stop`)
    await untilStopped(name, { host, env, signal: AbortSignal.timeout(timeoutMs), timeoutMs })
  }))
}

/** @param {LastingHost} host @returns {Promise<string[]>} the names of those that run, or are about to */
async function wantedApps (host) {
  return (await host.get('/apps')).items.filter(isWanted).map((/** @type {AppView} */ { name }) => name)
}

/** @param {Terminal['env']} env @returns {Pick<Ordered, 'state' | 'reason'> | null} what has become of its apps; null: it runs */
function howHostEnded (env) {
  const hasStopped = hasHostStopped(env)
  if (hasStopped === null) return null
  return hasStopped ? { state: 'stopped', reason: null } : { state: 'failed', reason: 'the host has ended without stopping it' }
}

/**
 * Ends a host that was started here, unless somebody has started other apps in it.
 * @param {ChildProcess} child @param {{ host: LastingHost, ours: readonly string[], kill: AbortSignal, terminal: Terminal }} how `ours`: apps that are there because of this
 */
async function endHost (child, { host, ours, kill, terminal: { env, stderr } }) {
  onAbort(kill, () => killHost(child))
  try {
    const others = (await wantedApps(host)).filter((name) => !ours.includes(name))
    // What is left where process 1 of a container ends is killed.
    if (others.length > 0 && process.pid !== 1) return stderr.write(`clusterdeck: the host goes on with ${others.join(', ')} (clusterdeck down --all ends it)\n`)
    await host.post('/host/stop')
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    // It has ended already, or hangs.
    child.kill('SIGTERM')
  }
  const hasExited = () => (child.exitCode ?? child.signalCode) !== null
  // Without its keeper a host that hangs is ended by nobody.
  while (!hasExited() || (howHostEnded(env) === null && !kill.aborted)) await wait(POLL_MS)
}

/** The reasons have been printed before. @param {ReadonlyMap<string, Ordered>} ordered @param {AbortSignal} kill @throws {DeckError} start-failed */
function checkNoneMissing (ordered, kill) {
  checkNoneFailed([...ordered].filter(([, { state }]) => state === 'failed' || state === 'not started'), 'up')
  if (kill.aborted) throw new DeckError('start-failed', 'up: a second signal has ended the apps at once')
}

/** @param {AbortSignal} signal @param {() => unknown} work */
function onAbort (signal, work) {
  if (signal.aborted) work()
  else signal.addEventListener('abort', work, { once: true })
}
