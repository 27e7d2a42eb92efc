// The package says in plain words what the schemas of the options and of the API say. It is compiled, and never run.
import type * as InPackage from 'clusterdeck'
import type * as InCode from '../../../server/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false

// These have all the others in them.
export const isDeckSame: Same<InPackage.Deck, InCode.Deck> = true
export const areOptionsSame: Same<InPackage.StartOptions, InCode.StartOptions> = true
