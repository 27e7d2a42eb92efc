/**
 * The pipes through which the output of runs comes. The keeper holds a copy of each: where the master dies or is replaced, a run can still
 * write into its pipes, until they are full and it waits for the next master to read on.
 * @typedef {ReturnType<typeof createKeptStreams>} KeptStreams
 * @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle
 * @typedef {{ stdout: SocketHandle, stderr: SocketHandle }} Handles
 * @typedef {object} Keeper
 * @property {ReadonlyMap<string, { handle: SocketHandle }>} held
 * @property {(key: string, handle: SocketHandle) => void} hold
 * @property {(key: string) => void} drop
 */

const NAMES = Object.freeze(/** @type {const} */ (['stdout', 'stderr']))
const KEY = /^run (\d+) /

/** @param {Keeper} keeper */
export function createKeptStreams (keeper) {
  return {
    /** @param {number} run @param {{ stdout: SocketHandle | null, stderr: SocketHandle | null }} handles */
    keep (run, handles) {
      for (const name of NAMES) {
        const handle = handles[name]
        if (handle) keeper.hold(keyOf(run, name), handle)
      }
    },

    /** @param {number} run @returns {Handles | null} of the master before; null: not both are kept */
    take (run) {
      const [stdout, stderr] = NAMES.map((name) => keeper.held.get(keyOf(run, name))?.handle)
      return stdout && stderr ? { stdout, stderr } : null
    },

    /** The run has ended. @param {number} run */
    drop (run) {
      for (const name of NAMES) keeper.drop(keyOf(run, name))
    },

    /** Lets go of what is left of all others: whoever still writes there is told that nobody reads it. @param {ReadonlySet<number>} runs */
    dropOthers (runs) {
      for (const [key, { handle }] of keeper.held) {
        const run = KEY.exec(key)?.[1]
        if (run === undefined || runs.has(Number(run))) continue
        keeper.drop(key)
        handle.close()
      }
    }
  }
}

/** @param {number} run @param {typeof NAMES[number]} name */
function keyOf (run, name) {
  return `run ${run} ${name}`
}
