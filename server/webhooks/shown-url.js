const HIDDEN = '…'
/** What services make secrets of is longer, or has more than small letters. */
const PLAIN_PART = /^(?:[a-z]{1,10}|v\d)?$/
const NAMED_VALUE = /^[\w.-]{1,30}(?==)/

/**
 * An address without what may be a secret: user, password, the values of the query, and each part of the path that is
 * no plain word, since with many services it is as good as a password.
 * @param {string} url
 */
export function shownUrl (url) {
  const { protocol, username, password, host, pathname, search, hash } = new URL(url)
  const user = username || password ? `${HIDDEN}@` : ''
  const path = pathname.split('/').map((part) => PLAIN_PART.test(part) ? part : HIDDEN).join('/')
  return `${protocol}//${user}${host}${path}${search && `?${search.slice(1).split('&').map(shownParameter).join('&')}`}${hash && `#${HIDDEN}`}`
}

/** @param {string} parameter a name alone may be a secret as well */
function shownParameter (parameter) {
  const [name] = NAMED_VALUE.exec(parameter) ?? []
  return name === undefined ? HIDDEN : `${name}=${HIDDEN}`
}
