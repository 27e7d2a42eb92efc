import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { storedConfig, type Config, type StoredConfig } from '../config/config.ts'
import { isObject } from '../config/is-object.ts'
import type { KeptFile } from '../system/kept-file.ts'
import type { AppLink, StoredSocket } from '../keeper/app-links.ts'
import type { AppOrder } from '../config/orders.ts'
import type { Finished, Release } from '../lifecycle/state.ts'
import type { RememberedChange, Settings } from '../config/settings.ts'
import type { EventStream } from '../events/stream.ts'
import type { Releases } from '../releases/registry.ts'
import type { Supervisor } from '../cluster/supervisor.ts'

/**
 * What runs of an app: a start that nobody has ordered goes on with it. `order`: that it came from, null: it was no
 * order to a host; `config`: as the release was started with, and `variables`: of that release, without secrets; one
 * that is null is not set; null: a backup has left out both, so they are read anew. `workers`: how many are wanted;
 * `changes`: what an operator has changed of the configuration; `finished`: slots whose program has come to its end, by
 * number; `stored`: sockets that the service manager keeps for the next start.
 */
export type Runs = { order: AppOrder | null, config: StoredConfig, variables: Record<string, string | null> | null,
  release: Release, workers: number, changes: RememberedChange[], finished: Record<number, Finished>,
  stored?: StoredSocket[] }
/** Where it is kept. `read`: null: nothing has run; `stored`: resolves once the disk has it; throws not-stored */
export type RunsStore = Pick<KeptFile, 'stored' | 'isStored'> & { read: () => unknown, save: (runs: Runs) => void }

/**
 * How a start begins. `release`: null: it is to be made of what is configured; `last`: that ran, and can run again;
 * `isGone`: the files of what ran are no longer there.
 */
export type Beginning = Pick<Runs, 'workers' | 'changes' | 'finished'> & { release: Release | null,
  last: Release | null, isGone: boolean }

/** `isOrdered`: somebody wants the app as it is configured, and on the disk, now. */
export function beginningOf (runs: Runs | null,
  { entry, workers, appNode }: Pick<Config, 'entry' | 'workers' | 'appNode'>,
  { isOrdered }: { isOrdered: boolean }): Beginning
{
  if (runs === null) return { release: null, last: null, isGone: false, workers, changes: [], finished: {} }
  const { config: { values: before }, release, changes } = runs
  // Another Node is no other app; an old one is what runs, and has the file among its arguments.
  const isSame = before.entry === entry || entry === appNode?.file || before.entry === release.node?.file
  const isGone = !existsSync(release.entry)
  const last = isSame && !isGone ? release : null
  const goesOn = last !== null && !isOrdered
  return {
    release: goesOn ? last : null,
    last,
    isGone,
    changes,
    finished: goesOn ? runs.finished : {},
    // What was configured anew counts more.
    workers: before.workers === workers ? runs.workers : workers
  }
}

/**
 * Keeps it up to date, from event to event, once the first workers are ready: what never ran does not run again, neither
 * a release nor an option. `goesOn`: it ran before.
 */
export function keepRuns (
  { store, goesOn, config, events, supervisor, settings, keeper, releases }: { store: RunsStore, goesOn: boolean,
    config: Config, keeper: Pick<AppLink, 'stored'>, events: Pick<EventStream, 'subscribe'>,
    supervisor: Pick<Supervisor, 'runs' | 'snapshot'>, settings: Pick<Settings, 'memory'>,
    releases: Pick<Releases, 'launchOf'> }
) {
  let kept: Runs | null = null
  let launchedBy: unknown = null
  let hasRun = goesOn
  let stored = checkedRuns(store.read())?.stored
  const unsubscribe = events.subscribe(note)

  return {
    /** Resolves once the disk has what runs now. @throws {DeckError} not-stored */
    async stored () {
      note()
      await store.stored()
    },

    /** What the disk does not have yet, for a master that begins before it does; null: it has all. */
    unsaved: () => store.isStored() ? null : kept,

    close: unsubscribe
  }

  function note () {
    // The checkpoint that is written of this event has it already, for a master that begins before the disk does.
    const isRunning = supervisor.snapshot().state === 'running'
    hasRun ||= isRunning
    // Those that a stop closes may be there again at the next start.
    if (isRunning) stored = keeper.stored?.()
    const runs = { ...supervisor.runs(), changes: settings.memory(), stored }
    // Without any slot the start itself has not begun.
    if (!hasRun || runs.workers === 0) return
    const launch = releases.launchOf(runs.release.id)
    // Its secrets are not known yet, nor is the rest.
    if (launch === null || (launch.spec === launchedBy && isDeepStrictEqual({ ...kept, ...runs }, kept))) return
    launchedBy = launch.spec
    kept = { ...runs, order: launch.spec.order, config: storedConfig(config, launch.spec.config),
      variables: launch.variables }
    store.save(kept)
  }
}

/** `content`: as somebody has kept it. Returns null: it is nothing that a master could go on with. */
export function checkedRuns (content: unknown): Runs | null {
  const { config, variables, release, workers, changes, finished, stored = [] } = Object(content)
  const { values, origins } = Object(config)
  const texts = [values?.entry, values?.cwd, ...['id', 'entry', 'path', 'createdAt'].map((name) => release?.[name])]
  const isWhole = texts.every((text) => typeof text === 'string') && Number.isSafeInteger(workers) && workers > 0 &&
    [variables ?? {}, finished].every(isObject) && [changes, origins, stored].every(Array.isArray)
  return isWhole ? content as Runs : null
}
