import { operation, type Resource } from './endpoint.ts'
import { listOf } from './fields.ts'
import { NOTICE } from './shapes.ts'
import type { Deck } from '../deck.ts'

export type { Notice } from './shapes.ts'

/** Problems that an operator should know. */
export function noticeResources ({ deck }: { deck: Pick<Deck, 'notices'> }): Record<string, Resource> {
  return {
    '/notices': {
      GET: operation({ name: 'listNotices', summary: 'Lists the problems that nobody has acknowledged',
        description:
          'One of each kind, newest first: a lost master or keeper, a rollout that failed or was rolled back by itself, ' +
          'a failed upgrade, a history that could not be written.', role: 'viewer', cli: 'clusterdeck status',
        answer: listOf(NOTICE), handle: () => ({ body: { items: deck.notices.list() } }) })
    },

    '/notices/:id/acknowledge': {
      POST: operation({ name: 'acknowledgeNotice',
        summary: 'Acknowledges a notice and all older ones of its kind; the history records who did', role: 'operator',
        cli: 'clusterdeck acknowledge 812', problems: ['not-found'], answer: NOTICE,
        handle: ({ id, auth }) => ({ body: deck.notices.acknowledge(id, auth.actor) }) })
    }
  }
}
