import { Option } from 'commander'
import { MEMBER_NAME } from '../config/member-name.js'
import { DeckError } from '../errors.js'

/** A command that is meant for another member of the fleet goes to this deck, which asks that one. */

/** What no other deck does for somebody, and why. @type {Readonly<Record<string, string>>} */
const NOT_ELSEWHERE = Object.freeze({
  diagnose: 'what is taken of a process holds its secrets, and stays on its machine',
  fleet: 'the fleet is the same for all its members',
  open: 'a sign-in link is made by the deck to which it leads',
  stop: 'a deck is stopped on its own machine',
  tokens: 'the tokens of a deck are its own',
  upgrade: 'a master is upgraded on its own machine'
})

/** @param {import('commander').Command} command @returns {import('commander').Command} the same */
export function addMemberOption (command) {
  return command.addOption(new Option('--member <name>', 'not it, but another one of its fleet, which it asks').hideHelp(Object.hasOwn(NOT_ELSEWHERE, command.name())))
}

/** @param {import('commander').Command} command @returns {string | undefined} @throws {DeckError} usage */
export function memberOf (command) {
  const { member } = command.opts()
  if (member === undefined) return undefined
  const name = command.name()
  if (Object.hasOwn(NOT_ELSEWHERE, name)) throw new DeckError('usage', `${name}: expected without --member: ${NOT_ELSEWHERE[name]}`)
  if (!MEMBER_NAME.test(member)) throw new DeckError('usage', `--member: expected the name of a member of the fleet, received ${JSON.stringify(member)}`)
  return member
}

/**
 * What another member answers is its own business, and may be anything.
 * @template T @param {string | undefined} member @param {() => Promise<T>} work @returns {Promise<T>} @throws {DeckError} also not-possible
 */
export async function understood (member, work) {
  try {
    return await work()
  } catch (cause) {
    if (member === undefined || !(cause instanceof TypeError || cause instanceof RangeError || cause instanceof SyntaxError)) throw cause
    throw new DeckError('not-possible', `${member} answers in a way that is not understood here (${cause.message})`, { cause })
  }
}
