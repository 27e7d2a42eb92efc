import { operation, placeOf, type Resource } from '../api/endpoint.ts'
import { listOf } from '../api/fields.ts'
import { NOTICE } from '../api/shapes.ts'
import type { Deck } from '../deck.ts'

export type { Notice } from '../api/shapes.ts'

/** Problems that an operator should know: of an app, or of a host itself. */
export function noticeResources (
  { deck, isOfHost = false }: { deck: Pick<Deck, 'notices'>, isOfHost?: boolean }
): Record<string, Resource> {
  const { at, of, flag, guard } = placeOf({ isOfHost })
  return guard({
    [`${at}/notices`]: {
      GET: operation({ name: `list${of}Notices`, summary: 'Lists the problems that nobody has acknowledged',
        description:
          'One of each kind, newest first: a lost master or keeper, a rollout that failed or was rolled back by itself, ' +
          'a failed upgrade, a history that could not be written. What concerns all apps of a host is a notice of the host.',
        role: 'viewer', cli: isOfHost ? 'clusterdeck ls' : 'clusterdeck status', answer: listOf(NOTICE),
        handle: () => ({ body: { items: deck.notices.list() } }) })
    },

    [`${at}/notices/:id/acknowledge`]: {
      POST: operation({ name: `acknowledge${of}Notice`, form: {},
        summary: 'Acknowledges a notice and all older ones of its kind; the history records who did', role: 'operator',
        cli: `clusterdeck acknowledge 812${flag}`, problems: ['not-found'], answer: NOTICE,
        handle: ({ id, auth }) => ({ body: deck.notices.acknowledge(id, auth.actor) }) })
    }
  })
}
