import { CAUSES } from '../causes.ts'
import { EVENT_TYPES } from '../events/kinds.ts'
import { isOfAny } from '../events/pattern.ts'
import { didYouMean, nearestName } from './nearest.ts'
import type { z } from 'zod'

/** A whole family each: `worker.*`. */
const FAMILIES = EVENT_TYPES.filter((type) => type.includes('.')).map((type) => type.replace(/\..*/, '.*'))

/** Refuses a pattern of which there are no events, as a mistyped one. `expected`: what is. Returns whether there are. */
export function checkEventPattern (pattern: string, context: z.RefinementCtx, expected: string): boolean {
  if (isOfAny(pattern)) return true
  const [type, cause] = pattern.split(':')
  const known = cause === undefined
    ? [...EVENT_TYPES, ...FAMILIES]
    : CAUSES.map((each) => `${nearestName(type, EVENT_TYPES)}:${each}`)
  context.addIssue({ code: 'custom', params: { expected: `${expected}${didYouMean(pattern, known)}` } })
  return false
}
