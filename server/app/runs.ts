import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { storedConfig, type Config, type StoredConfig } from '../config/config.ts'
import type { AppOrder } from '../config/orders.ts'
import type { Finished, Release } from '../lifecycle/state.ts'
import type { RememberedChange, Settings } from '../config/settings.ts'
import type { EventStream } from '../events/stream.ts'
import type { Releases } from '../releases/registry.ts'
import type { Supervisor } from '../cluster/supervisor.ts'

/**
 * What runs of an app: a start that nobody has ordered goes on with it. `order`: that it came from, null: it was no
 * order to a host; `config`: as the release was started with, and `variables`: of that release, without secrets;
 * `workers`: how many are wanted; `changes`: what an operator has changed of the configuration; `finished`: slots whose
 * program has come to its end, by number. A variable that is null is not set.
 */
export type Runs = { order: AppOrder | null, config: StoredConfig, variables: Record<string, string | null>,
  release: Release, workers: number, changes: RememberedChange[], finished: Record<number, Finished> }
/** Where it is kept. `read`: null: nothing has run; `save`: resolves once the disk has it */
export type RunsStore = { read: () => unknown, save: (runs: Runs) => Promise<void> }

/**
 * How a start begins. `release`: null: it is to be made of what is configured; `last`: that ran, and can run again.
 */
export type Beginning = Pick<Runs, 'workers' | 'changes' | 'finished'> & { release: Release | null,
  last: Release | null }

/** `isOrdered`: somebody wants the app as it is configured, and on the disk, now. */
export function beginningOf (runs: Runs | null,
  { entry, workers, appNode }: Pick<Config, 'entry' | 'workers' | 'appNode'>,
  { isOrdered }: { isOrdered: boolean }): Beginning
{
  if (runs === null) return { release: null, last: null, workers, changes: [], finished: {} }
  const { config: { values: before }, release, changes } = runs
  // Another Node is no other app; an old one is what runs, and has the file among its arguments.
  const isSame = before.entry === entry || entry === appNode?.file || before.entry === release.node?.file
  const last = isSame && existsSync(release.entry) ? release : null
  const goesOn = last !== null && !isOrdered
  return {
    release: goesOn ? last : null,
    last,
    changes,
    finished: goesOn ? runs.finished : {},
    // What was configured anew counts more.
    workers: before.workers === workers ? runs.workers : workers
  }
}

/** Keeps it up to date, from event to event, once the first workers are ready: what never ran does not run again. */
export function keepRuns (
  { save, before, config, events, supervisor, settings, releases, onError }: { save: (runs: Runs) => Promise<void>,
    before: Runs | null, config: Config, events: Pick<EventStream, 'subscribe'>,
    supervisor: Pick<Supervisor, 'runs' | 'running'>, settings: Pick<Settings, 'memory'>,
    releases: Pick<Releases, 'launchOf'>, onError: (error: unknown) => void }
) {
  /** What was kept last. */
  let kept: Omit<Runs, 'order' | 'config' | 'variables'> | null = null
  let launchedBy: unknown = null
  let unsaved: Runs | null = null
  let saving: Promise<void> = Promise.resolve()
  let isReady = false
  const unsubscribe = events.subscribe(note)
  supervisor.running.then(() => {
    isReady = true
    note()
  })

  return {
    /** Resolves once the disk has what runs now. @throws {DeckError} not-stored */
    async stored () {
      note()
      await saving
    },

    /** What the disk may not have yet, for a master that begins before it does; null: it has all. */
    unsaved: () => unsaved,

    close: unsubscribe
  }

  function note () {
    const runs = { ...supervisor.runs(), changes: settings.memory() }
    if (!isReady && runs.release.id !== before?.release.id) return
    const launch = releases.launchOf(runs.release.id)
    // Its secrets are not known yet, nor is the rest.
    if (launch === null || (launch.spec === launchedBy && isDeepStrictEqual(runs, kept))) return
    launchedBy = launch.spec
    kept = runs
    const now: Runs = { ...runs, order: launch.spec.order, config: storedConfig(config, launch.spec.config),
      variables: launch.variables }
    unsaved = now
    saving = save(now)
    saving.then(() => {
      if (unsaved === now) unsaved = null
    }, onError)
  }
}

/** `content`: as it was kept somewhere; null: nowhere */
export async function checkedRuns (content: unknown): Promise<Runs | null> {
  if (content === null) return null
  // A first start has none, and need not wait for what checks it.
  const { RUNS } = await import('./runs-shape.ts')
  return RUNS.safeParse(content).data ?? null
}
