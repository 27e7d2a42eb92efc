import type { SocketHandle } from '../../workers/node-internals.d.ts'

// The pipes through which the output of runs comes. The keeper holds a copy of each: where the master dies or is
// replaced, a run can still write into its pipes, until they are full and it waits for the next master to read on.

type Handles = { stdout: SocketHandle, stderr: SocketHandle }
export type Keeper = { held: ReadonlyMap<string, { handle: SocketHandle }>,
  hold: (key: string, handle: SocketHandle) => void, drop: (key: string) => void }

const NAMES = Object.freeze(['stdout', 'stderr'] as const)
const KEY = /^run (\d+) /

export function createKeptStreams (keeper: Keeper) {
  return {
    keep (run: number, handles: { stdout: SocketHandle | null, stderr: SocketHandle | null }) {
      for (const name of NAMES) {
        const handle = handles[name]
        if (handle) keeper.hold(keyOf(run, name), handle)
      }
    },

    /** @returns of the master before; null: not both are kept */
    take (run: number): Handles | null {
      const [stdout, stderr] = NAMES.map((name) => keeper.held.get(keyOf(run, name))?.handle)
      return stdout && stderr ? { stdout, stderr } : null
    },

    drop (run: number) {
      for (const name of NAMES) keeper.drop(keyOf(run, name))
    },

    /** Lets go of what is left of all others: whoever still writes there is told that nobody reads it. */
    dropOthers (runs: Pick<ReadonlySet<number>, 'has'>) {
      for (const [key, { handle }] of keeper.held) {
        const run = KEY.exec(key)?.[1]
        if (run === undefined || runs.has(Number(run))) continue
        keeper.drop(key)
        handle.close()
      }
    }
  }
}

function keyOf (run: number, name: typeof NAMES[number]) {
  return `run ${run} ${name}`
}
