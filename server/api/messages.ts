import { z } from 'zod'
import { MESSAGE_ORDER } from '../config/orders.ts'
import { DeckError } from '../errors.ts'
import { operation, type Resource } from './endpoint.ts'
import { NUMBER } from './fields.ts'
import type { Deck } from '../deck.ts'

const ORDER = MESSAGE_ORDER.extend({
  worker: z.int().min(1).optional().describe('the id of a worker; default: all that are ready')
})

const SENT = z.strictObject({ workers: z.array(NUMBER).describe('the workers that it was sent to') })

/** @throws {DeckError} not-possible */
function refuseNobody ({ workers }: z.infer<typeof SENT>) {
  if (workers.length === 0) throw new DeckError('not-possible', 'No worker is ready to receive a message')
  return null
}

/** Messages of operators to the app. */
export function messageResources ({ deck }: { deck: Pick<Deck, 'send'> }): Record<string, Resource> {
  return {
    '/messages': {
      POST: operation({ name: 'sendMessage', summary: 'Sends a message to the app in every ready worker, or in one',
        description: 'The app receives `{ type, from: \'admin\', data }` via `process.on(\'message\')`.',
        role: 'operator', cli: 'clusterdeck send {type} {data} --worker {worker}', body: ORDER, status: 202,
        problems: ['not-found', 'not-possible', 'stopping'], answer: SENT, form: { next: refuseNobody },
        handle: ({ body, auth }) => ({ body: deck.send({ ...body, actor: auth.actor }) }) })
    }
  }
}
