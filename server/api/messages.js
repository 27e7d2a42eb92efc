import { z } from 'zod'
import { MESSAGE_ORDER } from '../config/orders.js'
import { operation } from './endpoint.js'
import { NUMBER } from './fields.js'

const SENT = z.strictObject({ workers: z.array(NUMBER).describe('the workers that it was sent to') })

/**
 * Messages of operators to the app.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'send'> }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function messageResources ({ deck }) {
  return {
    '/messages': {
      POST: operation({
        name: 'sendMessage',
        summary: 'Sends a message to the app in every ready worker',
        description: 'The app receives `{ type, from: \'admin\', data }` via `process.on(\'message\')`.',
        role: 'operator',
        cli: 'clusterdeck send reload',
        body: MESSAGE_ORDER,
        status: 202,
        problems: ['not-possible', 'stopping'],
        answer: SENT,
        handle: ({ body, auth }) => ({ body: deck.send({ ...body, actor: auth.actor }) })
      })
    },

    '/workers/:id/messages': {
      POST: operation({
        name: 'sendMessageToWorker',
        summary: 'Sends a message to the app in one worker',
        role: 'operator',
        cli: 'clusterdeck send reload --worker 3',
        body: MESSAGE_ORDER,
        status: 202,
        problems: ['not-found', 'not-possible', 'stopping'],
        answer: SENT,
        handle: ({ id, body, auth }) => ({ body: deck.send({ ...body, worker: id, actor: auth.actor }) })
      })
    }
  }
}
