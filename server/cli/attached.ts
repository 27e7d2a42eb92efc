import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { createAttachment } from './attachment.ts'
import { checkNoneFailed, orderApps, type Ordered } from './fill-host.ts'
import { ensureHost, killHost } from './host-start.ts'
import { hasHostStopped, isWanted, lastingHost, listApps, untilStopped, type LastingHost } from './host.ts'
import { createInterruption } from './interruption.ts'
import { createPrefixed } from './prefixed.ts'
import { timeoutOf } from './usage.ts'
import type { ChildProcess } from 'node:child_process'
import type { Terminal } from './program.ts'
import type { Apps } from '../config/app-order.ts'

type Wanted = import('./fill-host.ts').Wanted & { label: string, dataDir: string }

const POLL_MS = 100
/** How long a host may take to end apps at once. */
const KILLED_WITHIN_MS = 3000

/**
 * Has the host run apps for as long as this runs, and shows what they write. A first signal stops those that were
 * started here, and another one ends them at once. A host that was started here ends with them. `wanted`: each after
 * those that it depends on; `apps`: all of the config file.
 * @throws {DeckError} start-failed: some have failed, or were ended at once
 */
export async function runAttached (wanted: readonly Wanted[], { apps, timeout }: { apps: Apps, timeout?: string },
  terminal: Terminal)
{
  const { env } = terminal
  const { timeoutMs } = timeoutOf({ timeout }, env)
  const { stop, kill, leave } = createInterruption()
  try {
    const { master, child } = await ensureHost({ ofHost: [], signal: AbortSignal.timeout(timeoutMs), timeoutMs,
      terminal, killed: kill })
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
    if (child)
      await endHost(child, { host, ours: [...before, ...[...ordered.values()].map(({ name }) => name)], kill,
        terminal })
    checkNoneMissing(ordered, kill)
  } finally {
    leave()
  }
}

/** Stops those that a new host has brought back, as they are to run as they are ordered now. */
async function stopBroughtBack (wanted: readonly Wanted[],
  { host, env, timeoutMs }: { host: LastingHost, env: Terminal['env'], timeoutMs: number })
{
  const folders = wanted.map(({ dataDir }) => dataDir)
  const views = await listApps(host)
  await Promise.all(
    views.filter((view) => view.dataDir !== null && folders.includes(view.dataDir) && isWanted(view)).map(
      async ({ name }) => {
        await host.post(`/apps/${name}/stop`)
        await untilStopped(name, { host, env, signal: AbortSignal.timeout(timeoutMs), timeoutMs })
      }
    )
  )
}

/** @returns the names of those that run, or are about to */
async function wantedApps (host: LastingHost): Promise<string[]> {
  return (await listApps(host)).filter(isWanted).map(({ name }) => name)
}

/** @returns what has become of its apps; null: it runs */
function howHostEnded (env: Terminal['env']): Pick<Ordered, 'state' | 'reason'> | null {
  const hasStopped = hasHostStopped(env)
  if (hasStopped === null) return null
  return hasStopped
    ? { state: 'stopped', reason: null }
    : { state: 'failed', reason: 'the host has ended without stopping it' }
}

/**
 * Ends a host that was started here, unless somebody has started other apps in it.
 * @param how `ours`: apps that are there because of this
 */
async function endHost (child: ChildProcess,
  { host, ours, kill, terminal: { env, stderr } }: { host: LastingHost, ours: readonly string[], kill: AbortSignal,
    terminal: Terminal })
{
  onAbort(kill, () => killHost(child))
  try {
    const others = (await wantedApps(host)).filter((name) => !ours.includes(name))
    // What is left where process 1 of a container ends is killed.
    if (others.length > 0 && process.pid !== 1)
      return stderr.write(`clusterdeck: the host goes on with ${others.join(', ')} (clusterdeck down --all ends it)\n`)
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

/**
 * The reasons have been printed before.
 * @throws {DeckError} start-failed
 */
function checkNoneMissing (ordered: ReadonlyMap<string, Ordered>, kill: AbortSignal) {
  checkNoneFailed([...ordered].filter(([, { state }]) => state === 'failed' || state === 'not started'), 'up')
  if (kill.aborted) throw new DeckError('start-failed', 'up: a second signal has ended the apps at once')
}

function onAbort (signal: AbortSignal, work: () => unknown) {
  if (signal.aborted) work()
  else signal.addEventListener('abort', work, { once: true })
}
