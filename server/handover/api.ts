import { z } from 'zod'
import { operation, refuseLimited, type Operation } from '../api/endpoint.ts'
import { ACTOR, TIME } from '../api/fields.ts'
import { ROLLOUT_PROBLEMS } from '../rollouts/api.ts'

export type Upgrade = z.infer<typeof UPGRADE>
export const UPGRADE = z.strictObject({ startedAt: TIME, actor: ACTOR, note: z.string().nullable() })

const BODY = z.strictObject({
  execPath: z.string().startsWith('/').max(4096).optional().describe('the absolute path of a node binary'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters')
}).meta({ examples: [{ note: 'clusterdeck 1.4' }] })

/** The change to another master, of a deck or of a host. */
export function upgradeOperation (texts: Pick<Operation, 'name' | 'summary' | 'description'>,
  start: (order: { execPath: string | null, note: string | null, actor: string }) => z.infer<typeof UPGRADE> | null)
{
  return operation({
    ...texts,
    role: 'admin',
    // The body names a program to run.
    byToken: 'An upgrade',
    cli: 'clusterdeck upgrade',
    body: BODY,
    status: 202,
    problems: [...ROLLOUT_PROBLEMS, 'not-possible'],
    answer: UPGRADE,
    handle ({ body: { execPath = null, note = null }, auth }) {
      refuseLimited(auth, 'changes masters')
      return { body: start({ execPath, note, actor: auth.actor }) }
    }
  })
}
