/** What a person is called in the history. */
export const PERSON = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

/** Who acts with the token of the data folder, or with a link made by it for nobody in particular. */
export const OWNER = 'the owner\'s token'

/** Who acts from another member of the fleet. `actor`: there. */
export function nameAt (actor: string, member: string) {
  return actor === OWNER ? `${OWNER} on ${member}` : `${actor}@${member}`
}

/** Names that would be taken for the owner. */
const ASKERS = ['api', 'cli', 'dashboard', 'owner']
/** Actors of what nobody has asked for. */
const NOBODY = ['cron', 'guard', 'keeper', 'program', 'signal', 'system', 'watch']
export const TAKEN = Object.freeze([...ASKERS, ...NOBODY].sort())

/** Whether it can be a person, and is not something that acts by itself. */
export function isSomebody (actor: string) {
  return actor === OWNER || (PERSON.test(actor) && !NOBODY.includes(actor.toLowerCase()))
}
