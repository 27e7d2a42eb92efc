import { z } from 'zod'
import { fleetOf, WANTED, type FleetDeck } from './api.ts'
import { parseFormBody } from '../api/form.ts'
import { previewFleetRollout } from './api-preview.ts'
import { actorOf } from '../api/roles.ts'
import { DeckError } from '../errors.ts'
import { count } from '../words/health.ts'
import type { Powers } from '../dashboard/powers.ts'

/** What the dialogs of the fleet show of a rollout before it begins. */

const KIND = z.enum(['deploy', 'restart', 'rollback']).catch('deploy')
/** The others of a large fleet are counted. */
const MOST_ROWS = 20
/** What a member becomes that has not been asked, or has not answered. */
const UNASKED = Object.freeze({ deploy: 'what is on its disk', restart: 'the same release',
  rollback: 'its previous release' })

/** @throws {DeckError} forbidden, no-fleet, fleet-away */
export async function fleetPreviewModel (
  { deck, params, can }: { deck: FleetDeck, params: URLSearchParams, can?: Powers }
) {
  if (!can?.operate) throw new DeckError('forbidden', 'Only whoever may deploy can see what a deploy would do')
  const kind = KIND.parse(params.get('kind'))
  const { batches, leftOut, refusals } = await previewOf(deck, { kind, fields: Object.fromEntries(params), can })
  const rows = batches.flatMap((batch, index) => batch.map((host) => ({ ...host, batch: index + 1 })))
  const total = rows.length
  return { kind, unasked: UNASKED[kind], refusals, leftOut,
    summary: total === 0
      ? null
      : `${count(total, 'member')}, ${
        batches.length === total
          ? 'one after the other'
          : batches.length === 1
          ? 'all at the same time'
          : `in ${batches.length} batches`
      }`,
    rows: rows.slice(0, MOST_ROWS).map((row) => ({ ...row,
      now: [row.release, row.code && `(${row.code})`].filter(Boolean).join(' ') || 'nothing' })
    ), more: Math.max(0, total - MOST_ROWS) }
}

/** What is typed may be wrong yet. */
async function previewOf (deck: FleetDeck,
  { kind, fields, can: { name, role } }: { kind: 'deploy' | 'restart' | 'rollback', fields: Record<string, unknown>,
    can: Powers })
{
  try {
    return await previewFleetRollout(fleetOf(deck), parseFormBody(WANTED, { ...fields, kind }), { name,
      actor: actorOf({ name }), role, client: 'dashboard' })
  } catch (error) {
    if (!(error instanceof DeckError) || error.code !== 'invalid-body') throw error
    return { batches: [], leftOut: [], refusals: [error.message] }
  }
}
