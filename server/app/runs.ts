import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { APP_ORDER } from '../config/orders.ts'
import { storedConfig, type Config, type StoredConfig } from '../config/config.ts'
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
export type Runs = { order: z.infer<typeof APP_ORDER> | null, config: StoredConfig,
  variables: Record<string, string | null>, release: Release, workers: number, changes: RememberedChange[],
  finished: Record<number, Finished> }
/** Where it is kept. `read`: null: nothing has run; `save`: resolves once the disk has it */
export type RunsStore = { read: () => Runs | null, save: (runs: Runs) => Promise<void> }

const OBJECT = z.looseObject({})
/** The fields that a master needs to begin; others stay as they are. */
export const RUNS: z.ZodType<Runs> = z.looseObject({ order: APP_ORDER.nullable(),
  config: z.looseObject({ values: z.looseObject({ entry: z.string(), cwd: z.string(), workers: z.int().positive() }),
    origins: z.array(z.tuple([z.string(), OBJECT])) }), variables: z.record(z.string(), z.string().nullable()),
  release: z.looseObject({ id: z.string(), entry: z.string(), path: z.string(), createdAt: z.string() }),
  workers: z.int().positive(),
  changes: z.array(z.looseObject({ name: z.string(), value: z.unknown(), configured: z.unknown() })),
  finished: z.record(z.string().regex(/^\d+$/),
    z.looseObject({ at: z.iso.datetime(), worker: z.int(), release: z.string(), cause: z.string(),
      code: z.int().nullable(), succeeded: z.boolean() })) }) as unknown as z.ZodType<Runs>

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
  { store, order, config, events, supervisor, settings, releases, onError }: { store: RunsStore, order: Runs['order'],
    config: Config, events: Pick<EventStream, 'subscribe'>, supervisor: Pick<Supervisor, 'runs' | 'running'>,
    settings: Pick<Settings, 'memory'>, releases: Pick<Releases, 'launchOf'>, onError: (error: unknown) => void }
) {
  /** What was kept last. */
  let kept: Omit<Runs, 'order' | 'config' | 'variables'> | null = null
  let launchedBy: unknown = null
  let saving: Promise<void> = Promise.resolve()
  const before = store.read()?.release.id
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

    close: unsubscribe
  }

  function note () {
    const runs = { ...supervisor.runs(), changes: settings.memory() }
    if (!isReady && runs.release.id !== before) return
    const launch = releases.launchOf(runs.release.id)
    // Its secrets are not known yet, nor is the rest.
    if (launch === null || (launch.spec === launchedBy && isDeepStrictEqual(runs, kept))) return
    launchedBy = launch.spec
    kept = runs
    saving = store.save({ ...runs, order, config: storedConfig(config, launch.spec.config),
      variables: launch.variables })
    saving.catch(onError)
  }
}

/** Returns a file with it, for an app that no host remembers. */
export function runsFile (
  { read, write }: { read: () => unknown, write: (content: Runs) => Promise<void> }
): RunsStore {
  return { read: () => RUNS.safeParse(read()).data ?? null, save: write }
}
