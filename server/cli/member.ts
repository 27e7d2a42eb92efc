import { Option, type Command } from 'commander'
import { MEMBER_NAME } from '../config/member-name.ts'
import { DeckError } from '../errors.ts'
import { misuse } from './usage.ts'

/** A command that is meant for another member of the fleet goes to this deck, which asks that one. */

/** @returns the same */
export function addMemberOption<C extends Command> (command: C, { isHidden }: { isHidden: boolean }): C {
  return command.addOption(
    new Option('--member <name>', 'another member of its fleet, asked through it').hideHelp(isHidden)
  )
}

/** `onlyHere`: why no other deck does it @throws {DeckError} usage */
export function memberOf (command: Command, onlyHere: string | undefined): string | undefined {
  const { member } = command.opts()
  if (member === undefined) return undefined
  if (onlyHere !== undefined) throw new DeckError('usage', `${command.name()}: expected without --member: ${onlyHere}`)
  if (!MEMBER_NAME.test(member)) throw misuse('--member', 'the name of a member of the fleet', JSON.stringify(member))
  return member
}

/**
 * Another member may have another version, or answer anything.
 * @throws {DeckError} also not-possible
 */
export async function explainUnreadableAnswer<T> (member: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (member === undefined ||
      !(cause instanceof TypeError || cause instanceof RangeError || cause instanceof SyntaxError)) throw cause
    throw new DeckError('not-possible', `the answer of ${member} cannot be read (${cause.message})`, { cause })
  }
}
