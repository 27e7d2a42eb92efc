import { z } from 'zod'
import { PERSON, TAKEN } from '../config/actor-names.ts'
import { MAX_ID } from '../config/id.ts'
import { RELEASE_ID } from '../config/release-id.ts'
import { ROLES } from './roles.ts'

/** Fields that several bodies and answers share. */

export const ROLE = z.enum(ROLES).describe(`one of ${ROLES.join(', ')}`)
export const PERSON_NAME = z.string().regex(PERSON).refine((name) => !TAKEN.includes(name.toLowerCase())).meta({
  description: `a name of 1 to 64 letters, digits, "." "_" "@" and "-", and none of ${TAKEN.join(', ')}`,
  examples: ['ada']
})

export const TIME = z.string().meta({ format: 'date-time', description: 'ISO 8601, UTC' })
export const COUNT = z.int().min(0)
export const NUMBER = z.int().min(1)
export const ID_PARAMETER = NUMBER.max(MAX_ID)
export const RELEASE_NAME = z.string().regex(RELEASE_ID).meta({ examples: ['r12'] })
export const ACTOR = z.string().meta({ description: 'who did it', examples: ['ada'] })

/** `ms`: since the epoch @returns as TIME says it */
export function toIso (ms: number): string {
  return new Date(ms).toISOString()
}

/** `item`: a page of a list, newest first */
export function pageOf<T extends z.ZodType> (item: T) {
  return z.strictObject({ items: z.array(item),
    next: z.string().nullable().describe('the cursor of the next page; null: this is the last one') })
}

/** `item`: all of a short list */
export function listOf<T extends z.ZodType> (item: T) {
  return z.strictObject({ items: z.array(item) })
}
