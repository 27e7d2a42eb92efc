import { Router } from 'express'
import { z } from 'zod'
import { findName, notRunning } from '../api/apps.ts'
import { requireRole } from '../api/endpoint.ts'
import { forgetHost } from '../api/fleet.ts'
import { fleetOfHost } from '../api/host-fleet.ts'
import { parseBody } from '../api/input.ts'
import { DeckError } from '../errors.ts'
import { parseField, readFields, requireSession } from './actions.ts'
import { FORGOTTEN } from './fleet-orders.ts'

/**
 * What the list of apps does with those that are selected, and the page of the fleet with a host that will not come
 * back.
 */
export type Apps = Pick<import('../api/apps.ts').Apps,
  'states' | 'view' | 'opened' | 'start' | 'stop' | 'fleet' | 'joinsFleet'>

const MAX_APPS = 500

const ACTIONS: Readonly<Record<string, (apps: Apps, name: string, actor: string) => unknown>> = Object.freeze({
  restart: (apps, name, actor) =>
    deckOf(apps, name).dispatch({ type: 'rollout', kind: 'restart', actor, client: 'dashboard' }),
  deploy: (apps, name, actor) => deckOf(apps, name).deploy({ actor, client: 'dashboard' }),
  start: (apps, name, actor) => apps.start(name, { actor }),
  stop: (apps, name, actor) => apps.stop(name, { actor })
})
const ACTION = z.enum(Object.keys(ACTIONS))

export function appActionsRouter ({ apps }: { apps: Apps }) {
  const router = Router()
  router.post('/actions/apps', requireSession, readFields, async (req, res) => {
    const { auth, body } = req
    requireRole(auth, 'operator')
    const names = [body?.app ?? []].flat()
    if (names.length === 0 || names.length > MAX_APPS)
      throw new DeckError('invalid-body', `app: expected the names of 1 to ${MAX_APPS} apps, received ${names.length}`)
    const action = parseField(ACTION, body.action, `action: expected ${Object.keys(ACTIONS).join(', ')}`)
    // None is touched where one of them is not the sender's.
    const known = names.map((name) => findName(apps, name, auth))
    await actOnAll(apps, known, { action, actor: auth.actor })
    if (req.get('HX-Request')) res.status(204).end()
    else res.redirect(303, `/apps/${known[0]}/`)
  })
  router.post('/actions/forget-host', requireSession, readFields, async (req, res) => {
    const { auth, body } = req
    requireRole(auth, 'operator')
    await forgetHost(fleetOfHost(apps), parseBody(FORGOTTEN, body ?? {}).member, auth)
    if (req.get('HX-Request')) res.status(204).end()
    else res.redirect(303, '/fleet')
  })
  return router
}

/**
 * Does it for each app on its own. Where it fails for some, it is done for the others all the same, and the refusal
 * says which failed and why.
 */
async function actOnAll (apps: Apps, names: string[], { action, actor }: { action: string, actor: string }) {
  const outcomes = await Promise.allSettled(names.map(async (name) => ACTIONS[action](apps, name, actor)))
  const failed = outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' ? [{ name: names[index], error: outcome.reason }] : []
  )
  if (failed.length === 0) return
  const [{ error }] = failed
  if (names.length === 1 || !(error instanceof DeckError)) throw error
  const done = names.length - failed.length
  const reasons = failed.slice(0, 3).map(({ name, error: { message } }) => `${name}: ${message}`)
  const more = failed.length > 3 ? `; ${failed.length - 3} more` : ''
  throw new DeckError(error.code, `${reasons.join('; ')}${more}${done > 0 ? `. Done for the other ${done}` : ''}`)
}

/** @throws {DeckError} app-not-running */
function deckOf (apps: Apps, name: string) {
  const opened = apps.opened(name)
  if (!opened) throw notRunning(apps.view(name))
  return opened.deck
}
