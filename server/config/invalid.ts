import { DeckError } from '../errors.ts'

/** `source`: the name under which the value was given; `received`: what was received, in words */
export function invalid (source: string, expected: string, received: unknown) {
  return new DeckError('invalid-config', `${source}: expected ${expected}, received ${received}`)
}
