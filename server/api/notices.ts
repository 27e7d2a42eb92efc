import { z } from 'zod'
import { NOTICE_KINDS } from '../events/notices.ts'
import { operation, type Resource } from './endpoint.ts'
import { COUNT, listOf, NUMBER, TIME } from './fields.ts'
import type { Deck } from '../deck.ts'

export type Notice = z.infer<typeof NOTICE>
export const NOTICE = z.strictObject({
  id: NUMBER.describe('the id of its newest event'),
  kind: z.enum(NOTICE_KINDS),
  at: TIME,
  firstAt: TIME.describe('when the first unacknowledged one of its kind happened'),
  count: COUNT,
  message: z
    .string()
    .meta({ description: 'one sentence for people', examples: ['Deploy of r5 was rolled back: worker 9 (slot 1) was not ready within 30 s'] }),
  endedAt: TIME.nullable().describe('when the problem ended by itself; null: it has not')
}).meta({ id: 'Notice' })

/** Problems that an operator should know. */
export function noticeResources ({ deck }: { deck: Pick<Deck, 'notices'> }): Record<string, Resource> {
  return {
    '/notices': {
      GET: operation({
        name: 'listNotices',
        summary: 'Lists the problems that nobody has acknowledged',
        description: 'One of each kind, newest first: a lost master or keeper, a rollout that failed or was rolled back by itself, ' +
          'a failed upgrade, a history that could not be written.',
        role: 'viewer',
        cli: 'clusterdeck status',
        answer: listOf(NOTICE),
        handle: () => ({ body: { items: deck.notices.list() } })
      })
    },

    '/notices/:id/acknowledge': {
      POST: operation({
        name: 'acknowledgeNotice',
        summary: 'Acknowledges a notice and all older ones of its kind; the history records who did',
        role: 'operator',
        cli: 'clusterdeck acknowledge 812',
        problems: ['not-found'],
        answer: NOTICE,
        handle: ({ id, auth }) => ({ body: deck.notices.acknowledge(id, auth.actor) })
      })
    }
  }
}
