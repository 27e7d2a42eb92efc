/**
 * What some work costs, and how that grows with what there is more and more of.
 * @typedef {object} Part
 * @property {string} title
 * @property {Unit} unit
 * @property {(n: number, owner: import('../../support/deck.js').TestOwner) => Job | Promise<Job>} open  so many of them are there, and nothing has been measured yet
 * @typedef {'worker' | 'app' | 'event' | 'host'} Unit
 *
 * @typedef {object} Job
 * @property {() => unknown} run  what is measured
 * @property {number} [times]  how often it has done it by then; default: once
 * @property {() => number} [bytes]  of one time, once it has run
 * @typedef {{ n: number, cpuMs: number, bytes: number | null }} Cost  of one time, for all units together
 */

/**
 * The least CPU time of several runs: that of the one which others have disturbed least.
 * @param {Part} part @param {number} n @param {{ rounds: number }} options @returns {Promise<Cost>}
 */
export async function measure ({ open }, n, { rounds }) {
  /** @type {(() => unknown)[]} */
  const ends = []
  try {
    const job = await open(n, { after: (/** @type {() => unknown} */ end) => { ends.unshift(end) } })
    // V8 has to know the code.
    await job.run()
    const took = []
    for (let round = 0; round < rounds; round++) took.push(await cpuMsOf(job.run) / (job.times ?? 1))
    return { n, cpuMs: Math.min(...took), bytes: job.bytes?.() ?? null }
  } finally {
    for (const end of ends) await end()
  }
}

/** @param {() => unknown} run */
async function cpuMsOf (run) {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/**
 * @param {Cost} few @param {Cost} many @param {'cpuMs' | 'bytes'} figure
 * @returns {number} how the cost of each has grown: 1 where it is the same, less where much is there anyhow
 */
export function growthOf (few, many, figure) {
  return Number(many[figure]) / many.n / (Number(few[figure]) / few.n)
}

/** @param {Cost} few @param {Cost} many @param {'cpuMs' | 'bytes'} figure @returns {number} what each one more costs */
export function eachMore (few, many, figure) {
  return (Number(many[figure]) - Number(few[figure])) / (many.n - few.n)
}
