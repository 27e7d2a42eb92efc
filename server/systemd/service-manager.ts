import { describeHealth } from '../words/health.ts'
import { oneLine } from '../system/one-line.ts'
import { createNotifier } from './notify.ts'
import type { EventEmitter } from 'node:events'
import type { snapshotOf } from '../lifecycle/snapshot.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'

type Snapshot = ReturnType<typeof snapshotOf>

const STATUS_INTERVAL_MS = 1000
/** What a stop takes beside its workers: open answers of the admin port, the history. */
const STOP_SLACK_MS = 10_000
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Tells the service manager that has started this cluster how it is, as sd_notify(3) and sd_watchdog_enabled(3) have
 * it. One more subscriber of the event stream; nothing at all where nobody wants to know.
 */
export function tellServiceManager (
  { events, supervisor, settings, keeper }: { events: EventStream, supervisor: { snapshot: () => Snapshot },
    settings: { readonly current: { drain: { deadlineMs: number }, stop: { termGraceMs: number } } },
    keeper: { isKept: boolean } },
  { env = process.env, notify = createNotifier(env.NOTIFY_SOCKET), sources = [process], now = () => performance.now(),
    untilDeploying = async () => {} }: {
      env?: Record<string, string | undefined>,
      notify?: (message: string) => void,
      /** of signals: this process, and its keeper */
      sources?: EventEmitter[],
      /** monotonic, ms */
      now?: () => number,
      /** resolves once the newest deploy that a signal has asked for has begun, or was refused */
      untilDeploying?: () => Promise<void>
    } = {}
) {
  if (!env.NOTIFY_SOCKET) return
  let isReady = false
  let isStopping = false
  /** Deploys that have been asked for and have not begun. */
  let preparing = 0
  let status = { text: '', at: -Infinity }
  let statusTimer: NodeJS.Timeout | undefined
  const watchdog = startWatchdog(env, { notify, isKept: keeper.isKept })
  const unsubscribe = events.subscribe(onEvent)
  // Before the one that starts the deploy: first the news, then the work.
  for (const source of sources) source.prependListener('SIGHUP', onReload)

  function onEvent ({ type, cause }: DeckEvent) {
    if (type === 'keeper.lost') notify(`MAINPID=${process.pid}`)
    // After an upgrade the next master goes on from here.
    if (type !== 'master.stopped' || cause !== 'upgrade') tellState()
    // The master before this one may have died, and this one tells its end now.
    if (type === 'master.stopped' && cause !== 'master-lost') stopTelling()
  }

  /** A change of state carries the status; the status alone is told once a second at the most. */
  function tellState () {
    const snapshot = supervisor.snapshot()
    const lines = stateLines(snapshot)
    const text = oneLine(describeHealth(snapshot).text)
    const waitMs = lines.length > 0 ? 0 : status.at + STATUS_INTERVAL_MS - now()
    clearTimeout(statusTimer)
    if (text !== status.text && waitMs > 0) statusTimer = setTimeout(tellState, waitMs).unref()
    if (text !== status.text && waitMs <= 0) {
      status = { text, at: now() }
      lines.push(`STATUS=${text}`)
    }
    if (lines.length > 0) notify(lines.join('\n'))
  }

  function stateLines ({ state, rollout }: Snapshot): string[] {
    if (state === 'stopping') {
      if (isStopping) return []
      isStopping = true
      const { drain, stop } = settings.current
      const longestMs = drain.deadlineMs + stop.termGraceMs + STOP_SLACK_MS
      return ['STOPPING=1', `EXTEND_TIMEOUT_USEC=${longestMs * 1000}`]
    }
    const isReloading = rollout?.kind === 'deploy' && rollout.actor === 'signal'
    if (isReady || state !== 'running' || isReloading || preparing > 0) return []
    isReady = true
    return ['READY=1']
  }

  function onReload () {
    if (isStopping) return
    isReady = false
    notify(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
    // A deploy that is refused has no event, and whoever asked waits for an answer to this one too.
    preparing++
    setImmediate(async () => {
      await untilDeploying()
      preparing--
      tellState()
    })
  }

  function stopTelling () {
    unsubscribe()
    for (const source of sources) source.off('SIGHUP', onReload)
    clearTimeout(statusTimer)
    clearInterval(watchdog)
  }
}

/** A master whose loop no longer turns is silent, and the service manager starts the service anew. */
export function startWatchdog ({ WATCHDOG_USEC, WATCHDOG_PID }: Record<string, string | undefined>,
  { notify, isKept }: { notify: (message: string) => void, isKept: boolean })
{
  const intervalMs = Number(WATCHDOG_USEC) / 1000 / 2
  // Meant for the process that was started, which may be the keeper; in another one it has been left in the
  // environment.
  const isMeant = !WATCHDOG_PID || [process.pid, isKept && process.ppid].includes(Number(WATCHDOG_PID))
  if (!isMeant || !(intervalMs > 0)) return undefined
  const notifyAlive = () => notify('WATCHDOG=1')
  notifyAlive()
  return setInterval(notifyAlive, Math.min(Math.max(1, intervalMs), MAX_TIMER_MS)).unref()
}
