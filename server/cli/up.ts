import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder, startOrder, type Apps } from '../config/app-order.ts'
import { DeckError } from '../errors.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { orderOfApp } from './app-orders.ts'
import { showOutput } from './app-output.ts'
import { checkedApps, findApps } from './apps.ts'
import { checkNoneFailed, fillHost, orderApps, type Ordered } from './fill-host.ts'
import { ensureHost, killHost } from './host-start.ts'
import { hasHostStopped, isWanted, lastingHost, listApps, stopInHost, type LastingHost } from './host.ts'
import { createInterruption } from './interruption.ts'
import { createPrefixed, type Prefixed } from './prefixed.ts'
import { followApps, isOver, type Followed } from './ready-apps.ts'
import { misuse, timeoutOf } from './usage.ts'
import type { ChildProcess } from 'node:child_process'
import type { Terminal } from './program.ts'

type Wanted = import('./fill-host.ts').Wanted & { label: string, dataDir: string }

const POLL_MS = 100
/** How long a host may take to end apps at once. */
const KILLED_WITHIN_MS = 3000
/** How long the last output of an app is awaited where it has ended. */
const SHOWN_WITHIN_MS = 1000

/**
 * Has the host run the apps of a config file: for as long as this runs, or until somebody stops them. `names`: none:
 * all.
 * @throws {DeckError} usage, invalid-config: nothing was started; start-failed: some are not ready, or failed
 */
export async function upCommand (names: string[],
  options: { config?: string, detach?: true, wait?: boolean, apply?: true, timeout?: string }, terminal: Terminal)
{
  const { detach = false, wait: waits = true, apply = false, timeout } = options
  const found = await findApps('up', options, terminal)
  const named = checkedApps('up', names, found)
  const apps = startOrder(found.apps, named).flatMap((name) => found.apps.get(name) ?? [])
  const started = startOrder(found.apps,
    names.length > 0 ? named : named.filter((name) => found.apps.get(name)?.autostart))
  const wanted = apps.map((app) => ({ label: app.name, order: orderOfApp(app, found.file, terminal),
    dataDir: app.dataDir, isIdle: !started.includes(app.name) })
  )
  if (detach) return await fillHost(wanted, { command: 'up', waits, applies: apply, timeout }, terminal)
  if (apply) throw misuse('--apply', 'with --detach', 'alone')
  if (!waits) throw misuse('--no-wait', 'with --detach', 'alone')
  await runAttached(wanted, { apps: found.apps, timeout }, terminal)
}

/**
 * Has the host run apps for as long as this runs, and shows what they write. A first signal stops those that were
 * started here, and another one ends them at once. A host that was started here ends with them. `wanted`: each after
 * those that it depends on; `apps`: all of the config file.
 * @throws {DeckError} start-failed: some have failed, or were ended at once
 */
async function runAttached (wanted: readonly Wanted[], { apps, timeout }: { apps: Apps, timeout?: string },
  terminal: Terminal)
{
  const { env } = terminal
  const deadline = timeoutOf({ timeout }, env)
  const { stop, kill, leave } = createInterruption()
  try {
    const { master, child } = await ensureHost({ ...deadline, terminal, killed: kill })
    if (!child) terminal.stderr.write(`clusterdeck: the page of the host: ${master.url}\n`)
    const host = lastingHost(master, env)
    const prefixed = createPrefixed(wanted.map(({ label }) => label), terminal)
    if (child) await stopBroughtBack(wanted, { host, env, timeoutMs: deadline.timeoutMs })
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
    views.filter((view) => view.dataDir !== null && folders.includes(view.dataDir) && isWanted(view)).map(({ name }) =>
      stopInHost(name, { ...host, signal: AbortSignal.timeout(timeoutMs), timeoutMs }, env)
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

type Member = ReturnType<typeof attach>

/**
 * Shows what apps of the host write and what becomes of them, until all have ended.
 * @param ordered by label, as they were ordered
 */
function createAttachment (ordered: ReadonlyMap<string, Ordered>,
  { host, prefixed, howHostEnded }: { host: LastingHost, prefixed: Prefixed,
    howHostEnded: Parameters<typeof followApps>[1]['howHostEnded'] })
{
  let isStopping = false
  const members = new Map([...ordered].map(([label, app]) => [app, attach(label, app, { host, prefixed })]))
  const following = followApps([...ordered.values()], { host, tell, howHostEnded, toTheEnd: true })
  const ours = [...members.values()].filter(({ app }) => app.isInHost && !app.ranBefore)

  return {
    /** Resolves once all have ended, or are left. */
    over: following.then(async () => {
      await Promise.all([...members.values()].map(({ ended }) => ended))
      // The host does not try those again either.
      await Promise.all(
        ours.filter(({ app }) => app.state === 'failed').map(({ app }) => orderStop(app).catch(() => {}))
      )
    }),

    /** Stops those that were started here, each after those that depend on it; the others go on. */
    async stop (apps: Apps) {
      isStopping = true
      for (const member of members.values()) if (member.app.ranBefore) member.leave('goes on in the host')
      await inStopOrder(apps, ours.map(({ label }) => label), async (label) => {
        const member = ours.find((each) => each.label === label)
        if (member) await stopMember(member)
      })
    },

    /** Ends those that were started here at once. */
    async kill () {
      await Promise.all(ours.map((member) => stopMember(member, '?now=true')))
    },

    /** Follows them no more. `text`: why. */
    leave (text: string) {
      for (const member of members.values()) member.leave(text)
    }
  }

  function tell (app: Followed, text: string) {
    const member = members.get(app as Ordered)
    if (isOver(app)) member?.end(text)
    else if (!isStopping) member?.say(text)
  }

  async function stopMember ({ app, ended }: Member, query?: string) {
    while (!isOver(app)) {
      try {
        await orderStop(app, query)
        break
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        // A master that follows may answer, or the host has ended.
        await wait(POLL_MS)
      }
    }
    await ended
  }

  async function orderStop ({ name }: Ordered, query: string = '') {
    await host.post(`/apps/${name}/stop${query}`)
  }
}

function attach (label: string, app: Ordered, { host, prefixed }: { host: LastingHost, prefixed: Prefixed }) {
  const cut = new AbortController()
  const ended: PromiseWithResolvers<void> = Promise.withResolvers()
  const output = { host, fromStart: !app.ranBefore, isOver: () => isOver(app), until: cut.signal }
  const shown = isOver(app)
    ? Promise.resolve()
    : showOutput(app.name, { ...output, show: (stream, lines) => prefixed.show(label, stream, lines) })
  if (isOver(app)) ended.resolve()

  return {
    label,
    app,

    /** Resolves once its end is told. */
    ended: ended.promise,

    say (text: string) {
      prefixed.say(label, text)
      if (app.state === 'ready') {
        for (const address of app.status?.app.addresses ?? []) prefixed.print(label, `listens on ${address}`)
      }
    },

    /** Tells of its end, after the last that it has written. */
    async end (text: string) {
      await waitAtMost(shown, SHOWN_WITHIN_MS)
      cut.abort()
      prefixed.say(label, text)
      ended.resolve()
    },

    /** Follows it no more, though it runs. `text`: why. */
    leave (text: string) {
      if (isOver(app)) return
      app.state = 'left'
      cut.abort()
      prefixed.say(label, text)
      ended.resolve()
    }
  }
}
