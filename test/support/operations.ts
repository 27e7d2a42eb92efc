import { operationsOf } from '../../server/admin/deck-site.ts'
import { hostOperations } from '../../server/admin/host-site.ts'
import { callOf, operationsByName } from '../../server/api/form.ts'
import { fake } from './fake.ts'
import { present } from './present.ts'

/** The operations of an app, by name. */
export const OPERATIONS = operationsByName(
  operationsOf(fake({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({}))
)

/** Those of a host itself, by name. */
export const HOST_OPERATIONS = operationsByName(
  hostOperations(fake({ apps: {}, history: {}, access: { sessions: {} }, now: Date.now }), () => ({}))
)

/** `names`: separated by commas, as a form has them */
export function callsOf (names: string) {
  return names.split(',').map((name) => callOf(present(OPERATIONS.get(name))))
}
