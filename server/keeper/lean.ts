import { keepYoungSmall } from '../system/heap.ts'

/** What a master is started with so that it takes little memory. */

/**
 * With flags of the heap, Node before V8 13 would compile its own code anew at each start, which takes 40 ms. With
 * `--expose-gc` any Node would.
 */
const TAKES_HEAP_FLAGS = Number.parseInt(process.versions.v8, 10) >= 13
/**
 * A master makes much garbage at its start and little afterwards, so a small young generation is enough. The memory
 * reducer of V8 would collect garbage twice more, 8 s after tidySoon has done so, which takes 120 ms of CPU time. See
 * `node --v8-options`.
 */
export const LEAN_FLAGS = Object.freeze(['--v8-pool-size=1',
  ...TAKES_HEAP_FLAGS ? ['--max-semi-space-size=2', '--no-memory-reducer'] : []])
/** Each thread would have a pool of its own, and what was large once would never be given back: mallopt(3). */
const MALLOC = Object.freeze({ MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072' })
const NAMES = 'CLUSTERDECK_MALLOC'

/** `env`: of the user, who may have set some of it. Returns what a master gets beside it. */
export function leanEnvironment (env: Record<string, string | undefined>): Record<string, string> {
  const own = Object.entries(MALLOC).filter(([name]) => env[name] === undefined)
  return { ...Object.fromEntries(own), [NAMES]: own.map(([name]) => name).join() }
}

/** A master whose flags leave the young generation as it is keeps that small itself, once its code is loaded. */
export function stayLean () {
  if (!TAKES_HEAP_FLAGS) keepYoungSmall()
}

/** The C library has read it; workers and commands shall not have it. `env`: of a master. */
export function leaveLean (env: Record<string, string | undefined>) {
  for (const name of env[NAMES]?.split(',') ?? []) delete env[name]
  delete env[NAMES]
}
