import { Blend } from './blend.ts'
import { encodeStep, type Entry } from './codec.ts'
import type { Row } from './columns.ts'

/** `at`: its first second since the epoch; `seconds`: how many it has */
export type StoredStep = { stepS: number, at: number, seconds: number, body: Buffer }

/** Adds up seconds to steps of a fixed length, which begin at multiples of that length. */
export function createRollup (stepS: number) {
  const cluster = new Blend('over')
  const slots: Map<number, Blend> = new Map()
  let at = -1

  return {
    /** `second`: that is about to be added. Returns the step before it, if this is the first second of another one. */
    turnTo (second: number): StoredStep | null {
      const start = Math.floor(second / stepS) * stepS
      if (start === at) return null
      const done = finishStep()
      at = start
      return done
    },

    addCluster (row: Row, source: Blend) {
      cluster.add(row, source)
    },

    addSlot (slot: number, row: Row, source: Blend) {
      let blend = slots.get(slot)
      if (!blend) slots.set(slot, blend = new Blend('over'))
      blend.add(row, source)
    },

    finish: finishStep
  }

  /** Ends the present step early. */
  function finishStep (): StoredStep | null {
    if (cluster.isEmpty) return null
    const entries: Entry[] = [[0, cluster.row()]]
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
