import { z } from 'zod'
import type { CallTree } from './call-tree.ts'

/** How the share of each function in the CPU of a worker has changed between two profiles. */

const MAX_FUNCTIONS = 30
/** Percent of one CPU; less is chance. */
const MIN_CHANGE = 0.1

const PERCENT = z.number().min(0)

type FunctionChange = z.infer<typeof FUNCTION_CHANGE>
export const FUNCTION_CHANGE = z.strictObject({ function: z.string(),
  place: z.string().describe(
    'file and line where the function begins, as in the later of the two; empty: of V8 itself'
  ), owner: z.enum(['app', 'package', 'node', 'engine']),
  beforePercent: PERCENT.describe('of the time of a worker, in the function itself'), afterPercent: PERCENT })

export function compareFunctions (before: CallTree, after: CallTree): FunctionChange[] {
  const [old, young] = [sharesOf(before), sharesOf(after)]
  return [...new Map([...old, ...young])].map(([key, { name, place, owner }]) => ({ function: name, place, owner,
    beforePercent: old.get(key)?.percent ?? 0, afterPercent: young.get(key)?.percent ?? 0 })
  ).filter((each) => changeOf(each) >= MIN_CHANGE).sort((a, b) => changeOf(b) - changeOf(a)).slice(0, MAX_FUNCTIONS)
}

function changeOf ({ beforePercent, afterPercent }: FunctionChange) {
  return Math.abs(afterPercent - beforePercent)
}

/** By file and name: another release may have them in another line. */
function sharesOf ({ root, idleMs, functions }: CallTree) {
  const allMs = root.totalMs + idleMs
  const shares: Map<string, { name: string, place: string, owner: FunctionChange['owner'], percent: number }> =
    new Map()
  for (const { name, place, owner, selfMs } of functions) {
    const key = JSON.stringify([name, place.replace(/:\d+$/, '')])
    const percent = (shares.get(key)?.percent ?? 0) + (allMs > 0 ? 100 * selfMs / allMs : 0)
    shares.set(key, { name, place, owner, percent: Math.round(percent * 100) / 100 })
  }
  return shares
}
