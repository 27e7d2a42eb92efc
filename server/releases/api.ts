import { z } from 'zod'
import { RELEASE_ID } from '../config/release-id.ts'
import { DeckError } from '../errors.ts'
import { COMMIT_ORDER } from '../config/orders.ts'
import { created, operation, type Resource } from '../api/endpoint.ts'
import { pageOf, RELEASE_NAME, TIME } from '../api/fields.ts'
import { PAGE_QUERY } from '../api/filters.ts'
import { STRATEGY_FLAGS } from '../rollouts/api.ts'
import { KEPT_RELEASE, RUN } from '../api/shapes.ts'
import type { Deck } from '../deck.ts'

const REF = z.strictObject({ name: z.string(), kind: z.enum(['branch', 'tag']), commit: z.string(),
  at: TIME.describe('when the commit, or a tag with a message, was made'),
  subject: z.string().describe('the first line of the message of the commit') }).meta({ id: 'Ref' })

export const RELEASE_PARAMETER = { release: RELEASE_NAME.describe('a release such as r12') }

export function releaseResources (
  { deck }: { deck: Pick<Deck, 'releases' | 'deployCommit'> }
): Record<string, Resource> {
  return {
    '/releases': {
      GET: operation({ name: 'listReleases', summary: 'Lists the releases, newest first', role: 'viewer',
        query: PAGE_QUERY, answer: pageOf(KEPT_RELEASE),
        handle: ({ query }) => ({ body: deck.releases.list(query) }) }),
      POST: operation({ name: 'deployCommit',
        summary: 'Exports a commit into a release folder, builds it, and deploys it if that succeeds',
        description:
          'The answer is a run, whose output can be followed at `/jobs/runs/{id}/stream`. Once it has succeeded, it has the `release` and the `rollout`, which is followed as any other. ' +
          'Without `hooks.build` the request is refused with `build-unconfirmed` and the commands that are guessed, until one such build has succeeded or `guess` is true.',
        role: 'operator', cli: `clusterdeck deploy --git {git} ${STRATEGY_FLAGS}`,
        form: { next: ({ id }) => `/deploys#build-${id}` }, body: COMMIT_ORDER, status: 202, location: true,
        problems: ['not-found', 'build-unconfirmed', 'unshared-files', 'invalid-config', 'entry-not-found', 'stopping',
          'upgrade-running', 'secrets-failed'], answer: RUN, async handle ({ body: { guess, ...order }, auth }) {
        const run = await deck.deployCommit({ ...order, isGuessAccepted: guess, actor: auth.actor,
          client: auth.client })
        return created(`/jobs/runs/${run.id}`, run)
      } })
    },

    '/refs': {
      GET: operation({ name: 'listRefs',
        summary: 'Lists the branches and tags that can be deployed, those with the newest commits first',
        description: 'At most 50. Of a repository at an address: as they were when git fetched them last.',
        role: 'operator', problems: ['invalid-config'], answer: z.strictObject({ items: z.array(REF) }),
        handle: async () => ({ body: { items: await deck.releases.refs() } }) })
    },

    '/releases/:release': {
      GET: operation({ name: 'getRelease', summary: 'Returns one release', role: 'viewer', path: RELEASE_PARAMETER,
        problems: ['not-found'], answer: KEPT_RELEASE,
        handle: ({ params }) => ({ body: deck.releases.get(parseRelease(params.release)) }) })
    }
  }
}

/** @throws {DeckError} invalid-id */
export function parseRelease (text: string) {
  if (RELEASE_ID.test(text)) return text
  throw new DeckError('invalid-id',
    `release: expected an id such as r12, received ${JSON.stringify(text.slice(0, 80))}`)
}
