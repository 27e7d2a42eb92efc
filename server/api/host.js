import { z } from 'zod'
import { operation, refuseLimited } from './endpoint.js'
import { COUNT, NUMBER, TIME } from './fields.js'

const HOST = z.strictObject({
  pid: NUMBER,
  keeperPid: NUMBER.nullable().describe('null: it runs without a keeper'),
  version: z.string(),
  nodeVersion: z.string(),
  startedAt: TIME,
  folder: z.string().describe('its data folder'),
  apps: COUNT.describe('how many apps it has, also stopped ones')
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
