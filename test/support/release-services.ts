import { createDrift } from '../../server/releases/drift.ts'
import { createSecretMask } from '../../server/releases/secret-mask.ts'

/** What is around the releases of an app that begins anew, and whose configuration nobody changes. */
export const releaseServices = () => ({ lastNumber: 0, usedByRuns: () => [], before: null, last: null, canWait: false,
  drift: createDrift(), mask: createSecretMask(), order: null, inherited: process.env, onError () {}, now: Date.now })
