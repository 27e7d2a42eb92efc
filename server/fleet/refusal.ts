import { z } from 'zod'
import { DeckError, isErrorCode } from '../errors.ts'
import { parseUntrusted } from './untrusted-json.ts'
import type { Answer } from './rpc-protocol.ts'

const PROBLEM = z.object({ code: z.string(), detail: z.string(), now: z.string().max(100).optional(),
  change: z.string().max(500).optional() })
const MAX_CHARS = 500

/** `answer`: with a status from 400 on @returns with the member's own code, if this version knows it */
export function refusalOf ({ status, body }: Pick<Answer, 'status' | 'body'>): DeckError {
  const problem = parseUntrusted(PROBLEM, () => JSON.parse(body))
  if (!problem) return new DeckError('not-possible', `status ${status}`)
  const code = isErrorCode(problem.code) ? problem.code : 'not-possible'
  const { detail, now, change } = problem
  return new DeckError(code, detail.slice(0, MAX_CHARS), { details: { ...(now !== undefined && { now, change }) } })
}
