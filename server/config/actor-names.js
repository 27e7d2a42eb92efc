/** As the history names a person. */
export const PERSON = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

/** As it names who has no name there, but has asked. */
const ASKERS = ['api', 'cli', 'dashboard']
/** As it names what nobody has asked for. */
const NOBODY = ['guard', 'keeper', 'program', 'signal', 'system', 'watch']
export const TAKEN = Object.freeze([...ASKERS, ...NOBODY].sort())

/** Whether somebody may be meant by it, and nothing that happens by itself. @param {string} actor */
export function isSomebody (actor) {
  return PERSON.test(actor) && !NOBODY.includes(actor.toLowerCase())
}
