import { setTimeout as wait } from 'node:timers/promises'
import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import { describeChange, reconcileWorkers, rememberFor, signCheckpoint } from '../handover/checkpoint.ts'
import { startInTurn } from './turn.ts'
import { endUnfinished } from '../handover/unfinished.ts'
import { errorText } from '../errors.ts'
import { megabytesText } from '../lifecycle/duration.ts'
import type { Release } from '../lifecycle/state.ts'
import type { Releases } from '../releases/registry.ts'
import type { EventStream } from '../events/stream.ts'
import type { Closers } from '../system/closers.ts'
import type { App, HostServices } from './app.ts'
import type { SavedWorker } from '../cluster/adoption.ts'

/** How soon a data folder that was removed is made anew. */
const LOOK_FOR_DATA_EVERY_MS = 3000
/** After this time a start says what it is waiting for. */
const WAITING_AFTER_MS = 5000

const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 30_000

/**
 * Records what the master before could not record itself, and that this one has started. No start depends on it: a full
 * disk keeps nobody from serving, and the next change tries again.
 * @returns the workers that are left of the master before
 */
export function recordPast ({ restored, beginning, checkpoints, history, events, recorder, supervisor, since }: App,
  { log, software }: HostServices): SavedWorker[]
{
  let { left } = restored
  if (restored.lost) tellLost(events, restored.lost)
  attempt(() => signCheckpoint(checkpoints))
  attempt(() => endUnfinished({ history, events }))
  attempt(() => {
    left = reconcileWorkers(left, history.workerLives(since), supervisor.memory().workers)
  })
  recorder?.begin()
  events.publish({ type: 'master.started', pid: process.pid, actor: 'system',
    detail: { ...software, workers: beginning.workers } })
  return left

  function attempt (work: () => void) {
    try {
      work()
    } catch (error) {
      log.error({ err: error }, 'this could not be done at the start')
    }
  }
}

/** Starts the workers, or goes on with those of the master before. */
export function startWorkers (app: App, host: HostServices, left: SavedWorker[]) {
  const { keeper, closers, software } = host
  const { dataDir, checkpoints, restored, beginning, kept, since, history, events, releases, hooks, jobs, supervisor,
    first, isNext } = app
  const remember = rememberFor({ memory: checkpoints, events, kept, supervisor, releases, hooks, jobs, software,
    since })
  closers.add(remember,
    (_, { handsOver, hasFailed }) => hasFailed ? remember.leave() : handsOver ? remember.handOver() : remember.forget())
  closers.add(releases, ({ close }) => close())
  if (first.isNew && !isNext) releases.tellCreated(first.release)
  hooks.endLeft(restored.hooks)
  const secrets = untilSecrets({ releases, events, closers })
  if (isNext) {
    events.publish({ type: 'master.upgraded', pid: process.pid, actor: 'system',
      message: describeChange(restored.before, software), detail: { from: restored.before, to: software } })
    supervisor.takeOver({ ...restored, left })
  } else {
    // A master that replaces one that has died or let go only goes on with the apps of that one, unless it has not come
    // past the hook.
    const goesOn = keeper.predecessor && (restored.lost || restored.isHandedOver) &&
      !restored.hooks.some(({ name }) => name === 'beforeStart')
    startInTurn(supervisor, host, { ...restored, ...beginning, left, hasHook: hooks.has('beforeStart') && !goesOn,
      secrets })
  }
  // What is not in the list would be removed, and without the history nobody knows the list.
  if (!history.away && !dataDir.away) releases.clean()
  supervisor.running.then(() => releases.settleFirst(first.release.id))
  jobs.start({ ...restored.jobs, isUpgrade: isNext && restored.lost === null, secrets })
  setTimeout(tellWaiting, WAITING_AFTER_MS).unref()

  function tellWaiting () {
    const message = supervisor.waitingFor()
    if (message) events.publish({ type: 'master.waiting', actor: 'system', message })
  }
}

/** Makes the data folder anew where it is removed, as together with an old release that it lay in. */
export function watchDataDir ({ dataDir, history, events }: App, { terminal, closers }: HostServices) {
  let isTold = false
  const stop = lookInMiddleOfSecond(() => {
    if (dataDir.isThere()) return
    try {
      dataDir.restore()
      history.reopen()
      events.publish({ type: 'unexpected', actor: 'system',
        message: `the data folder ${dataDir.folder} was removed; it is made anew, and the history begins anew there` })
    } catch (error) {
      if (!isTold)
        terminal.fail(`the data folder ${dataDir.folder} was removed, and cannot be made anew: ${errorText(error)}`)
      isTold = true
    }
  }, LOOK_FOR_DATA_EVERY_MS)
  closers.add(stop, () => stop())
}

/** Writes what a master that has died could not write itself. */
export function tellLost (events: Pick<App['events'], 'publish'>,
  { hang, fault, ...exit }: NonNullable<App['restored']['lost']>)
{
  const how = hang?.memoryBytes !== undefined
    ? `took ${megabytesText(hang.memoryBytes)} of memory, and was ended by the keeper`
    : hang
    ? `did not answer for ${hang.silentMs} ms, and was ended by the keeper${
      hang.stack ? '' : `; no JavaScript stack: ${hang.reason}`
    }`
    : 'ended unexpectedly and was replaced'
  const stack = fault?.stack ?? hang?.stack
  const message = fault
    ? `the host's part for this app failed, and is made anew; the workers serve on: ${fault.message}`
    : `the master (pid ${exit.pid}) ${how}`
  events.publish({ type: 'master.stopped', cause: 'master-lost', ...exit, message,
    ...((stack || fault) && { detail: { stack, ...(fault && { isOfApp: true }) } }) })
}

/**
 * Tries again and again to read the secrets that could not be read at the start. Only a master whose app is served by
 * workers of the one before starts without them.
 * @returns resolves once they are known, with the release that can run then; null: none are missing
 */
function untilSecrets (
  { releases, events, closers, sleep = wait }: { releases: Pick<Releases, 'secretsProblem' | 'readMissing'>,
    events: Pick<EventStream, 'publish'>, closers: Closers,
    sleep?: (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown> }
): Promise<Release> | null {
  const problem = releases.secretsProblem()
  if (problem === null) return null
  const closed = closers.add(new AbortController(), (controller) => controller.abort())
  events.publish({ type: 'secrets.failed', actor: 'system',
    message: `${problem}. The workers serve on, and none is started; it is tried again` })
  return readAgain()

  async function readAgain (): Promise<Release> {
    for (let delayMs = FIRST_DELAY_MS;; delayMs = Math.min(MAX_DELAY_MS, delayMs * 2)) {
      await sleep(delayMs, undefined, { signal: closed.signal }).catch(() => {})
      // The app is closed: nobody is to go on as if the secrets were known.
      if (closed.signal.aborted) return await new Promise(() => {})
      const release = await releases.readMissing()
      if (!release) continue
      events.publish({ type: 'secrets.read', release: release.id, actor: 'system',
        message: 'Workers are started again' })
      return release
    }
  }
}
