import { z } from 'zod'
import { MEMBER_NAME } from '../config/member-name.ts'
import { digest } from './document.ts'
import { DeckError } from '../errors.ts'
import { operation, refuseLimited, requireRole, type Operation, type Resource } from '../api/endpoint.ts'
import { COUNT, listOf } from '../api/fields.ts'
import { FLEET, FLEET_ROLLOUT, FLEET_ROLLOUT_SUMMARY } from './api-answers.ts'
import { marksOf } from './api-builds.ts'
import { IF_MATCH, tagOf } from '../api/preconditions.ts'
import { FLEET_PREVIEW, previewFleetRollout } from './api-preview.ts'
import { progressOf } from './progress.ts'
import type { Request } from 'express'
import type { Deck } from '../deck.ts'
import type { FleetRollout } from './document.ts'
import type { Fleet } from './fleet.ts'
import type { Auth } from '../api/roles.ts'
import type { AppFleet, FleetStatus } from './app-fleet.ts'

/** Decks on other machines, and rollouts over all of them, host by host. */
export type FleetDeck = Pick<Deck, 'fleet'> & Partial<Pick<Deck, 'joinsFleet'>>

export const NAME = z.string().regex(MEMBER_NAME).describe('the name of a member')

const PUSHED = z.object({ digest, bytes: COUNT, pushedAt: z.string(), actor: z.string().nullable() }).meta({
  id: 'PushedRelease'
})
const ARCHIVE_TYPE = 'application/gzip'

/** At most a week. */
const MAX_WAIT_MS = 604_800_000

/** of the command line, for the fields of a form */
const PLAN_FLAGS = '--batch {batch} --pause {pauseMs}ms --order {order} --canary {canary}'

/** Commands for a running rollout. */
const ORDERS: readonly ('pause' | 'resume' | 'abort')[] = Object.freeze(['pause', 'resume', 'abort'])

/** The body that starts a rollout. */
export const WANTED = z.strictObject({
  kind: z.enum(['restart', 'deploy', 'rollback']).describe('"restart", "deploy" or "rollback"'),
  path: z.string().min(1).max(4096).optional().describe('a path below releases.root of each member'),
  digest: digest.optional(),
  release: z.string().max(50).optional().describe('the release to roll back to'),
  note: z.string().max(1000).optional().describe('a text of at most 1000 characters'),
  batch: z.union([z.int().min(1), z.string().regex(/^(100|[1-9]\d?)%$/)]).optional().describe(
    'a number of members from 1 or a share such as "25%"'
  ),
  pauseMs: z.int().min(0).max(MAX_WAIT_MS).optional().describe(`milliseconds from 0 to ${MAX_WAIT_MS}`),
  deadlineMs: z.int().min(1000).max(MAX_WAIT_MS).optional().describe(`milliseconds from 1000 to ${MAX_WAIT_MS}`),
  order: z.string().max(60).optional().describe('a label'),
  canary: NAME.optional().describe('the name of a member'),
  onFailure: z.enum(['hold', 'rollback']).optional().describe('"hold" or "rollback"'),
  only: z.record(z.string(), z.string().describe('the value of a label, a text')).optional().describe('labels')
})

export type Summary = z.infer<typeof FLEET_ROLLOUT_SUMMARY>

/** Leaves out what a list does not need: a rollout may have hundreds of members. */
export function summaryOf ({ turns, batches, timeline, ...rollout }: FleetRollout): Summary {
  return { ...rollout, progress: progressOf({ ...rollout, turns }) }
}

export function fleetResources ({ deck }: { deck: Deck }): Record<string, Resource> {
  return {
    '/fleet': {
      GET: operation({ name: 'getFleet',
        summary: 'Returns the members of the fleet that have the app, and its newest rollout', role: 'viewer',
        cli: 'clusterdeck fleet', problems: ['no-fleet', 'fleet-away'], answer: FLEET,
        handle: async () => ({ body: withMarks(await fleetOf(deck).look()) }) })
    },
    '/fleet/members/:member': {
      DELETE: forgetOperation({ name: 'forgetMember',
        summary: 'Forgets a host of the fleet that will not come back, with all of its apps',
        cli: 'clusterdeck fleet forget web-3' }, () => fleetOf(deck))
    },
    '/fleet/rollouts': {
      GET: operation({ name: 'listFleetRollouts',
        summary: 'Lists the last rollouts of the app over the fleet, newest first, without the turns of their members',
        role: 'viewer', problems: ['no-fleet', 'fleet-away'], answer: listOf(FLEET_ROLLOUT_SUMMARY),
        handle: async () => ({ body: { items: (await rolloutsOf(fleetOf(deck))).map(summaryOf) } }) })
    },
    '/fleet/rollouts/:id': {
      GET: operation({ name: 'getFleetRollout', summary: 'Returns one of the last rollouts of the app over the fleet',
        role: 'viewer', problems: ['no-fleet', 'fleet-away', 'not-found'], answer: FLEET_ROLLOUT,
        handle: async ({ id }) => ({ body: await rolloutOf(fleetOf(deck), id) }) })
    },
    '/fleet/rollout': {
      POST: operation({ name: 'startFleetRollout', form: {},
        summary:
          'Starts a restart, a deploy or a rollback of the app on all members that have it, one batch after the other',
        role: 'operator',
        cli: { deploy: `clusterdeck fleet deploy --note {note} ${PLAN_FLAGS} --on-failure {onFailure}`,
          restart: `clusterdeck fleet restart ${PLAN_FLAGS}`,
          rollback: `clusterdeck fleet rollback --note {note} ${PLAN_FLAGS} --on-failure {onFailure}` }, body: WANTED,
        status: 202, problems: ['no-fleet', 'fleet-away', 'rollout-running', 'not-found'], answer: FLEET_ROLLOUT,
        async handle ({ body, auth }) {
          checkSource(body)
          if (body.digest !== undefined) checkDigest(body, auth)
          return { body: await fleetOf(deck).begin(body, auth.actor) }
        } })
    },
    '/fleet/rollout/preview': {
      POST: operation({ name: 'previewFleetRollout',
        summary:
          'Returns what a rollout over the fleet would do: which host has its turn when and gets what, and which are left out; it changes nothing',
        description: 'The first 20 hosts have 3 seconds to say what they would run.', role: 'operator',
        cli: { deploy: 'clusterdeck fleet deploy --dry-run', restart: 'clusterdeck fleet restart --dry-run',
          rollback: 'clusterdeck fleet rollback --dry-run' }, body: WANTED, problems: ['no-fleet', 'fleet-away'],
        answer: FLEET_PREVIEW, async handle ({ body, auth }) {
        checkSource(body)
        return { body: await previewFleetRollout(fleetOf(deck), body, auth) }
      } })
    },
    '/fleet/releases': {
      GET: operation({ name: 'listPushedReleases',
        summary: 'Lists the folders that were pushed to the fleet for the app, newest first', role: 'admin',
        problems: ['no-fleet', 'fleet-away'], answer: z.object({ items: z.array(PUSHED) }),
        handle: async () => ({ body: { items: await fleetOf(deck).pushed() } }) }),
      POST: operation({ name: 'pushRelease',
        summary: 'Stores a folder for all members that have the app; a deploy names it by its digest',
        description:
          'The body is the folder of the app as a tar.gz archive of at most 1 GiB. An archive that is already there is not stored again.',
        role: 'admin', cli: 'fleet deploy --push <folder>', takes: ARCHIVE_TYPE, query: z.strictObject({ digest }),
        status: 201, problems: ['no-fleet', 'fleet-away'],
        answer: PUSHED.extend({ isNew: z.boolean() }).meta({ id: 'PushedReleaseNow' }),
        handle: async ({ req, query, auth }) => ({
          body: await fleetOf(deck).push(query.digest, bytesOf(req), auth.actor)
        }) })
    },
    ...Object.fromEntries(
      ORDERS.map((
        order
      ) => [`/fleet/rollout/${order}`, {
        POST: operation({ name: `${order}FleetRollout`, form: {},
          summary: `${order[0].toUpperCase()}${order.slice(1)}s the rollout of the app over the fleet`,
          role: 'operator', cli: `clusterdeck fleet ${order}`,
          headers: { 'If-Match': IF_MATCH.optional().describe('`"7"`: only if rollout 7 still runs') },
          problems: ['no-fleet', 'fleet-away', 'rollout-running', 'rollout-ended', 'rollout-state', 'not-found'],
          answer: FLEET_ROLLOUT, async handle ({ seen, auth }) {
          const fleet = fleetOf(deck)
          if (seen !== undefined) checkCurrent(seen, (await fleet.look()).rollout)
          return { body: await fleet.steer(order, auth.actor) }
        } })
      }])
    )
  }
}

export function forgetOperation (about: { name: string, summary: string, cli?: string },
  fleet: () => Pick<Fleet, 'forget'>): Operation
{
  return operation({ ...about,
    description: 'It is refused while the host reports. If the host comes back, it reports anew.', role: 'operator',
    path: { member: NAME }, problems: ['no-fleet', 'fleet-away', 'not-found', 'not-possible'],
    answer: z.strictObject({ member: NAME }), form: { next: () => '/fleet' },
    async handle ({ params: { member }, auth }) {
      refuseLimited(auth, 'forgets a host')
      await fleet().forget(member, auth.actor)
      return { body: { member } }
    } })
}

/** @throws {DeckError} rollout-ended */
function checkCurrent (seen: string, current: FleetRollout | null) {
  if (seen === '*' || (current && seen.includes(tagOf(current.id)))) return
  const now = current ? `rollout ${current.id} is ${current.state}` : 'no rollout is running'
  throw new DeckError('rollout-ended', `Rollout ${seen.replaceAll('"', '').slice(0, 20)} of the fleet is over: ${now}`)
}

/** `status`: with who is behind */
function withMarks ({ members, ...status }: FleetStatus) {
  const marks = marksOf(members, status.rollout)
  return { ...status, members: members.map((member) => ({ ...member, mark: marks.get(member.member) ?? null })) }
}

/** @throws {DeckError} invalid-body: it says what the others would not do */
function checkSource ({ kind, path, release }: { kind: string, path?: string, release?: string }) {
  if (path !== undefined && kind !== 'deploy') {
    throw new DeckError('invalid-body',
      `path: expected with kind "deploy" alone, received with ${JSON.stringify(kind)}`)
  }
  if (release !== undefined && kind !== 'rollback') {
    throw new DeckError('invalid-body',
      `release: expected with kind "rollback" alone, received with ${JSON.stringify(kind)}`)
  }
}

/**
 * A pushed package is code for all hosts.
 * @throws {DeckError} forbidden, invalid-body
 */
function checkDigest ({ kind, path }: { kind: string, path?: string }, auth: Auth) {
  requireRole(auth, 'admin')
  if (kind !== 'deploy' || path !== undefined) {
    throw new DeckError('invalid-body',
      `digest: expected with kind "deploy" and without a path, received with ${
        path === undefined ? JSON.stringify(kind) : 'one'
      }`)
  }
}

/** @throws {DeckError} bad-request */
async function* bytesOf (req: Request): AsyncGenerator<Buffer> {
  try {
    // A member that refuses it says why.
    yield* req.iterator({ destroyOnReturn: false })
  } catch (cause) {
    throw new DeckError('bad-request', 'The body ended too early', { cause })
  }
}

/**
 * @template F the fleet of an app, or of a host
 * @throws {DeckError} no-fleet, fleet-away
 */
export function fleetOf<F> ({ fleet, joinsFleet }: { fleet: F | null, joinsFleet?: boolean }): F {
  if (fleet) return fleet
  if (joinsFleet) throw new DeckError('fleet-away', 'The fleet is out of reach: this host is still connecting to NATS')
  throw new DeckError('no-fleet', 'This host is in no fleet: set fleet.servers to the addresses of your NATS servers')
}

/** @returns newest first */
async function rolloutsOf (fleet: AppFleet): Promise<FleetRollout[]> {
  const [{ rollout }, past] = await Promise.all([fleet.look(), fleet.past()])
  return [...(rollout ? [rollout] : []), ...past.filter(({ id }) => id !== rollout?.id)]
}

/** @throws {DeckError} not-found, fleet-away */
export async function rolloutOf (fleet: AppFleet, id: number): Promise<FleetRollout> {
  const found = (await rolloutsOf(fleet)).find((rollout) => rollout.id === id)
  if (found) return found
  const { isConnected, problem } = fleet.status().nats
  if (!isConnected) throw new DeckError('fleet-away', `The fleet is out of reach: ${problem}`)
  throw new DeckError('not-found', `Rollout ${id} of the fleet does not exist or is no longer kept`)
}
