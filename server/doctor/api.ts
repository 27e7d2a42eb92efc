import { operation, type Resource } from '../api/endpoint.ts'
import { REPORT } from '../api/shapes.ts'
import type { Deck } from '../deck.ts'

export type { Report } from '../api/shapes.ts'

export function checkResources ({ deck }: { deck: Pick<Deck, 'examine'> }): Record<string, Resource> {
  return {
    '/checks': {
      GET: operation({ name: 'listChecks',
        summary: 'Checks the app and the machine, and says what could drop a request or lose a release',
        description:
          'It looks through the folder of the app, at the machine and at what the workers have shown so far, for a few seconds at most. It changes nothing.',
        role: 'viewer', cli: 'clusterdeck doctor', answer: REPORT,
        handle: async () => ({ body: await deck.examine() }) })
    }
  }
}
