/**
 * All that stands before the last `@` of a host: a password may have signs that an address should not. The user of ssh
 * is no secret.
 */
const USER = /(?<=:\/\/)[^\s/"<>]+@/g
const SSH = /ssh:\/\/$/i

/**
 * Takes users, tokens and passwords out of the addresses in a text: out of options, errors and whatever git or an app
 * may write.
 */
export function withoutUrlSecrets (text: string) {
  return text.includes('://')
    ? text.replace(USER, (user, at) =>
      SSH.test(text.slice(Math.max(0, at - 6), at)) && !user.includes(':') ? user : '…@')
    : text
}
