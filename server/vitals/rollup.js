import { Blend } from './blend.js'
import { encodeStep } from './codec.js'

/** @typedef {{ stepS: number, at: number, seconds: number, body: Buffer }} StoredStep  `at`: its first second since the epoch; `seconds`: how many it has */

/**
 * Adds up seconds to steps of a fixed length, which begin at multiples of that length.
 * @param {number} stepS
 */
export function createRollup (stepS) {
  const cluster = new Blend('over')
  /** @type {Map<number, Blend>} */
  const slots = new Map()
  let at = -1

  return {
    /**
     * @param {number} second that is about to be added
     * @returns {StoredStep | null} the step before it, if this is the first second of another one
     */
    turnTo (second) {
      const start = Math.floor(second / stepS) * stepS
      if (start === at) return null
      const done = finishStep()
      at = start
      return done
    },

    /** @param {import('./columns.js').Row} row @param {Blend} source */
    addCluster (row, source) { cluster.add(row, source) },

    /** @param {number} slot @param {import('./columns.js').Row} row @param {Blend} source */
    addSlot (slot, row, source) {
      let blend = slots.get(slot)
      if (!blend) slots.set(slot, blend = new Blend('over'))
      blend.add(row, source)
    },

    finish: finishStep
  }

  /** Ends the present step early. @returns {StoredStep | null} */
  function finishStep () {
    if (cluster.isEmpty) return null
    /** @type {import('./codec.js').Entry[]} */
    const entries = [[0, cluster.row()]]
    for (const [slot, blend] of slots) {
      if (blend.isEmpty) slots.delete(slot)
      else entries.push([slot, blend.row()])
      blend.reset()
    }
    const step = { stepS, at, seconds: cluster.rows, body: encodeStep(entries) }
    cluster.reset()
    return step
  }
}
