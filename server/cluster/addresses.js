// An app may open listeners without end, as FTP servers do for every transfer.
const MAX_PER_WORKER = 32

/** Where the app has been heard to listen, by worker: an exclusive port goes with its worker, a shared one stays. */
export function createAddresses () {
  /** @type {Map<number, Set<string>>} */
  const byWorker = new Map()
  /** @type {string[]} */
  let last = []

  return {
    /** @param {number} worker @param {string} address @returns {boolean} whether it is news */
    add (worker, address) {
      const known = byWorker.get(worker) ?? new Set()
      byWorker.set(worker, known)
      if (known.has(address) || known.size >= MAX_PER_WORKER) return false
      known.add(address)
      return true
    },

    /** @param {number} worker */
    forget (worker) {
      last = all()
      byWorker.delete(worker)
    },

    /** @returns {string[]} of the workers that live; while there is none, those of the last one, for its socket is still there */
    list: () => byWorker.size > 0 ? all() : last
  }

  function all () {
    return [...new Set([...byWorker.values()].flatMap((known) => [...known]))]
  }
}
