import { z } from 'zod'
import { MESSAGE_ORDER } from '../config/orders.ts'
import { operation, type Resource } from './endpoint.ts'
import { NUMBER } from './fields.ts'
import type { Deck } from '../deck.ts'

const SENT = z.strictObject({ workers: z.array(NUMBER).describe('the workers that it was sent to') })

/** Messages of operators to the app. */
export function messageResources ({ deck }: { deck: Pick<Deck, 'send'> }): Record<string, Resource> {
  return {
    '/messages': {
      POST: operation({ name: 'sendMessage', summary: 'Sends a message to the app in every ready worker',
        description: 'The app receives `{ type, from: \'admin\', data }` via `process.on(\'message\')`.',
        role: 'operator', cli: 'clusterdeck send reload', body: MESSAGE_ORDER, status: 202,
        problems: ['not-possible', 'stopping'], answer: SENT,
        handle: ({ body, auth }) => ({ body: deck.send({ ...body, actor: auth.actor }) }) })
    },

    '/workers/:id/messages': {
      POST: operation({ name: 'sendMessageToWorker', summary: 'Sends a message to the app in one worker',
        role: 'operator', cli: 'clusterdeck send reload --worker 3', body: MESSAGE_ORDER, status: 202,
        problems: ['not-found', 'not-possible', 'stopping'], answer: SENT,
        handle: ({ id, body, auth }) => ({ body: deck.send({ ...body, worker: id, actor: auth.actor }) }) })
    }
  }
}
