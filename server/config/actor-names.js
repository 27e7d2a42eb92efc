/** What a person is called in the history. */
export const PERSON = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

/** Actors for requests of people without a name of their own. */
const ASKERS = ['api', 'cli', 'dashboard']
/** Actors of what nobody has asked for. */
const NOBODY = ['guard', 'keeper', 'program', 'signal', 'system', 'watch']
export const TAKEN = Object.freeze([...ASKERS, ...NOBODY].sort())

/** Whether it can be a person, and is not something that acts by itself. @param {string} actor */
export function isSomebody (actor) {
  return PERSON.test(actor) && !NOBODY.includes(actor.toLowerCase())
}
