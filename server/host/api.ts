import { z } from 'zod'
import { APP_NAME, type Apps } from './api-apps.ts'
import { created, operation, refuseLimited, type Resource } from '../api/endpoint.ts'
import { COUNT, NUMBER, TIME } from '../api/fields.ts'
import { UPGRADE, upgradeOperation } from '../handover/api.ts'

export type Host = z.infer<typeof HOST>
const HOST = z.strictObject({ pid: NUMBER, keeperPid: NUMBER.nullable().describe('null: it runs without a keeper'),
  version: z.string(), nodeVersion: z.string(), startedAt: TIME, folder: z.string().describe('its data folder'),
  apps: COUNT.describe('how many apps it has, also stopped ones'),
  upgrade: UPGRADE.nullable().describe('the running change to another master; null: none'),
  upgradeFailure: z.strictObject({ at: TIME, message: z.string() }).nullable().describe(
    'of the last upgrade from this master; null: none has failed'
  ) }).meta({ id: 'Host' })

export type AdoptionView = z.infer<typeof ADOPTION>
const ADOPTION = z.strictObject({ id: NUMBER,
  state: z.enum(['waiting', 'moving', 'done', 'failed']).describe(
    'waiting: no deck has come yet; moving: the host prepares it, or starts workers beside those of the deck; failed: the deck goes on without the host, and `reason` says why'
  ), app: z.string().nullable().describe('what the host calls it; null: it does not know yet'),
  reason: z.string().nullable() }).meta({ id: 'Adoption' })
const WAY = { path: z.string().describe('of a Unix socket on this machine'),
  secret: z.string().describe('valid for one deck') }

export type NewAdoption = z.infer<typeof NEW_ADOPTION>
const NEW_ADOPTION = ADOPTION.extend(WAY).meta({ id: 'NewAdoption' })

export function hostResources ({ apps }: { apps: Apps }): Record<string, Resource> {
  return {
    '/host': {
      GET: operation({ name: 'getHost', summary: 'Returns what there is to know of the host itself', role: 'viewer',
        answer: HOST, handle: () => ({ body: apps.about() }) })
    },

    '/host/upgrade': {
      POST: upgradeOperation({ name: 'upgradeHost',
        summary:
          'Starts a new master for all apps, perhaps with another version of Node.js, without dropping a request',
        description:
          'All apps that serve change masters, or none does. When it is over, `upgrade` of `GET /host` is null again: there is a new `pid`, or `upgradeFailure` says why not.' },
        (order) => apps.upgradeHost(order))
    },

    '/host/adoptions': { POST: operation({
      name: 'beginAdoption',
      summary: 'Begins to move a running deck of this user into this host: waits half a minute for it',
      description: 'Send `path` and `secret` to `POST /api/v1/move` of the deck.',
      role: 'admin',
      // A deck that comes names a program to run.
      byToken: 'An adoption',
      cli: 'clusterdeck adopt /srv/shop',
      body: z.strictObject({
        name: APP_NAME.optional().describe('what the host is to call it; default: its own name')
      }),
      status: 201,
      location: true,
      isSecret: true,
      problems: ['not-possible'],
      answer: NEW_ADOPTION,
      async handle ({ body: { name }, auth }) {
        refuseLimited(auth, 'adds apps')
        const { view, path, secret } = await apps.adoptions.begin({ name, actor: auth.actor })
        return created(`/host/adoptions/${view.id}`, { ...view, path, secret })
      }
    }) },

    '/host/adoptions/:id': {
      GET: operation({ name: 'getAdoption', summary: 'Returns the state of a move into this host', role: 'admin',
        problems: ['not-found'], answer: ADOPTION, handle ({ id, auth }) {
        refuseLimited(auth, 'adds apps')
        return { body: apps.adoptions.view(id) }
      } })
    },

    '/host/stop': {
      POST: operation({ name: 'stopHost',
        summary: 'Drains all apps side by side and ends the host; its next start brings them back', role: 'admin',
        status: 202, problems: ['stopping'], answer: z.strictObject({ state: z.literal('stopping') }),
        handle ({ auth }) {
          refuseLimited(auth, 'ends the host')
          apps.stopHost({ actor: auth.actor })
          return { body: { state: 'stopping' } }
        } })
    }
  }
}
