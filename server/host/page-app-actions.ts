import { Router } from 'express'
import { z } from 'zod'
import { findName, notRunning } from './api-apps.ts'
import { requireRole } from '../api/endpoint.ts'
import { parseBody } from '../api/input.ts'
import { DeckError } from '../errors.ts'
import { doForAll, parseForm, requireSession } from '../dashboard/forms.ts'

/** What the list of apps does with the selected ones. */
export type Apps = Pick<import('./api-apps.ts').Apps, 'states' | 'view' | 'opened' | 'start' | 'stop'>

const MAX_APPS = 500

const ACTIONS: Readonly<Record<string, (apps: Apps, name: string, actor: string) => unknown>> = Object.freeze({
  restart: (apps, name, actor) =>
    deckOf(apps, name).dispatch({ type: 'rollout', kind: 'restart', actor, client: 'dashboard' }),
  deploy: (apps, name, actor) => deckOf(apps, name).deploy({ actor, client: 'dashboard' }),
  start: (apps, name, actor) => apps.start(name, { actor }),
  stop: (apps, name, actor) => apps.stop(name, { actor })
})
const ACTION = z.object({ action: z.enum(Object.keys(ACTIONS)).describe(`one of ${Object.keys(ACTIONS).join(', ')}`) })

export function appActionsRouter ({ apps }: { apps: Apps }) {
  const router = Router()
  router.post('/actions/apps', requireSession, parseForm, async (req, res) => {
    const { auth, body } = req
    requireRole(auth, 'operator')
    const names = [body?.app ?? []].flat()
    if (names.length === 0 || names.length > MAX_APPS)
      throw new DeckError('invalid-body', `app: expected the names of 1 to ${MAX_APPS} apps, received ${names.length}`)
    const { action } = parseBody(ACTION, body)
    // None is touched where one of them is not the sender's.
    const known = names.map((name) => findName(apps, name, auth))
    await doForAll(known, (name) => name, (name) => ACTIONS[action](apps, name, auth.actor))
    if (req.get('HX-Request')) res.status(204).end()
    else res.redirect(303, `/apps/${known[0]}/`)
  })
  return router
}

/** @throws {DeckError} app-not-running */
function deckOf (apps: Apps, name: string) {
  const opened = apps.opened(name)
  if (!opened) throw notRunning(apps.view(name))
  return opened.deck
}
