import { Option } from 'commander'
import { MEMBER_NAME } from '../config/member-name.js'
import { DeckError } from '../errors.js'

/** A command that is meant for another member of the fleet goes to this deck, which asks that one. */

/** @template {import('commander').Command} C @param {C} command @param {{ isHidden: boolean }} how @returns {C} the same */
export function addMemberOption (command, { isHidden }) {
  return command.addOption(new Option('--member <name>', 'another member of its fleet, asked through it').hideHelp(isHidden))
}

/**
 * @param {import('commander').Command} command @param {string | undefined} onlyHere why no other deck does it
 * @returns {string | undefined}
 * @throws {DeckError} usage
 */
export function memberOf (command, onlyHere) {
  const { member } = command.opts()
  if (member === undefined) return undefined
  if (onlyHere !== undefined) throw new DeckError('usage', `${command.name()}: expected without --member: ${onlyHere}`)
  if (!MEMBER_NAME.test(member)) throw new DeckError('usage', `--member: expected the name of a member of the fleet, received ${JSON.stringify(member)}`)
  return member
}

/**
 * Another member may have another version, or answer anything.
 * @template T @param {string | undefined} member @param {() => Promise<T>} work @returns {Promise<T>} @throws {DeckError} also not-possible
 */
export async function explainUnreadableAnswer (member, work) {
  try {
    return await work()
  } catch (cause) {
    if (member === undefined || !(cause instanceof TypeError || cause instanceof RangeError || cause instanceof SyntaxError)) throw cause
    throw new DeckError('not-possible', `the answer of ${member} cannot be read (${cause.message})`, { cause })
  }
}
