import { z } from 'zod'
import { UPGRADE, UPGRADE_BODY } from './cluster.js'
import { operation, refuseLimited } from './endpoint.js'
import { COUNT, NUMBER, TIME } from './fields.js'
import { ROLLOUT_PROBLEMS } from './rollouts.js'

const HOST = z.strictObject({
  pid: NUMBER,
  keeperPid: NUMBER.nullable().describe('null: it runs without a keeper'),
  version: z.string(),
  nodeVersion: z.string(),
  startedAt: TIME,
  folder: z.string().describe('its data folder'),
  apps: COUNT.describe('how many apps it has, also stopped ones'),
  upgrade: UPGRADE.nullable().describe('the running change to another master; null: none'),
  upgradeFailure: z.strictObject({ at: TIME, message: z.string() }).nullable().describe('of the last upgrade from this master; null: none has failed')
}).meta({ id: 'Host' })

/**
 * The host itself: one master with many apps.
 * @param {{ apps: import('./apps.js').Apps }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function hostResources ({ apps }) {
  return {
    '/host': {
      GET: operation({
        name: 'getHost',
        summary: 'Returns what there is to know of the host itself',
        role: 'viewer',
        answer: HOST,
        handle: () => ({ body: apps.about() })
      })
    },

    '/host/upgrade': {
      POST: operation({
        name: 'upgradeHost',
        summary: 'Starts a new master for all apps, perhaps with another version of Node.js, without dropping a request',
        description: 'All apps that serve change masters, or none does. When it is over, `upgrade` of `GET /host` is null again: there is a new `pid`, or `upgradeFailure` says why not.',
        role: 'admin',
        // The body names a program to run.
        byToken: 'An upgrade',
        cli: 'clusterdeck upgrade',
        body: UPGRADE_BODY,
        status: 202,
        problems: [...ROLLOUT_PROBLEMS, 'not-possible'],
        answer: UPGRADE,
        handle ({ body: { execPath = null, note = null }, auth }) {
          refuseLimited(auth, 'changes masters')
          return { body: apps.upgradeHost({ execPath, note, actor: auth.actor }) }
        }
      })
    },

    '/host/stop': {
      POST: operation({
        name: 'stopHost',
        summary: 'Drains all apps side by side and ends the host; its next start brings them back',
        role: 'admin',
        status: 202,
        problems: ['stopping'],
        answer: z.strictObject({ state: z.literal('stopping') }),
        handle ({ auth }) {
          refuseLimited(auth, 'ends the host')
          apps.stopHost({ actor: auth.actor })
          return { body: { state: 'stopping' } }
        }
      })
    }
  }
}
