import { z } from 'zod'
import { RELEASE_ID } from '../config/release-id.ts'
import { DeckError } from '../errors.ts'
import { COMMIT_ORDER } from '../config/orders.ts'
import { operation, type Resource } from './endpoint.ts'
import { ACTOR, NUMBER, pageOf, RELEASE_NAME, TIME } from './fields.ts'
import { PAGE_QUERY } from './filters.ts'
import { RUN } from './jobs.ts'
import type { Deck } from '../deck.ts'

const DIGEST = z.string().describe('sha256:…')

/** A release, as the status shows it. */
export const RELEASE = z.strictObject({
  id: RELEASE_NAME,
  entry: z.string().describe('the absolute path of the main file'),
  path: z.string().describe('the folder of the code'),
  createdAt: TIME,
  mode: z.enum(['live', 'symlink', 'path', 'folder']).describe('how the code is pinned').optional(),
  cwd: z.string().optional(),
  calledAs: z.string().describe('the entry as its workers see it, if it is a symbolic link').optional(),
  source: z.string().nullable().describe('the folder that was copied, or the repository of its commit').optional(),
  build: z.string().nullable().describe('of a release of a commit: what has built it, "hooks.build" or the commands; null: nothing').optional(),
  package: z.strictObject({ name: z.string().nullable(), version: z.string().nullable() }).nullable().optional(),
  git: z.strictObject({
    commit: z.string(),
    branch: z.string().nullable(),
    isDirty: z.boolean().nullable(),
    author: z.string().nullable().optional(),
    subject: z.string().nullable().describe('the first line of the message').optional()
  })
    .nullable()
    .optional(),
  lockFile: DIGEST.nullable().optional(),
  runtime: z.enum(['node', 'other']).optional().describe('what runs the entry; other: it is a program itself'),
  node: z.strictObject({
    file: z.string().describe('its absolute path'),
    version: z.string(),
    by: z.enum(['option', '.nvmrc', '.node-version', 'volta', 'command', 'clusterdeck']).describe('what has asked for it; command: it is the one with which the command was typed; clusterdeck: it is that of clusterdeck'),
    instead: z.string().optional().describe('why it is not the one that a file of the app asks for')
  }).optional().describe('the Node of its workers, hooks, builds and jobs'),
  environment: z.strictObject({ digest: DIGEST, names: z.array(z.string()) })
    .describe('names of the variables that the configuration sets, without their values')
    .optional(),
  arguments: z.strictObject({ digest: DIGEST }).optional(),
  changed: z.strictObject({
    from: RELEASE_NAME,
    environment: z.array(z.string()).describe('names of variables'),
    arguments: z.boolean(),
    package: z.boolean(),
    commit: z.boolean(),
    lockFile: z.boolean(),
    node: z.boolean().optional(),
    mode: z.boolean(),
    folder: z.boolean(),
    entry: z.boolean()
  }).nullable().describe('the differences from the release before').optional(),
  createdBy: ACTOR.optional(),
  note: z.string().nullable().optional(),
  environmentChanged: z.boolean().describe('its workers get other variables than at its deploy').optional()
}).meta({ id: 'Release' })

export type KeptRelease = z.infer<typeof KEPT_RELEASE>
const KEPT_RELEASE = RELEASE.extend({
  outcome: z.enum(['succeeded', 'failed', 'rolled-back'])
    .nullable()
    .describe('the outcome of its last successful deploy, or of its last deploy; null: it is still running'),
  rollout: NUMBER.nullable().describe('the rollout that deployed it'),
  deployedAt: TIME.nullable(),
  servedAt: TIME.nullable().describe('when it last became the running release; null: never'),
  setback: z.strictObject({
    outcome: z.enum(['rolled-back', 'failed']).describe('rolled-back: a rollback replaced it; failed: a later rollout to it did not succeed'),
    at: TIME,
    rollout: NUMBER,
    actor: ACTOR,
    reason: z.string().nullable()
  }).nullable().describe('what went wrong with it after it served; null: nothing'),
  isLastGood: z.boolean().describe('the release that a rollback goes to by default'),
  inUse: z.boolean().describe('a worker runs it, or would restart with it'),
  changedInPlace: z.strictObject({
    kind: z.enum(['code', 'folder', 'unknown'])
      .describe('code: a new worker would run other code; folder: other files of its folder have changed, by a later deploy or by the app; unknown: whether they have is not known'),
    count: z.int().describe('how many files have changed'),
    files: z.array(z.string()).describe('at most 5 of them'),
    since: TIME.nullable().describe('when the first of them was written; null: unknown'),
    by: RELEASE_NAME.nullable().describe('the release that was deployed from the same folder later, if only that is known'),
    message: z.string().describe('the same for people')
  }).nullable().describe('its folder has other files now: a new worker would run other code, and a rollback to it is refused; null: as far as is known it has not')
}).meta({ id: 'KeptRelease' })

const REF = z.strictObject({
  name: z.string(),
  kind: z.enum(['branch', 'tag']),
  commit: z.string(),
  at: TIME.describe('when the commit, or a tag with a message, was made'),
  subject: z.string().describe('the first line of the message of the commit')
}).meta({ id: 'Ref' })

const RELEASE_PARAMETER = { release: RELEASE_NAME.describe('a release such as r12') }

export function releaseResources ({ deck }: { deck: Pick<Deck, 'releases' | 'deployCommit'> }): Record<string, Resource> {
  return {
    '/releases': {
      GET: operation({
        name: 'listReleases',
        summary: 'Lists the releases, newest first',
        role: 'viewer',
        query: PAGE_QUERY,
        answer: pageOf(KEPT_RELEASE),
        handle: ({ query }) => ({ body: deck.releases.list(query) })
      }),
      POST: operation({
        name: 'deployCommit',
        summary: 'Exports a commit into a release folder, builds it, and deploys it if that succeeds',
        description: 'The answer is a run, whose output can be followed at `/jobs/runs/{id}/stream`. Once it has succeeded, it has the `release` and the `rollout`, which is followed as any other. ' +
          'Without `hooks.build` the request is refused with `build-unconfirmed` and the commands that are guessed, until one such build has succeeded or `guess` is true.',
        role: 'operator',
        cli: 'clusterdeck deploy --git main',
        body: COMMIT_ORDER,
        status: 202,
        location: true,
        problems: ['not-found', 'build-unconfirmed', 'unshared-files', 'invalid-config', 'entry-not-found', 'stopping', 'upgrade-running', 'secrets-failed'],
        answer: RUN,
        async handle ({ body: { guess, ...order }, auth }) {
          const run = await deck.deployCommit({ ...order, isGuessAccepted: guess, actor: auth.actor, client: auth.client })
          return { headers: { Location: `/api/v1/jobs/runs/${run.id}` }, body: run }
        }
      })
    },

    '/refs': {
      GET: operation({
        name: 'listRefs',
        summary: 'Lists the branches and tags that can be deployed, those with the newest commits first',
        description: 'At most 50. Of a repository at an address: as they were when git fetched them last.',
        role: 'operator',
        problems: ['invalid-config'],
        answer: z.strictObject({ items: z.array(REF) }),
        handle: async () => ({ body: { items: await deck.releases.refs() } })
      })
    },

    '/releases/:release': {
      GET: operation({
        name: 'getRelease',
        summary: 'Returns one release',
        role: 'viewer',
        path: RELEASE_PARAMETER,
        problems: ['not-found'],
        answer: KEPT_RELEASE,
        handle: ({ req }) => ({ body: deck.releases.get(parseRelease(String(req.params.release))) })
      })
    }
  }
}

function parseRelease (text: string) {
  if (RELEASE_ID.test(text)) return text
  throw new DeckError('invalid-id', `release: expected an id such as r12, received ${JSON.stringify(text.slice(0, 80))}`)
}
