/** What a person is called in the history. */
export const PERSON = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

/** Who acts with the token of the data folder, or with a link made by it for nobody in particular. */
export const OWNER = 'the owner\'s token'

/** Who acts from another member of the fleet. `actor`: there. */
export function nameAt (actor: string, member: string) {
  return actor === OWNER ? `${OWNER} on ${member}` : `${actor}@${member}`
}

/** Behind the name of whom a proxy has signed in. No token has such a name, as it has a space. */
export const BY_PROXY = ' (proxy)'

/** Whether a proxy may call somebody so: by nothing that turns a text around, ends a line or passes for more of it. */
export function isProxyUser (user: string) {
  return user.length <= 90 && /^(?:[^\p{C}\p{Z}\ufffd(),]| )+$/u.test(user)
}

/** Names that would be taken for the owner. */
const ASKERS = ['api', 'cli', 'dashboard', 'owner']
/** Actors of what nobody has asked for. */
const NOBODY = ['cron', 'guard', 'keeper', 'program', 'signal', 'system', 'watch']
export const TAKEN = Object.freeze([...ASKERS, ...NOBODY].sort())

/** Whether it can be a person, and is not something that acts by itself. */
export function isSomebody (actor: string) {
  return actor === OWNER || (PERSON.test(actor) && !NOBODY.includes(actor.toLowerCase())) ||
    (actor.endsWith(BY_PROXY) && isProxyUser(actor.slice(0, -BY_PROXY.length)))
}
