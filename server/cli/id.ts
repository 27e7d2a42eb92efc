import { ID } from '../config/id.ts'
import { DeckError } from '../errors.ts'

/** `name`: the command or option, for the message @throws {DeckError} usage */
export function checkedId (name: string, text: string | undefined, of: string = 'a worker'): number {
  if (text !== undefined && ID.test(text)) return Number(text)
  throw new DeckError('usage',
    `${name}: expected the id of ${of}, received ${text === undefined ? 'nothing' : JSON.stringify(text)}`)
}
